// A work queue that loses no job: work_queue.js [PORT] [add COUNT | work NAME [SECONDS]]; otherwise a demonstration.
"use strict";
const { spawn } = require("node:child_process");
const Redis = require("ioredis");

const args = process.argv.slice(2);
const port = /^\d+$/.test(args[0] ?? "") ? args.shift() : null;
const url = port ? `redis://127.0.0.1:${port}` : process.env.REDIS_URL || "redis://127.0.0.1:6379";
const r = new Redis(url);
const [TODO, DOING, DONE, SEEN] = ["todo", "doing:", "done", "seen"].map((part) => `example:queue:${part}`);
const DEAD_AFTER_S = 3; // longer than any job takes: who is silent for so long is dead
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Jobs of dead workers are the next ones; a name stays in SEEN, so that no list is ever forgotten.
async function reap(now) {
  for (const worker of await r.zrangebyscore(SEEN, 0, now - DEAD_AFTER_S)) {
    let job;
    while ((job = await r.lmove(DOING + worker, TODO, "LEFT", "RIGHT"))) {
      console.log(`${worker} is dead: ${job} goes back`);
    }
  }
}

async function work(name, seconds = 0.1) {
  for (;;) {
    const now = Number((await r.time())[0]);
    await r.zadd(SEEN, now, name); // before anything is taken
    await reap(now);
    // What an earlier life left comes first. A job moves to the worker's own list in one step: it is never nowhere.
    const left = await r.lindex(DOING + name, -1);
    const job = left ?? (await r.blmove(TODO, DOING + name, "RIGHT", "LEFT", 0.5));
    if (job === null) continue;
    await pause(seconds * 1000); // the work itself; it may be done twice after a crash, never not at all
    await r.multi().rpush(DONE, job).lrem(DOING + name, 1, job).exec(); // only now is the job gone
    console.log(`${name} did ${job}`);
  }
}

const add = (count) => r.lpush(TODO, ...Array.from({ length: count }, (_, n) => `job ${n}`));
const done = async () => new Set(await r.lrange(DONE, 0, -1)).size;

async function demonstrate(jobs = 20) {
  await r.del(TODO, DONE, SEEN, DOING + "anna", DOING + "ben");
  await add(jobs);
  const env = { ...process.env, REDIS_URL: url };
  const start = (...words) => spawn(process.execPath, [__filename, "work", ...words], { env, stdio: "inherit" });
  const anna = start("anna", 60); // slow: she will not be ready in time
  while (!(await r.llen(DOING + "anna"))) await pause(10);
  anna.kill("SIGKILL"); // no farewell
  console.log(`anna is killed in the middle of ${await r.lindex(DOING + "anna", 0)}`);
  const ben = start("ben");
  while ((await done()) < jobs && ben.exitCode === null) await pause(50);
  ben.kill("SIGKILL");
  console.log(`${await done()} of ${jobs} jobs are done`);
}

(args.length ? { add, work }[args[0]](...args.slice(1)) : demonstrate()).finally(() => r.disconnect());
