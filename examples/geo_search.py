#!/usr/bin/env python3
"""Places near a point: geo_search.py [PORT], or REDIS_URL."""
import os
import sys

import redis

PORT = sys.argv[1] if len(sys.argv) > 1 else None
URL = f"redis://127.0.0.1:{PORT}" if PORT else os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
r = redis.Redis.from_url(URL, decode_responses=True)
CITIES, NEAR = "example:cities", "example:cities:near"
PLACES = [  # longitude, latitude, name
    (13.405, 52.52, "Berlin"),
    (9.993, 53.551, "Hamburg"),
    (11.582, 48.135, "Munich"),
    (12.374, 51.34, "Leipzig"),
    (13.738, 51.05, "Dresden"),
    (14.421, 50.088, "Prague"),
    (14.553, 53.428, "Szczecin"),
]

r.delete(CITIES, NEAR)
print(f"{r.geoadd(CITIES, [part for place in PLACES for part in place])} cities")
print(f"Berlin to Prague: {r.geodist(CITIES, 'Berlin', 'Prague', 'km'):.0f} km")

print("within 200 km of Berlin, nearest first")
for city, km in r.geosearch(CITIES, member="Berlin", radius=200, unit="km", sort="ASC", withdist=True):
    print(f"  {city:<9}{km:4.0f} km")

# From a point that is no member: somewhere on the Elbe.
city, km = r.geosearch(CITIES, longitude=13.0, latitude=51.3, radius=500, unit="km", sort="ASC", count=1, withdist=True)[0]
print(f"nearest to 51.3 N 13.0 E: {city}, {km:.0f} km")

box = r.geosearch(CITIES, longitude=13.0, latitude=52.0, width=300, height=250, unit="km", sort="ASC")
print(f"in a box of 300 by 250 km around 52 N 13 E: {', '.join(box)}")

# The result as a sorted set of its own: distances are scores, every command of sorted sets works on it.
r.geosearchstore(NEAR, CITIES, member="Leipzig", radius=250, unit="km", storedist=True)
print(f"between 1 and 150 km of Leipzig: {', '.join(r.zrangebyscore(NEAR, 1, 150))}")
r.zrem(CITIES, "Prague")
print(f"without Prague: {r.zcard(CITIES)} cities, geohash of Berlin {r.geohash(CITIES, 'Berlin')[0]}")
r.delete(CITIES, NEAR)
