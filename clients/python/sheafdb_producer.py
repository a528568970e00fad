"""A producer for ingest protocol 2 of SheafDB (docs/formats/ingest.md); the standard library alone.

    with Producer("127.0.0.1", 9100, "sensor-7", sink="stream", key="events") as producer:
        producer.send(b"one")                # numbered, kept until it is acknowledged
        producer.flush()                     # everything so far is in the key

Each message is in the key once and in order, whatever happens to connections: a thread of the producer sends, reads
acknowledgements and connects again, and what the server does not hold yet it sends again. Calls may come from any thread.
"""
import collections
import random
import selectors
import socket
import struct
import threading
import time

LEVELS = ("received", "memory", "fsynced")
STRATEGIES = ("adaptive", "synchronous", "batched")
SINKS = ("listener", "null", "list", "stream")
HELLO, DATA, FLUSH, BYE, WELCOME, ACK, CREDIT, ERROR = 1, 2, 3, 4, 0x81, 0x82, 0x83, 0x84
ID_MAX = 2**64 - 1
HEADER = struct.Struct("<IBBH")
#: Bodies of what the server sends; an Error's text follows.
BODIES = {WELCOME: struct.Struct("<HBBIIIQQQ"), ACK: struct.Struct("<QIIQQ"), CREDIT: struct.Struct("<Q"), ERROR: struct.Struct("<HHIQ")}

Welcome = collections.namedtuple("Welcome", "version level strategy max_message max_frame idle_ms last_id durable credit")
Ack = collections.namedtuple("Ack", "flags id skipped memory durable")
Credit = collections.namedtuple("Credit", "limit")
Error = collections.namedtuple("Error", "code id text")


class SheafError(Exception):
    """Whatever goes wrong."""


class Timeout(SheafError, TimeoutError):
    """Not done in the time given. Nothing is lost: what was sent is kept, and the call may be repeated."""


class WouldBlock(Timeout):
    """Too much is unacknowledged; this message was not taken."""


class MessageTooLarge(SheafError, ValueError):
    """More than the server takes, or than the buffer can hold; this message was not taken."""


class Closed(SheafError):
    """The producer was closed."""


class ProtocolError(SheafError):
    """The server sent what is none of this protocol."""


class NumbersDisagree(SheafError):
    """The server holds other messages than this producer sent: somebody else uses its name, or acknowledged messages were lost."""


class ServerError(SheafError):
    """An Error frame: `code`, `name`, `id` (the highest number that the server holds) and `text`."""

    code, name = 0, "unknown error"

    def __init__(self, error):
        self.code, self.id, self.text = error.code, error.id, error.text
        super().__init__(f"{self.name} ({error.code}): {error.text}")


class AuthenticationFailed(ServerError):
    """User or password are wrong or missing."""


class UnknownProducer(ServerError):
    """The server was started anew or forgot this producer: what it acknowledged may be gone."""


class TakenOver(ServerError):
    """A newer connection uses the name of this producer."""


class WrongType(ServerError):
    """The key holds a value of another type."""


NAMES = {
    1: "no hello", 2: "version", 3: "malformed", 4: "too large", 5: "authentication", 6: "database", 7: "level", 8: "sink",
    9: "unknown producer", 10: "taken over", 11: "wrong type", 12: "credit", 13: "gap", 14: "limit", 15: "shutdown", 16: "idle",
    17: "full",
}
_CLASSES = {5: AuthenticationFailed, 9: UnknownProducer, 10: TakenOver, 11: WrongType}
LIMIT, SHUTDOWN, IDLE = 14, 15, 16


def server_error(error):
    """The exception for an Error frame."""
    found = _CLASSES.get(error.code, ServerError)(error)
    found.name = NAMES.get(error.code, "unknown error")
    found.args = (f"{found.name} ({error.code}): {error.text}",)
    return found


def frame(kind, body=b""):
    """One frame of a producer."""
    return HEADER.pack(len(body), kind, 0, 0) + body


