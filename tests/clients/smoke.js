// ioredis against a server: node smoke.js HOST PORT. Exits nonzero on the first surprise.
"use strict";

const assert = require("node:assert");
const Redis = require("ioredis");

const [host, port] = [process.argv[2], Number(process.argv[3])];
const connect = (options) => new Redis({ host, port, commandTimeout: 10000, ...options });

async function strings() {
  const r = connect();
  await r.flushall();
  assert.strictEqual(await r.ping(), "PONG");
  assert.strictEqual(await r.set("greeting", "gr\u00fc\u00df dich \u{1f33e}", "EX", 100), "OK");
  assert.strictEqual(await r.get("greeting"), "gr\u00fc\u00df dich \u{1f33e}");
  assert.ok((await r.ttl("greeting")) > 90);
  assert.strictEqual(await r.get("nothing"), null);
  assert.strictEqual(await r.incr("n"), 1);
  assert.strictEqual(await r.set("n", 5, "NX"), null);
  assert.deepStrictEqual(await r.mget("n", "nothing"), ["1", null]);
  await assert.rejects(r.incr("greeting"), /not an integer/);
  await assert.rejects(r.call("NOSUCH"), /unknown command/);
  const bytes = Buffer.from([0, 255, 13, 10, 128]);
  await r.set(bytes, bytes);
  assert.deepStrictEqual(await r.getBuffer(bytes), bytes);
  const big = Buffer.alloc(3_000_000, "sheaf");
  await r.set("big", big);
  assert.ok((await r.getBuffer("big")).equals(big));
  await r.quit();
}

async function pipelines() {
  const r = connect();
  await r.flushall();
  const pipe = r.pipeline();
  for (let n = 0; n < 10000; n++) pipe.set(`key:${n}`, n).get(`key:${n}`);
  const answers = await pipe.exec();
  assert.strictEqual(answers.length, 20000);
  answers.forEach(([error, value], at) => {
    assert.strictEqual(error, null);
    assert.strictEqual(value, at % 2 ? String((at - 1) / 2) : "OK");
  });
  // Without waiting: everything leaves at once and replies keep their order.
  const loose = await Promise.all(Array.from({ length: 1000 }, (_, n) => r.get(`key:${n}`)));
  loose.forEach((value, n) => assert.strictEqual(value, String(n)));
  r.disconnect();
}

async function transactions() {
  const r = connect();
  const answers = await r.multi().set("a", "1").incr("a").get("a").exec();
  assert.deepStrictEqual(answers, [[null, "OK"], [null, 2], [null, "2"]]);
  const other = connect();
  await r.watch("a");
  await other.set("a", "changed");
  assert.strictEqual(await r.multi().get("a").exec(), null);
  await assert.rejects(r.multi().set("a").exec(), /EXECABORT|wrong number/);
  assert.strictEqual(await r.get("a"), "changed");
  r.disconnect();
  other.disconnect();
}

async function scans() {
  const r = connect();
  const found = new Set();
  const stream = r.scanStream({ match: "key:*", count: 500 });
  for await (const keys of stream) keys.forEach((key) => found.add(key));
  assert.strictEqual(found.size, 10000);
  r.disconnect();
}

async function reconnects() {
  const r = connect({ retryStrategy: () => 20, maxRetriesPerRequest: 5 });
  const killer = connect();
  const before = await r.client("ID");
  const again = new Promise((resolve) => r.once("reconnecting", resolve));
  assert.strictEqual(await killer.client("KILL", "ID", before), 1);
  await again;
  assert.strictEqual(await r.set("after", "reconnect"), "OK");
  assert.notStrictEqual(await r.client("ID"), before);
  r.disconnect();
  killer.disconnect();
}

async function databases() {
  const r = connect({ db: 3, connectionName: "from-node" });
  await r.flushdb();
  await r.set("here", "only");
  assert.strictEqual(await r.dbsize(), 1);
  assert.match(await r.client("LIST"), /name=from-node/);
  assert.match(await r.info("keyspace"), /db3:keys=1/);
  await r.select(0);
  assert.strictEqual(await r.get("here"), null);
  r.disconnect();
}

async function collections() {
  const r = connect();
  await r.flushall();
  assert.strictEqual(await r.rpush("l", "a", "b", "c"), 3);
  assert.strictEqual(await r.lpush("l", "z"), 4);
  assert.deepStrictEqual(await r.lrange("l", 0, -1), ["z", "a", "b", "c"]);
  assert.strictEqual(await r.lmove("l", "m", "LEFT", "RIGHT"), "z");
  assert.deepStrictEqual(await r.lpop("l", 2), ["a", "b"]);
  assert.deepStrictEqual(await r.lmpop(2, "m", "l", "LEFT"), ["m", ["z"]]);
  assert.strictEqual(await r.lpop("m"), null);

  assert.strictEqual(await r.hset("h", { a: 1, b: "two" }), 2);
  assert.deepStrictEqual(await r.hgetall("h"), { a: "1", b: "two" });
  assert.strictEqual(await r.hincrby("h", "a", 41), 42);
  assert.deepStrictEqual(await r.hmget("h", "a", "nothing"), ["42", null]);
  const [cursor, fields] = await r.hscan("h", 0);
  assert.deepStrictEqual([cursor, fields.length], ["0", 4]);
  assert.strictEqual(await r.hdel("h", "a", "b"), 2);
  assert.strictEqual(await r.exists("h"), 0);

  assert.strictEqual(await r.sadd("s", "a", "b", "c"), 3);
  assert.strictEqual(await r.sadd("t", "b", "c", "d"), 3);
  assert.deepStrictEqual((await r.smembers("s")).sort(), ["a", "b", "c"]);
  assert.deepStrictEqual((await r.sinter("s", "t")).sort(), ["b", "c"]);
  assert.strictEqual(await r.sismember("s", "d"), 0);
  assert.strictEqual(await r.sunionstore("u", "s", "t"), 4);
  assert.deepStrictEqual(await r.sort("u", "ALPHA", "DESC"), ["d", "c", "b", "a"]);
  const seen = [];
  for await (const members of r.sscanStream("u")) seen.push(...members);
  assert.deepStrictEqual([...new Set(seen)].sort(), ["a", "b", "c", "d"]);
  const saved = await r.dumpBuffer("u");
  assert.strictEqual(await r.restore("v", 0, saved), "OK");
  assert.strictEqual(await r.scard("v"), 4);
  r.disconnect();
}

