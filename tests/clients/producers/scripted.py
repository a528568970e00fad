#!/usr/bin/env python3
"""The three producers against a peer that plays the server: scripted.py NAME=PROGRAM... [unittest's words]."""
import os
import random
import shlex
import sys
import unittest

import peer as p

# Retries at once, and no time that a slow machine could exceed.
FAST = dict(backoff_min_ms=1, backoff_max_ms=20, attempt_timeout_ms=60_000, connect_timeout_ms=60_000)


class Scenarios:
    """What every producer must do. `program` is the tool of one language."""

    program = []

    def setUp(self):
        self.peer = p.Peer()
        self.tools = []

    def tearDown(self):
        for tool in self.tools:
            tool.kill()
        self.peer.close()

    def tool(self, name="p", **options):
        self.tools.append(p.Tool(self.program, self.peer.port, name, **(FAST | options)))
        return self.tools[-1]

    def opened(self, limits={}, **options):
        tool = self.tool(**options)
        connection, _ = self.peer.welcomed(**limits)
        tool.says(f"open {limits.get('last_id', 0)}")
        return tool, connection

    def again(self, tool, **limits):
        """The next connection, which must ask to resume."""
        tool.tell("poll 1")
        connection, hello = self.peer.welcomed(**limits)
        self.assertEqual(hello.flags & 1, 1, "it does not ask to resume")
        return connection

    def test_hello_says_what_was_asked(self):
        tool = self.tool(
            "sensor-7", key="events", sink="stream", level="memory", strategy="batched", ack_messages=1000, ack_micros=2500, maxlen=10**6,
            exact=1, resume=1, db=5, user="default", password="secret")
        connection, hello = self.peer.welcomed(last_id=41)
        self.assertEqual(hello, p.Hello(1, 2, 1000, 2500, 3, 3, 5, 10**6, b"sensor-7", b"events", b"default", b"secret"))
        tool.says("open 41")
        connection.cut()
        tool.kill()
        self.tool()
        _, hello = self.peer.welcomed()
        self.assertEqual(hello, p.Hello(0, 0, 0, 0, 0, 0, 0, 0, b"p", b"", b"", b""))

    def test_send_flush_close(self):
        tool, connection = self.opened(dict(last_id=41))
        tool.ask("send 3 0 m 1000", "sent 44")
        tool.tell("flush 60000")
        self.assertEqual(connection.until(44), [b"m0", b"m1", b"m2"])
        connection.expect(3)
        connection.send(p.ack(43, 1))
        connection.send(p.ack(44))
        tool.says("ok 44")
        tool.ask("flush 0", "ok 44")
        connection.nothing_for(0.02)
        tool.ask("send 1 0 m 1000", "sent 45")
        tool.tell("close 60000")
        connection.until(45)
        connection.expect(3)
        connection.send(p.ack(45))
        connection.expect(4)
        connection.cut()
        tool.says("ok 45")
        tool.ask("send 1 0 m 0", "error closed")
        self.peer.nobody_for(0.05)
        self.assertEqual(tool.end(), 0)

    def test_many_messages_share_a_frame_and_the_limits_hold(self):
        tool, connection = self.opened(dict(credit=0, max_frame=600, max_message=588), frame_bytes=500)
        tool.ask("send 1000 0 m 1000", "sent 1000")
        tool.tell("poll 1")
        connection.nothing_for(0.05)
        connection.send(p.credit(1 << 30))
        tool.says("ok")
        tool.tell("flush 60000")
        wanted, frames = 1, 0
        while wanted <= 1000:
            first, payloads = connection.data()
            self.assertEqual(first, wanted)
            wanted += len(payloads)
            frames += 1
        self.assertLessEqual(frames, 1000 * 8 / 490 + 2)
        connection.expect(3)
        connection.send(p.ack(1000, 999))
        tool.says("ok 1000")
        tool.ask("send 1 589 m 1000", "error too-large")
        tool.ask("send 1 588 m 1000", "sent 1001")
        tool.tell("poll 1")
        self.assertEqual(len(connection.until(1001)[0]), 588)

    def test_credit_is_respected(self):
        tool, connection = self.opened(dict(credit=100, max_frame=50, max_message=38))
        tool.ask("send 20 10 m 1000", "sent 20")
        tool.tell("flush 60000")
        got, limit = [], 100
        while len(got) < 20:
            first, payloads = connection.data()
            self.assertEqual(first, len(got) + 1)
            got += payloads
            self.assertLessEqual(connection.data_bytes, limit)
            if len(got) < 20 and connection.data_bytes + 8 + 8 + 14 > limit:  # not one more message fits
                connection.nothing_for(0.02)
                limit += 45
                connection.send(p.credit(limit))
        self.assertEqual(got, [f"m{n}".encode().ljust(10, b".") for n in range(20)])
        connection.expect(3)
        connection.send(p.ack(20, 19))
        tool.says("ok 20")

    def test_back_pressure(self):
        tool, connection = self.opened(buffer_messages=10, buffer_bytes=1000)
        tool.ask("try 5", "full 10")
        tool.ask("send 1 5 m 20", "error would-block")
        tool.tell("poll 1")
        connection.until(10)
        tool.says("ok 0")
        connection.send(p.ack(3))
        tool.tell("send 3 5 m 60000")  # waits for the acknowledgement
        tool.says("sent 13")
        tool.ask("try 5", "full 13")
        tool.tell("flush 60000")
        connection.until(13)
        connection.send(p.ack(13))
        tool.says("ok 13")
        # Now the bytes are the bound: 1000 hold two messages of 400.
        tool.ask("try 400", "full 15")
        tool.ask("send 1 997 m 1000", "error too-large")

    def test_a_lost_connection_is_made_again_and_nothing_is_missing(self):
        tool, connection = self.opened()
        tool.ask("send 10 0 m 1000", "sent 10")
        tool.tell("poll 1")
        connection.until(10)
        connection.send(p.ack(4))
        connection.cut()
        tool.says("ok")
        connection = self.again(tool, last_id=6)
        tool.says("ok")
        tool.tell("flush 60000")
        self.assertEqual(connection.until(10), [b"m6", b"m7", b"m8", b"m9"])
        connection.expect(3)
        connection.cut()  # the Flush is lost too
        connection, _ = self.peer.welcomed(last_id=10)
        tool.says("ok 10")
        tool.ask("state", "state 10 10 2")
        tool.ask("send 1 0 m 1000", "sent 11")
        tool.tell("poll 1")
        self.assertEqual(connection.data(), (11, [b"m10"]))

    def test_a_frame_of_the_server_may_be_cut_anywhere(self):
        tool, connection = self.opened()
        tool.ask("send 2 0 m 1000", "sent 2")
        tool.tell("flush 60000")
        for octets in (p.ack(1), p.credit(1 << 41), p.error(11)):
            for cut in (1, 8, len(octets) - 1):
                connection.until(2)
                connection.expect(3)  # each connection is asked anew
                connection.send(octets[:cut])
                connection.cut()
                connection, _ = self.peer.welcomed()
        for cut in (0, 5, 47):  # a Welcome
            connection.cut()
            connection = self.peer.accept()
            connection.hello()
            connection.send(p.welcome()[:cut])
        connection.cut()
        connection, _ = self.peer.welcomed()
        connection.until(2)
        for octet in p.ack(2, 1):  # and come in pieces
            connection.send(bytes([octet]))
        tool.says("ok 2")

    def test_a_server_that_forgot_is_told(self):
        tool, connection = self.opened()
        tool.ask("send 10 0 m 1000", "sent 10")
        tool.tell("poll 1")
        connection.until(10)
        connection.send(p.ack(4))
        connection.cut()
        tool.says("ok")
        tool.tell("flush 60000")
        connection = self.peer.accept()
        self.assertEqual(connection.hello().flags & 1, 1)
        connection.send(p.error(9, 0, "who?"))
        connection.cut()
        tool.says("error server 9 who?")
        tool.ask("left", "left 6 5 m4")
        tool.ask("send 1 0 m 0", "error server 9")
        self.peer.nobody_for(0.05)

    def test_every_error_has_its_code(self):
        for code in [*range(1, 15), 17, 200]:
            with self.subTest(code=code):
                tool = self.tool()
                connection = self.peer.accept()
                connection.hello()
                connection.send(p.error(code, 7, f"error {code}"))
                connection.cut()
                tool.says(f"error server {code} error {code}")
                tool.end()

    def test_a_server_that_ends_or_is_full_is_tried_again(self):
        tool, connection = self.opened()
        for code in (15, 16, 14):
            connection.send(p.error(code))
            connection.cut()
            tool.tell("poll 1")
            connection = self.peer.accept()
            connection.hello()
            tool.says("ok")
        connection.send(p.welcome())
        tool.ask("poll 1", "ok")

    def test_taken_over(self):
        tool, connection = self.opened()
        tool.ask("send 1 0 m 1000", "sent 1")
        tool.tell("poll 60000")
        connection.until(1)
        connection.send(p.ack(1), p.error(10, 1, "a newer one"))
        connection.cut()
        tool.says("error server 10 a newer one")
        self.peer.nobody_for(0.05)
        tool.ask("flush 0", "ok 1")
        tool.ask("close 0", "ok 1")

    def test_an_error_is_read_though_the_connection_is_reset(self):
        tool, connection = self.opened(dict(max_message=1 << 22, max_frame=1 << 23), buffer_bytes=1 << 26)
        tool.ask("send 20 2000000 m 1000", "sent 20")
        tool.tell("poll 60000")
        connection.read(1000)
        connection.send(p.error(11, 0, "a string"))
        connection.cut()  # much was not read: a reset
        tool.says("error server 11 a string")

    def test_an_acknowledgement_of_a_frame_under_way(self):
        tool, connection = self.opened(dict(max_message=1 << 22, max_frame=1 << 26), buffer_bytes=1 << 26, frame_bytes=1 << 25)
        tool.ask("send 10 2000000 m 1000", "sent 10")
        tool.tell("flush 60000")
        connection.read(16 + 2000004)  # the first message; most of the frame is still to come
        connection.send(p.ack(1))
        connection.read(9 * 2000004)
        connection.send(p.ack(10, 8))
        tool.says("ok 10")

    def test_flush_may_time_out_and_be_repeated(self):
        tool, connection = self.opened()
        tool.ask("send 1 0 m 1000", "sent 1")
        tool.ask("flush 10", "error timeout")
        connection.until(1)
        connection.send(p.ack(1))
        tool.ask("flush 60000", "ok 1")
        tool.ask("send 1 0 m 1000", "sent 2")
        tool.ask("close 10", "error timeout")
        tool.ask("left", "left 1 2 m1")
        tool.ask("send 1 0 m 1000", "error closed")

    def test_what_is_no_protocol_ends_it(self):
        wrong = [b"HTTP/1.1 200 OK\r\n\r\n", p.ack(1), p.welcome(), p.frame(2, bytes(13)), p.frame(0x83, bytes(9)), p.ack(0, 0, 2)]
        for octets in wrong:
            with self.subTest(octets=octets.hex()):
                tool, connection = self.opened()
                connection.send(octets)
                tool.ask("poll 60000", "error protocol")
                connection.cut()
                tool.end()
        tool = self.tool()
        connection = self.peer.accept()
        connection.send(p.ack(0))
        tool.says("error protocol")
        tool, connection = self.opened(dict(credit=0))
        tool.ask("send 1 0 m 1000", "sent 1")
        connection.send(p.ack(1))  # it is there, but was not sent
        tool.ask("poll 60000", "error protocol")

    def test_numbers_that_disagree_end_it(self):
        for last_id in (3, 11, 2**64 - 1):
            with self.subTest(last_id=last_id):
                tool, connection = self.opened()
                tool.ask("send 10 0 m 1000", "sent 10")
                tool.tell("poll 1")
                connection.until(10)
                connection.send(p.ack(4))
                connection.cut()
                tool.says("ok")
                tool.tell("poll 60000")
                self.peer.welcomed(last_id=last_id)
                tool.says("error disagree")
                tool.end()

    def test_nobody_answers(self):
        tool = self.tool(attempt_timeout_ms=1000)
        for _ in range(2):
            self.peer.accept().hello()  # and no word
        self.peer.welcomed()
        tool.says("open")
        tool = self.tool(attempt_timeout_ms=100, connect_timeout_ms=300)
        tool.says("error timeout")
        self.peer.close()
        tool = self.tool(connect_timeout_ms=100)
        tool.says("error timeout")

    def test_a_server_that_falls_silent_is_left(self):
        tool, connection = self.opened(stall_timeout_ms=100)
        tool.tell("poll 300")  # while it owes nothing it may be silent
        tool.says("ok 0")
        self.peer.nobody_for(0)
        tool.ask("send 1 0 m 1000", "sent 1")
        tool.tell("flush 60000")
        connection.until(1)
        self.peer.welcomed(last_id=1)
        tool.says("ok 1")

    def test_ten_thousand_messages_with_connections_cut_at_random(self):
        dice = random.Random(int(os.environ.get("PRODUCERS_SEED", "7")))
        tool = self.tool(buffer_messages=700, frame_bytes=300)
        held = []
        cuts = 0
        tool.tell("send 10000 20 m 60000")
        tool.tell("flush 60000")
        while len(held) < 10000:
            connection, _ = self.peer.welcomed(last_id=len(held), credit=20_000)
            cuts += self.serve(connection, held, dice) == "cut"
        for wanted in ("open 0", "sent 10000", "ok 10000"):
            tool.says(wanted)
        self.assertEqual(held, [f"m{n}".encode().ljust(20, b".") for n in range(10000)])
        self.assertGreater(cuts, 5)

    def serve(self, connection, held, dice):
        """Holds messages, acknowledges, grants, until it cuts or everything is there."""
        granted = 20_000
        acked, octets_left = len(held), dice.randrange(30_000)
        while octets_left > 0:
            try:
                kind, body = connection.frame()
            except (EOFError, OSError):
                break
            octets_left -= len(body) + 8
            if kind == 2:
                first, payloads = connection.messages(body)
                self.assertTrue(1 <= first <= len(held) + 1, (first, len(held)))
                if octets_left < 0:  # the last frame comes only in part
                    payloads = payloads[: dice.randrange(len(payloads) + 1)]
                held += payloads[len(held) + 1 - first :]
            self.assertLessEqual(connection.data_bytes, granted)
            out = p.ack(len(held), max(0, len(held) - acked - 1)) if dice.random() < 0.3 or kind == 3 else b""
            acked = len(held) if out else acked
            if granted - connection.data_bytes < 10_000:
                granted += 10_000
                out += p.credit(granted)
            try:
                connection.send(out if octets_left > 0 else out[: dice.randrange(len(out) + 1)])
            except OSError:
                break
            if len(held) == 10000 and kind == 3:
                return "done"
        connection.cut()
        return "cut"


def main():
    words = sys.argv[1:]
    programs = dict(word.split("=", 1) for word in words if "=" in word)
    for name, program in programs.items():
        globals()[name] = type(name, (Scenarios, unittest.TestCase), {"program": shlex.split(program)})
    unittest.main(argv=[sys.argv[0], *(word for word in words if "=" not in word)])


main()
