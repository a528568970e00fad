"""A cache as web frameworks use one, through redis-py, on a server at its limit of memory.

Usage: cache.py HOST PORT

Keys have a prefix and a version, values are pickled unless they are integers (Django); tags are sorted
sets of keys with their expiry, and a session is a value that is touched (Laravel). Whatever is evicted
is a miss, never a wrong value.
"""

import pickle
import sys
import threading
import time

import redis

LIMIT = 20 << 20
THREADS = 4
ROUNDS = 1500
PAGE = "<p>" + "x" * 3000


class Cache:
    """What Django's backend for Redis asks of a client."""

    def __init__(self, client):
        self.client = client

    @staticmethod
    def key(name, version=1):
        return f":app:{version}:{name}"

    @staticmethod
    def dumps(value):
        return value if type(value) is int else pickle.dumps(value)

    @staticmethod
    def loads(data):
        try:
            return int(data)
        except ValueError:
            return pickle.loads(data)

    def get(self, name, default=None, version=1):
        data = self.client.get(self.key(name, version))
        return default if data is None else self.loads(data)

    def set(self, name, value, timeout=300, version=1):
        self.client.set(self.key(name, version), self.dumps(value), ex=timeout)

    def add(self, name, value, timeout=300):
        return bool(self.client.set(self.key(name), self.dumps(value), ex=timeout, nx=True))

    def touch(self, name, timeout=300):
        key = self.key(name)
        return bool(self.client.persist(key) if timeout is None else self.client.expire(key, timeout))

    def incr(self, name, delta=1):
        key = self.key(name)
        if not self.client.exists(key):
            raise ValueError(f"no key {name}")
        return self.client.incr(key, delta)

    def get_many(self, names):
        data = self.client.mget([self.key(name) for name in names])
        return {name: self.loads(d) for name, d in zip(names, data) if d is not None}

    def set_many(self, values, timeout=300):
        pipeline = self.client.pipeline()
        pipeline.mset({self.key(name): self.dumps(value) for name, value in values.items()})
        for name in values:
            pipeline.expire(self.key(name), timeout)
        pipeline.execute()

    def delete_many(self, names):
        return self.client.delete(*(self.key(name) for name in names))

    def remember_tagged(self, tag, name, value, timeout=300):
        """The value, and its key in the sorted set of its tag."""
        pipeline = self.client.pipeline()
        pipeline.zadd(f"tag:{tag}:entries", {self.key(name): int(time.time()) + timeout})
        pipeline.set(self.key(name), self.dumps(value), ex=timeout)
        pipeline.execute()

    def flush_tag(self, tag):
        removed = 0
        for members in iter(lambda: self.client.zpopmin(f"tag:{tag}:entries", 1000), []):
            removed += self.client.delete(*(key for key, _ in members))
        return removed


def check_semantics(cache):
    """While nothing is evicted."""
    cache.set("page", {"title": "a", "tags": [1, 2]})
    assert cache.get("page") == {"title": "a", "tags": [1, 2]}
    assert cache.get("page", version=2) is None
    assert not cache.add("page", 1) and cache.add("lock", 1)
    cache.set("hits", 10)
    assert cache.incr("hits", 5) == 15 and cache.get("hits") == 15
    try:
        cache.incr("nothing")
        raise AssertionError("a missing key was counted")
    except ValueError:
        pass
    assert cache.touch("page", None) and cache.client.ttl(cache.key("page")) == -1
    assert cache.touch("page", 60) and 0 < cache.client.ttl(cache.key("page")) <= 60
    assert not cache.touch("nothing", 60)
    cache.set_many({f"m{n}": [n] for n in range(50)})
    assert cache.get_many([f"m{n}" for n in range(60)]) == {f"m{n}": [n] for n in range(50)}
    assert cache.delete_many([f"m{n}" for n in range(60)]) == 50
    for n in range(30):
        cache.remember_tagged("people", f"person:{n}", n)
    assert cache.flush_tag("people") == 30 and cache.get("person:3") is None


def work(host, port, number, failures):
    """Pages, sessions and fragments of one process of a web server."""
    try:
        cache = Cache(redis.Redis(host, port))
        for n in range(ROUNDS):
            name = f"{number}:{n}"
            cache.set(f"page:{name}", {"n": n, "html": PAGE})
            cache.set_many({f"part:{name}:{i}": ("part", n, i) for i in range(5)})
            cache.remember_tagged(f"tag{number}", f"tagged:{name}", ("tagged", n))
            session = cache.get(f"session:{number}", {"seen": 0})
            cache.set(f"session:{number}", {"seen": session["seen"] + 1})
            seen = cache.get(f"session:{number}")
            assert seen is None or seen == {"seen": session["seen"] + 1}, seen
            old = f"{number}:{max(n - 400, 0)}"
            page = cache.get(f"page:{old}")
            assert page is None or page == {"n": max(n - 400, 0), "html": PAGE}, page
            for key, value in cache.get_many([f"part:{old}:{i}" for i in range(5)]).items():
                assert value == ("part", max(n - 400, 0), int(key.rsplit(":", 1)[1])), (key, value)
        cache.flush_tag(f"tag{number}")
        assert cache.client.zcard(f"tag:tag{number}:entries") == 0
    except BaseException as error:  # shown by the main thread
        failures.append(f"{number}: {error!r}")


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    client = redis.Redis(host, port, decode_responses=True)
    check_semantics(Cache(redis.Redis(host, port)))
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("maxmemory", LIMIT)
    failures = []
    threads = [
        threading.Thread(target=work, args=(host, port, n, failures)) for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, client.info("memory")["used_memory"])
        time.sleep(0.01)
    assert not failures, failures
    evicted = client.info("stats")["evicted_keys"]
    assert evicted > 1000, evicted
    assert most <= LIMIT * 1.05, f"{most} of {LIMIT}"
    print(f"cache: {evicted} keys evicted, {client.dbsize()} left, at most {most} bytes of {LIMIT}")


main()
