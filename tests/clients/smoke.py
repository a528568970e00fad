#!/usr/bin/env python3
"""redis-py against a server: smoke.py HOST PORT. Prints one line per part; exits nonzero on the first surprise."""
import functools
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ResponseError, TimeoutError, WatchError
from redis.retry import Retry

HOST, PORT = sys.argv[1], int(sys.argv[2])


def client(**options):
    """Without retries, which would hide a closed connection."""
    return redis.Redis(host=HOST, port=PORT, socket_timeout=10, **{"retry": Retry(NoBackoff(), 0)} | options)


def expect(got, wanted):
    if got != wanted or type(got) is not type(wanted):
        raise AssertionError(f"wanted {wanted!r}, got {got!r}")


def expect_error(kind, call, part):
    try:
        got = call()
    except kind as error:
        assert part in str(error), f"wanted {part!r} in {error}"
    else:
        raise AssertionError(f"wanted an error with {part!r}, got {got!r}")


def strings(protocol):
    r = client(protocol=protocol)
    r.flushall()
    expect(r.ping(), True)
    expect(r.set("k", "v", ex=100), True)
    expect(r.get("k"), b"v")
    assert 98 <= r.ttl("k") <= 100
    expect(r.set("k", "w", nx=True), None)
    expect(r.set("k", "w", get=True), b"v")
    expect(r.get("nothing"), None)
    expect(r.incr("n"), 1)
    expect(r.incrby("n", 41), 42)
    expect(r.decr("n"), 41)
    expect(r.incrbyfloat("f", 0.1), 0.1)
    expect(r.incrbyfloat("f", 0.2), 0.3)
    expect(r.append("k", "ord"), 4)
    expect(r.getrange("k", 1, -1), b"ord")
    expect(r.strlen("k"), 4)
    expect(r.mset({"a": 1, "b": 2}), True)
    expect(r.mget("a", "b", "nothing"), [b"1", b"2", None])
    expect(r.exists("a", "b", "nothing"), 2)
    expect(r.type("a"), b"string")
    expect(r.delete("a", "b", "nothing"), 2)
    expect(r.expire("k", 100), True)
    expect(r.persist("k"), True)
    expect(r.ttl("k"), -1)
    expect(r.rename("k", "l"), True)
    expect(r.getdel("l"), b"word")
    expect(r.copy("n", "m"), True)
    expect(sorted(r.keys("*")), [b"f", b"m", b"n"])
    expect(r.dbsize(), 3)
    expect_error(ResponseError, lambda: r.incr("f"), "value is not an integer or out of range")
    expect_error(ResponseError, lambda: r.execute_command("NOSUCH", "x"), "unknown command 'NOSUCH'")
    expect_error(ResponseError, lambda: r.execute_command("GET"), "wrong number of arguments for 'get' command")
    r.close()


def decoded():
    r = client(decode_responses=True)
    text = "gr\u00fc\u00df dich \U0001f33e \u7a32"
    expect(r.set(text, text), True)
    expect(r.get(text), text)
    expect(r.keys("gr\u00fc*"), [text])
    info = r.info()
    assert info["redis_version"].count(".") == 2
    expect(info["role"], "master")
    expect(r.info("keyspace")["db0"]["keys"], r.dbsize())
    assert r.config_get("maxmemory")["maxmemory"].isdigit()
    expect(r.config_get("save"), {"save": ""})
    assert "get" in r.command() and r.command_count() > 50
    seconds, micros = r.time()
    assert abs(seconds - time.time()) < 5 and 0 <= micros < 1_000_000
    r.close()


def scans():
    r = client()
    r.flushall()
    pipe = r.pipeline(transaction=False)
    for n in range(5000):
        pipe.set(f"scan:{n}", n)
    expect(pipe.execute(), [True] * 5000)
    found = list(r.scan_iter(count=100))
    expect(len(set(found)), 5000)
    expect(len(set(r.scan_iter(match="scan:12*"))), 111)
    expect(set(r.scan_iter(match="nothing*")), set())
    r.close()


