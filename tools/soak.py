#!/usr/bin/env python3
"""Soak: a mixed load for an hour, and whether memory stays flat.

    soak.py [--seconds 3600] [--rate 40000] [--limit MB] [--server 'COMMAND with {port} and {dir}'] [--bench PATH] [--json FILE]

Strings that live for seconds and strings that stay, counters, hashes, lists that are trimmed, sets, sorted sets and whole keys that are deleted, all over
bounded key ranges, from sheafdb-bench in open loops (`--rate` requests a second in all); beside them clients that come, ask and go. Every few seconds resident
memory, the server's own figures and the number of keys are taken. It fails if a reply is an error, if the server ends, or if memory grows: after the first
fifth the mean of the last quarter must not be more than 3 % above that of the quarter before the middle, resident as well as used.

With `--limit` the server is a cache of so many megabytes (maxmemory, allkeys-lru), and another load sets entries of a cache for ten million names. Then what
counts for eviction must never be more than 1 % above the limit either, and keys must have been evicted.
"""
import argparse, json, os, shlex, socket, statistics, subprocess, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVER = 'target/release/sheafdb --port {port} --dir {dir} --save "" --loglevel warning'
# share of the rate, keys, bytes of a value, command (none: the tests set and get)
LOADS = [
    (0.20, 200_000, '10-300', '-t set,get'),
    (0.15, 1_000_000, '10-300', 'SET temporary:__rand_int__ __data__ EX 5'),
    (0.10, 10_000, '10-20', 'INCR counter:__rand_int__'),
    (0.10, 600, '10-300', 'HSET hash:__rand_int__ field:__rand_int__ __data__'),
    (0.02, 600, '10-20', 'DEL hash:__rand_int__'),
    (0.10, 500, '10-300', 'LPUSH list:__rand_int__ __data__'),
    (0.08, 500, '10-20', 'LTRIM list:__rand_int__ 0 99'),
    (0.10, 1_000, '10-20', 'SADD set:__rand_int__ member:__rand_int__'),
    (0.05, 1_000, '10-20', 'SREM set:__rand_int__ member:__rand_int__'),
    (0.10, 800, '10-20', 'ZADD sorted:__rand_int__ __rand_int__ member:__rand_int__'),
]
CACHED = (0.50, 10_000_000, '10-1000', 'SET cached:__rand_int__ __data__')

# Requests after which nearly all of the 800 x 800 members of sorted sets are there, which nothing removes: four for each.
FILLED = 4 * 800 * 800

def ask(sock, *words):
    sock.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
    data = b''
    while True:
        part = sock.recv(1 << 16)
        if not part: raise EOFError('the server closed the connection')
        data += part
        if data[:1] == b'$':
            end = data.find(b'\r\n')
            if end > 0 and len(data) >= end + 4 + int(data[1:end]): return data[end + 2:-2]
        elif data.endswith(b'\r\n'): return data[:-2]

def figures(sock):
    lines = ask(sock, b'INFO', b'everything').decode().split('\r\n')
    return dict(line.split(':', 1) for line in lines if ':' in line)

def visitors(port, stop, seen):
    """Clients that come, ask and go, some without a word."""
    while not stop.is_set():
        try:
            with socket.create_connection(('127.0.0.1', port), 5) as s:
                if seen['visits'] % 3: s.sendall(b'*1\r\n$4\r\nPING\r\n'); assert s.recv(16) == b'+PONG\r\n'
                if seen['visits'] % 7 == 0: s.sendall(b'*3\r\n$3\r\nSET\r\n$4\r\nhalf')
            seen['visits'] += 1
        except (OSError, AssertionError) as e:
            if not stop.is_set(): seen['failed'] = repr(e)
            return
        time.sleep(0.005)

def resident(pid):
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS'))

