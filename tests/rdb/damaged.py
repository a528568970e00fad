"""Damaged and hostile files, and what redis-server 7.0 does with each.

    python3 tests/rdb/damaged.py

Writes tests/rdb/damaged.txt: a name, the bytes, and whether redis-server from PATH, which has to be
7.0, loads the file and how many keys it then has, or refuses it and with which words. Where SheafDB
differs on purpose, DIFFERS says why, and the table holds both.
"""

import os
import re
import struct
import textwrap
from concurrent.futures import ThreadPoolExecutor

import old
from old import crc64, integer, length, string
from servers import Server

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "damaged.txt")

NEWER = "version 11, 12 and 80 are known here"
FIRST = "digits alone make a version"
KEPT = "functions are kept as they are, and not compiled"
LOST = "what belongs to a key has none: bytes are missing"
TWICE = "one of two values would be lost; Valkey 9.1 refuses most of these too"
CHECKED = "packed values are always checked; Valkey 9.1 refuses them too"

# What SheafDB does otherwise, and why. The names are regular expressions.
DIFFERS = [
    (r"magic (REDIS0011|REDIS0012|VALKEY080)", "loads 4 keys", NEWER),
    (r"magic REDIS  10", "refuses", FIRST),
    (r"slot info", "loads 1 keys", "Redis 7.2 and Valkey write it; it tells sizes alone"),
    (r"function (that is not one|twice)", "loads 1 keys", KEPT),
    (r"expiry, then .*|(idle|frequency), then the end", "refuses", LOST),
    (r"hash with a field twice|.*listpack: field twice|intset: twice", "refuses", TWICE),
    (r"zset of a ziplist: text as score|intset: descending", "refuses", CHECKED),
    (r".*listpacks?: (count|element beyond|length behind an element)", "refuses", CHECKED),
    (r"(hash|zset) of a listpack: odd", "refuses", CHECKED),
    (r"stream: (count|last id too low|entry of no consumer)", "refuses", CHECKED),
]


def ours(name, redis):
    """What SheafDB does, if that is not what Redis does."""
    outcomes = [what for pattern, what, _ in DIFFERS if re.fullmatch(pattern, name)]
    return next((what for what in outcomes if what != redis.split(":")[0]), None)


SELECT = b"\xfe\0"


def sealed(body, magic=b"REDIS0010"):
    data = magic + body + b"\xff"
    return data + struct.pack("<Q", crc64(data))


def one(kind, value, before=b""):
    """A file with one key `k`, and a key behind it."""
    return sealed(SELECT + before + bytes([kind]) + string("k") + value + last())


def last():
    return b"\0" + string("last") + string("v")


def parts():
    """A good file, as pieces with names."""
    return [
        ("magic", b"REDIS0010"),
        ("aux", b"\xfa" + string("redis-ver") + string("7.0.15")),
        ("select", SELECT),
        ("resize", b"\xfb" + length(4) + length(1)),
        ("string", b"\0" + string("string") + string("value")),
        ("expiry", b"\xfc" + struct.pack("<Q", 4102444800000)),
        ("set", b"\2" + string("set") + length(2) + string("a") + integer(300)),
        ("lzf", b"\0" + string("lzf") + old.packed(b"abc", 27)),
        ("list", b"\x12" + string("list") + b"\1\2" + string(old.listpack([b"a", 5]))),
    ]


def whole():
    return sealed(b"".join(data for name, data in parts() if name != "magic"))


