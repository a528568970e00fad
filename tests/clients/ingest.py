#!/usr/bin/env python3
"""An independent client of classic ingest, written from docs/formats/ingest.md with the standard library alone.

ingest.py HOST BASE_PORT RESP_PORT IDLE_SECONDS LIMIT [PART...]: the five strategies on BASE_PORT.. of a server whose
ingest-max-message is LIMIT. Parts about idle connections set ingest-idle-timeout to IDLE_SECONDS, the others to five minutes.
Prints one line per part; exits nonzero on the first surprise.
"""
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

HOST, BASE, RESP = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
IDLE_S, LIMIT = float(sys.argv[4]), int(sys.argv[5])
REQUEST_REPLY, THROTTLED, HEAD_REST, SYNC, ASYNC = range(5)
NAMES = ["request-reply", "throttled", "head-rest", "sync", "async"]
TICK_S = 0.005
# A processor may be away for many seconds.
PATIENCE_S = 120


def connect(strategy, receive_buffer=None):
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(PATIENCE_S)
    s.connect((HOST, BASE + strategy))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def message(strategy, number, payload=b"hello"):
    order = ">" if strategy == REQUEST_REPLY else "<"
    return struct.pack("<Q", number) + struct.pack(order + "I", len(payload)) + payload


class Acks:
    """Reads acknowledgements and checks that each follows the one before."""

    def __init__(self, strategy, sock):
        self.strategy, self.sock = strategy, sock
        self.size = 8 if strategy == REQUEST_REPLY else 12
        self.rest, self.previous, self.count, self.times = b"", -1, 0, []

    def take(self, data):
        now = time.monotonic()
        self.rest += data
        while len(self.rest) >= self.size:
            ack, self.rest = self.rest[: self.size], self.rest[self.size :]
            (number,) = struct.unpack("<Q", ack[:8])
            skipped = struct.unpack("<I", ack[8:])[0] if self.size == 12 else 0
            assert self.previous + skipped + 1 == number, (
                f"{NAMES[self.strategy]}: ack of {number}, {skipped} skipped, after {self.previous}"
            )
            self.previous = number
            self.count += 1
            self.times.append(now)

    def until(self, last):
        while self.previous < last:
            data = self.sock.recv(65536)
            assert data, f"closed after {self.previous}, {last} is missing"
            self.take(data)
        assert self.previous == last and not self.rest, (self.previous, last, self.rest)

    def until_closed(self):
        while True:
            data = self.sock.recv(65536)
            if not data:
                assert not self.rest, self.rest
                return
            self.take(data)

    def nothing_for(self, seconds):
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(65536)
            raise AssertionError(f"{NAMES[self.strategy]}: {data!r} came too early")
        except TimeoutError:
            pass
        self.sock.settimeout(PATIENCE_S)


def each(part):
    for strategy in range(5):
        part(strategy)


def stream(strategy):
    """Many messages of mixed sizes: every one is acknowledged once and in order."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    n = 20000
    data = b"".join(message(strategy, i, b"x" * (i * 7 % 90)) for i in range(n))
    writer = threading.Thread(target=s.sendall, args=(data,))
    writer.start()
    acks.until(n - 1)
    writer.join()
    s.close()


def splits(strategy):
    """A message cut at every place: no ack before its last byte, one after it."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    number = 0
    for cut in (1, 7, 8, 9, 11, 12, 13, 16):
        data = message(strategy, number)
        s.sendall(data[:cut])
        time.sleep(0.012)
        acks.nothing_for(0.003)
        s.sendall(data[cut:])
        acks.until(number)
        number += 1
    # Two and a half, then the rest: the half one is not claimed.
    data = b"".join(message(strategy, number + i) for i in range(3))
    s.sendall(data[:40])
    acks.until(number + 1)
    acks.nothing_for(0.02)
    s.sendall(data[40:])
    acks.until(number + 2)
    # Byte by byte.
    for i in range(number + 3, number + 6):
        for byte in message(strategy, i):
            s.sendall(bytes([byte]))
    acks.until(number + 5)
    s.close()