def hello(*, producer, key=b"", sink=0, db=0, maxlen=0, exact=False, level=0, strategy=0, ack_messages=0, ack_micros=0,
          resume=False, user=b"", password=b""):
    """The frame with which a connection begins."""
    fixed = struct.pack("<4sHBBIIHBBIQ", b"SHFI", 2, level, strategy, ack_messages, ack_micros, resume | exact << 1, sink, 0, db, maxlen)
    return frame(HELLO, fixed + b"".join(struct.pack("<H", len(text)) + text for text in (producer, key, user, password)))


def data(first_id, messages):
    """A frame of messages with the numbers `first_id` and following."""
    parts = [struct.pack("<Q", first_id)]
    for payload in messages:
        parts += (struct.pack("<I", len(payload)), payload)
    return frame(DATA, b"".join(parts))


class Reader:
    """Finds the server's frames in what is received."""

    def __init__(self):
        self._bytes = bytearray()

    def feed(self, received):
        """The frames that are whole now."""
        self._bytes += received
        frames, at = [], 0
        while (end := self._end(at)) is not None and end <= len(self._bytes):
            frames.append(self._decode(at, end))
            at = end
        del self._bytes[:at]
        return frames

    def _end(self, at):
        if len(self._bytes) < at + HEADER.size:
            return None
        length, kind, flags, reserved = HEADER.unpack_from(self._bytes, at)
        body = BODIES.get(kind)
        if body is None or reserved or flags & ~(kind == ACK):
            raise ProtocolError(f"no frame of a server: type {kind:#x}, flags {flags}")
        most = body.size + (0xFFFF if kind == ERROR else 0)
        if not body.size <= length <= most:
            raise ProtocolError(f"a frame of type {kind:#x} with {length} bytes")
        return at + HEADER.size + length

    def _decode(self, at, end):
        _, kind, flags, _ = HEADER.unpack_from(self._bytes, at)
        body = BODIES[kind].unpack_from(self._bytes, at + HEADER.size)
        if kind == WELCOME:
            welcome = Welcome(*body)
            if welcome.version != 2 or welcome.level >= len(LEVELS) or welcome.strategy >= len(STRATEGIES) or welcome.max_frame < 12:
                raise ProtocolError(f"an impossible Welcome: {welcome}")
            return welcome
        if kind == ACK:
            number, skipped, reserved, memory, durable = body
            if reserved or flags and skipped:
                raise ProtocolError("an impossible Ack")
            return Ack(flags, number, skipped, memory, durable)
        if kind == CREDIT:
            return Credit(*body)
        code, size, reserved, number = body
        text = bytes(self._bytes[at + HEADER.size + BODIES[ERROR].size : end])
        if reserved or len(text) != size:
            raise ProtocolError("an Error whose text does not fit")
        return Error(code, number, text.decode("utf-8", "replace"))


