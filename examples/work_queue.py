#!/usr/bin/env python3
"""A work queue that loses no job: work_queue.py [PORT] [add COUNT | work NAME [SECONDS]]; otherwise a demonstration."""
import os
import subprocess
import sys
import time

import redis

ARGS = sys.argv[1:]
PORT = ARGS.pop(0) if ARGS and ARGS[0].isdigit() else None
URL = f"redis://127.0.0.1:{PORT}" if PORT else os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
r = redis.Redis.from_url(URL, decode_responses=True)
TODO, DOING, DONE, SEEN = (f"example:queue:{part}" for part in ("todo", "doing:", "done", "seen"))
DEAD_AFTER_S = 3  # longer than any job takes: who is silent for so long is dead


def add(count):
    r.lpush(TODO, *(f"job {n}" for n in range(int(count))))


def reap(now):
    """Jobs of dead workers are the next ones; a name stays in SEEN, so that no list is ever forgotten."""
    for worker in r.zrangebyscore(SEEN, 0, now - DEAD_AFTER_S):
        while job := r.lmove(DOING + worker, TODO, "LEFT", "RIGHT"):
            print(f"{worker} is dead: {job} goes back", flush=True)


def work(name, seconds=0.1):
    while True:
        r.zadd(SEEN, {name: (now := r.time()[0])})  # before anything is taken
        reap(now)
        # What an earlier life left comes first. A job moves to the worker's own list in one step: it is never nowhere.
        if not (job := r.lindex(DOING + name, -1) or r.blmove(TODO, DOING + name, 0.5, "RIGHT", "LEFT")):
            continue
        time.sleep(float(seconds))  # the work itself; it may be done twice after a crash, never not at all
        with r.pipeline() as steps:  # only now is the job gone
            steps.rpush(DONE, job).lrem(DOING + name, 1, job).execute()
        print(f"{name} did {job}", flush=True)


def demonstrate(jobs=20):
    r.delete(TODO, DONE, SEEN, DOING + "anna", DOING + "ben")
    add(jobs)
    os.environ["REDIS_URL"] = URL  # for the workers
    command = [sys.executable, __file__, "work"]
    anna = subprocess.Popen([*command, "anna", "60"])  # slow: she will not be ready in time
    while not r.llen(DOING + "anna"):
        time.sleep(0.01)
    anna.kill()  # no farewell: SIGKILL
    print(f"anna is killed in the middle of {r.lindex(DOING + 'anna', 0)}", flush=True)
    ben = subprocess.Popen([*command, "ben"])
    while len(set(r.lrange(DONE, 0, -1))) < jobs and ben.poll() is None:
        time.sleep(0.05)
    ben.kill()
    print(f"{len(set(r.lrange(DONE, 0, -1)))} of {jobs} jobs are done")


{"add": add, "work": work}[ARGS[0]](*ARGS[1:]) if ARGS else demonstrate()
