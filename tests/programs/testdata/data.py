"""Libraries with C parts: json, re, sqlite3, ctypes, asyncio, compression."""
import asyncio
import bz2
import collections
import ctypes
import gc
import hashlib
import json
import lzma
import pickle
import re
import sqlite3
import zlib

rows = [{"id": i, "name": f"row {i}", "tags": [str(j) for j in range(i % 9)], "x": i / 3} for i in range(8000)]
text = json.dumps(rows)
print("json", len(text), json.loads(text) == rows, hashlib.md5(text.encode()).hexdigest())
print("pickle", pickle.loads(pickle.dumps(rows)) == rows)
print("re", len(re.findall(r'"name": "row (\d*7)"', text)), len(re.sub(r"[aeiou]|\d+", "<>", text)))
words = collections.Counter(re.split(r"\W+", text))
print("counter", words.most_common(5))

for name, codec in (("zlib", zlib), ("bz2", bz2), ("lzma", lzma)):
    packed = codec.compress(text.encode())
    print(name, len(packed), hashlib.md5(packed).hexdigest(), codec.decompress(packed).decode() == text)

db = sqlite3.connect(":memory:")
db.execute("create table t(id integer primary key, name text, x real)")
db.executemany("insert into t values(:id, :name, :x)", rows)
print("sqlite3", db.execute("select count(*), sum(x), max(name) from t where id % 7 = 3").fetchall())
db.create_function("twice", 1, lambda v: v * 2)
print(db.execute("select group_concat(twice(name)) from t where id < 6").fetchall())

libc = ctypes.CDLL(None)
for f in (libc.malloc, libc.calloc, libc.realloc):
    f.restype = ctypes.c_void_p
libc.realloc.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
libc.free.argtypes = (ctypes.c_void_p,)
libc.malloc_usable_size.argtypes = (ctypes.c_void_p,)
libc.malloc_usable_size.restype = ctypes.c_size_t
p = libc.malloc(100)
ctypes.memset(p, 65, 100)
for size in (200, 5000, 3 << 20, 40 << 20, 10):
    p = libc.realloc(p, size)
    assert ctypes.string_at(p, min(size, 100)) == b"A" * min(size, 100), size
    assert p % 16 == 0 and libc.malloc_usable_size(p) >= size
libc.free(p)
p = libc.calloc(1000, 77)
print("ctypes", ctypes.string_at(p, 77000) == bytes(77000))
libc.free(p)
strdup = libc.strdup
strdup.restype = ctypes.c_void_p
p = strdup(b"given by libc")
print(ctypes.string_at(p))
libc.free(p)


async def echo(reader, writer):
    writer.write((await reader.read(100000)).upper())
    writer.close()


async def talk(path, n):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"a" * n)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return len(answer), answer[:1]


async def main():
    server = await asyncio.start_unix_server(echo, "socket")
    print("asyncio", await asyncio.gather(*(talk("socket", n) for n in range(100, 3000, 100))))
    print(await asyncio.to_thread(sum, range(1000)))
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print((await child.communicate(b"through cat"))[0], child.returncode)
    server.close()

asyncio.run(main())

try:
    bytearray(1 << 48)  # more than the address space: no overcommit can grant it
except MemoryError:
    print("MemoryError for 256 TiB")


class Node:
    def __init__(self, other):
        self.other, self.load = other, [None] * 30
        other and setattr(other, "back", self)


node = None
for i in range(60000):
    node = Node(node) if i % 50 else Node(None)
node = None
print("gc", gc.collect() > 0, gc.collect())