def cuts():
    yield "empty file", b""
    at, good = 0, whole()
    for name, data in [*parts(), ("end", b"\xff"), ("checksum", bytes(8))]:
        for inside in sorted({0, 1, len(data) // 2, len(data) - 1} - {len(data)}):
            if at + inside:
                yield f"cut in {name} at {inside}", good[: at + inside]
        at += len(data)
    yield "nothing is wrong", good


def envelopes():
    good = whole()
    wrong = bytes(8)
    yield "checksum of zeros", good[:-8] + wrong
    yield "wrong checksum", good[:-1] + bytes([good[-1] ^ 1])
    yield "a changed byte of a value", good.replace(b"value", b"valve")
    yield "bytes behind the checksum", good + b"more"
    yield "magic and version alone", b"REDIS0010"
    yield "no key at all", sealed(b"")
    yield "text", b"this is a text and no snapshot of anything\n"
    yield "an append only file", b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
    body = good[9:-9]
    magics = ["REDIS0000", "REDIS0001", "REDIS0004", "REDIS0005", "REDIS0011", "REDIS0012"]
    magics += ["REDIS0013", "REDIS0080", "REDIS9999", "REDISabcd", "REDIS  10", "REDIS-001"]
    magics += ["redis0010", "VALKEY080", "VALKEY079", "VALKEY081", "VALKEY011", "VALKEY000"]
    for magic in [*magics, "VALKEY999", "VALKEY08x"]:
        yield f"magic {magic}", sealed(body, magic.encode())
    yield "version 4 without checksum", b"REDIS0004" + SELECT + last() + b"\xff"
    yield "version 4 and bytes behind", b"REDIS0004" + SELECT + last() + b"\xffmore"


def opcodes():
    for code in [8, 26, 30, 33, 100, 200, 239, 240, 242, 243]:
        yield f"type or opcode {code}", one(code, string("v"))
    yield "slot info", sealed(b"\xf4" + length(1) * 3 + SELECT + last())
    yield "function before 7.0", sealed(b"\xf6" + string("n") + string("LUA") + b"\0" + string("x"))
    code = "#!lua name=one\nredis.register_function('one', function() return 1 end)"
    yield "function", sealed(b"\xf5" + string(code) + SELECT + last())
    yield "function that is not one", sealed(b"\xf5" + string("text") + SELECT + last())
    yield "function twice", sealed((b"\xf5" + string(code)) * 2 + SELECT + last())
    yield "aux without value", sealed(b"\xfa" + string("name"))
    yield "aux that is an integer", sealed(b"\xfa" + string("ctime") + integer(5) + SELECT + last())
    yield "aux behind keys", sealed(SELECT + last() + b"\xfa" + string("a") + string("b"))
    yield "key before a database", sealed(last())
    yield "database twice", sealed(SELECT + last() + SELECT + b"\0" + string("k") + string("v"))
    for db in [15, 16, 63, 16384, 1 << 31, 1 << 32]:
        yield f"database {db}", sealed(b"\xfe" + length(db) + last())
    yield "database without keys 16", sealed(b"\xfe" + length(16) + SELECT + last())
    for size in [0, 1 << 20, 1 << 30, 1 << 62]:
        yield f"sizes {size}", sealed(SELECT + b"\xfb" + length(size) * 2 + last())
    yield "key twice", sealed(SELECT + last() + last())
    yield "key twice, another type", sealed(SELECT + last() + b"\1" + string("last") + b"\1\1a")
    yield "key in two databases", sealed(SELECT + last() + b"\xfe\1" + last())
    yield "expiry, then the end", sealed(SELECT + last() + b"\xfc" + bytes(8))
    yield "expiry twice", one(0, string("v"), (b"\xfc" + struct.pack("<Q", 4102444800000)) * 2)
    yield "expiry, then a database", sealed(SELECT + b"\xfc" + bytes(8) + SELECT + last())
    for at in [-1, -(1 << 63), (1 << 63) - 1, 0]:
        yield f"expiry {at}", one(0, string("v"), b"\xfc" + struct.pack("<q", at))
    yield "expiry in seconds after 2038", one(0, string("v"), b"\xfd" + struct.pack("<I", 1 << 31))
    yield "idle of 2^63", one(0, string("v"), b"\xf8" + length(1 << 63))
    yield "idle, then the end", sealed(SELECT + last() + b"\xf8" + length(7))
    yield "frequency, then the end", sealed(SELECT + last() + b"\xf9\x07")
    yield "end twice", sealed(SELECT + last() + b"\xff" + last())


def modules():
    name = length(0x1234567890ABCDEF)
    values = length(2) + length(5) + length(1) + length(5) + length(4) + bytes(8)
    values += length(3) + bytes(4) + length(5) + string("text")
    yield "module value", one(7, name + values + length(0))
    yield "module value without end", one(7, name + values)
    yield "module value, unknown part", one(7, name + length(9) + length(0))
    yield "module value before 4.0", one(6, name + string("whatever"))
    when = length(2) + length(2)
    yield "data of a module", sealed(b"\xf7" + name + when + values + length(0) + SELECT + last())
    yield "data of a module without end", sealed(b"\xf7" + name + when + values)


def texts():
    for n in (1000, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        yield f"string of {n} bytes", one(0, length(n) + b"short")
        yield f"key of {n} bytes", sealed(SELECT + b"\0" + length(n) + b"short" + last())
    for code in (0x82, 0xBF, 0xC4, 0xFF):
        yield f"length {code:02x}", one(0, bytes([code]) + bytes(20))
    lzf = old.packed(b"abc", 27)
    yield "lzf: plain length too small", one(0, lzf.replace(b"\x1e", b"\x1d", 1))
    yield "lzf: plain length too large", one(0, lzf.replace(b"\x1e", b"\x1f", 1))
    yield "lzf: plain length 2^40", one(0, b"\xc3" + length(3) + length(1 << 40) + b"\1ab")
    yield "lzf: length 2^40", one(0, b"\xc3" + length(1 << 40) + length(5) + b"\1ab")
    yield "lzf: copy from before the start", one(0, b"\xc3" + length(4) + length(4) + b"\0a\x20\5")
    yield "lzf: empty", one(0, b"\xc3" + length(0) + length(0))


def collections():
    for kind, name in [(1, "list"), (2, "set"), (3, "zset"), (4, "hash"), (5, "zset 2")]:
        yield f"{name} of no elements", one(kind, length(0))
        yield f"{name} of 2^32 - 1 elements", one(kind, length((1 << 32) - 1) + string("a"))
        yield f"{name} of 2^62 elements", one(kind, length(1 << 62) + string("a"))
    yield "set with a member twice", one(2, length(2) + string("a") * 2)
    yield "hash with a field twice", one(4, length(2) + (string("f") + string("v")) * 2)
    yield "zset with a member twice", one(5, length(2) + (string("m") + bytes(8)) * 2)
    nan = struct.pack("<d", float("nan"))
    yield "zset with a score that is none", one(5, length(1) + string("m") + nan)
    yield "zset with nan as text", one(3, length(1) + string("m") + b"\xfd")
    yield "zset with a text as score", one(3, length(1) + string("m") + b"\3abc")
    yield "zset with an empty score", one(3, length(1) + string("m") + b"\0")


def packed():
    good = old.ziplist([old.zip_text(b"a"), old.zip_text(b"b")])
    short = old.ziplist([old.zip_text(b"a")])
    lists = [
        ("total", struct.pack("<I", 99) + good[4:]),
        ("tail", good[:4] + struct.pack("<I", 99) + good[8:]),
        ("count", good[:8] + b"\7\0" + good[10:]),
        ("end", good[:-1] + b"\0"),
        ("previous length", good[:13] + b"\x09" + good[14:]),
        ("element beyond", good[:11] + b"\x3f" + good[12:]),
        ("header cut", good[:7]),
        ("no elements", old.ziplist([])),
    ]
    for name, data in lists:
        yield f"list of a ziplist: {name}", one(10, string(data))
        yield f"hash of a ziplist: {name}", one(13, string(data))
        yield f"list of ziplists: {name}", one(14, length(1) + string(data))
    yield "hash of a ziplist: odd", one(13, string(short))
    yield "hash of a ziplist: field twice", one(13, string(old.ziplist([old.zip_text(b"a")] * 4)))
    yield "zset of a ziplist: odd", one(12, string(short))
    yield "zset of a ziplist: text as score", one(12, string(good))
    packs = old.listpack([b"f", b"v"])
    lists = [
        ("total", struct.pack("<I", 99) + packs[4:]),
        ("count", packs[:4] + b"\7\0" + packs[6:]),
        ("end", packs[:-1] + b"\0"),
        ("element beyond", packs[:6] + b"\xbf" + packs[7:]),
        ("length behind an element", packs[:8] + b"\x55" + packs[9:]),
        ("no elements", old.listpack([])),
        ("odd", old.listpack([b"f", b"v", b"w"])),
        ("field twice", old.listpack([b"f", b"v", b"f", b"w"])),
    ]
    for name, data in lists:
        yield f"hash of a listpack: {name}", one(16, string(data))
        yield f"zset of a listpack: {name}", one(17, string(data))
        yield f"list of listpacks: {name}", one(18, length(1) + length(2) + string(data))
    yield "list of no nodes", one(18, length(0))
    yield "list of a node of form 3", one(18, length(1) + length(3) + string(packs))
    sets = [
        ("descending", old.intset(2, [2, 1])),
        ("twice", old.intset(2, [1, 1])),
        ("width 3", struct.pack("<II", 3, 1) + bytes(3)),
        ("too long", old.intset(2, [1, 2]) + b"\0\0"),
        ("too short", old.intset(2, [1, 2])[:-2]),
        ("no members", old.intset(2, [])),
    ]
    for name, data in sets:
        yield f"intset: {name}", one(11, string(data))
    maps = [
        ("count", old.zipmap([(b"f", b"v", 0)], 9)),
        ("no end", old.zipmap([(b"f", b"v", 0)])[:-1]),
        ("field beyond", b"\1\x63f\1\0v\xff"),
        ("field twice", old.zipmap([(b"f", b"v", 0), (b"f", b"w", 0)])),
        ("no fields", old.zipmap([])),
    ]
    for name, data in maps:
        yield f"zipmap: {name}", one(9, string(data))


def streams():
    node = old.stream_node([((5, 1), 2, [b"1"])], [b"f"])
    tail = length(1) + length(5) + length(1)
    entry = struct.pack(">QQ", 5, 1)
    sent = entry + struct.pack("<q", 1) + length(1)
    group = length(1) + string("g") + length(5) + length(1)
    consumer = string("c") + struct.pack("<q", 1)
    yield "stream", one(15, length(1) + node + tail + length(0))
    yield "stream: count", one(15, length(1) + node + length(9) + tail[1:] + length(0))
    yield "stream: last id too low", one(15, length(1) + node + b"\1\4\4\0")
    yield "stream: nodes not ascending", one(15, b"\2" + node * 2 + b"\2" + tail[1:] + b"\0")
    short = string(bytes(8)) + node[17:]
    yield "stream: id of 8 bytes", one(15, length(1) + short + tail + length(0))
    empty = string(bytes(16)) + string(old.listpack([]))
    yield "stream: empty node", one(15, length(1) + empty + tail + length(0))
    body = length(1) + node + tail
    both = group + length(1) + sent + length(1) + consumer + length(1) + entry
    yield "stream: a group", one(15, body + both)
    lost = group + length(0) + length(1) + consumer + length(1) + entry
    yield "stream: consumer's entry is not the group's", one(15, body + lost)
    nobody = group + length(1) + sent + length(0)
    yield "stream: entry of no consumer", one(15, body + nobody)
    yield "stream: group twice", one(15, body + length(2) + (group[1:] + length(0) * 2) * 2)
    twice = group + length(0) + length(2) + (consumer + length(0)) * 2
    yield "stream: consumer twice", one(15, body + twice)
    yield "stream: entry pending twice", one(15, body + group + length(2) + sent * 2 + length(0))


def outcome(data):
    """What redis-server does with a file."""
    with Server("redis-server", data) as server:
        if server.ready():
            connection = server.connect()
            info = connection.ask("INFO", "keyspace").decode()
            keys = sum(map(int, re.findall(r"keys=(\d+)", info)))
            return f"loads {keys} keys"
        lines = [re.sub(r"^\d+:\w .{24} . ", "", line) for line in server.log().splitlines()]
        words = ("FATAL", "uplicated", "rror", "rong", "an't", "nknown", "annot", "orrupt")
        said = [line for line in lines if any(word in line for word in words)]
        noise = ("# ", "Suspect", "unexpected_error", "total_error")
        said = [line for line in said if not line.startswith(noise)]
        text = re.sub(r"\s+", " ", " | ".join(said))
        text = re.sub(r"\[offset \d+\]|Internal error in RDB.*?-> ", "", text)
        return "refuses: " + text[:120].strip(" |")


def cases():
    for make in (cuts, envelopes, opcodes, modules, texts, collections, packed, streams):
        yield from make()


def main():
    all_of = list(cases())
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda case: outcome(case[1]), all_of))
    with open(TABLE, "w", encoding="ascii", errors="backslashreplace") as out:
        out.write("# Written by damaged.py; README.md describes it.\n")
        for (name, data), what in zip(all_of, told):
            out.write(f"\n{name}\n")
            for row in textwrap.wrap(data.hex(), 96):
                out.write(f"  {row}\n")
            out.write(f"redis {what}\n")
            if ours(name, what):
                out.write(f"ours {ours(name, what)}\n")
    print(f"{len(all_of)} cases, {os.path.getsize(TABLE)} bytes")


if __name__ == "__main__":
    main()