def verdict(samples, key):
    """Means of the second and of the last quarter, and their ratio; the first fifth fills the data."""
    n = len(samples)
    early = statistics.mean(s[key] for s in samples[max(n // 5, n // 4):n // 2])
    late = statistics.mean(s[key] for s in samples[-(n // 4):])
    return early, late, late / early

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--seconds', type=int, default=3600); ap.add_argument('--rate', type=int, default=40_000)
    ap.add_argument('--server', default=SERVER); ap.add_argument('--bench', default='target/release/sheafdb-bench'); ap.add_argument('--json')
    ap.add_argument('--limit', type=int, metavar='MB')
    a = ap.parse_args(); os.chdir(ROOT)
    if a.seconds < 20: sys.exit('soak: --seconds must be 20 or more')
    limit = (a.limit or 0) << 20
    if limit: a.server += f' --maxmemory {limit} --maxmemory-policy allkeys-lru'
    elif a.rate * a.seconds / 5 * 0.10 < FILLED:
        print(f'soak: sorted sets are filled after {FILLED / (a.rate * 0.10):.0f} s at this rate, which is more than a fifth: growth says nothing of leaks')
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix='soak-') as folder:
        server = subprocess.Popen(shlex.split(a.server.format(port=port, dir=folder)), stdout=subprocess.DEVNULL)
        loads = []; stop = threading.Event(); seen = {'visits': 0}
        try:
            for _ in range(100):
                try: info = socket.create_connection(('127.0.0.1', port), 30); break
                except OSError: time.sleep(0.1)
            for share, keys, size, words in LOADS + [CACHED] * (limit > 0):
                command = [a.bench, 'load', '-p', str(port), '-c', '5', '-P', '16', '-r', str(keys), '--data-size-range', size, '--rate', str(int(a.rate * share)),
                           '--test-time', str(a.seconds / 2 if words.startswith('-t') else a.seconds), '--format', 'csv'] + ['--allow-nil'] * (limit > 0) + words.split()
                loads.append((words, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
            threading.Thread(target=visitors, args=(port, stop, seen), daemon=True).start()
            samples, start = [], time.time(); every = max(1.0, a.seconds / 360)
            while any(load.poll() is None for _, load in loads):
                time.sleep(every)
                f = figures(info)
                keys = sum(int(v.split(',')[0].split('=')[1]) for k, v in f.items() if k.startswith('db') and v.startswith('keys='))
                used = int(f['used_memory'])
                samples.append({'at': time.time() - start, 'resident': resident(server.pid), 'used': used, 'keys': keys,
                                'counted': used - int(f['mem_not_counted_for_evict']), 'commands': int(f['total_commands_processed']),
                                'clients': int(f['connected_clients'])})
            stop.set()
            failed = [f'{words}: {load.stderr.read().strip()}' for words, load in loads if load.wait() != 0]
            if 'failed' in seen: failed.append('a visitor: ' + seen['failed'])
            end = figures(info)
        finally:
            for _, load in loads: load.kill()
            server.terminate(); server.wait(30)
        if server.returncode != 0: failed.append(f'the server ended with {server.returncode}')
        seconds = samples[-1]['at']
        print(f'{samples[-1]["commands"]} commands in {seconds:.0f} s ({samples[-1]["commands"] / seconds:.0f}/s), {seen["visits"]} clients came and went, '
              f'{end["expired_keys"]} keys expired, {samples[-1]["keys"]} keys at the end')
        for key in ('resident', 'used'):
            early, late, ratio = verdict(samples, key)
            print(f'{key:9} {early / 1e6:8.1f} MB in the second quarter, {late / 1e6:8.1f} MB in the last: x{ratio:.3f}')
            if ratio > 1.03: failed.append(f'{key} memory grew by {(ratio - 1) * 100:.1f} %')
        if limit:
            most = max(s['counted'] for s in samples) / limit
            print(f'{end["evicted_keys"]} keys evicted; at most {most * 100:.2f} % of the limit in use')
            if most > 1.01: failed.append(f'{(most - 1) * 100:.1f} % above the limit')
            if end['evicted_keys'] == '0': failed.append('nothing was evicted')
        if a.json: json.dump(samples, open(a.json, 'w'), indent=1)
        if failed: sys.exit('soak failed: ' + '; '.join(failed))
        print('memory is flat')

main()
