// Two Socket.IO servers that share their rooms through one server: node chat.js [PORT], or REDIS_URL.
"use strict";
const { once } = require("node:events");
const { createServer } = require("node:http");
const { createAdapter, createShardedAdapter } = require("@socket.io/redis-adapter");
const { Emitter } = require("@socket.io/redis-emitter");
const Redis = require("ioredis");
const { Server } = require("socket.io");
const { io: connect } = require("socket.io-client");

const port = process.argv[2];
const url = port ? `redis://127.0.0.1:${port}` : process.env.REDIS_URL || "redis://127.0.0.1:6379";
const PATIENCE = 120000; // milliseconds, for a busy machine

// A Socket.IO server: on a port of its own, with its own connections. Clients say which room they join.
async function serve(name, adapter) {
  const [pub, sub] = [new Redis(url), new Redis(url)];
  const http = createServer();
  const io = new Server(http, {
    adapter: adapter(pub, sub, { requestsTimeout: PATIENCE }),
    pingTimeout: PATIENCE,
  });
  io.on("connection", (socket) => {
    socket.on("join", async (room, done) => done(await socket.join(room)));
    socket.on("say", (room, ...words) => socket.to(room).emit("said", name, ...words));
  });
  io.on("who", (answer) => answer(name));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const close = async () => {
    await io.close();
    pub.disconnect();
    sub.disconnect();
  };
  return { io, close, at: `http://127.0.0.1:${http.address().port}` };
}

// A browser: `next` waits for the next thing it is told.
async function browser(at, room) {
  const socket = connect(at, { transports: ["websocket"], timeout: PATIENCE, forceNew: true });
  const [told, waiting] = [[], []];
  const hear = (...words) => {
    if (typeof words.at(-1) === "function") words.pop()("heard"); // who emits wants an answer
    waiting.length ? waiting.shift()(words) : told.push(words);
  };
  socket.on("said", hear);
  await socket.timeout(PATIENCE).emitWithAck("join", room);
  const next = () => (told.length ? told.shift() : new Promise((heard) => waiting.push(heard)));
  return { socket, next, told };
}

const shown = (words) => words.map((word) => (Buffer.isBuffer(word) ? word.toString("hex") : word)).join(" ");

async function talk(title, adapter, hasEmitter) {
  console.log(title);
  const [one, two] = [await serve("one", adapter), await serve("two", adapter)];
  const count = async () => [await one.io.of("/").adapter.serverCount(), await two.io.of("/").adapter.serverCount()];
  while ((await count()).some((servers) => servers !== 2)) await new Promise((again) => setTimeout(again, 10));

  const [ada, bob, cyd] = [await browser(one.at, "tea"), await browser(two.at, "tea"), await browser(two.at, "jazz")];
  ada.socket.emit("say", "tea", "hello", Buffer.from([0, 255, 13, 10])); // to all of the room but ada
  console.log("  bob hears:", shown(await bob.next()));
  bob.socket.emit("say", "tea", "hello yourself");
  console.log("  ada hears:", shown(await ada.next()));
  one.io.to("jazz").emit("said", "server one", "a new record");
  console.log("  cyd hears:", shown(await cyd.next()));

  const sockets = await one.io.in("tea").fetchSockets();
  console.log("  in the room:", sockets.length, "on both servers");
  console.log("  the other server:", (await one.io.serverSideEmitWithAck("who")).join());
  await two.io.in("tea").socketsJoin("jazz"); // also those of the other server
  while ((await two.io.in("jazz").fetchSockets()).length < 3) await new Promise((again) => setTimeout(again, 10));
  one.io.to("jazz").emit("said", "server one", "all are here");
  for (const who of [ada, bob, cyd]) console.log("  all hear:", shown(await who.next()));
  const answers = await two.io.timeout(PATIENCE).emitWithAck("said", "server two", "is anybody here");
  for (const who of [ada, bob, cyd]) await who.next();
  console.log("  answers:", answers.join());

  if (hasEmitter) {
    const redis = new Redis(url); // a program without a Socket.IO server
    new Emitter(redis).to("tea").emit("said", "a job", "done");
    for (const who of [ada, bob]) console.log("  from outside:", shown(await who.next()));
    redis.disconnect();
  }
  for (const who of [ada, bob, cyd]) who.socket.disconnect();
  if (ada.told.length + bob.told.length + cyd.told.length) throw new Error("somebody heard too much");
  await Promise.all([one.close(), two.close()]);
}

async function main() {
  await talk("with channels (SUBSCRIBE, PSUBSCRIBE)", createAdapter, true);
  await talk("with sharded channels (SSUBSCRIBE)", createShardedAdapter, false);
}

main().then(
  () => process.exit(0), // the adapters' timers for late answers still run
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
