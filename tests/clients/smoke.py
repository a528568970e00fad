#!/usr/bin/env python3
"""redis-py against a server: smoke.py HOST PORT. Prints one line per part; exits nonzero on the first surprise."""
import sys
import threading
import time

import redis
from redis.exceptions import ConnectionError, ResponseError, TimeoutError, WatchError

HOST, PORT = sys.argv[1], int(sys.argv[2])


def client(**options):
    return redis.Redis(host=HOST, port=PORT, socket_timeout=10, **options)


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
    other = client(client_name="victim")
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
]

for name, part in PARTS:
    since = time.time()
    try:
        part()
    except Exception:
        print(f"redis-py: {name}: failed", flush=True)
        raise
    print(f"redis-py: {name}: {time.time() - since:.2f} s", flush=True)
