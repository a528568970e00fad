"""Files of old versions, made by hand, and the state that redis-server 7.0 has after loading them.

    python3 tests/rdb/old.py [REDIS8]

Writes tests/rdb/files/old-*.rdb and .txt, and docs/formats/rdb-old.md, which lists every byte. What
is in the files follows the public descriptions that the document names; no server wrote them.
redis-server from PATH, which has to be 7.0, loads each one and reports the state. REDIS8 is a
server of Redis 8.2 for the types which Redis 7.0 does not know; without it those files are left as
they are.
"""

import os
import struct
import sys

from servers import Server, state

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "files")
DOCUMENT = os.path.join(HERE, "../../docs/formats/rdb-old.md")
YEAR_2100 = 4102444800
# Bytes in a line of the document, and the most lines of one item.
ROW, ROWS_MAX = 12, 8

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
    TABLE.append(byte)


def crc64(data):
    value = 0
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ value >> 8
    return value


def length(n):
    if n < 64:
        return bytes([n])
    if n < 16384:
        return struct.pack(">H", n | 0x4000)
    if n < 1 << 32:
        return b"\x80" + struct.pack(">I", n)
    return b"\x81" + struct.pack(">Q", n)


def string(data):
    data = data if isinstance(data, bytes) else str(data).encode()
    return length(len(data)) + data


def integer(n):
    for code, size in ((0xC0, 1), (0xC1, 2), (0xC2, 4)):
        if -1 << size * 8 - 1 <= n < 1 << size * 8 - 1:
            return bytes([code]) + n.to_bytes(size, "little", signed=True)
    raise ValueError(n)


def packed(first, repeats):
    """LZF: `first` as it is, then a reference to it that gives `repeats` bytes more."""
    copy = repeats - 2
    head = bytes([copy << 5]) if copy < 7 else bytes([7 << 5, copy - 7])
    lzf = bytes([len(first) - 1]) + first + head + bytes([len(first) - 1])
    return b"\xc3" + length(len(lzf)) + length(len(first) + repeats) + lzf


def text_double(text):
    return {"nan": b"\xfd", "inf": b"\xfe", "-inf": b"\xff"}.get(text) or bytes(
        [len(text)]
    ) + text.encode()


def zip_text(data, form=None):
    if form == 32 or len(data) >= 16384:
        return b"\x80" + struct.pack(">I", len(data)) + data
    return (bytes([len(data)]) if len(data) < 64 else struct.pack(">H", len(data) | 0x4000)) + data


