"""Files written by real servers, and the state that they hold.

    python3 tests/rdb/recorded.py NAME=PROGRAM ...

NAME is the prefix of the files, PROGRAM a server: redis7.0=redis-server, and so on; README.md says
where each program comes from. For each profile of a server two files are written into
tests/rdb/files: NAME-PROFILE.rdb, which the server saved, and NAME-PROFILE.txt, its state as
reported by a server of the same program which loaded the file. The states before and after are
compared, so a command which the server does not keep is noticed here. Servers before 7.0 cannot
report everything; `redis-server` from PATH, which has to be 7.0, reports for them.

The random bytes come from a fixed seed. Times in the future are in the year 2100.
"""

import os
import random
import sys

from servers import Failed, Server, known, state

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
YEAR_2100 = 4102444800000
LIMITS = [0, 12, 13, 63, 64, 127, 128, 255, 4095, 4096, 32767, 32768, 65535, 65536]
LIMITS += [8388607, 8388608, 2147483647, 2147483648, 4294967296, 9223372036854775806]
INTEGERS = sorted({sign * n + more for n in LIMITS for sign in (1, -1) for more in (0, -1)})
INTEGERS += [9223372036854775807, -9223372036854775808]
ALMOST = ["", "007", "+1", "-0", " 1", "1 ", "1.0", "9223372036854775808", "0x10", "-"]


def noise(rng, length):
    return bytes(rng.randrange(256) for _ in range(length))


