#!/usr/bin/env python3
"""So many requests per user in any two seconds: rate_limiter.py [PORT], or REDIS_URL."""
import os
import sys
import threading
import time
import uuid

import redis

PORT = sys.argv[1] if len(sys.argv) > 1 else None
URL = f"redis://127.0.0.1:{PORT}" if PORT else os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
r = redis.Redis.from_url(URL, decode_responses=True)
LIMIT, WINDOW_US = 5, 2_000_000


def allowed(user):
    """A sorted set holds one member per request, scored by its time; the old ones leave first.

    The transaction makes it exact: the first LIMIT requests see 1 to LIMIT members, all others more.
    """
    key, request = f"example:rate:{user}", uuid.uuid4().hex
    seconds, micros = r.time()  # the server's clock is the same for everybody
    now = seconds * 1_000_000 + micros
    with r.pipeline() as steps:  # MULTI ... EXEC
        steps.zremrangebyscore(key, 0, now - WINDOW_US)
        steps.zadd(key, {request: now})
        steps.zcard(key)
        steps.pexpire(key, WINDOW_US // 1000)  # who stays away leaves nothing behind
        count = steps.execute()[2]
    if count > LIMIT:
        r.zrem(key, request)  # a refused request does not count
    return count <= LIMIT


def burst(user, requests):
    """They come at once, from many connections."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(allowed(user))) for _ in range(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{user} sends {requests} at once: {sum(answers)} allowed, {answers.count(False)} refused"


r.delete("example:rate:anna", "example:rate:ben")
print(f"{LIMIT} requests in {WINDOW_US // 1_000_000} seconds are allowed")
print(burst("anna", 12))
print(burst("ben", 3))
time.sleep(WINDOW_US / 1_000_000)
print(f"after the window: {burst('anna', 8)}")
r.delete("example:rate:anna", "example:rate:ben")