def zip_int(n, bits):
    if bits == 4:
        return bytes([0xF1 + n])
    code = {8: 0xFE, 16: 0xC0, 24: 0xF0, 32: 0xD0, 64: 0xE0}[bits]
    return bytes([code]) + n.to_bytes(bits // 8, "little", signed=True)


def ziplist(elements, count=None, long_before=()):
    body, before, tail = b"", 0, 10
    for at, element in enumerate(elements):
        tail = 10 + len(body)
        is_long = before > 253 or at in long_before
        head = b"\xfe" + struct.pack("<I", before) if is_long else bytes([before])
        body += head + element
        before = len(head) + len(element)
    total = 10 + len(body) + 1
    count = len(elements) if count is None else count
    return struct.pack("<IIH", total, tail, count) + body + b"\xff"


def zipmap(pairs, count=None):
    def size(n):
        return bytes([n]) if n < 254 else b"\xfe" + struct.pack("<I", n)

    out = bytes([len(pairs) if count is None else count])
    for field, value, unused in pairs:
        out += size(len(field)) + field + size(len(value)) + bytes([unused]) + value
        out += b"#" * unused
    return out + b"\xff"


def intset(width, members):
    raw = b"".join(n.to_bytes(width, "little", signed=True) for n in members)
    return struct.pack("<II", width, len(members)) + raw


def pack_element(item):
    """An element of a listpack: a text, or an integer of 7, 13, 16 or 64 bits."""
    if isinstance(item, bytes):
        data = bytes([0x80 | len(item)]) + item
    elif 0 <= item < 128:
        data = bytes([item])
    elif -4096 <= item < 4096:
        data = struct.pack(">H", 0xC000 | item & 0x1FFF)
    elif -32768 <= item < 32768:
        data = b"\xf1" + struct.pack("<h", item)
    else:
        data = b"\xf4" + struct.pack("<q", item)
    return data + bytes([len(data)])


def listpack(items):
    body = b"".join(map(pack_element, items)) + b"\xff"
    return struct.pack("<IH", 6 + len(body), len(items)) + body


def stream_node(entries, fields):
    """A node: the fields of its first entry, then entries as id, flags, and words.

    Flag 1 marks an entry that was deleted, flag 2 one with the fields of the node.
    """
    (ms, sequence), deleted = entries[0][0], sum(flags & 1 for _, flags, _ in entries)
    items = [len(entries) - deleted, deleted, len(fields), *fields, 0]
    for (at, number), flags, words in entries:
        head = [flags, at - ms, number - sequence]
        if not flags & 2:
            head.append(len(words) // 2)
        items += [*head, *words, len(head) + len(words)]
    return string(struct.pack(">QQ", ms, sequence)) + string(listpack(items))


class File:
    """A file, and what its bytes are."""

    def __init__(self, name, version, title, loader="redis-server", args=()):
        self.name, self.title, self.loader, self.args = name, title, loader, list(args)
        self.data, self.listing, self.version = b"", [], version
        self.put(b"REDIS%04d" % version, f"magic, version {version}")

    def put(self, data, note):
        rows = [data[at : at + ROW] for at in range(0, len(data), ROW)]
        for at, row in enumerate(rows[:ROWS_MAX]):
            offset = f"{len(self.data) + at * ROW:04x}"
            shown = note if at == 0 else ""
            if at == ROWS_MAX - 1 and len(rows) > ROWS_MAX:
                shown = f"... {len(data)} bytes in all"
            self.listing.append(f"{offset}  {row.hex(' '):<{ROW * 3}}{shown}".rstrip())
        self.data += data
        return self

    def database(self, number):
        return self.put(b"\xfe" + length(number), f"SELECTDB {number}")

    def key(self, kind, name, *parts):
        """Parts are bytes and what they are."""
        self.put(bytes([kind]), f"type {kind}")
        self.put(name if isinstance(name, bytes) else string(name), f"key {describe(name)}")
        for data, note in parts:
            self.put(data, note)
        return self

    def end(self, checksum=None):
        self.put(b"\xff", "EOF")
        if self.version >= 5:
            value = crc64(self.data) if checksum is None else checksum
            self.put(struct.pack("<Q", value), "CRC-64" if checksum is None else "no checksum")
        return self

    def write(self, program):
        args = ["--databases", "16", *self.args]
        with Server(program, self.data, args) as server:
            text = state(server.connect())
        path = os.path.join(FILES, self.name)
        with open(path + ".rdb", "wb") as file:
            file.write(self.data)
        with open(path + ".txt", "w", encoding="ascii") as file:
            file.write((f"args {' '.join(self.args)}\n" if self.args else "") + text)
        print(f"{self.name}: {len(self.data)} bytes, {text.count(chr(10))} lines")


def describe(name):
    return "as an integer or compressed" if isinstance(name, bytes) else f"`{name}`"


def words(*items):
    return [(string(item), f"`{item}`" if len(item) < 30 else "a string") for item in items]


def version_1():
    f = File("old-1", 1, "Version 1: plain values, expiry in seconds, no checksum")
    f.database(0)
    f.key(0, "string", (string("text"), "`text`"))
    f.key(0, "empty", (string(""), "the empty string"))
    f.key(0, "int8", (integer(-128), "integer of 8 bits"))
    f.key(0, "int16", (integer(-32768), "integer of 16 bits"))
    f.key(0, "int32", (integer(2147483647), "integer of 32 bits"))
    f.key(0, "lzf", (packed(b"abc", 27), "LZF: 3 bytes, then 27 copied from 3 before"))
    f.key(0, "14 bits", (string(b"x" * 64), "length of 14 bits: 64"))
    f.key(0, "32 bits", (b"\x80\0\0\0\x05hello", "length of 32 bits, longer than needed: 5"))
    f.key(0, integer(12345), (string("a key that is an integer"), "a string"))
    f.key(0, packed(b"k", 40), (string("a key under LZF"), "a string"))
    f.key(1, "list", (length(4), "4 elements"), *words("a", "", "b"), (integer(7), "integer 7"))
    f.key(2, "set", (length(3), "3 members"), *words("one", "two"), (integer(3), "integer 3"))
    scores = ["1.5", "-2", "inf", "-inf", "0.10000000000000001", "3e-05"]
    f.key(3, "zset", (length(len(scores)), f"{len(scores)} members"))
    for score in scores:
        f.put(string(f"m {score}"), f"`m {score}`")
        f.put(text_double(score), f"score {score}")
    pairs = words("field", "value", "", "no name")
    f.key(4, "hash", (length(2), "2 fields"), *pairs)
    f.put(b"\xfd" + struct.pack("<I", YEAR_2100), "EXPIRETIME: read as signed, before 1970")
    f.key(0, "expires", (string("not loaded"), "`not loaded`"))
    f.put(b"\xfd" + struct.pack("<I", 1000000000), "EXPIRETIME: in 2001")
    f.key(0, "due", (string("not loaded"), "`not loaded`"))
    f.database(1)
    f.key(0, "other", (string("database"), "`database`"))
    return f.end()


def version_2():
    f = File("old-2", 2, "Version 2: zipmap, ziplist, intset")
    f.database(0)
    value = zipmap([(b"f", b"value", 0), (b"spare", b"v", 3), (b"", b"", 0)])
    f.key(9, "zipmap", (string(value), "zipmap: `f`; `spare` with 3 unused bytes; an empty pair"))
    value = zipmap([(b"l" * 253, b"v" * 254, 0), (b"l" * 254, b"v" * 253, 1)], 254)
    f.key(9, "zipmap of long ones", (string(value), "zipmap: lengths 253, 254; count 254"))
    wide = [zip_int(-32768, 16), zip_int(-2147483648, 32), zip_int(-9223372036854775808, 64)]
    value = ziplist([zip_text(b"a"), zip_text(b""), *wide, zip_text(b"s" * 64)])
    f.key(10, "list", (string(value), "ziplist: `a`, ``, integers of 16, 32, 64 bits, 64 bytes"))
    value = ziplist([zip_text(b"p" * 251), zip_text(b"q" * 252), zip_text(b"end")])
    f.key(10, "list of long ones", (string(value), "ziplist: lengths of the previous: 253, 259"))
    value = ziplist([zip_text(b"a"), zip_text(b"b")], count=65535, long_before=(1,))
    f.key(10, "list of unknown length", (string(value), "ziplist: count 65535; long form of 3"))
    f.key(11, "intset 16", (string(intset(2, [-32768, -1, 0, 32767])), "intset of 16 bits"))
    f.key(11, "intset 32", (string(intset(4, [-2147483648, 5])), "intset of 32 bits"))
    f.key(11, "intset 64", (string(intset(8, [-(1 << 63), 0, (1 << 63) - 1])), "of 64 bits"))
    parts = [b"inf", zip_text(b"member"), b"-inf"]
    value = ziplist([zip_text(b"low"), zip_text(b"-inf"), zip_text(b"m"), zip_int(7, 16)] +
                    [zip_text(b"n"), zip_text(b"7.25"), zip_text(b"top"), zip_text(parts[0])])
    f.key(12, "zset", (string(value), "ziplist: -inf, 7, 7.25, inf"))
    compressed = packed_ziplist()
    f.key(10, "list under LZF", (compressed, "LZF of a ziplist"))
    return f.end()


def packed_ziplist():
    """A ziplist whose single element is 40 equal bytes, compressed by hand."""
    whole = ziplist([zip_text(b"z" * 40)])
    # Header, previous length, length, and one z as they are; 39 copies; the end as it is.
    head = whole[:13]
    lzf = bytes([len(head) - 1]) + head + bytes([7 << 5, 39 - 2 - 7, 0]) + b"\0\xff"
    return b"\xc3" + length(len(lzf)) + length(len(whole)) + lzf


def version_3():
    f = File("old-3", 3, "Version 3: expiry in milliseconds")
    f.database(0)
    f.put(b"\xfc" + struct.pack("<Q", YEAR_2100 * 1000 + 123), "EXPIRETIME_MS: 2100")
    f.key(0, "milliseconds", (string("v"), "`v`"))
    f.put(b"\xfd" + struct.pack("<I", YEAR_2100), "EXPIRETIME: read as signed, before 1970")
    f.key(1, "seconds", (length(1), "1 element"), *words("a"))
    f.put(b"\xfc" + struct.pack("<Q", 1), "EXPIRETIME_MS: in 1970")
    f.key(4, "due", (length(1), "1 field"), *words("f", "v"))
    return f.end()


def version_4():
    f = File("old-4", 4, "Version 4: hashes as ziplists")
    f.database(0)
    value = ziplist([zip_text(b"f"), zip_text(b"v"), zip_int(1000, 16), zip_int(-70000, 32)])
    f.key(13, "hash", (string(value), "ziplist: `f`, `v`, 1000, -70000"))
    return f.end()


def version_5(checksum):
    name = "old-5" if checksum is None else "old-5-zero"
    what = "a checksum" if checksum is None else "zeros, which are not checked"
    f = File(name, 5, f"Version 5: {what} behind the end")
    f.database(3)
    f.key(0, "key", (string("value"), "`value`"))
    return f.end(checksum)


def version_6():
    f = File("old-6", 6, "Version 6: integers of 4, 8 and 24 bits in ziplists")
    f.database(0)
    edges = [(0, 4), (12, 4), (13, 8), (-128, 8), (127, 8), (128, 16), (32768, 24)]
    edges += [(-8388608, 24), (8388607, 24), (8388608, 32), (1 << 31, 64)]
    value = ziplist([zip_int(n, bits) for n, bits in edges])
    f.key(10, "integers", (string(value), "ziplist: integers of 4 to 64 bits at their limits"))
    value = ziplist([zip_text(b"a", 32), zip_int(-1, 64), zip_int(1, 32)])
    f.key(10, "wider", (string(value), "ziplist: forms wider than needed"))
    value = ziplist([zip_text(b"h" * 300), zip_int(5, 4), zip_text(b"v"), zip_int(-3, 8)])
    f.key(13, "hash", (string(value), "ziplist: a field of 300 bytes and 5, `v` and -3"))
    value = ziplist([zip_text(b"a"), zip_int(3, 4), zip_text(b"b"), zip_text(b"3.5")])
    f.key(12, "zset", (string(value), "ziplist: `a` 3, `b` 3.5"))
    return f.end()


def version_7():
    f = File("old-7", 7, "Version 7: auxiliary fields, sizes, lists of ziplists")
    for name, value in (("redis-ver", string("3.2.0")), ("redis-bits", integer(64))):
        f.put(b"\xfa" + string(name) + value, f"AUX {name}")
    f.put(b"\xfa" + string("nobody knows") + string("this"), "AUX that is not known")
    f.database(0)
    f.put(b"\xfb" + length(2) + length(1), "RESIZEDB: 2 keys, 1 of them expires")
    nodes = [[zip_text(b"a"), zip_int(1, 4)], [zip_text(b"c" * 70)], [zip_int(-5, 8)]]
    values = [(string(ziplist(node)), "a ziplist") for node in nodes]
    f.key(14, "list", (length(3), "3 nodes"), *values)
    f.put(b"\xfc" + struct.pack("<Q", YEAR_2100 * 1000), "EXPIRETIME_MS: 2100")
    f.key(14, "under LZF", (length(1), "1 node"), (packed_ziplist(), "LZF of a ziplist"))
    return f.end()


def version_8():
    f = File("old-8", 8, "Version 8: doubles of 8 bytes, lengths of 64 bits")
    f.database(0)
    scores = ["0", "1.5", "inf", "-inf", "5e-324", "1.7976931348623157e308"]
    f.key(5, "zset", (length(len(scores)), f"{len(scores)} members"))
    for score in scores:
        f.put(string(f"m {score}"), f"`m {score}`")
        f.put(struct.pack("<d", float(score)), f"score {score}")
    f.key(0, "64 bits", (b"\x81" + struct.pack(">Q", 3) + b"abc", "length of 64 bits: 3"))
    return f.end()


def version_9():
    args = ["--maxmemory-policy", "allkeys-lru"]
    f = File("old-9", 9, "Version 9: streams, idle times", args=args)
    f.database(0)
    f.put(b"\xf8" + length(7000), "IDLE: 7000 seconds")
    f.key(0, "idle", (string("v"), "`v`"))
    f.put(b"\xfc" + struct.pack("<Q", YEAR_2100 * 1000), "EXPIRETIME_MS: 2100")
    f.put(b"\xf8" + length(90000), "IDLE: 90000 seconds")
    f.key(0, "idle and expires", (string("v"), "`v`"))
    f.put(b"\xf9\x80", "FREQ: 128")
    f.key(0, "used", (string("v"), "`v`"))
    streams(f)
    return f.end()


def streams(f):
    same = [((5, 1), 2, [b"1", b"2"]), ((6, 0), 3, [b"3", b"4"]), ((70000, 9), 0, [b"x", b"y"])]
    f.key(15, "stream", (length(2), "2 nodes"))
    f.put(stream_node(same, [b"a", b"b"]), "5-1, 6-0 deleted, 70000-9 with other fields")
    f.put(stream_node([((80000, 0), 2, [b"v"])], [b"f"]), "80000-0")
    f.put(length(3) + length(90000) + length(4), "3 entries, last id 90000-4")
    f.put(length(1), "1 group")
    f.put(string("group") + length(70000) + length(9), "`group`, last delivered 70000-9")
    entry = struct.pack(">QQ", 5, 1)
    f.put(length(1), "1 pending entry of the group")
    f.put(entry + struct.pack("<q", 1600000000000) + length(3), "5-1, delivered in 2020, 3 times")
    f.put(length(2), "2 consumers")
    f.put(string("ann") + struct.pack("<q", 1600000000001), "`ann`, seen in 2020")
    f.put(length(1) + entry, "its 1 pending entry: 5-1")
    f.put(string("bob") + struct.pack("<q", 1600000000002) + length(0), "`bob`, none pending")
    f.key(15, "empty stream", (length(0), "no nodes"))
    f.put(length(0) + length(7) + length(7) + length(0), "no entries, last id 7-7, no groups")


def frequency():
    args = ["--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0"]
    f = File("old-9-lfu", 9, "Version 9: frequencies", args=args)
    f.database(0)
    for n in (0, 128, 255):
        f.put(bytes([0xF9, n]), f"FREQ: {n}")
        f.key(0, f"used {n}", (string("v"), "`v`"))
    f.put(b"\xfc" + struct.pack("<Q", YEAR_2100 * 1000) + b"\xf9\x40", "EXPIRETIME_MS, FREQ 64")
    f.key(0, "used and expires", (string("v"), "`v`"))
    return f.end()


def before_7_4():
    f = File("old-12", 12, "Version 12, before Redis 7.4: fields that expire", loader="redis8")
    f.database(0)
    at = YEAR_2100 * 1000
    f.key(22, "hash", (length(2), "2 fields"))
    f.put(length(0) + string("f") + string("v"), "`f`, `v`, does not expire")
    f.put(length(at) + string("g") + string("w"), "`g`, `w`, expires in 2100")
    value = listpack([b"g", b"w", at, b"f", 7, 0])
    f.key(23, "small hash", (string(value), "listpack: field, value, expiry; twice"))
    return f.end()


FILES_MADE = [version_1, version_2, version_3, version_4, lambda: version_5(None)]
FILES_MADE += [lambda: version_5(0), version_6, version_7, version_8, version_9, frequency]
FILES_MADE += [before_7_4]

HEAD = """# Old RDB files, byte by byte

The files `tests/rdb/files/old-*.rdb` have what servers wrote before the current encodings. No
server wrote them: `tests/rdb/old.py` makes them and this page. The state beside each file is that
of redis-server 7.0.15 after it loaded the file (of Redis 8.2.3 for version 12). [rdb.md](rdb.md)
describes the current encodings, and the files of `crates/rdb/src` named there draw ziplist, zipmap
and intset.

Sources: the page "Redis RDB Dump File Format" and the "RDB Version History" of redis-rdb-tools, the
page "RDB dump data format" of redis-replicator, rdb.fnordig.de, and antirez's listpack
specification.

| version | Redis | what it adds |
|---|---|---|
| 1 | 2.0, 2.2 | strings, lists, sets, sorted sets with scores as text, hashes; expiry in seconds |
| 2 | 2.4 | types 9 to 12: zipmap, ziplist, intset |
| 3 | 2.5 | opcode 252: expiry in milliseconds |
| 4 | 2.5 | type 13: a hash as a ziplist; zipmaps are no longer written |
| 5 | 2.5 | 8 bytes of CRC-64 behind the end; zeros are not checked |
| 6 | 2.6 to 3.0 | integers of 4, 8 and 24 bits in ziplists |
| 7 | 3.2 | opcodes 250 and 251: auxiliary fields, sizes; type 14: a list of ziplists |
| 8 | 4.0 | type 5: scores of 8 bytes; types 6 and 7: modules; lengths of 64 bits |
| 9 | 5.0 to 6.2 | type 15: streams; opcodes 247 to 249: data of modules, frequency, idle time |

```text
magic and version, 9 bytes: REDIS and 4 digits
253 seconds i32 LE | 252 milliseconds u64 LE | 248 LENGTH idle seconds | 249 frequency, 1 byte
type | key STRING | value
250 name STRING, value STRING | 251 LENGTH keys, LENGTH of them with expiry
254 LENGTH database
255 | from version 5: CRC-64, 8 bytes LE
```

Redis reads seconds as signed: a time behind January 2038 is before 1970. A key that is due when a
primary loads it is left out. The listings show at most 96 bytes of an item.
"""


def main():
    eight = sys.argv[1] if len(sys.argv) > 1 else None
    document = HEAD
    for make in FILES_MADE:
        file = make()
        listing = "\n".join(file.listing)
        document += f"\n## {file.title}\n\n`{file.name}.rdb`\n\n```text\n{listing}\n```\n"
        program = {"redis8": eight}.get(file.loader, file.loader)
        if program is not None:
            file.write(program)
    with open(DOCUMENT, "w", encoding="ascii") as out:
        out.write(document)


if __name__ == "__main__":
    main()