def sizes(strategy):
    """Payloads up to the limit, and an opaque id that is no number."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    for i, size in enumerate((0, 1, 65535, 65536, 65537, LIMIT)):
        s.sendall(message(strategy, i, b"\xff" * size))
        acks.until(i)
    s.close()
    s = connect(strategy)
    odd = b"\xff\x00\r\n\xfe*$\x80"
    order = ">" if strategy == REQUEST_REPLY else "<"
    s.sendall(odd + struct.pack(order + "I", 2) + b"ok")
    want = odd if strategy == REQUEST_REPLY else odd + bytes(4)
    got = b""
    while len(got) < len(want):
        got += s.recv(64)
    assert got == want, (got, want)
    s.close()


def cadence(strategy):
    """When acknowledgements come while messages keep coming, one write at a time."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    reader = threading.Thread(target=acks.until_closed)
    reader.start()
    started = time.monotonic()
    n = 0
    while time.monotonic() - started < 0.5:
        s.sendall(message(strategy, n))
        n += 1
        time.sleep(0.0005)
    ended = time.monotonic()
    s.shutdown(socket.SHUT_WR)
    reader.join()
    assert acks.previous == n - 1, (acks.previous, n)
    elapsed = ended - started
    gaps = sorted(b - a for a, b in zip(acks.times, acks.times[1:]))
    median = gaps[len(gaps) // 2] if gaps else 0
    if strategy in (REQUEST_REPLY,):
        assert acks.count == n, (acks.count, n)
    elif strategy in (THROTTLED, HEAD_REST):
        assert acks.count <= elapsed / TICK_S + 2, f"{acks.count} acks in {elapsed} s"
        assert acks.count >= elapsed / TICK_S / 3, f"{acks.count} acks in {elapsed} s"
        assert 0.004 < median < 0.0075, f"{NAMES[strategy]}: one every {median} s"
    elif strategy == SYNC:
        assert n / 8 <= acks.count <= n, (acks.count, n)
    else:
        # No silence of 5 ms but where this machine stalled: one for 22 blocks.
        assert n / 22 - 1 <= acks.count <= n / 8, (acks.count, n)
    return f"{acks.count} acks for {n} messages, median gap {median * 1000:.1f} ms"


def silence(strategy):
    """A lone message is acknowledged within 5 ms, whatever the strategy."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    waits = []
    for i in range(40):
        time.sleep(0.0137)
        began = time.monotonic()
        s.sendall(message(strategy, i))
        acks.until(i)
        waits.append(time.monotonic() - began)
    waits.sort()
    median = waits[len(waits) // 2]
    low, high = {
        REQUEST_REPLY: (0, 0.003),
        SYNC: (0, 0.003),
        THROTTLED: (0.0005, 0.0065),
        HEAD_REST: (0.0005, 0.0065),
        ASYNC: (0.0049, 0.008),
    }[strategy]
    assert low <= median <= high, f"{NAMES[strategy]}: {median} s"
    s.close()


def blocks(strategy):
    """Async alone: 21 blocks are silent, the 22nd acknowledges all of them."""
    if strategy != ASYNC:
        return
    for attempt in range(20):
        s = connect(strategy)
        acks = Acks(strategy, s)
        began = time.monotonic()
        for i in range(22):
            s.sendall(message(strategy, i))
            time.sleep(0.0004)
        took = time.monotonic() - began
        acks.until(21)
        s.close()
        if acks.count == 1:
            return
        # Two blocks arrived as one read, or this process stalled: again.
        assert attempt < 19, f"{acks.count} acks in {took} s"


def half_close(strategy):
    """A client that stops sending gets its last acknowledgement, then the end."""
    s = connect(strategy)
    acks = Acks(strategy, s)
    s.sendall(b"".join(message(strategy, i) for i in range(5)) + message(strategy, 5)[:14])
    s.shutdown(socket.SHUT_WR)
    acks.until_closed()
    assert acks.previous == 4, acks.previous
    s.close()


def oversize(strategy):
    """Too large: what is whole is acknowledged, that connection ends, its neighbour does not notice."""
    neighbour = connect(strategy)
    their_acks = Acks(strategy, neighbour)
    neighbour.sendall(message(strategy, 0))
    for header_cut in (0, 9):
        s = connect(strategy)
        acks = Acks(strategy, s)
        order = ">" if strategy == REQUEST_REPLY else "<"
        huge = struct.pack("<Q", 2) + struct.pack(order + "I", LIMIT + 1)
        s.sendall(message(strategy, 0) + message(strategy, 1) + huge[:header_cut])
        if header_cut:
            time.sleep(0.01)
        s.sendall(huge[header_cut:])
        acks.until_closed()
        assert acks.previous == 1, acks.previous
        s.close()
    their_acks.until(0)
    neighbour.sendall(message(strategy, 1))
    their_acks.until(1)
    neighbour.close()


def idle(_):
    """Silence, with nothing or half a message pending, ends that connection alone; all strategies at once."""
    quiet, halves, busy = [], [], []
    for strategy in range(5):
        for group in (quiet, halves, busy):
            s = connect(strategy)
            group.append((strategy, s, Acks(strategy, s)))
    began = time.monotonic()
    for strategy, s, _ in quiet:
        s.sendall(message(strategy, 0))
    for strategy, s, _ in halves:
        s.sendall(message(strategy, 0) + message(strategy, 1)[:13])
    number = 0
    while time.monotonic() - began < IDLE_S * 1.5:
        for strategy, s, _ in busy:
            s.sendall(message(strategy, number))
        number += 1
        time.sleep(IDLE_S / 20)
    for _, s, acks in quiet + halves:
        s.settimeout(0.5)
        acks.until_closed()
        assert acks.previous == 0, acks.previous
    for _, s, acks in busy:
        acks.until(number - 1)
        s.close()


def idle_not_early(_):
    """Nobody is closed before the time."""
    s = connect(SYNC)
    time.sleep(IDLE_S * 0.8)
    s.sendall(message(SYNC, 0))
    Acks(SYNC, s).until(0)
    began = time.monotonic()
    s.settimeout(IDLE_S * 3)
    assert s.recv(1) == b""
    waited = time.monotonic() - began
    assert IDLE_S * 0.9 < waited < IDLE_S * 1.5, waited


def unread(strategy):
    """A client that reads no acks is stopped, not fed: the server's memory stays, the neighbour is served, and when it
    reads again nothing is missing."""
    if strategy != REQUEST_REPLY:
        return  # the others write too little to fill a socket
    s = connect(strategy, receive_buffer=4096)
    s.setblocking(False)
    empty = b"".join(message(strategy, i, b"") for i in range(1000))
    data, number, stuck = memoryview(empty), 0, 0
    sent = 0
    while stuck < 20 and number < 40_000_000:
        try:
            sent += s.send(data[sent:])
            stuck = 0
            if sent == len(data):
                number += 1000
                data = memoryview(b"".join(message(strategy, number + i, b"") for i in range(1000)))
                sent = 0
        except BlockingIOError:
            stuck += 1
            time.sleep(0.01)
    assert number < 40_000_000, "it took everything"
    other = connect(strategy)
    other.sendall(message(strategy, 0))
    Acks(strategy, other).until(0)
    s.setblocking(True)
    s.settimeout(PATIENCE_S)
    acks = Acks(strategy, s)
    writer = threading.Thread(target=lambda: (s.sendall(data[sent:]), s.shutdown(socket.SHUT_WR)))
    writer.start()
    acks.until_closed()
    writer.join()
    assert acks.previous == number + 999, (acks.previous, number)


def unread_for_ever(_):
    """If it never reads, it is dropped after the idle time."""
    s = connect(REQUEST_REPLY, receive_buffer=4096)
    data = b"".join(message(REQUEST_REPLY, i, b"") for i in range(1000))
    try:
        while True:
            s.sendall(data)
    except (ConnectionResetError, BrokenPipeError):
        return


def many(_):
    """Connections of all strategies at once, each with its own numbers."""
    def one(strategy):
        s = connect(strategy)
        acks = Acks(strategy, s)
        for round_ in range(20):
            s.sendall(b"".join(message(strategy, round_ * 50 + i) for i in range(50)))
            if round_ % 5 == 0:
                acks.until(round_ * 50 + 49)
        acks.until(999)
        s.close()
        done.append(strategy)

    done = []
    threads = [threading.Thread(target=one, args=(n % 5,)) for n in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 60, len(done)


def set_idle(seconds):
    """How long a connection may be silent from now on."""
    s = socket.create_connection((HOST, RESP), timeout=PATIENCE_S)
    s.sendall(f"CONFIG SET ingest-idle-timeout {seconds:.0f}\r\n".encode())
    assert s.recv(64) == b"+OK\r\n"
    s.close()


def info():
    s = socket.create_connection((HOST, RESP), timeout=PATIENCE_S)
    s.sendall(b"INFO ingest\r\n")
    data = b""
    while b"\r\n" not in data:
        data += s.recv(65536)
    length, rest = data[1:].split(b"\r\n", 1)
    while len(rest) < int(length) + 2:
        rest += s.recv(65536)
    s.close()
    fields = dict(line.split(":", 1) for line in rest.decode().split("\r\n") if ":" in line)
    ports = {}
    for name, text in fields.items():
        if name.startswith("ingest_listener") and name != "ingest_listeners":
            port = dict(pair.split("=", 1) for pair in text.split(","))
            ports[port["strategy"]] = port
    return fields, ports


def counters(_):
    """INFO ingest counts what this client did."""
    _, before = info()
    for strategy in range(5):
        s = connect(strategy)
        acks = Acks(strategy, s)
        s.sendall(b"".join(message(strategy, i) for i in range(7)))
        acks.until(6)
        _, now = info()
        was, port = before[NAMES[strategy]], now[NAMES[strategy]]
        grown = {k: int(port[k]) - int(was[k]) for k in port if port[k].isdigit()}
        reads = grown.pop("reads")
        assert 1 <= reads <= 7, reads
        wanted = {"connections": 1, "total_connections": 1, "messages": 7, "bytes": 7 * 17, "acks": acks.count, "errors": 0}
        wanted |= {"duplicates": 0, "takeovers": 0, "credits": 0, "blocked_connections": 0}
        assert grown == wanted, (NAMES[strategy], grown, wanted)
        assert port["address"].endswith(f":{BASE + strategy}") and port["sink"] == "null", port
        s.close()
    fields, ports = info()
    assert int(fields["ingest_messages"]) == sum(int(p["messages"]) for p in ports.values())


PARTS = [
    (stream, each), (splits, each), (sizes, each), (silence, each), (blocks, each), (half_close, each), (oversize, each),
    (cadence, each), (counters, None), (many, None), (unread, each), (idle, None), (idle_not_early, None), (unread_for_ever, None),
]

# Parts which need ingest-idle-timeout to be short. The others may be silent for as long as this machine needs.
IDLE = {idle, idle_not_early, unread_for_ever}
# Parts whose findings depend on when this process and the server run.
TIMED = {silence, blocks, cadence, idle, idle_not_early}
# A timed part which does not pass in this time has failed, or cannot be judged here.
ATTEMPTS_S = 45
# So many attempts must have failed while all processors were there.
FAILURES = 12
# A process that wakes so late was kept from its processor, by more than others which also run there.
LATE_S = 0.005
# How often a watcher looks.
WATCH_S = 0.001


class Watch:
    """Notices when a processor is away: a process on each looks how late it wakes."""

    def __init__(self):
        self.cpus = sorted(os.sched_getaffinity(0))
        self.worst = mmap.mmap(-1, 8 * len(self.cpus))
        self.pids = [self.watcher(n, cpu) for n, cpu in enumerate(self.cpus)]

    def watcher(self, n, cpu):
        pid = os.fork()
        if pid:
            return pid
        os.sched_setaffinity(0, {cpu})
        parent = os.getppid()
        while os.getppid() == parent:
            began = time.monotonic()
            time.sleep(WATCH_S)
            late = time.monotonic() - began - WATCH_S
            if late > struct.unpack_from("d", self.worst, 8 * n)[0]:
                struct.pack_into("d", self.worst, 8 * n, late)
        os._exit(0)

    def lateness_s(self):
        """The most since the last call."""
        time.sleep(0.05)  # a watcher which is late now has to say so
        late = max(struct.unpack_from("d", self.worst, 8 * n)[0] for n in range(len(self.cpus)))
        self.worst[:] = bytes(len(self.worst))
        return late

    def end(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def judged(part, strategy):
    """Tries a timed part until it passes: what a correct server does, a machine may delay."""
    if part not in TIMED:
        return part(strategy)
    watch, failures, began = Watch(), 0, time.monotonic()
    try:
        while True:
            watch.lateness_s()
            try:
                return part(strategy)
            except (AssertionError, OSError) as why:
                late = watch.lateness_s()
                failures += late < LATE_S
                if failures == FAILURES:
                    raise
                print(f"  {part.__name__}: again, a process woke {late * 1000:.1f} ms late: {why}", flush=True)
                if time.monotonic() - began > ATTEMPTS_S:
                    return f"{part.__name__} not judged: others use the machine"
    finally:
        watch.end()


wanted = sys.argv[6:]
for part, how in PARTS:
    if wanted and part.__name__ not in wanted:
        continue
    began = time.monotonic()
    set_idle(IDLE_S if part in IDLE else 300)
    for strategy in range(5) if how else [None]:
        try:
            told = judged(part, strategy)
        except BaseException:
            print(f"{part.__name__} {'' if strategy is None else NAMES[strategy]} failed", flush=True)
            raise
        if told:
            print(f"  {'' if strategy is None else NAMES[strategy]}: {told}")
    print(f"{part.__name__}: ok, {time.monotonic() - began:.1f} s", flush=True)
