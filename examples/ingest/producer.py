#!/usr/bin/env python3
"""Measured values into a stream, each once and in order, whatever happens to the connection: producer.py [HOST:PORT] [COUNT]."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python"))
from sheafdb_producer import Producer, UnknownProducer  # noqa: E402

host, port = (sys.argv[1] if sys.argv[1:] else "127.0.0.1:9100").rsplit(":", 1)
count = int(sys.argv[2]) if sys.argv[2:] else 1000
producer = Producer(host, int(port), "example-python", sink="stream", key="example:ingest")
try:
    # A program that was killed goes on where the server says: numbers never start again.
    for n in range(producer.last + 1, count + 1):
        producer.send(f"value {n}".encode())  # waits if too much is unacknowledged
    producer.close()
    print(f"{producer.acknowledged} are in the stream")
except UnknownProducer:
    sys.exit(f"the server was started anew: {len(producer.unacknowledged())} are not in it")
