#!/usr/bin/env python3
"""What more threads cost: server CPU per request, and how often workers were in each other's way.

    threads.py [--server BINARY] [--bench BINARY] [--threads 1,2,4,8,16] [--secs 0.8] [--reps 3] [--backend epoll]

Starts the server with each number of threads (`busy-poll-us 0`: an idle worker sleeps), writes the keys, and runs every
load on it; the processors are shared by all of them and by the client, so that workers are preempted wherever they are, also
while they hold a slot. Counts are those of INFO io, for each million of requests; medians of REPS runs. Prints a table in Markdown.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time, socket

LOADS = [  # name, options of the load generator, keys
    ('uniform, set and get', ['--ratio', '1:1'], 1_000_000, 'key:'),
    ('zipf, set and get', ['--ratio', '1:1', '--keys', 'zipf'], 1_000_000, 'key:'),
    ('one key, get', ['-t', 'get'], 1, 'hot:'),
    ('one key, set', ['-t', 'set'], 1, 'hot:'),
    ('one slot, set and get', ['--ratio', '1:1'], 100_000, '{tag}:'),
]
COUNTS = ['io_lock_waits', 'io_lock_sleeps', 'io_lock_parks', 'io_windows', 'io_polls', 'io_sleeps', 'io_receives']


def ask(port, line):
    with socket.create_connection(('127.0.0.1', port), 10) as c:
        c.sendall(line)
        got = b''
        while True:
            got += c.recv(65536)
            head, _, body = got.partition(b'\r\n')
            if not head.startswith(b'$') or len(body) >= int(head[1:]) + 2:
                return got.decode()


def info(port):
    time.sleep(0.15)  # figures of sockets are up to a tenth of a second old
    lines = (l.partition(':') for l in ask(port, b'INFO io\r\n').splitlines())
    return {k: int(v) for k, _, v in lines if k in COUNTS}


def switches(pid):
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        for line in open(f'/proc/{pid}/task/{task}/status'):
            if line.startswith('nonvoluntary_ctxt_switches'):
                total += int(line.split()[1])
    return total


def run(a, port, pid, options, keys, prefix, secs):
    before, taken = info(port), switches(pid)
    out = subprocess.run([a.bench, 'load', '-p', str(port), '-c', str(a.clients), '-P', str(a.pipeline), '-r', str(keys), '-d', '64',
                          '--key-prefix', prefix, '--test-time', str(secs), '--server-pid', str(pid), '--populate', 'no', '-q',
                          '--format', 'json', *options], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f'the load failed: {out.stderr}')
    m = json.loads(out.stdout.splitlines()[-1])
    after, n = info(port), m['requests']
    r = {k: (after[k] - before[k]) * 1e6 / n for k in before}
    r['cpu'] = m['server']['cpu_us_per_request']
    r['rps'] = m['throughput']
    r['other'] = m['other_cpus']
    r['taken'] = (switches(pid) - taken) * 1e6 / n
    return r


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--server', default='target/release/sheafdb'); p.add_argument('--bench', default='target/release/sheafdb-bench')
    p.add_argument('--threads', default='1,2,4,8,16'); p.add_argument('--secs', type=float, default=0.8); p.add_argument('--reps', type=int, default=3)
    p.add_argument('--clients', type=int, default=64); p.add_argument('--pipeline', type=int, default=16); p.add_argument('--backend', default='epoll')
    a = p.parse_args()
    print('| load | threads | server CPU us | of one thread | requests/s | lock waits | sleeps | parks | taken off its core | commands per window | other |\n|' + '---|' * 11)
    rows = {}
    for threads in map(int, a.threads.split(',')):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
        d = tempfile.mkdtemp(prefix='threads-')
        server = subprocess.Popen([a.server, '--port', str(port), '--dir', d, '--save', '', '--threads', str(threads), '--busy-poll-us', '0',
                                   '--io-backend', a.backend], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            for _, _, keys, prefix in LOADS:
                subprocess.run([a.bench, 'load', '-p', str(port), '-c', '16', '-P', '64', '-n', str(keys), '-r', str(keys), '-d', '64', '--key-prefix', prefix,
                                '--keys', 'sequential', '-t', 'set', '-q', '--format', 'csv'], check=True, stdout=subprocess.DEVNULL)
            for name, options, keys, prefix in LOADS:
                runs = [run(a, port, server.pid, options, keys, prefix, a.secs) for _ in range(a.reps)]
                rows[name, threads] = {k: statistics.median(r[k] for r in runs) for k in runs[0]}
        finally:
            server.terminate(); server.wait()
    for name, *_ in LOADS:
        for threads in map(int, a.threads.split(',')):
            r = rows[name, threads]
            base = rows[name, int(a.threads.split(',')[0])]['cpu']
            per_window = 1e6 / r['io_windows']
            print(f"| {name} | {threads} | {r['cpu']:.3f} | {r['cpu'] / base:.2f} | {r['rps']:,.0f} | {r['io_lock_waits']:.1f} | {r['io_lock_sleeps']:.1f} "
                  f"| {r['io_lock_parks']:.1f} | {r['taken']:.0f} | {per_window:.1f} | {r['other']:.2f} |")


main()