class Ledger:
    """Which numbers are given out, sent, and acknowledged, and what may be sent now. No I/O, no lock."""

    def __init__(self, bytes_max, messages_max, frame_bytes):
        self.bytes_max, self.messages_max, self.frame_bytes = bytes_max, messages_max, frame_bytes
        self.acknowledged = self.last = self.durable = 0
        self.sent, self.waiting = collections.deque(), collections.deque()  # payloads, in order
        self.bytes = 0
        self.limits = None  # the Welcome of this connection
        self.total = self.credit = 0  # bytes of Data frames sent on this connection, and allowed

    def message_max(self):
        """The largest payload that can be taken."""
        return min(self.limits.max_message, self.limits.max_frame - 12, self.bytes_max - 4)

    def has_room(self, size):
        """May a payload of this size be kept?"""
        return len(self.sent) + len(self.waiting) < self.messages_max and self.bytes + size + 4 <= self.bytes_max

    def add(self, payload):
        """Keeps a message; its number."""
        if self.last == ID_MAX:
            raise SheafError("all numbers are used up")
        self.last += 1
        self.bytes += len(payload) + 4
        self.waiting.append(payload)
        return self.last

    def begin(self, welcome):
        """A connection stands: what the server does not hold has to be sent (again)."""
        if self.limits is None:
            self.acknowledged = self.last = welcome.last_id
        if not self.acknowledged <= welcome.last_id <= self.last:
            raise NumbersDisagree(f"the server holds {welcome.last_id}, here {self.acknowledged} to {self.last} are expected")
        self.limits = welcome
        self.waiting.extendleft(reversed(self.sent))
        self.sent.clear()
        while self.acknowledged < welcome.last_id:
            self._free(self.waiting)
        if any(len(payload) > self.message_max() for payload in self.waiting):
            raise MessageTooLarge(f"a kept message is larger than the server takes now: {self.message_max()}")
        self.durable = welcome.durable
        self.total, self.credit = 0, welcome.credit

    def ack(self, ack):
        """Frees what is covered."""
        if not self.acknowledged <= ack.id <= self.acknowledged + len(self.sent):
            raise ProtocolError(f"an acknowledgement of {ack.id}, sent are {self.acknowledged + len(self.sent)}")
        while self.acknowledged < ack.id:
            self._free(self.sent)
        self.durable = ack.durable

    def grant(self, limit):
        """So many bytes of Data frames may be sent in all."""
        self.credit = max(self.credit, limit)

    def next_frame(self):
        """A Data frame of what waits, as large as credit and limits allow; None if nothing may be sent."""
        most = min(self.limits.max_frame, self.credit - self.total - HEADER.size)
        first, size, taken = self.acknowledged + len(self.sent) + 1, 8, []
        while self.waiting and (not taken or size < self.frame_bytes):
            after = size + 4 + len(self.waiting[0])
            if after > most:
                break
            taken.append(self.waiting.popleft())
            size = after
        if not taken:
            return None
        self.sent.extend(taken)
        self.total += HEADER.size + size
        return data(first, taken)

    def _free(self, queue):
        self.bytes -= len(queue.popleft()) + 4
        self.acknowledged += 1


