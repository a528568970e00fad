#!/usr/bin/env python3
"""The codec of sheafdb_producer against docs/formats/ingest2-vectors.txt, and its ledger."""
import pathlib
import unittest

import sheafdb_producer as sp

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "docs/formats/ingest2-vectors.txt"
TEXTS = {"producer", "key", "user", "password"}


def vectors(word):
    """The lines of one kind: what stands before the sign, and the bytes."""
    for line in VECTORS.read_text().splitlines():
        if line.startswith(word + " "):
            left, right = line.split(" = ")
            yield left.split()[1:], bytes.fromhex(right)


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def encoded(kind, values):
    """A frame of a producer, from the names of the vectors."""
    if kind == "hello":
        values = {name: unhex(value) if name in TEXTS else int(value) for name, value in values.items()}
        assert values.pop("version") == 2
        flags = values.pop("flags", 0)
        return sp.hello(resume=bool(flags & 1), exact=bool(flags & 2), **values)
    if kind == "data":
        return sp.data(int(values["first_id"]), [unhex(one) for one in values["messages"].split(",")])
    return sp.frame({"flush": sp.FLUSH, "bye": sp.BYE}[kind])


class Vectors(unittest.TestCase):
    def test_frames(self):
        kinds = {"welcome": sp.Welcome, "ack": sp.Ack, "credit": sp.Credit, "error": sp.Error}
        seen = set()
        for (kind, *pairs), octets in vectors("frame"):
            values = dict(pair.split("=") for pair in pairs)
            seen.add(kind)
            with self.subTest(kind=kind, octets=octets.hex()):
                if kind not in kinds:
                    self.assertEqual(encoded(kind, values), octets)
                    continue
                numbers = {name: unhex(v).decode() if name == "text" else int(v) for name, v in values.items()}
                missing = {name: "" if name == "text" else 0 for name in kinds[kind]._fields}
                wanted = kinds[kind](**missing | numbers)
                self.assertEqual(sp.Reader().feed(octets), [wanted])
                reader = sp.Reader()  # byte by byte
                self.assertEqual([one for octet in octets for one in reader.feed(bytes([octet]))], [wanted])
        self.assertEqual(len(seen), 8)

    def test_faults_of_a_server(self):
        count = 0
        for (who, code), octets in vectors("bad"):
            if who == "s":
                count += 1
                self.assertIn(code, ("2", "3"))
                with self.subTest(octets=octets.hex()), self.assertRaises(sp.ProtocolError):
                    sp.Reader().feed(octets)
        self.assertGreaterEqual(count, 5)

    def test_several_frames_in_one_read(self):
        both = b"".join(octets for (kind, *_), octets in vectors("frame") if kind in ("ack", "credit"))
        self.assertEqual(len(sp.Reader().feed(both)), 5)


def welcome(last_id=0, credit=1000, max_frame=100, max_message=50):
    return sp.Welcome(2, 0, 0, max_message, max_frame, 0, last_id, 0, credit)


def ack(number):
    return sp.Ack(0, number, 0, number, 0)


class Ledger(unittest.TestCase):
    def ledger(self, **limits):
        ledger = sp.Ledger(bytes_max=100, messages_max=5, frame_bytes=20)
        ledger.begin(welcome(**limits))
        return ledger

    def test_room_is_bounded_by_bytes_and_by_messages(self):
        ledger = self.ledger()
        for _ in range(5):
            self.assertTrue(ledger.has_room(0))
            ledger.add(b"")
        self.assertFalse(ledger.has_room(0))
        ledger = self.ledger()
        ledger.add(bytes(50))
        self.assertTrue(ledger.has_room(42))
        self.assertFalse(ledger.has_room(43))

    def test_frames_are_packed_and_acknowledged(self):
        ledger = self.ledger(last_id=6)
        for payload in (b"aaaa", b"bbbb", b"c" * 30, b"d"):
            ledger.add(payload)
        self.assertEqual(ledger.next_frame(), sp.data(7, [b"aaaa", b"bbbb"]))
        self.assertEqual(ledger.next_frame(), sp.data(9, [b"c" * 30]))
        self.assertEqual(ledger.next_frame(), sp.data(10, [b"d"]))
        self.assertIsNone(ledger.next_frame())
        ledger.ack(ack(8))
        self.assertEqual((ledger.acknowledged, ledger.bytes, len(ledger.sent)), (8, 39, 2))
        for wrong in (7, 11):
            with self.assertRaises(sp.ProtocolError):
                ledger.ack(ack(wrong))

    def test_credit_is_spent_to_the_byte(self):
        ledger = self.ledger(credit=16 + 8)
        for payload in (b"aaaa", b"b"):
            ledger.add(payload)
        self.assertEqual(ledger.next_frame(), sp.data(1, [b"aaaa"]))
        self.assertIsNone(ledger.next_frame())
        ledger.grant(24 + 20)
        self.assertIsNone(ledger.next_frame())
        ledger.grant(24 + 21)
        self.assertEqual(ledger.next_frame(), sp.data(2, [b"b"]))
        ledger.grant(10)
        self.assertEqual(ledger.credit, 45)

    def test_a_new_connection_sends_what_is_missing(self):
        ledger = self.ledger()
        for payload in (b"1", b"2", b"3", b"4"):
            ledger.add(payload)
        while ledger.next_frame():
            pass
        ledger.ack(ack(1))
        ledger.begin(welcome(last_id=2))
        self.assertEqual(ledger.next_frame(), sp.data(3, [b"3", b"4"]))
        self.assertEqual((ledger.acknowledged, ledger.bytes), (2, 10))
        for wrong in (1, 5):
            with self.assertRaises(sp.NumbersDisagree):
                ledger.begin(welcome(last_id=wrong))
        with self.assertRaises(sp.MessageTooLarge):
            ledger.begin(welcome(last_id=2, max_message=0))


if __name__ == "__main__":
    unittest.main()
