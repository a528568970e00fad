// So many requests per user in any two seconds: node rate_limiter.js [PORT], or REDIS_URL.
"use strict";
const { randomUUID } = require("node:crypto");
const Redis = require("ioredis");

const port = process.argv[2];
const url = port ? `redis://127.0.0.1:${port}` : process.env.REDIS_URL || "redis://127.0.0.1:6379";
const r = new Redis(url);
const [LIMIT, WINDOW_US] = [5, 2_000_000];

// A sorted set holds one member per request, scored by its time; the old ones leave first.
// The transaction makes it exact: the first LIMIT requests see 1 to LIMIT members, all others more.
async function allowed(user, connection) {
  const [key, request] = [`example:rate:${user}`, randomUUID()];
  const [seconds, micros] = await connection.time(); // the server's clock is the same for everybody
  const now = Number(seconds) * 1_000_000 + Number(micros);
  const answers = await connection
    .multi()
    .zremrangebyscore(key, 0, now - WINDOW_US)
    .zadd(key, now, request)
    .zcard(key)
    .pexpire(key, WINDOW_US / 1000) // who stays away leaves nothing behind
    .exec();
  const count = answers[2][1];
  if (count > LIMIT) await connection.zrem(key, request); // a refused request does not count
  return count <= LIMIT;
}

// They come at once, from many connections.
async function burst(user, requests) {
  const one = async () => {
    const connection = new Redis(url);
    return allowed(user, connection).finally(() => connection.disconnect());
  };
  const answers = await Promise.all(Array.from({ length: requests }, one));
  const yes = answers.filter(Boolean).length;
  return `${user} sends ${requests} at once: ${yes} allowed, ${requests - yes} refused`;
}

async function main() {
  await r.del("example:rate:anna", "example:rate:ben");
  console.log(`${LIMIT} requests in ${WINDOW_US / 1_000_000} seconds are allowed`);
  console.log(await burst("anna", 12));
  console.log(await burst("ben", 3));
  await new Promise((done) => setTimeout(done, WINDOW_US / 1000));
  console.log(`after the window: ${await burst("anna", 8)}`);
  await r.del("example:rate:anna", "example:rate:ben");
}

main().finally(() => r.disconnect());