def pipelines():
    r = client()
    r.flushall()
    with r.pipeline() as pipe:  # MULTI ... EXEC
        pipe.set("a", 1).incr("a").get("a").mget("a", "b")
        expect(pipe.execute(), [True, 2, b"2", [b"2", None]])
    with r.pipeline() as pipe:
        pipe.set("a", "text").incr("a").get("a")
        answers = pipe.execute(raise_on_error=False)
        expect(answers[0], True)
        assert isinstance(answers[1], ResponseError)
        expect(answers[2], b"text")
    with r.pipeline() as pipe:
        pipe.set("a", 1)
        pipe.execute_command("GET")
        expect_error(ResponseError, pipe.execute, "wrong number of arguments for 'get' command")
    expect(r.get("a"), b"text")


def watches():
    """Two threads add with optimistic locking; the retries of redis-py make every addition count."""
    r = client()
    r.set("sum", 0)
    retries = []

    def add(pipe):
        now = int(pipe.get("sum"))
        pipe.multi()
        pipe.set("sum", now + 1)

    def work():
        mine = client()
        for _ in range(100):
            mine.transaction(add, "sum")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    expect(r.get("sum"), b"200")
    with r.pipeline() as pipe:
        pipe.watch("sum")
        r.set("sum", 1)
        pipe.multi()
        pipe.get("sum")
        expect_error(WatchError, pipe.execute, "Watched variable changed")
    with r.pipeline() as pipe:
        pipe.watch("sum")
        expect(pipe.get("sum"), b"1")
        pipe.unwatch()
        r.set("sum", 2)
        pipe.multi()
        pipe.get("sum")
        expect(pipe.execute(), [b"2"])


def waits():
    """A reply that takes longer than the client waits is a timeout there, and the server goes on."""
    r = client()
    r.client_pause(400, all=True)
    short = redis.Redis(host=HOST, port=PORT, socket_timeout=0.1, retry=None)
    try:
        short.set("late", 1)
    except (TimeoutError, ConnectionError):
        pass
    else:
        raise AssertionError("a paused server answered")
    started = time.time()
    expect(r.set("late", 2), True)
    assert time.time() - started < 5
    assert short.get("late") in (b"1", b"2")


