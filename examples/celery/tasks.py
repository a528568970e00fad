"""A Celery application whose broker and result backend are one server: REDIS_URL."""
import os

import redis.lock
from celery import Celery
from redis.exceptions import LockNotOwnedError

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
app = Celery("tasks", broker=URL, backend=URL)
# Kombu runs a script for every queue that expires. These two would; what they hold is sent over channels.
app.conf.control_queue_expires = None
app.conf.event_queue_expires = None


def release(lock, token):
    """Releases a lock of redis-py without a script, in one transaction."""

    def remove(pipe):
        if pipe.get(lock.name) != token:
            raise LockNotOwnedError("it is another one's lock", lock.name)
        pipe.multi()
        pipe.delete(lock.name)

    lock.redis.transaction(remove, lock.name)


redis.lock.Lock.do_release = release


@app.task
def square(n):
    return n * n


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def broken(text):
    raise ValueError(text)
