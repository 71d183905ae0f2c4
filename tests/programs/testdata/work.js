// JSON, typed arrays, zlib, worker threads with transfers, child processes.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync, spawn } = require('child_process');
const crypto = require('crypto');
const zlib = require('zlib');

const md5 = (data) => crypto.createHash('md5').update(data).digest('hex');

function churn(seed) {
  const held = new Map();
  let x = seed, sum = 0;
  for (let i = 0; i < 60000; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    const key = (x >>> 8) % 500;
    if (held.has(key)) { sum += held.get(key).length; held.delete(key); }
    else held.set(key, i % 3 ? Buffer.alloc((x >>> 16) % 9000, 1) : 'text'.repeat((x >>> 16) % 90));
  }
  return [seed, sum, held.size];
}

if (!isMainThread) {
  const data = new Uint8Array(300000).fill(workerData);
  parentPort.postMessage({ result: churn(workerData), data }, [data.buffer]);
} else {
  main();
}

async function main() {
  const rows = Array.from({ length: 20000 }, (_, i) => ({ id: i, name: `row ${i}`, list: Array(i % 7).fill(i / 3) }));
  const text = JSON.stringify(rows);
  console.log('json', text.length, md5(text), JSON.parse(text).length, text.match(/"row \d*7"/g).length);
  for (const [pack, unpack] of [['gzipSync', 'gunzipSync'], ['brotliCompressSync', 'brotliDecompressSync']]) {
    const options = pack[0] === 'b' ? { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } } : {};
    const packed = zlib[pack](text, options);
    console.log(pack, packed.length, md5(packed), zlib[unpack](packed).toString() === text);
  }
  const packs = await Promise.all(Array.from({ length: 8 }, (_, i) => new Promise((done) =>
    zlib.deflate(text.slice(i * 1000), (err, data) => done(err || md5(data))))));
  console.log('deflate in the pool', packs.join(' '));
  const answers = await Promise.all([1, 2, 3, 4].map((n) => new Promise((done, fail) => {
    const w = new Worker(__filename, { workerData: n });
    w.on('message', (m) => done([m.result, m.data.length, m.data[7]]));
    w.on('error', fail);
  })));
  console.log('workers', JSON.stringify(answers));
  console.log('child', execFileSync('sort', ['-rn'], { input: '1\n10\n9\n' }).toString().split('\n'));
  const code = await new Promise((done) => spawn(process.execPath, ['-e', 'process.exit(6)']).on('exit', done));
  console.log('node in node', code);
  console.log('scrypt', crypto.scryptSync('word', 'salt', 32).toString('hex'));
  process.exitCode = 4;
}
