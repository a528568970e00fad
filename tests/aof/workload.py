"""Changes of every type for the generators of this folder."""

import random

from servers import Failed

YEAR_2100 = 4102444800000
DATABASES = 3


def transaction(ask, *lines):
    ask("MULTI")
    for line in lines:
        ask(*line)
    ask("EXEC")


def fixed(ask, known, part):
    """Each type, with what is written down as another command. `part` 2 builds on 1."""
    name = f"{part}"
    ask("SET", "string", f"text {name}", "PXAT", YEAR_2100)
    ask("APPEND", "string", "\r\n\x00more")
    ask("SETRANGE", "padded", 9 * part, "x")
    ask("INCRBY", "counter", 40)
    ask("INCRBYFLOAT", "float", "0.1")
    ask("SETBIT", "bits", 70 + part, 1)
    ask("BITFIELD", "bits", "SET", "u8", "#3", 200, "INCRBY", "i5", 3, 9)
    ask("PFADD", "hll", *range(20 * part))
    ask("GETEX", "string", "PERSIST")
    ask("GETDEL", "hll copy") if ask("COPY", "hll", "hll copy") else None
    ask("SETEX", "later", 2000000000, "relative")
    ask("MSET", "many:1", name, "many:2", name)
    ask("RPUSH", "list", *range(12), name)
    ask("LPUSH", "other", "a", "b")
    ask("BLMOVE", "list", "other", "RIGHT", "LEFT", 1)
    ask("LMPOP", 2, "nothing", "list", "LEFT", "COUNT", 2)
    ask("LINSERT", "list", "BEFORE", 5, "inserted")
    ask("SORT", "list", "BY", "nosort", "LIMIT", 0, 5, "STORE", "sorted")
    ask("SADD", "set", *range(10), "text")
    ask("SPOP", "set", 3)
    ask("SADD", "set", "stays")
    ask("SUNIONSTORE", "union", "set", "nothing")
    ask("HSET", "hash", "f", name, "g", "", "n", 1)
    ask("HINCRBYFLOAT", "hash", "n", "2.5")
    ask("HDEL", "hash", "g")
    ask("ZADD", "zset", "inf", "a", "-1.5", "b", 3, name)
    ask("ZINCRBY", "zset", "0.25", "b")
    ask("BZPOPMIN", "zset", 1)
    ask("GEOADD", "places", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", name)
    ask("GEOSEARCHSTORE", "near", "places", "FROMMEMBER", "Palermo", "BYRADIUS", 300, "km", "ASC")
    for n in range(4):
        ask("XADD", "stream", f"{part}-{n + 1}", "field", n)
    if part == 1:
        ask("XGROUP", "CREATE", "stream", "group", "0")
        ask("XGROUP", "CREATECONSUMER", "stream", "group", "idle")
    ask("XREADGROUP", "GROUP", "group", "ann", "COUNT", 3, "STREAMS", "stream", ">")
    ask("XACK", "stream", "group", f"{part}-1")
    ask("XCLAIM", "stream", "group", "bob", 0, f"{part}-2", "TIME", 1700000000123)
    ask("XDEL", "stream", f"{part}-4")
    ask("XADD", "trimmed", "MAXLEN", 2, f"{part}-1", "f", "v")
    transaction(
        ask,
        ("INCR", "counter"),
        ("SELECT", 2),
        ("RPUSH", "elsewhere", name),
        ("EXPIREAT", "elsewhere", YEAR_2100 // 1000),
        ("SELECT", 0),
        ("SPOP", "union"),
    )
    ask("SET", "moved", name)
    ask("MOVE", "moved", 1)
    ask("SET", "due", "gone", "PX", 1)
    ask("SET", "old name", name)
    ask("RENAME", "old name", f"new name {name}")
    ask("UNLINK", "many:1", "nothing")
    if known("EVAL"):
        script = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', 'counter')"
        ask("EVAL", script, 1, "script", 7)
        library = "#!lua name=l\nredis.register_function('f', function() end)"
        ask("FUNCTION", "LOAD", "REPLACE", library)
    if known("HPEXPIRE"):
        ask("HSET", "timed", "a", 1, "b", 2, "c", 3, "gone", 4)
        ask("HPEXPIREAT", "timed", YEAR_2100, "FIELDS", 2, "a", "b")
        ask("HEXPIRE", "timed", 2000000000, "FIELDS", 1, "c")
        ask("HPERSIST", "timed", "FIELDS", 1, "b")
        ask("HPEXPIRE", "timed", 0, "FIELDS", 1, "gone")
    if known("HSETEX"):
        ask("HSETEX", "timed", "PXAT", YEAR_2100 + part, "FIELDS", 2, "d", 1, "e", 2)
        ask("HSETEX", "timed", "KEEPTTL", "FIELDS", 1, "d", "kept")
        ask("HGETEX", "timed", "PERSIST", "FIELDS", 1, "e")
        ask("HGETDEL", "timed", "FIELDS", 2, "c", "nothing")
    if known("MSETEX"):
        ask("MSETEX", 2, "many:1", part, "many:3", part, "PXAT", YEAR_2100)
    if known("DELIFEQ"):
        ask("SET", "equal", name)
        ask("DELIFEQ", "equal", name)
        ask("SET", "moved", 1)
        ask("SET", "moved", "compared", "IFEQ", 1)
        ask("SET", "moved", "not set", "IFEQ", "not it")


def random_lines(rng, count, known):
    """Commands on a few keys of each type."""
    def key(kind):
        return f"{kind}{rng.randrange(8)}"

    def some(most, word=lambda n: rng.randrange(1000)):
        return [word(n) for n in range(rng.randrange(1, most))]

    def flat(of):
        return [word for pair in of for word in pair]

    lines = [
        lambda: ("SET", key("s"), rng.random()),
        lambda: ("SET", key("s"), rng.randrange(10**12), "PX", 10**8),
        lambda: ("APPEND", key("s"), "x" * rng.randrange(300)),
        lambda: ("SETRANGE", key("s"), rng.randrange(3000), "abc"),
        lambda: ("INCRBYFLOAT", key("f"), "0.1"),
        lambda: ("SETBIT", key("b"), rng.randrange(9999), 1),
        lambda: ("PFADD", key("p"), rng.random()),
        lambda: ("RPUSH", key("l"), *some(200)),
        lambda: ("LPOP", key("l"), 3),
        lambda: ("LMOVE", key("l"), key("l"), "LEFT", "RIGHT"),
        lambda: ("SADD", key("e"), *some(600)),
        lambda: ("SPOP", key("e"), 2),
        lambda: ("SUNIONSTORE", key("e"), key("e"), key("e")),
        lambda: ("HSET", key("h"), *flat((f"f{n}", rng.random()) for n in some(200))),
        lambda: ("HDEL", key("h"), "f3", "f4"),
        lambda: ("ZADD", key("z"), *flat((rng.random(), f"m{n}") for n in some(200))),
        lambda: ("ZPOPMIN", key("z")),
        lambda: ("ZINCRBY", key("z"), "1.5", "m1"),
        lambda: ("GEOADD", key("g"), rng.random() * 10, rng.random() * 10, f"p{rng.randrange(9)}"),
        lambda: ("XADD", key("x"), "*", "a", rng.randrange(99)),
        lambda: ("XGROUP", "CREATE", key("x"), "g", "0", "MKSTREAM"),
        lambda: ("XREADGROUP", "GROUP", "g", "c1", "COUNT", 3, "STREAMS", key("x"), ">"),
        lambda: ("XTRIM", key("x"), "MAXLEN", 5),
        lambda: ("EXPIRE", key(rng.choice("slehz")), 99999),
        lambda: ("DEL", key(rng.choice("slehzxbpgf"))),
        lambda: ("COPY", key("h"), key("h"), "REPLACE"),
        lambda: ("RENAME", key("l"), key("l")),
        lambda: ("SELECT", rng.randrange(DATABASES)),
        lambda: ("SET", key("s"), "due", "PX", 1 + rng.randrange(20)),
    ]
    if known("HPEXPIRE"):
        lines.append(lambda: ("HPEXPIRE", key("h"), 10**8, "FIELDS", 2, "f0", "f1"))
        lines.append(lambda: ("HPERSIST", key("h"), "FIELDS", 1, "f0"))
    for _ in range(count):
        yield rng.choice(lines)()


def random_changes(ask, known, seed, count):
    """So many of them; a part stands in transactions. Those which are refused change nothing."""
    rng = random.Random(seed)
    is_open = False
    for line in random_lines(rng, count, known):
        if rng.randrange(12) == 0:
            ask("EXEC" if is_open else "MULTI")
            is_open = not is_open
        try:
            ask(*line)
        except Failed:
            pass
    if is_open:
        ask("EXEC")
    ask("SELECT", 0)
