"""A program whose blocks come from functions of Python. A comment names each line that allocates,
or calls what does."""
import threading

kept = []


class Store:
    def load(self, n):
        for _ in range(n):
            kept.append(bytes(3001))  #: load


def table(n):
    return [bytearray(20001) for _ in range(n)]  #: table


def compared(b):
    kept.append(bytes(5001))  #: compared
    return b


def deep(n):
    if n:
        return deep(n - 1)  #: deep
    kept.append(bytes(70001))  #: bottom


def généré(n):
    for _ in range(n):
        yield bytes(9001)  #: generator


Store().load(900)  #: module
kept.append(table(90))  #: kept
sorted([3, 1, 2] * 100, key=compared)  #: sorted
deep(20)  #: call
kept.extend(généré(200))  #: extend
thread = threading.Thread(target=Store().load, args=(900,), name="other")
thread.start()
thread.join()
