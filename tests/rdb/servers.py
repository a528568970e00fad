"""Servers for the generators of this folder: start one on a file, talk to it, record its state.

The standard library is enough: requests and replies of RESP2 are written and read here.

The state of a server is a text, the same whatever server it came from. tests/src/rdb_state.rs
writes the same text; README.md describes it.
"""

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

LONG_STRING = 80
LONG_VALUE = 120


class Failed(Exception):
    """An error reply."""


def fnv(data):
    """FNV-1a with 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def ask(self, *words):
        """The reply; an error is raised. Words are bytes, texts or numbers."""
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        out = b"*%d\r\n" % len(words)
        out += b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(out)
        reply = self.reply()
        if isinstance(reply, Failed):
            raise Failed(f"{words[:3]}: {reply}")
        return reply

    def reply(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b"-":
            return Failed(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            if text == b"-1":
                return None
            data = self.stream.read(int(text) + 2)
            return data[:-2]
        if kind == b"*":
            return None if text == b"-1" else [self.reply() for _ in range(int(text))]
        raise ValueError(f"no reply: {line!r}")


class Server:
    """A server on a folder of its own, which may hold a file, or a copy of a tree, from the start."""

    def __init__(self, program, rdb=None, args=(), tree=None):
        self.folder = tempfile.mkdtemp(prefix="sheafdb-rdb-")
        if tree is not None:
            shutil.copytree(tree, self.folder, dirs_exist_ok=True)
        self.path = os.path.join(self.folder, "dump.rdb")
        if rdb is not None:
            with open(self.path, "wb") as file:
                file.write(rdb)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log_path = os.path.join(self.folder, "log")
        words = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        words += ["--appendonly", "no", "--dir", self.folder, "--logfile", "", *args]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    def ready(self):
        """True when it serves, False if it ended."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            try:
                Connection(self.port).ask("PING")
                return True
            except (OSError, EOFError, Failed):
                time.sleep(0.01)
        raise TimeoutError(self.log())

    def connect(self):
        if not self.ready():
            raise RuntimeError(self.log())
        return Connection(self.port)

    def end(self):
        """Ends it in order."""
        self.process.terminate()
        self.process.wait(timeout=60)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def saved(self):
        with open(self.path, "rb") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


def quoted(data):
    """The bytes in double quotes, or length and hash of long ones."""
    if len(data) > LONG_STRING:
        return f"#{len(data)}:{fnv(data)}"
    out = ""
    for byte in data:
        char = chr(byte)
        if char in '"\\':
            out += "\\" + char
        elif char in "\r\n\t":
            out += {"\r": "\\r", "\n": "\\n", "\t": "\\t"}[char]
        elif " " <= char <= "~":
            out += char
        else:
            out += f"\\x{byte:02x}"
    return f'"{out}"'


def score_bits(text):
    return struct.pack(">d", float(text)).hex()


def pairs(flat):
    return list(zip(flat[::2], flat[1::2]))


def known(connection, command):
    return connection.ask("COMMAND", "INFO", command)[0] is not None


def value_lines(connection, kind, key):
    """The lines below the line of a key."""
    if kind == "string":
        return [quoted(connection.ask("GET", key))]
    if kind == "list":
        return [quoted(element) for element in connection.ask("LRANGE", key, 0, -1)]
    if kind == "set":
        return [quoted(member) for member in sorted(connection.ask("SMEMBERS", key))]
    if kind == "zset":
        all_of = pairs(connection.ask("ZRANGE", key, 0, -1, "WITHSCORES"))
        return [f"{quoted(member)} {score_bits(score)}" for member, score in all_of]
    if kind == "hash":
        return hash_lines(connection, key)
    if kind == "stream":
        return stream_lines(connection, key)
    raise ValueError(kind)


def hash_lines(connection, key):
    fields = sorted(pairs(connection.ask("HGETALL", key)))
    times = [-1] * len(fields)
    if fields and known(connection, "HPEXPIRETIME"):
        names = [field for field, _ in fields]
        times = connection.ask("HPEXPIRETIME", key, "FIELDS", len(names), *names)
    return [
        f"{quoted(field)} {quoted(value)}" + (f" expires {at}" if at >= 0 else "")
        for (field, value), at in zip(fields, times)
    ]


def number(value):
    return "none" if value is None else str(value)


def stream_lines(connection, key):
    info = dict(pairs(connection.ask("XINFO", "STREAM", key, "FULL", "COUNT", 0)))
    line = (
        f"counts length {info[b'length']} last {info[b'last-generated-id'].decode()}"
        f" deleted {info[b'max-deleted-entry-id'].decode()} added {info[b'entries-added']}"
    )
    # An empty stream has none; Redis reports 2^64 - 1 for one which an old file had.
    if info[b"length"] > 0:
        line += f" first {info[b'recorded-first-entry-id'].decode()}"
    lines = [line]
    for name, fields in info[b"entries"]:
        lines.append(" ".join([f"entry {name.decode()}", *map(quoted, fields)]))
    for group in info[b"groups"]:
        group = dict(pairs(group))
        lines.append(
            f"group {quoted(group[b'name'])} last {group[b'last-delivered-id'].decode()}"
            f" read {number(group[b'entries-read'])}"
        )
        for name, consumer, delivered, count in group[b"pending"]:
            lines.append(
                f"pending {name.decode()} {quoted(consumer)} delivered {delivered} times {count}"
            )
        for consumer in sorted((dict(pairs(each)) for each in group[b"consumers"]), key=by_name):
            line = f"consumer {quoted(consumer[b'name'])} seen {consumer[b'seen-time']}"
            if b"active-time" in consumer:
                line += f" active {consumer[b'active-time']}"
            lines.append(line)
    return lines


def by_name(consumer):
    return consumer[b"name"]


def key_lines(connection, key, policy):
    # What a read changes comes first.
    meta = ""
    at = connection.ask("PEXPIRETIME", key)
    if at >= 0:
        meta += f" expires {at}"
    if "lfu" in policy:
        meta += f" freq {connection.ask('OBJECT', 'FREQ', key)}"
    elif "lru" in policy:
        # Thousands of seconds: a test may take its time.
        meta += f" idle {(connection.ask('OBJECT', 'IDLETIME', key) + 500) // 1000 * 1000}"
    kind = connection.ask("TYPE", key).decode()
    lines = value_lines(connection, kind, key)
    if len(lines) > LONG_VALUE:
        lines = [f"#{len(lines)} lines:{fnv(chr(10).join(lines).encode())}"]
    return [f"{kind} {quoted(key)}{meta}", *(f"  {line}" for line in lines)]


def state(connection):
    """Everything that the server holds, as a text."""
    policy = connection.ask("CONFIG", "GET", "maxmemory-policy")[1].decode()
    lines = []
    if known(connection, "FUNCTION"):
        libraries = [dict(pairs(one)) for one in connection.ask("FUNCTION", "LIST", "WITHCODE")]
        for library in sorted(libraries, key=lambda one: one[b"library_name"]):
            lines.append(f"function {quoted(library[b'library_code'])}")
    for db in range(16):
        connection.ask("SELECT", db)
        keys = sorted(connection.ask("KEYS", "*"))
        if keys:
            lines.append(f"db {db}")
        for key in keys:
            lines += key_lines(connection, key, policy)
    connection.ask("SELECT", 0)
    return "\n".join(lines) + "\n"
