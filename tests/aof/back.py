"""Append-only folders of random changes, there and back.

    python3 tests/aof/back.py SHEAFDB NAME=PROGRAM ... [--rounds N] [--seed N]

In each round one server makes random changes of every type, with or without a rewrite; the other
one loads a copy of its folder, and both states have to be equal. Then the other way round. The
folder is checked by the program which did not write it, too. Programs of Redis and Valkey check
files under the name redis-check-aof; that of Valkey 9.1 calls each base damaged which is an RDB
file of Valkey 9, its own ones, too, so what it says of these does not count.
"""

import argparse
import difflib
import glob
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "rdb"))

from recorded import await_rewrite, folder_of, without_seen  # noqa: E402
from servers import Server, known, state  # noqa: E402
from workload import random_changes  # noqa: E402

# Longer than keys take to be due.
DUE_S = 0.05


def plain(text):
    """The state without what a file of commands does not say: how many entries a group has read."""
    lines = (line for line in without_seen(text).splitlines() if not line.startswith("function "))
    return [re.sub(r" read (\d+|none)$", "", line) for line in lines]


def check(program, is_ours, folder):
    manifest = glob.glob(os.path.join(folder, "*.manifest"))[0]
    if is_ours:
        words = [program, "check-aof", manifest]
        return subprocess.run(words, capture_output=True, text=True, check=False)
    with tempfile.TemporaryDirectory() as links:
        link = os.path.join(links, "redis-check-aof")
        os.symlink(os.path.abspath(program), link)
        return subprocess.run([link, manifest], capture_output=True, text=True, check=False)


def round_of(seed, writer, reader, is_ours, target):
    rng = random.Random(seed)
    is_commands = rng.random() < 0.5
    words = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no" if is_commands else "yes"]
    words += ["--aof-timestamp-enabled", rng.choice(["yes", "no"])]
    is_rewritten = rng.random() < 0.6
    # SheafDB writes the base as the RDB file which the other server reads.
    ours = ["--admin-port", "0", *target]
    with Server(writer, args=[*words, *(ours if is_ours else [])]) as server:
        connection = server.connect()
        other = Server(reader, args=["--appendonly", "no", *([] if is_ours else ours)])
        with other:
            asked = other.connect()
            is_known = lambda name: known(connection, name) and known(asked, name)  # noqa: E731
            random_changes(connection.ask, is_known, seed, 500)
            if is_rewritten:
                connection.ask("BGREWRITEAOF")
                await_rewrite(connection.ask)
            random_changes(connection.ask, is_known, seed + 1, 300)
        time.sleep(DUE_S)
        expected = plain(state(connection))
        server.end()
        folder = os.path.join(server.folder, folder_of(words))
        checked = check(reader, not is_ours, folder)
        if not is_ours:
            # They do not write down each consumer that has read nothing.
            with Server(writer, args=words, tree=server.folder) as again:
                expected = plain(state(again.connect()))
        more = [] if is_ours else ours
        with Server(reader, args=["--appendonly", "yes", *more], tree=server.folder) as again:
            got = plain(state(again.connect()))
    what = f"{'rewritten' if is_rewritten else 'plain'} {' '.join(words[2:])}, {len(got)} lines"
    is_unknown = target and not is_commands and "rdb format error" in checked.stdout
    if checked.returncode != 0 and not is_unknown:
        return what, f"it finds damage: {checked.stdout}{checked.stderr}"
    if expected != got:
        lines = list(difflib.unified_diff(expected, got, lineterm="", n=1))[2:20]
        return what, "another state:\n  " + "\n  ".join(lines)
    return what, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sheafdb")
    parser.add_argument("others", nargs="+")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = 0
    for word in options.others:
        name, program = word.split("=", 1)
        target = ["--rdb-version", "80"] if name.startswith("valkey9") else []
        for seed in range(options.seed, options.seed + options.rounds):
            for is_ours in (True, False):
                pair = (options.sheafdb, program)[:: 1 if is_ours else -1]
                what, wrong = round_of(seed * 2, *pair, is_ours, target)
                direction = f"sheafdb -> {name}" if is_ours else f"{name} -> sheafdb"
                print(f"{seed} {direction}: {what}: {wrong or 'equal'}", flush=True)
                failures += wrong is not None
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
