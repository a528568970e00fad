#!/usr/bin/env python3
"""What messages cost: processor time of the server per request, or per message that it delivers.

    tools/perf/messages.py [--requests 800000] [--only REGEX] [--tries 3] NAME=COMMAND ...

A command has `{port}` and `{dir}`.

`redis` alone stands for redis-server. lg.c sends the requests; a process of its own reads
what subscribers receive, and everything must arrive. Servers run on core 0, all else on core 1.
Each figure is the median of the tries; in parentheses, of the first server's.
"""

import argparse
import glob
import pathlib
import re
import selectors
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time

REDIS = 'redis-server --port {port} --dir {dir} --save "" --appendonly no --logfile ""'
ON_CORE_0, ON_CORE_1 = ["taskset", "-c", "0"], ["taskset", "-c", "1"]
SUBSCRIBERS = 50
PATTERNS = 10_000
KEYS = 100_000
MESSAGE = "x" * 16
EVENTS = "__key*__:*"

# Label, connections and pipeline of the publishers, what they send, what is subscribed to.
POINTS = [
    ("PUBLISH to nobody, P=16", 50, 16, "publish", None),
    ("PUBLISH to nobody, P=64", 50, 64, "publish", None),
    ("PUBLISH to 50, P=16, per message", 1, 16, "publish", "channel"),
    ("PUBLISH to 50, P=256, per message", 1, 256, "publish", "channel"),
    ("PUBLISH beside 10,000 patterns, P=16", 50, 16, "publish", "patterns"),
    ("SET, KEA, one subscriber, P=16", 50, 16, "set", "events"),
    ("SET, no events, P=16", 50, 16, "set", None),
    ("GET by clients that track, P=16", 50, 16, "get", "tracked"),
    ("GET, nobody tracks, P=16", 50, 16, "get", None),
]


def cpu_s(pid):
    """Of all threads that live; in nanoseconds from the scheduler, as ticks are too coarse here."""
    texts = [open(path).read() for path in glob.glob(f"/proc/{pid}/task/*/schedstat")]
    return sum(int(text.split()[0]) for text in texts) / 1e9


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
    """Subscribes, says so, and reads until `count` bytes have come to each."""
    wires = []
    for _ in range(SUBSCRIBERS if what == "channel" else 1):
        wire = connect(port)
        if what == "channel":
            wire.sendall(request("SUBSCRIBE", "c"))
        elif what == "events":
            wire.sendall(request("PSUBSCRIBE", EVENTS))
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
            assert got > 0, "the server closed a subscriber"
            if count and key.data[0] >= count:
                waiting.unregister(key.fileobj)
    print("done", flush=True)


def load(generator, port, point, requests):
    _, connections, depth, op, what = point
    words = [*ON_CORE_1, generator, "-p", port, "-c", connections, "-P", depth, "-n", requests,
             "-r", KEYS, "-v", len(MESSAGE), "-t", op]
    if what == "tracked" and op == "get":
        words += ["-B", "CLIENT TRACKING ON"]
    subprocess.run([str(word) for word in words], stdout=subprocess.DEVNULL, check=True)


def once(generator, command, point, requests):
    label, _, _, op, what = point
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        words_of = shlex.split(command.format(port=port, dir=folder))
        server = subprocess.Popen(ON_CORE_0 + words_of, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        connect(port).close()
        key = "key:000000000000"
        received = {
            "channel": [("message", "c", MESSAGE)],
            "events": [("pmessage", EVENTS, f"__keyspace@0__:{key}", "set"),
                       ("pmessage", EVENTS, "__keyevent@0__:set", key)],
        }
        wanted = requests * sum(len(request(*words)) for words in received.get(what, []))
        ask(port, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
        if op != "publish":
            load(generator, port, (*point[:3], "set", None), 20 * KEYS)
        reader = None
        if what and what != "tracked":
            if what == "events":
                ask(port, "CONFIG", "SET", "notify-keyspace-events", "KEA")
            reader = subprocess.Popen(
                [*ON_CORE_1, sys.executable, __file__, "--read", f"{port},{what},{wanted}"],
                stdout=subprocess.PIPE, text=True)
            assert reader.stdout.readline() == "subscribed\n"
            time.sleep(0.3)
        before = cpu_s(server.pid)
        load(generator, port, point, requests)
        if wanted:
            assert reader.stdout.readline() == "done\n", f"{label}: messages were lost"
        us = (cpu_s(server.pid) - before) / requests * 1e6
        if reader:
            reader.kill()
            reader.wait()
        server.kill()
        server.wait()
        return us / SUBSCRIBERS if what == "channel" else us


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=800_000)
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
    with tempfile.TemporaryDirectory() as folder:
        generator = f"{folder}/lg"
        source = pathlib.Path(__file__).with_name("lg.c")
        subprocess.run(["gcc", "-O3", "-w", "-o", generator, source], check=True)
        for point in POINTS:
            if re.search(options.only, point[0]):
                print(row(generator, servers, point, options), flush=True)


def row(generator, servers, point, options):
    def requests(command):
        if point[4] == "patterns" and command == REDIS:
            return options.requests // 200  # each takes half a millisecond
        return options.requests // (10 if point[4] == "channel" else 1)

    tries = [[once(generator, command, point, requests(command)) for _, command in servers]
             for _ in range(options.tries)]
    us = [statistics.median(column) for column in zip(*tries)]
    cells = [f"{us[0]:.3f}", *(f"{it:.3f} ({it / us[0]:.3g})" for it in us[1:])]
    return f"| {point[0]} | " + " | ".join(cells) + " |"


main()
