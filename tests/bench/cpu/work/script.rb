# Strings, hashes, arrays and objects with many instance variables.
Item = Struct.new(:id, :name, :tags)
total = 0
ARGV[0].to_i.times do |r|
  all = (0...15000).map { |i| Item.new(i, "item #{(i * 7919 % 65536).to_s(16)}", (0..i % 7).map { |k| "tag#{k * i}" }) }
  words = Hash.new(0)
  all.each { |x| x.tags.each { |t| words[t] += 1 } }
  all.sort_by! { |x| x.name }
  text = all.map { |x| "#{x.id},#{x.name},#{x.tags.join('|')}" }.join("\n")
  text.each_line { |line| a = line.chomp.split(','); total = (total * 31 + a[1].length + a.length) % 1_000_000_007 }
  total += words.size + text.gsub(/item (\h+)/) { $1.upcase }.length
end
puts total
