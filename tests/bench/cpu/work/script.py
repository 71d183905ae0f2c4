# An ordinary script: text into words, records as objects, JSON there and back, sorting.
import json
import re
import sys


class Record:
    def __init__(self, number, name):
        self.number = number
        self.name = name
        self.tags = [name[k:] for k in range(0, len(name), 3)]


def main(rounds):
    total = 0
    for r in range(rounds):
        text = " ".join("word%d of-%x" % (k * k % 9973, k * 7919 % 65536) for k in range(10000))
        words = {}
        for word in re.findall(r"[a-z]+[-\d]*", text):
            words.setdefault(word, []).append(len(word))
        records = [Record(k, word + str(r)) for k, word in enumerate(words)]
        records.sort(key=lambda x: (len(x.tags), x.name))
        dump = json.dumps([{"n": x.number, "name": x.name, "tags": x.tags} for x in records])
        for x in json.loads(dump):
            total = (total * 31 + x["n"] + len(x["tags"])) % (1 << 61)
        total += len(b"".join(bytes(len(x.name) * 40) for x in records))
    print(total)


main(int(sys.argv[1]))
