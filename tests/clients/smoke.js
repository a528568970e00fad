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

(async () => {
  for (const part of [strings, pipelines, transactions, scans, reconnects, databases]) {
    const since = Date.now();
    await part();
    console.log(`ioredis: ${part.name}: ${((Date.now() - since) / 1000).toFixed(2)} s`);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