async function ordered() {
  const r = connect();
  await r.flushall();
  assert.strictEqual(await r.zadd("z", 1, "a", 2.5, "b", "inf", "c"), 3);
  assert.deepStrictEqual(await r.zrange("z", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5", "c", "inf"]);
  assert.strictEqual(await r.zincrby("z", 0.5, "b"), "3");
  assert.deepStrictEqual([await r.zrank("z", "b"), await r.zrank("z", "nothing")], [1, null]);
  assert.deepStrictEqual(await r.zpopmin("z"), ["a", "1"]);
  assert.deepStrictEqual(await r.zrangebyscore("z", "-inf", "(inf", "LIMIT", 0, 5), ["b"]);
  assert.strictEqual(await r.geoadd("g", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"), 2);
  assert.strictEqual(await r.geodist("g", "Palermo", "Catania", "km"), "166.2742");
  const near = await r.geosearch("g", "FROMLONLAT", 15, 37, "BYRADIUS", 200, "km", "ASC", "WITHDIST");
  assert.deepStrictEqual(near, [["Catania", "56.4413"], ["Palermo", "190.4424"]]);
  assert.strictEqual(await r.setbit("b", 7, 1), 0);
  assert.strictEqual(await r.bitcount("b"), 1);
  assert.deepStrictEqual(await r.bitfield("b", "INCRBY", "u8", 0, 4, "GET", "u4", 4), [5, 5]);
  assert.strictEqual(await r.pfadd("p", "a", "b", "c"), 1);
  assert.strictEqual(await r.pfcount("p"), 3);
  await assert.rejects(r.lpush("z", 1), /^ReplyError: WRONGTYPE/);
  r.disconnect();
}

async function blocking() {
  const [r, waiter] = [connect(), connect()];
  await r.flushall();
  const served = async (wait, serve) => {
    const got = wait();
    while (!/blocked_clients:1\r/.test(await r.info("clients"))) await new Promise((on) => setTimeout(on, 2));
    await serve();
    return got;
  };
  assert.deepStrictEqual(await served(() => waiter.blpop("l", "m", 5), () => r.rpush("m", "one")), ["m", "one"]);
  assert.strictEqual(await served(() => waiter.blmove("s", "d", "LEFT", "RIGHT", 5), () => r.rpush("s", "two")), "two");
  assert.deepStrictEqual(await served(() => waiter.bzpopmin("z", 5), () => r.zadd("z", 1.5, "a")), ["z", "a", "1.5"]);
  const many = await served(() => waiter.blmpop(5, 1, "n", "LEFT", "COUNT", 2), () => r.rpush("n", 1, 2, 3));
  assert.deepStrictEqual(many, ["n", ["1", "2"]]);
  assert.deepStrictEqual(await r.lrange("d", 0, -1), ["two"]);
  const since = Date.now();
  assert.strictEqual(await waiter.brpop("nothing", 0.2), null);
  assert.ok(Date.now() - since >= 190 && Date.now() - since < 2000);
  const answers = await r.multi().blpop("nothing", 5).rpush("l", 1).exec();
  assert.deepStrictEqual(answers, [[null, null], [null, 1]]);
  r.disconnect();
  waiter.disconnect();
}

async function messages() {
  const [r, subscriber] = [connect(), connect()];
  const got = [];
  subscriber.on("message", (channel, text) => got.push([channel, text]));
  subscriber.on("pmessage", (pattern, channel, text) => got.push([pattern, channel, text]));
  assert.strictEqual(await subscriber.subscribe("news", "other"), 2);
  assert.strictEqual(await subscriber.psubscribe("n*"), 3);
  assert.strictEqual(await r.publish("news", "one"), 2);
  assert.strictEqual(await r.publish("x", "two"), 0);
  assert.deepStrictEqual(await r.multi().set("k", 1).publish("other", "three").exec(), [[null, "OK"], [null, 1]]);
  const wanted = [["news", "one"], ["n*", "news", "one"], ["other", "three"]];
  while (got.length < wanted.length) await new Promise((on) => setTimeout(on, 2));
  assert.deepStrictEqual(got, wanted);
  assert.strictEqual(await subscriber.unsubscribe("news"), 2);
  assert.strictEqual(await subscriber.punsubscribe("n*"), 1);
  assert.strictEqual(await r.publish("news", "four"), 0);
  subscriber.disconnect();
  r.disconnect();
}

(async () => {
  const parts = [strings, pipelines, transactions, scans, reconnects, databases, collections, ordered, blocking, messages];
  for (const part of parts) {
    const since = Date.now();
    await part();
    console.log(`ioredis: ${part.name}: ${((Date.now() - since) / 1000).toFixed(2)} s`);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
