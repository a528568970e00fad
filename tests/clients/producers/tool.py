#!/usr/bin/env python3
"""The Python producer as the tests drive it: tool.py HOST PORT PRODUCER [OPTION=VALUE...], then one command a line.

Every command is answered by one line. `tool.c` and the example `producer_tool` of crates/producer understand the same:

    send COUNT SIZE PREFIX MS   messages PREFIXn, n counting from 0, filled with dots to SIZE; MS for each   sent LAST
    try SIZE                    sends without waiting until there is no room                                  full LAST
    flush MS / close MS / poll MS                                                                             ok ACKNOWLEDGED
    state                                                                                                     state LAST ACKNOWLEDGED RECONNECTS
    left                        what is not acknowledged                                                      left COUNT FIRST PAYLOAD-OF-FIRST

or by `error KIND CODE TEXT`. At first: open LAST.
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
import sheafdb_producer as sp  # noqa: E402

KINDS = [
    (sp.WouldBlock, "would-block"), (sp.Timeout, "timeout"), (sp.MessageTooLarge, "too-large"), (sp.Closed, "closed"),
    (sp.ProtocolError, "protocol"), (sp.NumbersDisagree, "disagree"), (sp.ServerError, "server"),
]
made = 0


def told(error):
    kind = next((name for known, name in KINDS if isinstance(error, known)), "other")
    text = error.text if kind == "server" else str(error)
    return f"error {kind} {getattr(error, 'code', 0)} {text}"


def payload(prefix, size):
    global made
    made += 1
    return f"{prefix}{made - 1}".encode().ljust(size, b".")


def full(producer, size):
    global made
    try:
        while True:
            producer.send(payload("", size), timeout=0)
    except sp.WouldBlock:
        made -= 1  # this one is to come again
    return f"full {producer.last}"


def poll(producer, ms):
    until = time.monotonic() + ms / 1000
    while (producer.check(), time.monotonic() < until)[1]:
        time.sleep(0.002)


def command(producer, word, *words):
    if word == "send":
        for _ in range(int(words[0])):
            producer.send(payload(words[2], int(words[1])), timeout=int(words[3]) / 1000)
        return f"sent {producer.last}"
    if word == "try":
        return full(producer, int(words[0]))
    if word == "state":
        return f"state {producer.last} {producer.acknowledged} {producer.reconnects}"
    if word == "left":
        left = producer.unacknowledged()
        return f"left {len(left)} {left[0][0]} {left[0][1].decode()}" if left else "left 0 0 -"
    if word == "poll":
        poll(producer, int(words[0]))
    else:
        {"flush": producer.flush, "close": producer.close}[word](int(words[0]) / 1000)
    return f"ok {producer.acknowledged}"


def options(words):
    given = dict(word.split("=", 1) for word in words)
    text = {name: given.pop(name) for name in ("key", "sink", "level", "strategy", "user", "password") if name in given}
    backoff = tuple(int(given.pop(f"backoff_{end}_ms", default)) / 1000 for end, default in (("min", 20), ("max", 2000)))
    numbers = {}
    for name, value in given.items():
        numbers[name.removesuffix("_ms")] = int(value) / 1000 if name.endswith("_ms") else int(value)
    flags = {name: bool(numbers.pop(name)) for name in ("exact", "resume") if name in numbers}
    return dict(backoff=backoff, **text, **numbers, **flags)


def main():
    host, port, name, *words = sys.argv[1:]
    try:
        producer = sp.Producer(host, int(port), name, **options(words))
    except sp.SheafError as error:
        return print(told(error), flush=True)
    print(f"open {producer.last}", flush=True)
    for line in sys.stdin:
        try:
            answer = command(producer, *line.split())
        except sp.SheafError as error:
            answer = told(error)
        print(answer, flush=True)


main()
