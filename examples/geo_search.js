// Places near a point: node geo_search.js [PORT], or REDIS_URL.
"use strict";
const Redis = require("ioredis");

const port = process.argv[2];
const url = port ? `redis://127.0.0.1:${port}` : process.env.REDIS_URL || "redis://127.0.0.1:6379";
const r = new Redis(url);
const [CITIES, NEAR] = ["example:cities", "example:cities:near"];
// Longitude, latitude, name.
const PLACES = [
  [13.405, 52.52, "Berlin"],
  [9.993, 53.551, "Hamburg"],
  [11.582, 48.135, "Munich"],
  [12.374, 51.34, "Leipzig"],
  [13.738, 51.05, "Dresden"],
  [14.421, 50.088, "Prague"],
  [14.553, 53.428, "Szczecin"],
];
const km = (distance) => Number(distance).toFixed(0);

async function main() {
  await r.del(CITIES, NEAR);
  console.log(`${await r.geoadd(CITIES, ...PLACES.flat())} cities`);
  console.log(`Berlin to Prague: ${km(await r.geodist(CITIES, "Berlin", "Prague", "km"))} km`);

  console.log("within 200 km of Berlin, nearest first");
  const near = ["FROMMEMBER", "Berlin", "BYRADIUS", 200, "km", "ASC", "WITHDIST"];
  for (const [city, distance] of await r.geosearch(CITIES, ...near)) {
    console.log(`  ${city.padEnd(9)}${km(distance).padStart(4)} km`);
  }

  // From a point that is no member: somewhere on the Elbe.
  const here = ["FROMLONLAT", 13.0, 51.3, "BYRADIUS", 500, "km", "ASC", "COUNT", 1, "WITHDIST"];
  const [[city, distance]] = await r.geosearch(CITIES, ...here);
  console.log(`nearest to 51.3 N 13.0 E: ${city}, ${km(distance)} km`);

  const box = await r.geosearch(CITIES, "FROMLONLAT", 13.0, 52.0, "BYBOX", 300, 250, "km", "ASC");
  console.log(`in a box of 300 by 250 km around 52 N 13 E: ${box.join(", ")}`);

  // The result as a sorted set of its own: distances are scores, every command of sorted sets works on it.
  await r.geosearchstore(NEAR, CITIES, "FROMMEMBER", "Leipzig", "BYRADIUS", 250, "km", "STOREDIST");
  console.log(`between 1 and 150 km of Leipzig: ${(await r.zrangebyscore(NEAR, 1, 150)).join(", ")}`);
  await r.zrem(CITIES, "Prague");
  const [hash] = await r.geohash(CITIES, "Berlin");
  console.log(`without Prague: ${await r.zcard(CITIES)} cities, geohash of Berlin ${hash}`);
  await r.del(CITIES, NEAR);
}

main().finally(() => r.disconnect());