def big_values():
    r = client()
    for size in (0, 1, 44, 45, 16_383, 16_384, 32_767, 32_768, 65_536, 1_000_003, 20_000_000):
        value = bytes(n * 7 % 256 for n in range(min(size, 4096))) * (size // 4096 + 1)
        value = value[:size]
        expect(r.set("big", value), True)
        expect(r.strlen("big"), size)
        assert r.get("big") == value, f"a value of {size} bytes came back changed"
    expect(r.mget("big", "big"), [value, value])
    expect(r.setrange("big", 10_000_000, "here"), 20_000_000)
    expect(r.getrange("big", 9_999_999, 10_000_004), value[9_999_999:10_000_000] + b"here" + value[10_000_004:10_000_005])
    expect(r.delete("big"), 1)


def names():
    r = client(client_name="first")
    expect(r.client_getname(), "first" if isinstance(r.client_getname(), str) else b"first")
    expect(r.client_setname("second"), True)
    own = r.client_id()
    listed = [one for one in r.client_list() if one["name"] == "second"]
    expect(len(listed), 1)
    expect(listed[0]["id"], str(own))
    expect(r.client_info()["name"], "second")
    other = client(client_name="victim", retry=Retry(NoBackoff(), 3))
    victim = other.client_id()
    expect(r.client_kill_filter(_id=victim), 1)
    expect(other.ping(), True)  # the pool connects again
    assert other.client_id() != victim


def databases():
    one, two = client(db=1), client(db=2)
    one.flushall()
    one.set("k", "one")
    two.set("k", "two")
    expect(one.get("k"), b"one")
    expect(one.move("k", 2), False)
    expect(one.swapdb(1, 2), True)
    expect(one.get("k"), b"two")
    expect(two.flushdb(), True)
    expect(two.get("k"), None)
    expect(one.dbsize(), 1)
    one.flushall()


def collections(protocol):
    """Every type once through the client's own parsers: what differs between RESP2 and RESP3 must not reach the caller."""
    r = client(protocol=protocol)
    r.flushall()
    expect(r.rpush("l", "a", "b", "c", "b"), 4)
    expect(r.lpush("l", "z"), 5)
    expect(r.lrange("l", 0, -1), [b"z", b"a", b"b", b"c", b"b"])
    expect(r.lpos("l", "b", count=0), [2, 4])
    expect(r.linsert("l", "BEFORE", "c", "x"), 6)
    expect(r.lindex("l", 3), b"x")
    expect(r.lset("l", 0, "y"), True)
    expect(r.lrem("l", -1, "b"), 1)
    expect(r.ltrim("l", 1, -1), True)
    expect(r.lpop("l"), b"a")
    expect(r.rpop("l", 2), [b"c", b"x"])
    expect(r.lmove("l", "m", "LEFT", "RIGHT"), b"b")
    expect(r.lmpop(2, "l", "m", direction="LEFT", count=5), [b"m", [b"b"]])
    expect(r.lpop("l"), None)
    expect(r.exists("l", "m"), 0)

    expect(r.hset("h", mapping={"a": 1, "b": "two", "c": 3.5}), 3)
    expect(r.hget("h", "b"), b"two")
    expect(r.hgetall("h"), {b"a": b"1", b"b": b"two", b"c": b"3.5"})
    expect(r.hmget("h", "a", "nothing"), [b"1", None])
    expect(r.hincrby("h", "a", 41), 42)
    expect(r.hincrbyfloat("h", "c", 0.25), 3.75)
    expect(r.hsetnx("h", "a", 0), 0)
    expect(r.hexists("h", "nothing"), False)
    expect(r.hdel("h", "b", "nothing"), 1)
    expect(sorted(r.hkeys("h")), [b"a", b"c"])
    expect(sorted(r.hvals("h")), [b"3.75", b"42"])
    expect((r.hlen("h"), r.hstrlen("h", "a")), (2, 2))
    assert r.hrandfield("h") in (b"a", b"c")
    expect(dict(r.hscan_iter("h")), {b"a": b"42", b"c": b"3.75"})

    expect(r.sadd("s", "a", "b", "c", "a"), 3)
    expect(r.sadd("t", "b", "c", "d"), 3)
    expect(r.smembers("s"), {b"a", b"b", b"c"})
    expect(r.sinter("s", "t"), {b"b", b"c"})
    expect(r.sunion("s", "t"), {b"a", b"b", b"c", b"d"})
    expect(r.sdiff("s", "t"), {b"a"})
    expect(r.sintercard(2, ["s", "t"], limit=1), 1)
    expect(r.smismember("s", ["a", "d"]), [1, 0])
    expect(r.smove("s", "t", "a"), True)
    expect(r.sdiffstore("u", ["t", "s"]), 2)
    expect(set(r.sscan_iter("u")), {b"a", b"d"})
    assert r.srandmember("u") in (b"a", b"d")
    expect(r.srem("u", "a"), 1)
    expect((r.spop("u"), r.exists("u")), (b"d", 0))
    expect(r.sort("t", alpha=True, desc=True), [b"d", b"c", b"b", b"a"])
    r.close()


def newer(protocol):
    """What redis-server 7.0 does not have: fields of a hash that expire, and the score beside a rank."""
    r = client(protocol=protocol)
    r.flushall()
    expect(r.hset("h", mapping={"a": 1, "b": 2, "c": 3}), 3)
    expect(r.hexpire("h", 100, "a", "nothing"), [1, -2])
    assert 98 <= r.httl("h", "a")[0] <= 100
    expect(r.hpersist("h", "a"), [1])
    expect(r.hpexpire("h", 30, "a", "b"), [1, 1])
    time.sleep(0.06)
    expect(r.hgetall("h"), {b"c": b"3"})
    expect(r.hsetex("h", mapping={"d": 4}, ex=100), 1)
    expect(r.hgetex("h", "d", persist=True), [b"4"])
    expect(r.httl("h", "c", "d"), [-1, -1])
    expect(r.hgetdel("h", "c", "d"), [b"3", b"4"])
    expect(r.exists("h"), 0)
    expect(r.zadd("z", {"a": 3, "b": 3.5}), 2)
    expect(list(r.zrank("z", "b", withscore=True)), [1, 3.5])
    r.close()


def pairs(rows):
    """Members and scores, whichever protocol shaped them."""
    return [(member, score) for member, score in rows]


def ordered(protocol):
    """Sorted sets, places, bits and HyperLogLog."""
    r = client(protocol=protocol)
    r.flushall()
    expect(r.zadd("z", {"a": 1, "b": 2.5, "c": float("inf")}), 3)
    expect(r.zadd("z", {"a": 3}, gt=True, ch=True), 1)
    expect(r.zadd("z", {"b": 1}, incr=True), 3.5)
    expect(pairs(r.zrange("z", 0, -1, withscores=True)), [(b"a", 3.0), (b"b", 3.5), (b"c", float("inf"))])
    expect(r.zrange("z", "+inf", "(3", byscore=True, desc=True, offset=0, num=1), [b"c"])
    expect(r.zscore("z", "c"), float("inf"))
    expect(r.zscore("z", "nothing"), None)
    expect(r.zmscore("z", ["a", "nothing"]), [3.0, None])
    expect((r.zrank("z", "b"), r.zrevrank("z", "b"), r.zrank("z", "nothing")), (1, 1, None))
    expect(r.zincrby("z", -0.5, "a"), 2.5)
    expect((r.zcount("z", "-inf", 3.5), r.zcard("z")), (2, 3))
    expect(r.zadd("y", {"b": 10, "d": 20}), 2)
    expect(r.zinterstore("x", {"z": 2, "y": 1}), 1)
    expect(r.zscore("x", "b"), 17.0)
    expect(pairs(r.zunion(["y", "x"], aggregate="MAX", withscores=True)), [(b"b", 17.0), (b"d", 20.0)])
    expect(r.zdiff(["z", "y"]), [b"a", b"c"])
    expect(sorted(r.zscan_iter("y")), [(b"b", 10.0), (b"d", 20.0)])
    expect(pairs(r.zpopmin("z", 1)), [(b"a", 2.5)])
    expect(pairs(r.zpopmax("z", 1)), [(b"c", float("inf"))])
    expect(r.zremrangebyscore("y", 15, "+inf"), 1)
    expect(r.zadd("w", {"a": 0, "b": 0, "c": 0}), 3)
    expect(r.zrangebylex("w", "(a", "+"), [b"b", b"c"])

    expect(r.geoadd("g", [13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"]), 2)
    expect(r.geodist("g", "Palermo", "Catania", "km"), 166.2742)
    expect(r.geosearch("g", longitude=15, latitude=37, radius=100, unit="km"), [b"Catania"])
    (name, km, point), = r.geosearch("g", member="Palermo", width=10, height=10, unit="km", withdist=True, withcoord=True)
    expect((name, km), (b"Palermo", 0.0))
    assert abs(point[0] - 13.361389) < 1e-5 and abs(point[1] - 38.115556) < 1e-5, point
    expect(r.geopos("g", "nothing"), [None])
    assert r.geohash("g", "Palermo")[0] in ("sqc8b49rny0", b"sqc8b49rny0")  # as the protocol has it

    expect((r.setbit("b", 7, 1), r.getbit("b", 7), r.bitcount("b"), r.bitpos("b", 1)), (0, 1, 1, 7))
    expect(r.bitfield("b").incrby("u8", 0, 255, "SAT").get("u4", 0).execute(), [255, 15])
    expect(r.bitop("NOT", "n", "b"), 1)
    expect(r.pfadd("p", *range(1000)), 1)
    assert abs(r.pfcount("p") - 1000) < 30
    expect(r.pfmerge("q", "p"), True)
    expect(r.pfcount("q", "p"), r.pfcount("p"))
    expect_error(ResponseError, lambda: r.lpush("z", 1), "WRONGTYPE")
    saved = r.dump("w")
    expect(r.restore("v", 0, saved), b"OK")
    expect(r.zrange("v", 0, -1), [b"a", b"b", b"c"])
    expect(r.wait(0, 10), 0)
    r.close()


def blocking(protocol):
    """A client waits, another one serves it; nobody waits longer than it said."""
    r = client(protocol=protocol)
    r.flushall()
    got = []

    def wait_for(call):
        mine = client(protocol=protocol)
        got.append(call(mine))
        mine.close()

    calls = [
        (lambda c: c.blpop(["l", "m"], 5), lambda: r.rpush("m", "one"), [b"m", b"one"]),
        (lambda c: c.brpop("l", 5), lambda: r.rpush("l", "one", "two"), [b"l", b"two"]),
        (lambda c: c.blmove("s", "d", 5, "LEFT", "RIGHT"), lambda: r.rpush("s", "three"), b"three"),
        (lambda c: c.brpoplpush("s", "d", 5), lambda: r.rpush("s", "four"), b"four"),
        (lambda c: c.blmpop(5, 1, "n", direction="LEFT", count=2), lambda: r.rpush("n", 1, 2, 3), [b"n", [b"1", b"2"]]),
        (lambda c: c.bzpopmin("z", 5), lambda: r.zadd("z", {"a": 1, "b": 2}), [b"z", b"a", 1.0]),
        (lambda c: c.bzpopmax(["y", "x"], 5), lambda: r.zadd("x", {"a": 1, "b": 2}), [b"x", b"b", 2.0]),
        (lambda c: c.bzmpop(5, 1, ["w"], min=True), lambda: r.zadd("w", {"a": 1}), [b"w", [[b"a", b"1" if protocol == 2 else 1.0]]]),
    ]
    for call, serve, wanted in calls:
        r.delete("l", "m", "n")
        thread = threading.Thread(target=wait_for, args=(call,))
        thread.start()
        until = time.time() + 5
        while r.info("clients")["blocked_clients"] != 1 and time.time() < until:
            time.sleep(0.002)
        serve()
        thread.join()
        expect(listed(got.pop()), wanted)
    expect(r.lrange("d", 0, -1), [b"four", b"three"])
    since = time.time()
    expect((r.blpop("nothing", 0.2), r.bzpopmin("nothing", 0.2), r.blmove("nothing", "d", 0.2)), (None, None, None))
    assert 0.55 < time.time() - since < 2, time.time() - since
    with r.pipeline() as pipe:  # nothing waits inside a transaction
        pipe.blpop("nothing", 5).lpush("l", 1)
        expect(pipe.execute()[0], None)
    r.close()


def messages(protocol):
    r = client(protocol=protocol)
    p = r.pubsub()
    p.subscribe("news", "other")
    p.psubscribe("n*")

    def received(count):
        got = []
        while len(got) < count:
            one = p.get_message(timeout=10)
            assert one is not None, f"no message behind {got}"
            got.append((one["type"], one["pattern"], one["channel"], one["data"]))
        return got

    confirmed = [("subscribe", None, b"news", 1), ("subscribe", None, b"other", 2), ("psubscribe", None, b"n*", 3)]
    expect(received(3), confirmed)
    expect(r.publish("news", "one"), 2)
    expect(r.publish("nobody listens", "two"), 1)
    expect(r.publish("x", "three"), 0)
    wanted = [
        ("message", None, b"news", b"one"),
        ("pmessage", b"n*", b"news", b"one"),
        ("pmessage", b"n*", b"nobody listens", b"two"),
    ]
    expect(received(3), wanted)
    expect(sorted(r.pubsub_channels()), [b"news", b"other"])
    expect(r.pubsub_numpat(), 1)
    with r.pipeline() as pipe:
        expect(pipe.set("k", 1).publish("other", "four").execute(), [True, 1])
    expect(received(1), [("message", None, b"other", b"four")])
    p.unsubscribe("news")
    p.punsubscribe()
    p.unsubscribe()
    kinds = [kind for kind, *_ in received(3)]
    expect(sorted(kinds), ["punsubscribe", "unsubscribe", "unsubscribe"])
    expect(r.publish("news", "five"), 0)
    p.close()
    r.close()


def listed(value):
    """Tuples as lists, throughout."""
    return [listed(one) for one in value] if isinstance(value, (list, tuple)) else value


PARTS = [
    ("strings in RESP2", lambda: strings(2)),
    ("strings in RESP3", lambda: strings(3)),
    ("decoded text, INFO, CONFIG, COMMAND", decoded),
    ("scan_iter", scans),
    ("pipelines and transactions", pipelines),
    ("watch and retry", watches),
    ("timeouts", waits),
    ("big values", big_values),
    ("names and lists of clients", names),
    ("databases", databases),
    *(
        (f"{part.__name__} in RESP{protocol}", functools.partial(part, protocol))
        for part in (collections, ordered, blocking, newer, messages)
        for protocol in (2, 3)
    ),
]

for name, part in PARTS:
    since = time.time()
    try:
        part()
    except Exception:
        print(f"redis-py: {name}: failed", flush=True)
        raise
    print(f"redis-py: {name}: {time.time() - since:.2f} s", flush=True)
