#!/usr/bin/env python3
"""The three producers against a whole server: live.py SERVER NAME=PROGRAM... [unittest's words]. Needs redis-py."""
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import redis

import cutter
import peer as p

FAST = dict(backoff_min_ms=1, backoff_max_ms=50, attempt_timeout_ms=60_000, connect_timeout_ms=60_000)
SEED = int(os.environ.get("PRODUCERS_SEED", "7"))
MESSAGES = int(os.environ.get("PRODUCERS_MESSAGES", "20000"))
PROGRAMS = {}
WAIT_MS = int(p.PATIENCE_S * 1000)


def free_port():
    """A free port below those which the system gives to connections: none takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            pass  # somebody has it


class Server:
    """A server with a listener of protocol 2; may be started anew on the same ports."""

    def __init__(self, *settings, threads=2, listen=""):
        self.port, self.ingest = free_port(), free_port()
        self.folder = tempfile.mkdtemp(prefix="sheafdb-producers-")
        self.words = [
            SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--admin-port", "0", "--threads", str(threads),
            "--dir", self.folder, "--unixsocket", self.folder + "/sock",
            "--ingest-listen", f"127.0.0.1:{self.ingest} protocol=2 {listen}".strip(), *settings]
        if backend := os.environ.get("SHEAFDB_IO_BACKEND"):
            self.words += ["--io-backend", backend]
        self.start()

    def start(self):
        self.log = open(self.folder + "/log", "ab")
        self.launch()
        until = time.monotonic() + p.PATIENCE_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                # The system may free the ring of a process that was just killed, and its listeners, later.
                assert "Address already in use" in self.said()[self.before:], self.said()
                time.sleep(0.01)
                self.launch()
            try:
                # Only an answer counts: the listener of a process that was just killed may still accept.
                self.redis().ping()
                return
            except redis.AuthenticationError:
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        raise TimeoutError("the server does not listen")

    def launch(self):
        self.before = len(self.said())
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def redis(self, **options):
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=p.PATIENCE_S, **options)

    def said(self):
        with open(self.folder + "/log") as log:
            return log.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def end(self):
        self.kill()
        text = self.said()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert "panicked" not in text, text


def payloads(prefix, count, size):
    return [f"{prefix}{n}".ljust(size, ".") for n in range(count)]


class Base(unittest.TestCase):
    def start(self, *settings, **options):
        server = Server(*settings, **options)
        self.addCleanup(server.end)
        return server

    def cut(self, server, most, seed=SEED):
        proxy = cutter.Cutter(("127.0.0.1", server.ingest), seed, most)
        self.addCleanup(proxy.close)
        return proxy

    def tool(self, program, port, name="p", **options):
        tool = p.Tool(program, port, name, **(FAST | options))
        self.addCleanup(tool.kill)
        return tool


class Each:
    """What is asked of every producer."""

    program = []

    def open(self, port, last=0, **options):
        tool = self.tool(self.program, port, **options)
        tool.says(f"open {last}")
        return tool

    def through_cuts(self, sink, threads):
        server = self.start(threads=threads)
        proxy = self.cut(server, 60_000)
        tool = self.open(proxy.port, sink=sink, key="k", buffer_messages=2000)
        tool.ask(f"send {MESSAGES} 40 m {WAIT_MS}", f"sent {MESSAGES}")
        tool.ask(f"close {WAIT_MS}", f"ok {MESSAGES}")
        self.assertGreater(proxy.cuts, 5)
        return server.redis()

    def test_a_stream_has_each_message_once_and_in_order(self):
        r = self.through_cuts("stream", threads=2)
        entries = [entry for _, entry in r.xrange("k")]
        wanted = [{"id": str(n), "data": text} for n, text in enumerate(payloads("m", MESSAGES, 40), 1)]
        self.assertTrue(entries == wanted, f"{len(entries)} entries")

    def test_a_list_has_each_message_once_and_in_order(self):
        r = self.through_cuts("list", threads=1)
        elements = r.lrange("k", 0, -1)
        self.assertTrue(elements == payloads("m", MESSAGES, 40), f"{len(elements)} elements")

    def test_a_full_server_makes_it_wait(self):
        server = self.start(listen="window=32768 max-message=1024")
        r = server.redis()
        tool = self.open(server.ingest, sink="stream", key="k", buffer_bytes=200_000)
        tool.ask(f"send 10 100 m {WAIT_MS}", "sent 10")
        tool.ask(f"flush {WAIT_MS}", "ok 10")
        r.config_set("maxmemory", 1)
        full = int(tool.ask("try 1000", "full").split()[1])
        self.assertGreater(full, 150)
        tool.ask("flush 50", "error timeout")
        self.assertEqual(tool.ask("state").split()[3], "0", "it lost the connection")
        self.assertLess(r.xlen("k"), full)
        r.config_set("maxmemory", 0)
        tool.ask(f"flush {WAIT_MS}", f"ok {full}")
        self.assertEqual(r.xlen("k"), full)

    def test_passwords(self):
        server = self.start("--requirepass", "secret")
        self.tool(self.program, server.ingest).says("error server 5")
        self.tool(self.program, server.ingest, password="wrong").says("error server 5")
        self.tool(self.program, server.ingest, user="nobody", password="secret").says("error server 5")
        self.open(server.ingest, sink="null", password="secret")
        self.open(server.ingest, sink="null", user="default", password="secret")

    def test_a_newer_one_takes_over(self):
        server = self.start()
        first = self.open(server.ingest, sink="list", key="k")
        first.ask("send 3 0 a 1000", "sent 3")
        first.ask(f"flush {WAIT_MS}", "ok 3")
        second = self.open(server.ingest, 3, sink="list", key="k", resume=1)
        first.ask(f"poll {WAIT_MS}", "error server 10")
        second.ask("send 1 0 b 1000", "sent 4")
        second.ask(f"close {WAIT_MS}", "ok 4")
        self.assertEqual(server.redis().lrange("k", 0, -1), ["a0", "a1", "a2", "b0"])

    def test_a_server_that_was_started_anew_is_told(self):
        server = self.start()
        tool = self.open(server.ingest, sink="list", key="k")
        tool.ask("send 3 0 m 1000", "sent 3")
        tool.ask(f"flush {WAIT_MS}", "ok 3")
        server.kill()
        tool.ask("send 2 0 m 1000", "sent 5")
        server.start()
        tool.ask(f"flush {WAIT_MS}", "error server 9")
        tool.ask("left", "left 2 4 m3")
        self.open(server.ingest, 0, sink="list", key="k").ask(f"close {WAIT_MS}", "ok 0")
        self.tool(self.program, server.ingest, "other", sink="list", key="k", resume=1).says("error server 9")

    def test_a_killed_server_has_what_was_fsynced_and_gets_the_rest(self):
        for fsync in ("always", "everysec"):
            server = self.start("--appendonly", "yes", "--appendfsync", fsync)
            tool = self.open(server.ingest, sink="stream", key="k", level="fsynced")
            tool.ask("send 300 40 m 1000", "sent 300")
            tool.ask(f"flush {WAIT_MS}", "ok 300")
            tool.ask("send 100 40 m 1000", "sent 400")
            server.kill()
            tool.ask("send 100 40 m 1000", "sent 500")
            server.start()
            self.assertGreaterEqual(server.redis().xlen("k"), 300)
            tool.ask(f"close {WAIT_MS}", "ok 500")
            numbers = [int(fields["id"]) for _, fields in server.redis().xrange("k")]
            self.assertEqual(numbers, list(range(1, 501)))

    def test_other_refusals(self):
        server = self.start()
        server.redis().set("text", "x")
        tool = self.open(server.ingest, sink="list", key="text")
        tool.ask("send 1 0 m 1000", "sent 1")
        tool.ask(f"flush {WAIT_MS}", "error server 11")
        self.tool(self.program, server.ingest, sink="list", key="k", db=9999).says("error server 6")
        self.tool(self.program, server.ingest, level="fsynced").says("error server 7")
        self.tool(self.program, server.ingest, sink="stream").says("error server 8")

    def test_a_stream_is_trimmed(self):
        server = self.start()
        tool = self.open(server.ingest, sink="stream", key="k", maxlen=10, exact=1, db=3)
        tool.ask(f"send 1000 0 m {WAIT_MS}", "sent 1000")
        tool.ask(f"close {WAIT_MS}", "ok 1000")
        entries = [entry["id"] for _, entry in server.redis(db=3).xrange("k")]
        self.assertEqual(entries, [str(n) for n in range(991, 1001)])


class Together(Base):
    def test_a_group_reads_what_three_producers_push_while_they_are_cut(self):
        server = self.start()
        r = server.redis()
        r.xgroup_create("events", "readers", id="0", mkstream=True)
        proxy = self.cut(server, 60_000)
        seen = {"anna": [], "ben": []}
        failures = []
        threads = [threading.Thread(target=self.read, args=(server, name, seen, failures)) for name in seen]
        for thread in threads:
            thread.start()
        tools = {}
        for name, program in PROGRAMS.items():
            tools[name] = self.tool(program, proxy.port, name, sink="stream", key="events", buffer_messages=2000)
        for name, tool in tools.items():
            tool.says("open 0")
            tool.tell(f"send {MESSAGES} 40 {name}: {WAIT_MS}")
            tool.tell(f"close {WAIT_MS}")
        for tool in tools.values():
            tool.says(f"sent {MESSAGES}")
            tool.says(f"ok {MESSAGES}")
        for thread in threads:
            thread.join(p.PATIENCE_S)
        self.assertFalse(failures)
        self.assertGreater(proxy.cuts, 15)
        self.check(r, seen)

    def read(self, server, name, seen, failures):
        """Reads for the group until everything has come to somebody."""
        r, wanted = server.redis(), MESSAGES * len(PROGRAMS)
        until = time.monotonic() + 3 * p.PATIENCE_S
        try:
            while sum(map(len, seen.values())) < wanted and time.monotonic() < until:
                for _, entries in r.xreadgroup("readers", name, {"events": ">"}, count=500, block=100) or []:
                    r.xack("events", "readers", *(number for number, _ in entries))
                    seen[name] += entries
        except Exception as error:
            failures.append(error)

    def check(self, r, seen):
        def place(entry):
            return tuple(map(int, entry[0].split("-")))

        for entries in seen.values():
            self.assertEqual(entries, sorted(entries, key=place), "a consumer's entries are not in order")
        everything = sorted((entry for entries in seen.values() for entry in entries), key=place)
        self.assertEqual(everything, r.xrange("events"), "the group saw other entries than are there")
        for name in PROGRAMS:
            mine = [fields for _, fields in everything if fields["data"].startswith(name + ":")]
            wanted = [{"id": str(n), "data": text} for n, text in enumerate(payloads(name + ":", MESSAGES, 40), 1)]
            self.assertTrue(mine == wanted, f"{name}: {len(mine)} of {MESSAGES}, or not in order")
        self.assertEqual(r.xpending("events", "readers")["pending"], 0)


def main():
    global SERVER
    SERVER, *words = sys.argv[1:]
    PROGRAMS.update(word.split("=", 1) for word in words if "=" in word)
    for name, program in PROGRAMS.items():
        PROGRAMS[name] = shlex.split(program)
        globals()[name] = type(name, (Each, Base), {"program": PROGRAMS[name]})
    unittest.main(argv=[sys.argv[0], *(word for word in words if "=" not in word)])


main()
