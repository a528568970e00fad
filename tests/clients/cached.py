#!/usr/bin/env python3
"""redis-py's client-side cache against a server: cached.py HOST PORT. Exits nonzero on the first surprise.

A value in the cache costs no request. The server tells which keys have changed, and once a connection has
made a round trip, what another client changed before it is never read from the cache.
"""
import sys
import threading
import time

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection
from redis.exceptions import ConnectionError

HOST, PORT = sys.argv[1], int(sys.argv[2])
# Longest wait for what must come, in seconds.
PATIENCE = 120
READS = 2000
CHANGES = 50
THREADS = 4


def plain(**options):
    return redis.Redis(HOST, PORT, decode_responses=True, protocol=3, **options)


def cached(**options):
    """A client with a cache of its own."""
    return plain(cache_config=CacheConfig(max_size=10_000), **options)


def expect(got, wanted):
    if got != wanted or type(got) is not type(wanted):
        raise AssertionError(f"wanted {wanted!r}, got {got!r}")


def calls(other, name):
    """How often the server has executed a command."""
    return other.info("commandstats").get(f"cmdstat_{name}", {}).get("calls", 0)


def size(client):
    return client.get_cache().size


def refused_by_the_client():
    """redis-py takes a server whose version is below 7.4 for one without a cache."""
    try:
        cached().ping()
    except ConnectionError as error:
        assert "7.4 or later" in str(error), error
    else:
        raise AssertionError("no lower limit is needed: remove it here and in examples/README.md")
    CacheProxyConnection.MIN_ALLOWED_VERSION = "6.0.0"


def read_once(other):
    """All reads of a value but the first come from the cache, whatever the type."""
    r = cached()
    other.flushall()
    other.mset({"text": "hello", "more": "world"})
    other.hset("hash", mapping={"name": "ada", "age": 36})
    other.rpush("list", "a", "b", "c")
    other.zadd("board", {"a": 1, "b": 2})
    other.sadd("set", "x")
    reads = {
        "get": (lambda: r.get("text"), "hello"),
        "mget": (lambda: r.mget("text", "more", "nothing"), ["hello", "world", None]),
        "strlen": (lambda: r.strlen("text"), 5),
        "hgetall": (lambda: r.hgetall("hash"), {"name": "ada", "age": "36"}),
        "hget": (lambda: r.hget("hash", "name"), "ada"),
        "lrange": (lambda: r.lrange("list", 0, -1), ["a", "b", "c"]),
        "zscore": (lambda: r.zscore("board", "b"), 2.0),
        "smembers": (lambda: r.smembers("set"), {"x"}),
        "type": (lambda: r.type("hash"), "hash"),
    }
    for name, (read, wanted) in reads.items():
        before = calls(other, name)
        for _ in range(50):
            expect(read(), wanted)
        expect(calls(other, name) - before, 1)
    expect(other.info("clients")["tracking_clients"] >= 1, True)
    expect(other.info("stats")["tracking_total_keys"] >= 6, True)
    flags = r.execute_command("CLIENT", "TRACKINGINFO")["flags"]
    assert "on" in flags, flags
    # Of each the next read is a request again.
    other.append("text", "!")
    other.hincrby("hash", "age")
    other.lpop("list")
    other.zincrby("board", 1, "b")
    other.srem("set", "x")
    r.ping()
    expect(reads["get"][0](), "hello!")
    expect(reads["mget"][0](), ["hello!", "world", None])
    expect(reads["strlen"][0](), 6)
    expect(reads["hgetall"][0](), {"name": "ada", "age": "37"})
    expect(reads["lrange"][0](), ["b", "c"])
    expect(reads["zscore"][0](), 3.0)
    expect(reads["smembers"][0](), set())
    r.close()


def changed_by(other):
    """Every way in which another client changes the key, and the client itself."""
    r = cached()
    changes = {
        "SET": (lambda: other.set("k", "new"), "new"),
        "SET XX GET": (lambda: other.set("k", "new", xx=True, get=True), "new"),
        "SETRANGE": (lambda: other.setrange("k", 0, "N"), "Nld"),
        "DEL": (lambda: other.delete("k"), None),
        "UNLINK": (lambda: other.unlink("k"), None),
        "RENAME away": (lambda: other.rename("k", "elsewhere"), None),
        "RENAME onto": (lambda: other.rename("source", "k"), "source"),
        "COPY": (lambda: other.copy("source", "k", replace=True), "source"),
        "SORT STORE": (lambda: other.sort("numbers", store="k"), None),
        "MOVE": (lambda: other.move("k", 1), None),
        "MULTI": (lambda: other.pipeline().incr("n").set("k", "new").execute(), "new"),
        "itself": (lambda: r.set("k", "own"), "own"),
        "itself in MULTI": (lambda: r.pipeline().set("k", "own").execute(), "own"),
        "FLUSHDB": (lambda: other.flushdb(), None),
        "FLUSHALL": (lambda: other.flushall(), None),
    }
    for name, (change, wanted) in changes.items():
        other.flushall()
        other.mset({"k": "old", "source": "source", "kept": "kept"})
        other.rpush("numbers", 2, 1)
        r.ping()
        expect([r.get("k"), r.get("kept")], ["old", "kept"])
        before = calls(other, "get")
        expect([r.get("k"), r.get("kept")], ["old", "kept"])
        expect(calls(other, "get") - before, 0)
        change()
        r.ping()
        if name == "SORT STORE":
            expect(r.lrange("k", 0, -1), ["1", "2"])
        else:
            got = r.get("k")
            assert got == wanted, f"behind {name}: {got!r} instead of {wanted!r}"
        if name.startswith("FLUSH"):
            expect(size(r), 0)
        else:
            before = calls(other, "get")
            expect(r.get("kept"), "kept")
            expect(calls(other, "get") - before, 0)
    r.close()


