#!/usr/bin/env python3
"""How much memory comes back: resident over used bytes when keys of one size make place for others.

    tools/perf/memory_back.py [--keys 5000000] [--threads 1] NAME='COMMAND with {port}, {dir}, {threads}' ...

For each server: fill with values of 150 bytes, delete 60 % of the keys at random, fill with values of
500 bytes until as much is used as before; the same with hashes and with sorted sets of ten elements.
Then FLUSHALL, and the resident memory ten seconds later, beside that of the fresh process. With the
longest step of defragmentation, where INFO stats says it, and the entries that it has moved.
"""

import argparse
import random
import re
import shlex
import socket
import subprocess
import tempfile
import time

BATCH = 1000


class Server:
    def __init__(self, command, threads):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = shlex.split(command.format(port=self.port, dir=self.folder.name, threads=threads))
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.05)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.send([words])
        return self.reply()

    def send(self, commands):
        parts = []
        for words in commands:
            parts.append(b"*%d\r\n" % len(words))
            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))

    def reply(self):
        line = self.file.readline()
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)
        if line[:1] == b"-":
            raise RuntimeError(line)
        return line

    def all(self, commands):
        batch = []
        for words in commands:
            batch.append(words)
            if len(batch) == BATCH:
                self.flush(batch)
        self.flush(batch)

    def flush(self, batch):
        self.send(batch)
        for _ in batch:
            self.reply()
        batch.clear()

    def memory(self):
        info = self.ask("INFO", "memory").decode()
        used = int(re.search(r"used_memory:(\d+)", info).group(1))
        with open(f"/proc/{self.process.pid}/statm") as file:
            return used, int(file.read().split()[1]) * 4096

    def stat(self, name):
        """A field of INFO stats; "-" if the server has none of this name."""
        found = re.search(rf"{name}:(\d+)", self.ask("INFO", "stats").decode())
        return found.group(1) if found else "-"

    def end(self):
        self.process.kill()
        self.process.wait()


def fill_until(server, used, make, start):
    """Adds keys until so much is used; returns their number."""
    n = start
    while server.memory()[0] < used:
        server.all(make(n + i) for i in range(10 * BATCH))
        n += 10 * BATCH
    return n - start


def string(size):
    value = b"v" * size
    return lambda n: (b"SET", b"s%d:%d" % (size, n), value)


def hash_of(size):
    value = b"v" * (size // 10)
    return lambda n: (b"HSET", b"h%d:%d" % (size, n)) + tuple(
        word for field in range(10) for word in (b"field%d" % field, value)
    )


def zset_of(size):
    member = b"m" * (size // 10)
    return lambda n: (b"ZADD", b"z%d:%d" % (size, n)) + tuple(
        word for i in range(10) for word in (b"%d" % (n * i), b"%b%d" % (member, i))
    )


def run(name, command, threads, keys, kind, make):
    server = Server(command, threads)
    fresh = server.memory()[1]
    small, large = make(150), make(500)
    server.all(small(n) for n in range(keys))
    used, _ = server.memory()
    order = random.Random(1).sample(range(keys), keys * 6 // 10)
    server.all((b"DEL", small(n)[1]) for n in order)
    after = server.memory()
    fill_until(server, used, large, 0)
    time.sleep(2)
    full = server.memory()
    step, moved = (server.stat(f"active_defrag_{name}") for name in ("step_max_us", "hits"))
    server.ask("FLUSHALL")
    time.sleep(10)
    left = server.memory()[1] - fresh
    ratio = lambda pair: pair[1] / pair[0]
    print(
        f"{name:8} {kind:8} after deletions {ratio(after):.2f}  filled again {ratio(full):.3f}  "
        f"{left / 2**20:.1f} MiB above a fresh process after FLUSHALL  ({used / 2**20:.0f} MiB)  "
        f"longest step {step} us, {moved} moved",
        flush=True,
    )
    server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    for kind, make, part in [("strings", string, 1), ("hashes", hash_of, 4), ("zsets", zset_of, 4)]:
        for server in options.servers:
            name, command = server.split("=", 1)
            run(name, command, options.threads, options.keys // part, kind, make)


main()
