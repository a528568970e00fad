#!/usr/bin/env bash
# make bench: the laboratory in its short form, then SET and GET of redis-server and of SheafDB compared.
# Writes lab.html, lab.json, redis.json and sheafdb.json into target/. Ends only the servers that it started.
set -euo pipefail
cd "$(dirname "$0")/../.."

bench=target/release/sheafdb-bench
lab=0
"$bench" lab all --short --report target/lab.html --json target/lab.json "$@" || lab=$?
echo "the report: target/lab.html"

if ! command -v redis-server >/dev/null; then
    echo "redis-server is not on this machine: no comparison (make deps installs it)"
    exit "$lab"
fi
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
mkdir "$dir/redis" "$dir/sheafdb"
redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$dir/redis" --save '' >"$dir/redis.log" &
pids+=($!)
target/release/sheafdb --port 0 --admin-port 0 --unixsocket "$dir/sheafdb.sock" --dir "$dir/sheafdb" --save '' >"$dir/sheafdb.log" &
pids+=($!)
for name in redis sheafdb; do
    for _ in $(seq 100); do [ -S "$dir/$name.sock" ] && break; sleep 0.05; done
    [ -S "$dir/$name.sock" ] || { cat "$dir/$name.log"; exit 1; }
    "$bench" load -s "$dir/$name.sock" -c 50 -P 16 -r 100000 -d 64 -t set,get --test-time 1 --repeat 5 --json "target/$name.json"
done
"$bench" compare target/redis.json target/sheafdb.json
exit "$lab"
