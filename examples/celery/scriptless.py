"""What Celery, Kombu and redis-py do in Lua scripts, done without them. Works on Redis, too."""
import redis.lock
from celery.backends.base import KeyValueStoreBackend
from celery.backends.redis import RedisBackend
from redis.exceptions import LockNotOwnedError


class Backend(RedisBackend):
    """A result backend that counts the finished tasks of a chord with INCR."""

    implements_incr = True
    apply_chord = KeyValueStoreBackend.apply_chord
    on_chord_part_return = KeyValueStoreBackend.on_chord_part_return
    set_chord_size = KeyValueStoreBackend.set_chord_size


def release(lock, token):
    """Releases a lock of redis-py in a transaction. Kombu holds one while it returns lost messages."""

    def remove(pipe):
        if pipe.get(lock.name) != token:
            raise LockNotOwnedError("the lock has another owner", lock.name)
        pipe.multi()
        pipe.delete(lock.name)

    lock.redis.transaction(remove, lock.name)


def apply(app):
    """Changes an application, and the locks of redis-py in this process."""
    redis.lock.Lock.do_release = release
    # A queue that expires has its bindings refreshed by a script.
    app.conf.control_queue_expires = None
    app.conf.event_queue_expires = None
