#!/usr/bin/env python3
"""Sends tasks to a worker, waits for their results and counts the events: demo.py, with REDIS_URL."""
import collections
import threading
import time

from celery import chain, chord, group
from tasks import app, broken, square, total

TASKS = 20
PATIENCE = 120  # seconds


def wait_for(what, reached):
    until = time.monotonic() + PATIENCE
    while not reached():
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not in {PATIENCE} seconds")
        time.sleep(0.02)


class Events(threading.Thread):
    """What `celery events` shows: how many events of each type the workers have sent."""

    def __init__(self):
        super().__init__(daemon=True)
        self.counts = collections.Counter()

    def run(self):
        with app.connection() as connection:
            app.events.Receiver(connection, handlers={"*": self.count}).capture(limit=None, timeout=None)

    def count(self, event):
        self.counts[event["type"]] += 1


events = Events()
events.start()
wait_for("an event of a worker", lambda: events.counts)
wait_for("a worker that answers", lambda: len(app.control.ping(timeout=10, limit=1)) == 1)
print("one worker answers, and its events arrive")

results = [square.delay(n) for n in range(TASKS)]
print("squares:", *(result.get(timeout=PATIENCE) for result in results))
print("of a group:", group(square.s(n) for n in range(1, 6)).delay().get(timeout=PATIENCE))
print("of a chain:", chain(square.s(3), square.s(), square.s()).delay().get(timeout=PATIENCE))
print("of a chord:", chord(square.s(n) for n in range(1, 6))(total.s()).get(timeout=PATIENCE))
print("of a sum:", total.delay(list(range(1000))).get(timeout=PATIENCE))
try:
    broken.delay("no luck").get(timeout=PATIENCE)
except ValueError as error:
    print("of a broken one:", repr(error))

sent = TASKS + 5 + 3 + 6 + 1
wait_for("every event", lambda: events.counts["task-succeeded"] == sent and events.counts["task-failed"])
for kind in ("received", "started", "succeeded", "failed"):
    print(f"task-{kind}: {events.counts['task-' + kind]}")
for result in results:
    result.forget()
