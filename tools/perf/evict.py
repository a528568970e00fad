#!/usr/bin/env python3
"""What eviction costs: processor time per SET of a new key at the limit, and how far the limit is exceeded.

    tools/perf/evict.py [--requests 2000000] NAME='COMMAND with {port} and {dir}' ...

Each server gets --maxmemory 100mb --maxmemory-policy allkeys-lru and is filled beyond that. Then
redis-benchmark (50 connections, pipelines of 16) sets new keys with values of 64 bytes, while INFO is
asked every 50 ms.
"""

import argparse
import shlex
import socket
import subprocess
import tempfile
import time

LIMIT = 100 << 20
FILL = 1_500_000


def load(port, count):
    options = f"-p {port} -c 50 -P 16 -n {count} -r 1000000000 -t set -d 64 -q".split()
    return subprocess.Popen(["redis-benchmark", *options], stdout=subprocess.DEVNULL)


def info(port):
    text = subprocess.run(["redis-cli", "-p", str(port), "info"], capture_output=True, text=True)
    return dict(line.split(":", 1) for line in text.stdout.splitlines() if ":" in line)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(name, command, requests):
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        words = shlex.split(command.format(port=port, dir=folder))
        words += ["--maxmemory", str(LIMIT), "--maxmemory-policy", "allkeys-lru"]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        load(port, FILL).wait()
        evicted, before, used = int(info(port)["evicted_keys"]), cpu_s(server.pid), []
        running = load(port, requests)
        while running.poll() is None:
            used.append(int(info(port)["used_memory"]) / LIMIT * 100)
            time.sleep(0.05)
        us = (cpu_s(server.pid) - before) / requests * 1e6
        evicted = int(info(port)["evicted_keys"]) - evicted
        print(
            f"{name:10} {us:.3f} us of CPU per request, {evicted / requests:.2f} keys evicted for each, "
            f"{min(used):.2f} to {max(used):.2f} % of the limit used",
            flush=True,
        )
        server.kill()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=2_000_000)
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    for server in options.servers:
        name, command = server.split("=", 1)
        measure(name, command, options.requests)


main()