def expires(other):
    """A value leaves the cache when its key expires, although nobody asks the server for it."""
    r = cached()
    milliseconds = 100
    while True:
        other.set("brief", "here", px=milliseconds)
        before = calls(other, "get")
        if r.get("brief") == r.get("brief") == "here" and calls(other, "get") - before == 1:
            break
        milliseconds *= 2  # it had expired before it was read twice
    began = time.monotonic()
    while r.get("brief") is not None:
        assert time.monotonic() - began < PATIENCE, "an expired key stays in the cache"
        time.sleep(0.001)
    r.close()


def connection_lost(other):
    """What changes while the client has no connection is not missed: the cache goes with it."""
    r = cached()
    other.mset({"lost": "old", "more": "old"})
    r.client_setname("victim")
    expect([r.get("lost"), r.get("more")], ["old", "old"])
    own = [client["id"] for client in other.client_list() if client["name"] == "victim"]
    expect(other.client_kill_filter(_id=own[0]), 1)
    other.mset({"lost": "new", "more": "new"})
    r.ping()
    expect([r.get("lost"), r.get("more")], ["new", "new"])
    before = calls(other, "get")
    expect([r.get("lost"), r.get("more")], ["new", "new"])
    expect(calls(other, "get") - before, 0)
    r.close()


class Writer(threading.Thread):
    """Counts keys upwards, one after the other. `acknowledged` is what each of them has at least."""

    def __init__(self, names):
        super().__init__()
        self.acknowledged = dict.fromkeys(names, 0)
        self.ends = threading.Event()
        self.failure = None

    def run(self):
        try:
            client = plain()
            while not self.ends.is_set():
                for name in self.acknowledged:
                    client.set(name, self.acknowledged[name] + 1)
                    self.acknowledged[name] += 1
                    self.ends.wait(0.001)  # so that the cache has something in it
        except BaseException as error:  # shown by the main thread
            self.failure = error


def read(writer, names, failures, reads):
    """Until it has read often, and the values have changed often meanwhile."""
    try:
        r, newest, done, began = cached(), dict.fromkeys(names, 0), 0, time.monotonic()
        while done < READS or min(writer.acknowledged.values()) < CHANGES:
            began = time.monotonic() if done < READS else began
            assert writer.failure is None and time.monotonic() - began < PATIENCE, "the writer stands still"
            at_least = dict(writer.acknowledged)
            r.ping()
            for name in names:
                got, wanted = int(r.get(name)), max(at_least.get(name, 0), newest[name])
                assert got >= wanted, f"{name} is {got}, but was {wanted}"
                newest[name] = got
                done += 1
        reads.append(done)
        r.close()
    except BaseException as error:  # shown by the main thread
        failures.append(error)


def never_stale(other):
    """Beside a writer: behind a round trip no read is older than what was acknowledged before it."""
    changing, constant = ([f"{kind}:{n}" for n in range(20)] for kind in ("counter", "constant"))
    other.mset(dict.fromkeys(changing + constant, 0))
    before, writer, failures, reads = calls(other, "get"), Writer(changing), [], []
    readers = [
        threading.Thread(target=read, args=(writer, changing[n:] + constant + changing[:n], failures, reads))
        for n in range(THREADS)
    ]
    for thread in [writer, *readers]:
        thread.start()
    for thread in readers:
        thread.join()
    writer.ends.set()
    writer.join()
    assert not failures and writer.failure is None, (failures, writer.failure)
    requests = calls(other, "get") - before
    # A constant is requested once, and half of the reads are of constants.
    assert requests <= sum(reads) // 2 + THREADS * len(constant), f"{requests} requests for {sum(reads)} reads"
    return f"{sum(reads)} reads took {requests} requests"


def main():
    refused_by_the_client()
    other = plain()
    read_once(other)
    changed_by(other)
    expires(other)
    connection_lost(other)
    told = never_stale(other)
    other.flushall()
    print(f"redis-py {redis.__version__}: {told}")


main()