class Producer:
    """One producer of one key. `level`, `strategy`, `sink`, `db`, `maxlen`, `exact`, `ack_messages`, `ack_micros`, `user`, `password`: as in
    Hello. `resume`: the server must know this producer; then, and whenever it does, numbers go on behind `acknowledged`.

    At most `buffer_bytes` (4 for each message included) and `buffer_messages` are unacknowledged; then `send` waits. `timeout` is for calls
    that name none; None means for ever. `connect_timeout` is for the first connection, `attempt_timeout` for each try. Between tries
    pass `backoff[0]` to `backoff[1]` seconds, doubling until something is acknowledged. A connection with unacknowledged messages on which
    nothing comes for `stall_timeout` seconds is given up and made again; None: never.
    """

    def __init__(self, host, port, producer, *, key=b"", sink="listener", db=0, maxlen=0, exact=False, level="received",
                 strategy="adaptive", ack_messages=0, ack_micros=0, user=b"", password=b"", resume=False, buffer_bytes=4 << 20,
                 buffer_messages=1 << 16, frame_bytes=64 << 10, timeout=30.0, connect_timeout=10.0, attempt_timeout=5.0,
                 backoff=(0.02, 2.0), stall_timeout=60.0):
        self._address = (host, port)
        self._hello = dict(
            producer=_bytes(producer), key=_bytes(key), sink=SINKS.index(sink), db=db, maxlen=maxlen, exact=exact, level=LEVELS.index(level),
            strategy=STRATEGIES.index(strategy), ack_messages=ack_messages, ack_micros=ack_micros, user=_bytes(user), password=_bytes(password))
        self._resume = resume
        hello(resume=resume, **self._hello)  # values that cannot be are told here, not in the thread
        self._ledger = Ledger(buffer_bytes, buffer_messages, frame_bytes)
        self._timeout, self._attempt_timeout, self._stall_timeout = timeout, attempt_timeout, stall_timeout
        self._backoff = backoff
        self._changed = threading.Condition()  # guards all that follows, and the ledger
        self._failure = None  # what ended it
        self._lost = None  # why the last connection ended
        self._connections = 0
        self._flush = self._flushed = 0  # up to which number somebody waits, and the server was told on this connection
        self._bye = 0  # 1: wanted, 2: said
        self._stopping = self._asleep = False
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="sheafdb-producer", daemon=True)
        self._thread.start()
        try:
            with self._changed:
                self._wait(lambda: self._connections, connect_timeout, Timeout, "no connection")
        except BaseException:
            self.abort()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.abort()

    last = property(lambda self: self._ledger.last, doc="The number of the last message that was taken.")
    acknowledged = property(lambda self: self._ledger.acknowledged, doc="The number up to which everything is in the key.")
    durable = property(lambda self: self._ledger.durable, doc="The number up to which everything is fsynced.")
    reconnects = property(lambda self: max(0, self._connections - 1), doc="How often a connection was made again.")

    def unacknowledged(self):
        """What is kept, as (number, payload): for a new producer, after an error has ended this one."""
        with self._changed:
            return list(enumerate([*self._ledger.sent, *self._ledger.waiting], self._ledger.acknowledged + 1))

    def send(self, payload, timeout=...):
        """Takes a message and returns its number. Waits while too much is unacknowledged; `timeout=0` never waits. WouldBlock if it was not taken."""
        payload = bytes(payload)
        with self._changed:
            self._check()
            if len(payload) > self._ledger.message_max():
                raise MessageTooLarge(f"{len(payload)} bytes, {self._ledger.message_max()} are allowed")
            self._wait(lambda: self._ledger.has_room(len(payload)), timeout, WouldBlock, "too much is unacknowledged")
            number = self._ledger.add(payload)
            self._wake()
            return number

    def check(self):
        """Raises what ended this producer, if something did."""
        with self._changed:
            self._check()

    def flush(self, timeout=...):
        """Waits until everything is acknowledged that was sent before; the number up to which that is."""
        with self._changed:
            goal = self._flush = self._ledger.last
            self._wake()
            self._wait(lambda: self._ledger.acknowledged >= goal, timeout, Timeout, "not everything is acknowledged")
            return goal

    def close(self, timeout=...):
        """Waits until everything is acknowledged, takes leave, and ends. It is closed also if it raises: `unacknowledged` tells what is left."""
        try:
            if not self._stopping:
                self.flush(timeout)
                with self._changed:
                    self._bye = 1
                    self._wake()
                self._thread.join(self._attempt_timeout)  # everything is safe: nobody needs to wait longer for a farewell
        finally:
            self.abort()

    def abort(self):
        """Ends at once. What is not acknowledged may or may not be in the key."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._wake()
        self._thread.join(self._attempt_timeout)

    def _check(self):
        if self._failure:
            raise self._failure
        if self._stopping or self._bye:
            raise Closed("it is closed")

    def _wait(self, reached, timeout, error, what):
        until = None if (timeout := self._timeout if timeout is ... else timeout) is None else time.monotonic() + timeout
        while not reached():
            self._check()
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise error(f"{what} after {timeout} s" + (f"; the last connection: {self._lost}" if self._lost else ""))
            self._changed.wait(left)

    def _wake(self):
        if self._asleep:
            self._asleep = False
            self._waker.send(b"!")

    def _run(self):
        """The thread: one connection after the other."""
        tried = 0
        while not self._stopping and not self._bye:
            before, failure = self._ledger.acknowledged, None
            try:
                with self._connect() as connection:
                    self._converse(connection)
            except (OSError, EOFError) as lost:
                self._lost = lost
            except SheafError as error:
                failure = error
            except Exception as error:  # a mistake in here must not leave callers waiting
                failure = SheafError(f"unexpected: {error!r}")
            with self._changed:
                self._asleep = False
                tried = 0 if self._ledger.acknowledged > before else tried + 1
                if failure:
                    self._failure = failure
                    self._changed.notify_all()
                    break
                pause = min(self._backoff[1], self._backoff[0] * 2 ** min(tried, 30)) * random.uniform(0.5, 1)
                self._changed.wait_for(lambda: self._stopping or self._bye, pause)
        self._waker.close()
        self._woken.close()

    def _connect(self):
        """A connection that the server has welcomed."""
        until = time.monotonic() + self._attempt_timeout
        connection = socket.create_connection(self._address, self._attempt_timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.sendall(hello(resume=self._resume or self._connections > 0, **self._hello))
            self._reader, frames = Reader(), []
            while not frames:
                connection.settimeout(max(0.001, until - time.monotonic()))
                if self._stopping or not (received := connection.recv(1 << 16)):
                    raise EOFError("the server closed the connection before it welcomed")
                frames = self._reader.feed(received)
            with self._changed:
                if isinstance(frames[0], Welcome):
                    self._ledger.begin(frames.pop(0))
                    self._connections += 1
                    self._flushed = 0
                elif not isinstance(frames[0], Error):
                    raise ProtocolError(f"{frames[0]} instead of a Welcome")
            self._take(frames)
            connection.setblocking(False)
            return connection
        except BaseException:
            connection.close()
            raise

    def _take(self, frames):
        """What the server says."""
        with self._changed:
            for one in frames:
                if isinstance(one, Ack):
                    self._ledger.ack(one)
                elif isinstance(one, Credit):
                    self._ledger.grant(one.limit)
                elif isinstance(one, Welcome):
                    raise ProtocolError("a second Welcome")
                elif one.code in (SHUTDOWN, IDLE) or one.code == LIMIT and self._connections:
                    raise EOFError(str(server_error(one)))  # it may be otherwise next time
                else:
                    raise server_error(one)
            self._changed.notify_all()

    def _output(self):
        """What is to be sent next; nothing if there is nothing to say. The lock is held."""
        if one := self._ledger.next_frame():
            return one
        everything_is_sent = not self._ledger.waiting
        if everything_is_sent and self._flush > max(self._ledger.acknowledged, self._flushed):
            self._flushed = self._ledger.last
            return frame(FLUSH)
        if self._bye == 1 and not self._ledger.sent and everything_is_sent:
            self._bye = 2  # said
            return frame(BYE)
        return b""

    def _converse(self, connection):
        """Sends and reads until the connection ends, by an exception, or because the producer ends."""
        heard, out, watched = time.monotonic(), memoryview(b""), selectors.EVENT_READ
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(connection, watched)
            while True:
                with self._changed:
                    if self._stopping:
                        return
                    out = out or memoryview(self._output())
                    self._asleep = not out
                    silent = time.monotonic() - heard if self._ledger.sent else 0
                if (patience := self._stall_timeout and self._stall_timeout - silent) is not None and patience < 0:
                    raise EOFError(f"no acknowledgement for {silent:.0f} s")
                if watched != (wanted := selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0)):
                    selector.modify(connection, wanted)
                    watched = wanted
                ready = {key.fileobj: events for key, events in selector.select(patience)}
                with self._changed:
                    self._asleep = False
                if self._woken in ready:
                    self._woken.recv(64)
                if not (events := ready.get(connection, 0)):
                    heard = heard if self._ledger.sent else time.monotonic()
                    continue
                if events & selectors.EVENT_READ:
                    if not (received := connection.recv(1 << 16)):
                        raise EOFError("the server closed the connection")
                    heard = time.monotonic()
                    self._take(self._reader.feed(received))
                if events & selectors.EVENT_WRITE:
                    out = out[self._write(connection, out) :]

    def _write(self, connection, out):
        """Sends what fits. Where the connection has ended, what the server said before comes first."""
        try:
            return connection.send(out)
        except BlockingIOError:
            return 0
        except OSError:
            connection.settimeout(self._attempt_timeout)
            while received := connection.recv(1 << 16):
                self._take(self._reader.feed(received))
            raise


def _bytes(text):
    return text.encode() if isinstance(text, str) else bytes(text)
