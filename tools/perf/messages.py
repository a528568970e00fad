#!/usr/bin/env python3
"""What messages cost: processor time of the server per request, or per message that it delivers.

    tools/perf/messages.py [--requests 400000] [--only REGEX] [--tries 3] NAME='COMMAND with {port} and {dir}' ...

`redis` alone stands for redis-server. redis-benchmark sends the requests; a process of its own reads
what subscribers receive, and everything must arrive. Each figure is the least of all tries, since a
try may be disturbed from outside.
"""

import argparse
import re
import selectors
import shlex
import socket
import subprocess
import sys
import tempfile
import time

REDIS = 'redis-server --port {port} --dir {dir} --save "" --appendonly no --logfile ""'
SUBSCRIBERS = 50
PATTERNS = 10_000
MESSAGE = "0123456789abcdef"

# Label, connections and pipeline of the publishers, what they send, what is subscribed to.
POINTS = [
    ("PUBLISH to nobody, P=16", 50, 16, ["PUBLISH", "c", MESSAGE], None),
    ("PUBLISH to nobody, P=64", 50, 64, ["PUBLISH", "c", MESSAGE], None),
    ("PUBLISH to 50, P=16, per message", 1, 16, ["PUBLISH", "c", MESSAGE], "channel"),
    ("PUBLISH to 50, P=256, per message", 1, 256, ["PUBLISH", "c", MESSAGE], "channel"),
    ("PUBLISH beside 10,000 patterns, P=16", 50, 16, ["PUBLISH", "c", MESSAGE], "patterns"),
    ("SET, KEA, one subscriber, P=16", 50, 16, ["SET", "key:__rand_int__", MESSAGE], "events"),
    ("SET, no events, P=16", 50, 16, ["SET", "key:__rand_int__", MESSAGE], None),
]


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def request(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


def connect(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.05)
    sys.exit("the server did not start")


def ask(port, *words):
    with connect(port) as wire:
        wire.sendall(request(*words))
        return wire.recv(1 << 16)


def subscribers(port, what, count):
    """Subscribes, says so, and reads until `count` bytes have come to each, or they stop coming."""
    wires = []
    for _ in range(SUBSCRIBERS if what == "channel" else 1):
        wire = connect(port)
        if what == "channel":
            wire.sendall(request("SUBSCRIBE", "c"))
        elif what == "events":
            wire.sendall(request("PSUBSCRIBE", "__key*__:*"))
        else:
            for first in range(0, PATTERNS, 100):
                names = [f"pattern:{n}:*" for n in range(first, first + 100)]
                wire.sendall(request("PSUBSCRIBE", *names))
        wires.append(wire)
    time.sleep(0.5)
    waiting = selectors.DefaultSelector()
    for wire in wires:
        wire.recv(1 << 22)
        wire.setblocking(False)
        waiting.register(wire, selectors.EVENT_READ, [0])
    print("subscribed", flush=True)
    room = bytearray(1 << 20)
    while waiting.get_map():
        for key, _ in waiting.select():
            got = key.fileobj.recv_into(room)
            key.data[0] += got
            if got == 0 or (count and key.data[0] >= count):
                waiting.unregister(key.fileobj)
    print("done", flush=True)


def once(command, point, requests):
    label, connections, depth, words, what = point
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        words_of = shlex.split(command.format(port=port, dir=folder))
        server = subprocess.Popen(words_of, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connect(port).close()
        message = len(f"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$16\r\n{MESSAGE}\r\n")
        wanted = requests * message if what == "channel" else 0
        reader = None
        if what:
            if what == "events":
                ask(port, "CONFIG", "SET", "notify-keyspace-events", "KEA")
            reader = subprocess.Popen(
                [sys.executable, __file__, "--read", f"{port},{what},{wanted}"],
                stdout=subprocess.PIPE, text=True)
            assert reader.stdout.readline() == "subscribed\n"
            time.sleep(0.3)
        before = cpu_s(server.pid)
        load = ["redis-benchmark", "-p", port, "-c", connections, "-P", depth, "-n", requests,
                "-r", 1_000_000, "-q", *words]
        subprocess.run([str(word) for word in load], stdout=subprocess.DEVNULL, check=True)
        if what == "channel":
            assert reader.stdout.readline() == "done\n", f"{label}: messages were lost"
        elif what == "events":
            time.sleep(1)
        us = (cpu_s(server.pid) - before) / requests * 1e6
        if reader:
            reader.kill()
            reader.wait()
        server.kill()
        server.wait()
        return us / SUBSCRIBERS if what == "channel" else us


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=400_000)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--only", default=".")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND")
    options = parser.parse_args()
    if options.read:
        port, what, count = options.read.split(",")
        return subscribers(int(port), what, int(count))
    servers = [("redis", REDIS) if s == "redis" else s.split("=", 1) for s in options.servers]
    print("| microseconds of CPU | " + " | ".join(name for name, _ in servers) + " |")
    print("|---|" + "---|" * len(servers))
    for point in POINTS:
        if not re.search(options.only, point[0]):
            continue
        requests = options.requests // (10 if point[4] == "channel" else 1)
        requests //= 20 if point[4] == "patterns" else 1
        tries = [[once(command, point, requests) for _, command in servers]
                 for _ in range(options.tries)]
        least = [min(column) for column in zip(*tries)]
        cells = [f"{us:.3f}" if us == least[0] else f"{us:.3f} ({us / least[0]:.2f})"
                 for us in least]
        print(f"| {point[0]} | " + " | ".join(cells) + " |", flush=True)


main()
