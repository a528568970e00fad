"""What SheafDB saves after loading each file of tests/rdb/files, loaded by other servers.

    python3 tests/rdb/back.py SHEAFDB VERSION=PROGRAM ...

SHEAFDB is the server program. VERSION is an `rdb-version`, PROGRAM a server which reads it:
0=redis-server 12=/path/to/redis-server-8 80=/path/to/valkey-server. Prints the differences of the
states, and fails if there are any. The active times of consumers are not compared: not every
version holds them. Files with fields that expire are left out for `0=`, which Redis 7.0 may read.
"""

import glob
import os
import re
import sys

from servers import Server, state

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files", "*.rdb")


def lines(text):
    return [re.sub(r" active -?\d+$", "", line) for line in text.splitlines()]


def read(path):
    with open(path, "rb") as file:
        rdb = file.read()
    with open(path[:-4] + ".txt", encoding="ascii") as file:
        text = file.read()
    args = []
    if text.startswith("args "):
        first, text = text.split("\n", 1)
        args = first.split()[1:]
    return rdb, args, text


def back(ours, path, version, program):
    """The lines of the state that are missing, and those that are too many."""
    rdb, args, expected = read(path)
    if version == "0" and re.search(r'^  .*" expires ', expected, re.MULTILINE):
        return [], []
    with Server(ours, rdb, [*args, "--admin-port", "0", "--rdb-version", version]) as server:
        server.connect().ask("SAVE")
        rdb = server.saved()
    with Server(program, rdb, args) as server:
        expected, got = lines(expected), lines(state(server.connect()))
    missing = [line for line in expected if line not in got]
    return missing, [line for line in got if line not in expected]


def main():
    ours, wrong, count = os.path.abspath(sys.argv[1]), 0, 0
    for word in sys.argv[2:]:
        version, program = word.split("=", 1)
        for path in sorted(glob.glob(FILES)):
            missing, more = back(ours, path, version, program)
            count += 1
            if missing or more:
                wrong += 1
                print(os.path.basename(path), word, *(f"- {line}" for line in missing), sep="\n")
                print(*(f"+ {line}" for line in more), sep="\n")
    print(f"{count} files, {wrong} of them with differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
