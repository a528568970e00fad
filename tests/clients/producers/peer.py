"""The other side of ingest protocol 2, played by a test; written from docs/formats/ingest.md, apart from all clients."""
import collections
import os
import select
import socket
import struct
import subprocess
import threading

PATIENCE_S = float(os.environ.get("PRODUCERS_PATIENCE_S", "60"))  # nothing here takes so long; a test that waits for it has failed
Hello = collections.namedtuple("Hello", "level strategy ack_messages ack_micros flags sink db maxlen producer key user password")


def frame(kind, body, flags=0):
    return struct.pack("<IBBH", len(body), kind, flags, 0) + body


def welcome(last_id=0, credit=1 << 40, max_message=1 << 20, max_frame=(1 << 20) + 12):
    return frame(0x81, struct.pack("<HBBIIIQQQ", 2, 0, 0, max_message, max_frame, 0, last_id, 0, credit))


def ack(number, skipped=0, flags=0):
    return frame(0x82, struct.pack("<QIIQQ", number, skipped, 0, number, 0), flags)


def credit(limit):
    return frame(0x83, struct.pack("<Q", limit))


def error(code, number=0, text="because"):
    return frame(0x84, struct.pack("<HHIQ", code, len(text.encode()), 0, number) + text.encode())


class Connection:
    """One connection of a producer."""

    def __init__(self, sock):
        self.sock, self.rest, self.data_bytes = sock, b"", 0
        sock.settimeout(PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, size):
        while len(self.rest) < size:
            received = self.sock.recv(1 << 16)
            if not received:
                raise EOFError("the producer closed the connection")
            self.rest += received
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def frame(self):
        """The next frame: its type and body."""
        length, kind, flags, reserved = struct.unpack("<IBBH", self.read(8))
        assert flags == 0 and reserved == 0, (flags, reserved)
        return kind, self.read(length)

    def hello(self):
        kind, body = self.frame()
        assert kind == 1 and body[:6] == b"SHFI\x02\0", (kind, body)
        numbers = struct.unpack_from("<BBIIHBBIQ", body, 6)
        assert numbers[6] == 0, "a reserved byte"
        texts, at = [], 32
        for _ in range(4):
            (size,) = struct.unpack_from("<H", body, at)
            texts.append(body[at + 2 : at + 2 + size])
            at += 2 + size
        assert at == len(body), "bytes behind the Hello"
        return Hello(*numbers[:6], *numbers[7:], *texts)

    def data(self):
        """The next frame, which is Data: its first number and its payloads."""
        kind, body = self.frame()
        assert kind == 2, f"frame {kind} instead of Data"
        return self.messages(body)

    def messages(self, body):
        self.data_bytes += 8 + len(body)
        (first,), payloads, at = struct.unpack_from("<Q", body), [], 8
        while at < len(body):
            (size,) = struct.unpack_from("<I", body, at)
            payloads.append(body[at + 4 : at + 4 + size])
            at += 4 + size
        assert at == len(body) and payloads, "messages that do not fill their frame"
        return first, payloads

    def until(self, last):
        """Data up to a number: the payloads."""
        got, wanted = [], None
        while wanted is None or wanted <= last:
            first, payloads = self.data()
            assert wanted in (None, first), (wanted, first)
            got += payloads
            wanted = first + len(payloads)
        assert wanted == last + 1, (wanted, last)
        return got

    def expect(self, kind):
        got, body = self.frame()
        assert got == kind and not body, (got, kind, body)

    def send(self, *frames):
        self.sock.sendall(b"".join(frames))

    def nothing_for(self, seconds):
        """The producer says nothing more; a slow machine only makes this weaker."""
        assert not self.rest, self.rest
        if select.select([self.sock], [], [], seconds)[0]:
            received = self.sock.recv(1 << 16)
            assert not received, f"it says {received[:64].hex()}"

    def ended(self):
        try:
            rest = self.rest + self.sock.recv(1)
        except ConnectionResetError:
            rest = b""
        assert not rest, f"it says {rest.hex()}"

    def cut(self):
        self.sock.close()


class Peer:
    """Listens; a test accepts and plays."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        self.port = self.listener.getsockname()[1]
        self.accepted = []

    def accept(self):
        self.accepted.append(Connection(self.listener.accept()[0]))
        return self.accepted[-1]

    def welcomed(self, **limits):
        """A connection that is welcomed, and its Hello."""
        connection = self.accept()
        hello = connection.hello()
        connection.send(welcome(**limits))
        return connection, hello

    def nobody_for(self, seconds):
        """Nobody connects."""
        assert not select.select([self.listener], [], [], seconds)[0], "somebody connects"

    def close(self):
        self.listener.close()
        for connection in self.accepted:
            connection.cut()


class Tool:
    """A producer of one of the languages, told what to do (tool.py says how)."""

    def __init__(self, program, port, producer, **options):
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [*program, "127.0.0.1", str(port), producer, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.timer = threading.Timer(PATIENCE_S * 3, self.process.kill)
        self.timer.start()

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def says(self, wanted=None):
        line = self.process.stdout.readline().rstrip("\n")
        assert line, "the tool ended"
        assert wanted is None or line.startswith(wanted), f"{line!r} instead of {wanted!r}"
        return line

    def ask(self, command, wanted=None):
        self.tell(command)
        return self.says(wanted)

    def end(self):
        """Its exit status, after everything it was told."""
        self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.timer.cancel()
        return status

    def kill(self):
        self.process.kill()
        self.end()
