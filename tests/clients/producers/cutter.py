"""A proxy between producers and a server that cuts connections at random, in either direction and in the middle of frames."""
import random
import select
import socket
import struct
import threading


class Cutter:
    """Listens on `port` and passes bytes on. Each connection gets a number of bytes after which it is cut, up to `most`."""

    def __init__(self, upstream, seed, most):
        self.upstream, self.most, self.cuts = upstream, most, 0
        self.dice = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.calm = False  # nothing is cut any more
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            budget, rudely = self.dice.randrange(self.most), self.dice.random() < 0.5
            threading.Thread(target=self.carry, args=(near, budget, rudely), daemon=True).start()

    def carry(self, near, budget, rudely):
        try:
            far = socket.create_connection(self.upstream)
        except OSError:
            return near.close()
        other = {near: far, far: near}
        try:
            for one in other:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                for one in select.select(list(other), [], [])[0]:
                    received = one.recv(1 << 14)
                    if not received:
                        return
                    budget -= len(received)
                    if budget < 0 and not self.calm:
                        other[one].sendall(received[:budget])  # in the middle
                        self.cuts += 1
                        return
                    other[one].sendall(received)
        except OSError:
            pass
        finally:
            for one in other:
                if rudely:  # a reset instead of an end
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()

    def close(self):
        self.listener.close()
