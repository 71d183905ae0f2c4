// What a server in node does: JSON, buffers (which are malloc'ed), compression.
'use strict';
const zlib = require('zlib');

let total = 0;
const rounds = Number(process.argv[2]);
for (let r = 0; r < rounds; r++) {
	const rows = [];
	for (let k = 0; k < 3000; k++)
		rows.push({ id: k, name: 'row ' + ((k * 7919) % 65536), tags: [k % 7, k % 11, r] });
	const text = JSON.stringify(rows);
	const packed = zlib.deflateSync(Buffer.from(text), { level: 1 });
	const back = JSON.parse(zlib.inflateSync(packed).toString());
	const parts = back.map((row) => Buffer.alloc(100 + (row.id * 37) % 9000, row.name));
	total = (total * 31 + Buffer.concat(parts).length + packed.length) % 1000000007;
	for (const p of parts)
		total = (total + p[p.length - 1]) % 1000000007;
}
console.log(total);