def strings(ask, rng, is_large):
    for at, n in enumerate(INTEGERS):
        ask("SET", f"string:integer:{at:02}", n)
    for at, text in enumerate(ALMOST):
        ask("SET", f"string:text:{at}", text)
    for length in [1, 19, 20, 21, 63, 64, 255, 256]:
        ask("SET", f"string:noise:{length}", noise(rng, length))
        ask("SET", f"string:repeated:{length}", b"ab" * (length // 2) + b"c" * (length % 2))
    ask("SET", "string:bytes", bytes(range(256)))
    ask("SET", "string:repeated:20000", b"0123456789" * 2000)
    ask("APPEND", "string:appended", "12")
    ask("APPEND", "string:appended", "34")
    ask("SETBIT", "string:bits", 100, 1)
    ask("PFADD", "string:hll", *range(50))
    if is_large:
        ask("SET", "string:mebibyte", b"Lorem ipsum dolor " * 58254 + b"sit.")


def keys(ask, rng):
    ask("SET", "", "the empty key")
    ask("SET", 12345, "a key that is an integer of 16 bits")
    ask("SET", -2147483648, "a key that is an integer of 32 bits")
    ask("SET", bytes(range(255, 191, -1)), "a key of all kinds of bytes")
    ask("SET", b"k" * 1000, "a long key that can be compressed")
    ask("SET", noise(rng, 100), "a long key that cannot")


def set_if_known(ask, name, value):
    try:
        ask("CONFIG", "SET", name, value)
    except Failed:
        return False
    return True


def lists(ask, rng):
    texts = [b"", b"a", b"x" * 63, b"y" * 64, noise(rng, 253), noise(rng, 254), b"z" * 300]
    ask("RPUSH", "list:one", "1")
    ask("RPUSH", "list:integers", *INTEGERS)
    ask("RPUSH", "list:texts", *texts, *ALMOST)
    ask("RPUSH", "list:4096", b"p" * 4095, b"q" * 4096)
    set_if_known(ask, "list-max-ziplist-size", 3)
    ask("RPUSH", "list:nodes", *[f"element {n}" for n in range(20)])
    set_if_known(ask, "list-max-ziplist-size", -1)
    ask("RPUSH", "list:plain", "before", b"0123456789" * 1000, "after", b"w" * 9000)
    set_if_known(ask, "list-compress-depth", 1)
    ask("RPUSH", "list:compressed", *[f"the same text again {n % 3}" for n in range(600)])
    set_if_known(ask, "list-compress-depth", 0)
    set_if_known(ask, "list-max-ziplist-size", -2)
    try:
        ask("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "20b")
        ask("RPUSH", "list:threshold", "short", "longer than twenty bytes, so plain", 7)
        ask("DEBUG", "QUICKLIST-PACKED-THRESHOLD", 0)
    except Failed:
        pass


def sets(ask, rng):
    ask("SADD", "set:16", *range(-32768, 32768, 4369), 32767)
    ask("SADD", "set:32", -32769, 0, 5, 2147483647, -2147483648)
    ask("SADD", "set:64", 2147483648, -1, 9223372036854775807, -9223372036854775808)
    ask("SADD", "set:texts", "", "a", 17, "007", noise(rng, 30), b"r" * 64)
    ask("SADD", "set:long", "a", b"s" * 65)
    ask("SADD", "set:integers:600", *range(1000000, 1000600))
    ask("SADD", "set:texts:150", *[f"member {n}" for n in range(150)])


SCORES = ["inf", "-inf", "0", "-0", "1", "-1", "0.1", "3.14159", "1e300", "-1e300", "5e-324"]
SCORES += ["9007199254740992", "9007199254740993", "1.7976931348623157e308", "4294967296", "1e-7"]
SCORES += ["0.30000000000000004", "1234567890123456789", "-2147483649", "32768", "2.5e15"]


def zsets(ask, rng):
    scored = [word for at, score in enumerate(SCORES) for word in (score, f"m{at:02}")]
    ask("ZADD", "zset:packed", *scored)
    ask("ZADD", "zset:large", *scored, "2", b"t" * 300)
    ask("ZADD", "zset:equal", *[word for n in range(9) for word in ("1.5", f"e{n}")])
    ask("ZADD", "zset:members", 1, "", 2, 12, 3, -70000, 4, noise(rng, 40))
    ask("ZADD", "zset:150", *[word for n in range(150) for word in (n / 4, f"n{n}")])


def hashes(ask, rng):
    ask("HSET", "hash:packed", "f", "v", "", "", "empty", "", 12, 70000, "-1", "text")
    ask("HSET", "hash:integers", *[word for n in INTEGERS[:20] for word in (f"i{n}", n)])
    ask("HSET", "hash:long", "f", b"u" * 65, noise(rng, 70), "v")
    ask("HSET", "hash:150", *[word for n in range(150) for word in (f"field {n}", n)])


def streams(ask):
    for n in range(1, 6):
        ask("XADD", "stream:plain", f"{n}-1", "field", f"value {n}", "n", n)
    ask("XADD", "stream:fields", "1-1", "a", "1", "b", "2")
    ask("XADD", "stream:fields", "1-2", "a", "1", "c", "2")
    ask("XADD", "stream:fields", "1-3", "b", "")
    ask("XADD", "stream:fields", "18446744073709551614-5", "", "the largest but one")
    set_if_known(ask, "stream-node-max-entries", 4)
    for n in range(1, 24):
        ask("XADD", "stream:nodes", f"{1000 + n * 70000}-{n % 3}", "f", n * 1000)
    ask("XDEL", "stream:nodes", "71000-1", "491000-1", "1611000-2")
    ask("XTRIM", "stream:nodes", "MAXLEN", 17)
    set_if_known(ask, "stream-node-max-entries", 100)
    ask("XADD", "stream:emptied", "7-7", "f", "v")
    ask("XDEL", "stream:emptied", "7-7")
    ask("XGROUP", "CREATE", "stream:created", "group", "$", "MKSTREAM")
    ask("XGROUP", "CREATE", "stream:plain", "first", "0")
    ask("XGROUP", "CREATE", "stream:plain", "last", "$")
    ask("XGROUP", "CREATE", "stream:plain", "middle", "3-1")
    ask("XREADGROUP", "GROUP", "first", "ann", "COUNT", 3, "STREAMS", "stream:plain", ">")
    ask("XREADGROUP", "GROUP", "first", "bob", "COUNT", 1, "STREAMS", "stream:plain", ">")
    ask("XREADGROUP", "GROUP", "middle", "", "NOACK", "STREAMS", "stream:plain", ">")
    ask("XACK", "stream:plain", "first", "1-1")
    ask("XCLAIM", "stream:plain", "first", "cid", 0, "3-1", "TIME", 1700000000123, "RETRYCOUNT", 9)
    try:
        ask("XGROUP", "CREATECONSUMER", "stream:plain", "last", "idle one")
    except Failed:
        pass
    # Pending although it was deleted.
    ask("XDEL", "stream:plain", "2-1")
    ask("XADD", "stream:set", "5-5", "f", "v")
    try:
        ask("XSETID", "stream:set", "99-99", "ENTRIESADDED", 1000, "MAXDELETEDID", "50-50")
    except Failed:
        ask("XSETID", "stream:set", "99-99")


def field_times(ask, connection):
    if not known(connection, "HPEXPIREAT"):
        return
    names = [f"f{n}" for n in range(6)]
    some = [word for name in names for word in (name, f"value of {name}")]
    ask("HSET", "hash:ttl:packed", *some)
    ask("HPEXPIREAT", "hash:ttl:packed", YEAR_2100, "FIELDS", 2, "f1", "f4")
    ask("HPEXPIREAT", "hash:ttl:packed", YEAR_2100 + 86400000, "FIELDS", 1, "f0")
    ask("HSET", "hash:ttl:all", "a", 1, "b", 2)
    ask("HPEXPIREAT", "hash:ttl:all", YEAR_2100 + 7, "FIELDS", 2, "a", "b")
    ask("HSET", "hash:ttl:large", *some, "long", b"v" * 100)
    ask("HPEXPIREAT", "hash:ttl:large", YEAR_2100 + 1, "FIELDS", 2, "f2", "f3")
    ask("HPEXPIREAT", "hash:ttl:large", YEAR_2100, "FIELDS", 1, "long")
    ask("PEXPIREAT", "hash:ttl:large", YEAR_2100 + 5)
    # A field that is due when the file is loaded, beside one that stays, and by itself.
    ask("HSET", "hash:ttl:due", "gone", 1, "stays", 2)
    ask("HPEXPIRE", "hash:ttl:due", 1, "FIELDS", 1, "gone")
    ask("HSET", "hash:ttl:all due", "gone", 1)
    ask("HPEXPIRE", "hash:ttl:all due", 1, "FIELDS", 1, "gone")


def expiries(ask):
    for n, name in enumerate(["a", "b", "c"]):
        ask("SET", f"expires:{name}", n)
        ask("PEXPIREAT", f"expires:{name}", YEAR_2100 + n * 999)
    ask("RPUSH", "expires:list", 1, 2, 3)
    ask("PEXPIREAT", "expires:list", YEAR_2100 * 2)
    ask("SET", "expires:due", "not loaded", "PX", 1)


def databases(ask):
    for db in (1, 9, 15):
        ask("SELECT", db)
        ask("SET", "db", db)
        ask("SADD", "same name", db)
    ask("SET", "expires", 1, "PX", 1)
    ask("SELECT", 0)


def functions(ask, connection):
    if known(connection, "FUNCTION"):
        call = "redis.register_function"
        ask("FUNCTION", "LOAD", f"#!lua name=one\n{call}('one', function() return 1 end)")
        ask("FUNCTION", "LOAD", f"#!lua name=two\n{call}('two', function(k) return k end)")


def everything(connection, is_large):
    ask, rng = connection.ask, random.Random(20261123)
    # What is due is saved, and left out by the server that loads it.
    ask("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    strings(ask, rng, is_large)
    keys(ask, rng)
    lists(ask, rng)
    sets(ask, rng)
    zsets(ask, rng)
    hashes(ask, rng)
    streams(ask)
    field_times(ask, connection)
    expiries(ask)
    databases(ask)
    functions(ask, connection)


def few(connection):
    ask, rng = connection.ask, random.Random(7)
    ask("SET", "integer", 70000)
    ask("SET", "repeated", b"abc" * 100)
    ask("SET", "noise", noise(rng, 40))
    ask("RPUSH", "list", *[f"the same text {n % 3}" for n in range(50)])
    ask("SADD", "set", "a", "b", 3)
    ask("ZADD", "zset", 1, "a", "inf", "b")
    ask("HSET", "hash", "f", "v")
    ask("XADD", "stream", "1-1", "f", "v")
    ask("SET", "expires", 1)
    ask("PEXPIREAT", "expires", YEAR_2100)


def used(connection, unit, values):
    """Keys with a frequency, or with a time since they were used."""
    ask = connection.ask
    ask("SET", "from", "a value")
    dump = ask("DUMP", "from")
    for value in values:
        ask("RESTORE", f"{unit.lower()} {value}", 0, dump, unit, value)
    ask("RESTORE", "with expiry", YEAR_2100, dump, "ABSTTL", unit, values[-1])
    ask("DEL", "from")


PROFILES = {
    "all": ([], lambda c: everything(c, False)),
    "large": ([], lambda c: everything(c, True)),
    "plain": (["--rdbcompression", "no", "--rdbchecksum", "no"], few),
    "lfu": (
        ["--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0"],
        lambda c: used(c, "FREQ", [0, 1, 5, 100, 254, 255]),
    ),
    "lru": (
        ["--maxmemory-policy", "allkeys-lru"],
        lambda c: used(c, "IDLETIME", [0, 1000, 70000, 5000000]),
    ),
}
CHOSEN = {
    "redis5.0": ["all"],
    "redis6.2": ["all"],
    "redis7.0": ["large", "plain", "lfu", "lru"],
    "redis7.2": ["all"],
    "redis8.2": ["all"],
    "valkey9.1": ["all", "lfu"],
}


def record(name, program, profile):
    args, fill = PROFILES[profile]
    is_old = name in ("redis5.0", "redis6.2")
    debug = [] if is_old else ["--enable-debug-command", "yes"]
    with Server(program, args=[*args, *debug]) as server:
        connection = server.connect()
        fill(connection)
        connection.ask("SAVE")
        # Reading changes when keys were used, so it comes after.
        before = None if is_old else state(connection)
        rdb = server.saved()
    with Server("redis-server" if is_old else program, rdb, args) as server:
        after = state(server.connect())
    if before is not None and before != after:
        kept = set(after.splitlines())
        lost = [line for line in before.splitlines() if line not in kept]
        print(f"{name}-{profile}: not kept by the server itself:", *lost, sep="\n  ")
    path = os.path.join(FOLDER, f"{name}-{profile}")
    with open(path + ".rdb", "wb") as file:
        file.write(rdb)
    with open(path + ".txt", "w", encoding="ascii") as file:
        file.write("".join([f"args {' '.join(args)}\n" if args else "", after]))
    print(f"{name}-{profile}: {len(rdb)} bytes, version {rdb[:9]}, {after.count(chr(10))} lines")


def main():
    for word in sys.argv[1:]:
        name, program = word.split("=", 1)
        for profile in CHOSEN[name]:
            record(name, program, profile)


if __name__ == "__main__":
    main()
