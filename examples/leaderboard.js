// A leaderboard on one sorted set: node leaderboard.js [PORT], or REDIS_URL.
"use strict";
const Redis = require("ioredis");

const port = process.argv[2];
const url = port ? `redis://127.0.0.1:${port}` : process.env.REDIS_URL || "redis://127.0.0.1:6379";
const r = new Redis(url);
const [BOARD, WEEK] = ["example:board", "example:board:week"];

// Members and scores come in one array, a member before its score.
function show(title, start, flat) {
  console.log(title);
  for (let n = 0; n < flat.length; n += 2) {
    console.log(`  ${start + n / 2 + 1}. ${flat[n].padEnd(6)} ${flat[n + 1]}`);
  }
}

// The player and who is just before and behind.
async function around(player, distance = 1) {
  const start = Math.max((await r.zrevrank(BOARD, player)) - distance, 0);
  return [start, await r.zrevrange(BOARD, start, start + 2 * distance, "WITHSCORES")];
}

async function main() {
  await r.del(BOARD, WEEK);
  await r.zadd(BOARD, 310, "ada", 120, "bob", 275, "cyd", 90, "dan", 205, "eve", 160, "fay");
  show("top three", 0, await r.zrevrange(BOARD, 0, 2, "WITHSCORES"));

  await r.zincrby(BOARD, 95, "fay"); // points are added on the server: no two games overwrite each other
  const place = (await r.zrevrank(BOARD, "fay")) + 1;
  console.log(`fay wins 95 points: place ${place} of ${await r.zcard(BOARD)}`);
  show("around fay", ...(await around("fay")));

  await r.zadd(BOARD, "GT", 100, "bob", 130, "dan"); // a personal best never gets worse
  const [bob, dan] = await r.zmscore(BOARD, "bob", "dan");
  console.log(`bests after a new game: bob ${bob}, dan ${dan}`);
  console.log(`players with 200 points and more: ${await r.zcount(BOARD, 200, "+inf")}`);

  await r.zadd(WEEK, 40, "dan", 5, "eve");
  await r.zunionstore(WEEK, 2, BOARD, WEEK, "WEIGHTS", 1, 10); // this week's points count ten times
  show("with this week's points tenfold", 0, await r.zrevrange(WEEK, 0, 1, "WITHSCORES"));
  await r.del(BOARD, WEEK);
}

main().finally(() => r.disconnect());
