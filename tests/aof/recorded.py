"""Append-only folders written by real servers, and the state that they hold.

    python3 tests/aof/recorded.py NAME=PROGRAM ...

NAME is the prefix, PROGRAM a server: valkey9.1=/path/to/valkey-server. For each profile the folder
tests/aof/files/NAME-PROFILE is written, and beside it NAME-PROFILE.txt: the arguments of a server
which is to load it, and the state of a server of the same program which has loaded it (see
tests/rdb/README.md), but when consumers were seen: that is the time of loading. The states before
and after are compared, so what the server itself does not keep is printed here.
"""

import os
import re
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "files")
sys.path.append(os.path.join(HERE, "..", "rdb"))

from servers import Server, known, state  # noqa: E402
from workload import fixed  # noqa: E402

# Settings, and whether there is a rewrite between the two parts.
PROFILES = {
    "plain": ([], False),
    "rewritten": (["--aof-timestamp-enabled", "yes"], True),
    "commands": (
        ["--aof-use-rdb-preamble", "no", "--appenddirname", "files", "--appendfilename", "f.aof"],
        True,
    ),
}


def folder_of(args):
    return args[args.index("--appenddirname") + 1] if "--appenddirname" in args else "appendonlydir"


def await_rewrite(ask):
    while True:
        info = ask("INFO", "persistence").decode()
        if "aof_rewrite_in_progress:0" in info and "aof_rewrite_scheduled:0" in info:
            assert "aof_last_bgrewrite_status:ok" in info, info
            return
        time.sleep(0.02)


def without_seen(text):
    return re.sub(r"(?m)^(  consumer .*?) seen .*$", r"\1", text)


def record(name, program, profile):
    args, is_rewritten = PROFILES[profile]
    words = ["--appendonly", "yes", *args]
    path = os.path.join(FILES, f"{name}-{profile}")
    with Server(program, args=words) as server:
        connection = server.connect()
        ask = connection.ask
        fixed(ask, lambda command: known(connection, command), 1)
        if is_rewritten:
            ask("BGREWRITEAOF")
            await_rewrite(ask)
        fixed(ask, lambda command: known(connection, command), 2)
        time.sleep(0.1)
        before = without_seen(state(connection))
        server.end()
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(os.path.join(server.folder, folder_of(args)), path)
        tree = server.folder
        with Server(program, args=words, tree=tree) as again:
            after = without_seen(state(again.connect()))
    if before != after:
        print(f"{name}-{profile}: not kept by the server itself:")
        print(*sorted(set(before.splitlines()) ^ set(after.splitlines())), sep="\n")
    with open(path + ".txt", "w", encoding="ascii") as file:
        file.write("".join([f"args {' '.join(args)}\n" if args else "", after]))
    sizes = {each: os.path.getsize(os.path.join(path, each)) for each in sorted(os.listdir(path))}
    print(f"{name}-{profile}: {sizes}, {after.count(chr(10))} lines")


def main():
    for word in sys.argv[1:]:
        name, program = word.split("=", 1)
        for profile in PROFILES:
            record(name, program, profile)


if __name__ == "__main__":
    main()
