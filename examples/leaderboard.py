#!/usr/bin/env python3
"""A leaderboard on one sorted set: leaderboard.py [PORT], or REDIS_URL."""
import os
import sys

import redis

PORT = sys.argv[1] if len(sys.argv) > 1 else None
URL = f"redis://127.0.0.1:{PORT}" if PORT else os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
r = redis.Redis.from_url(URL, decode_responses=True)
BOARD, WEEK = "example:board", "example:board:week"


def show(title, start, rows):
    print(title)
    for place, (player, points) in enumerate(rows, start + 1):
        print(f"  {place}. {player:<6} {points:g}")


def around(player, distance=1):
    """The player and who is just before and behind."""
    start = max(r.zrevrank(BOARD, player) - distance, 0)
    return start, r.zrevrange(BOARD, start, start + 2 * distance, withscores=True)


r.delete(BOARD, WEEK)
r.zadd(BOARD, {"ada": 310, "bob": 120, "cyd": 275, "dan": 90, "eve": 205, "fay": 160})
show("top three", 0, r.zrevrange(BOARD, 0, 2, withscores=True))

r.zincrby(BOARD, 95, "fay")  # points are added on the server: no two games overwrite each other
print(f"fay wins 95 points: place {r.zrevrank(BOARD, 'fay') + 1} of {r.zcard(BOARD)}")
show("around fay", *around("fay"))

r.zadd(BOARD, {"bob": 100, "dan": 130}, gt=True)  # a personal best never gets worse
print(f"bests after a new game: bob {r.zscore(BOARD, 'bob'):g}, dan {r.zscore(BOARD, 'dan'):g}")
print(f"players with 200 points and more: {r.zcount(BOARD, 200, '+inf')}")

r.zadd(WEEK, {"dan": 40, "eve": 5})
r.zunionstore(WEEK, {BOARD: 1, WEEK: 10})  # this week's points count ten times
show("with this week's points tenfold", 0, r.zrevrange(WEEK, 0, 1, withscores=True))
r.delete(BOARD, WEEK)
