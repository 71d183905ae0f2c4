-- Tables and strings, each of which is a block of its own.
local total = 0
for round = 1, tonumber(arg[1]) do
	local count, rows = {}, {}
	for k = 1, 30000 do
		local word = string.format("w%x-%s", k * k % 9973, string.rep("x", k % 40))
		count[word] = (count[word] or 0) + 1
		rows[#rows + 1] = { k, word, { k % 7, k % 11, round } }
	end
	local words = {}
	for word in pairs(count) do
		words[#words + 1] = word
	end
	table.sort(words)
	for _, n in string.gmatch(table.concat(words, " "), "(w)(%d+)") do
		total = (total + #n) % 1000000007
	end
	table.sort(rows, function(a, b)
		if a[2] ~= b[2] then
			return a[2] < b[2]
		end
		return a[1] < b[1]
	end)
	for _, row in ipairs(rows) do
		total = (total * 31 + row[1] + row[3][round % 3 + 1]) % 1000000007
	end
end
print(string.format("%d", total))
