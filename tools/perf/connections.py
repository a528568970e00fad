#!/usr/bin/env python3
"""Many connections, on several servers in turn: how fast they are accepted, what one costs, and whether all are served alike.

    connections.py [--count 10000] [--secs 10] [--reps 3] [--bench BINARY] NAME=COMMAND ...

COMMAND is as for compare.py; `redis` needs none. For each server:
  accept  connections/s from connect to the answer of a first PING, with up to 128 under way; then the same beside a load of 50 connections
  idle    resident bytes for each connection beyond the first 200, after MEMORY PURGE, all of them having asked something
  served  replies on each of COUNT connections that ask one after the other for SECS seconds: least, middle, most
The limit of open files bounds COUNT: the servers raise theirs by themselves.
"""
import argparse, json, re, resource, select, shlex, socket, statistics, subprocess, tempfile, time

REDIS = 'redis-server --port {port} --dir {dir} --save "" --bind 127.0.0.1 --protected-mode no --logfile /dev/null --maxclients {clients}'


def start(command, clients):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    d = tempfile.mkdtemp(prefix='connections-')
    p = subprocess.Popen(shlex.split(command.format(port=port, dir=d, sock=d + '/s', clients=clients)), stdout=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(('127.0.0.1', port), 1).close(); break
        except OSError: time.sleep(0.05)
    return p, port


def accept_rate(port, count):
    poll, open_, done, made = select.epoll(), {}, 0, 0
    started = time.perf_counter()
    while done < count:
        while made < count and len(open_) < 128:
            c = socket.socket(); c.setblocking(False)
            c.connect_ex(('127.0.0.1', port)); open_[c.fileno()] = c; made += 1
            poll.register(c.fileno(), select.EPOLLOUT)
        for fd, what in poll.poll(5):
            c = open_[fd]
            if what & select.EPOLLOUT:
                c.send(b'PING\r\n'); poll.modify(fd, select.EPOLLIN)
            else:
                assert c.recv(16) == b'+PONG\r\n'; c.close(); del open_[fd]; done += 1
    return count / (time.perf_counter() - started)


def idle_bytes(p, port, count):
    def rss(): return int(re.search(r'VmRSS:\s+(\d+)', open(f'/proc/{p.pid}/status').read()).group(1)) * 1024
    all_ = []
    def grow(until):
        while len(all_) < until:
            c = socket.create_connection(('127.0.0.1', port)); c.sendall(b'PING\r\n'); assert c.recv(16) == b'+PONG\r\n'; all_.append(c)
        c.sendall(b'MEMORY PURGE\r\n'); c.recv(64); time.sleep(0.3)
        return rss()
    first = grow(200); each = (grow(count) - first) / (count - 200)
    for c in all_: c.close()
    time.sleep(0.5)
    return each


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('servers', nargs='+'); ap.add_argument('--count', type=int, default=10000); ap.add_argument('--secs', type=float, default=10)
    ap.add_argument('--reps', type=int, default=3); ap.add_argument('--bench', default='target/release/sheafdb-bench')
    a = ap.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    servers = [(s.split('=', 1)[0], *start(s.split('=', 1)[1] if '=' in s else REDIS, a.count + 200)) for s in a.servers]
    for loaded in (False, True):
        rates = {name: [] for name, *_ in servers}
        for _ in range(a.reps):
            for name, _, port in servers:
                load = subprocess.Popen([a.bench, 'load', '-p', str(port), '-c', '50', '-t', 'set', '-r', '1000', '--test-time', '60', '-q'],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if loaded else None
                time.sleep(0.2)
                rates[name].append(accept_rate(port, 4000))
                if load: load.terminate(); load.wait()
        for name, r in rates.items(): print(f'{name:10} accept {"beside a load" if loaded else "alone":14} {statistics.median(r):8.0f}/s  of {[round(x) for x in r]}')
    for name, p, port in servers: print(f'{name:10} idle {idle_bytes(p, port, a.count):8.0f} bytes each, of {a.count}')
    for name, p, port in servers:
        out = subprocess.run([a.bench, 'load', '-p', str(port), '-c', str(a.count), '-t', 'get', '-r', '100000', '--test-time', str(a.secs),
                              '--server-pid', str(p.pid), '-q', '--format', 'json', '--timeout', '20'], capture_output=True, text=True)
        if out.returncode: print(f'{name:10} load failed: {out.stderr}'); continue
        m = json.loads(out.stdout.splitlines()[-1]); e = m['per_connection']
        print(f'{name:10} served {e["least"]} / {e["median"]} / {e["most"]} on each of {a.count} connections; {m["throughput"]:.0f}/s, '
              f'{m["server"]["cpu_us_per_request"]:.2f} us, p99 {m["latency"]["p99_us"] / 1000:.0f} ms, max {m["latency"]["max_us"] / 1000:.0f} ms, other {m["other_cpus"]:.2f}')
    for _, p, _ in servers: p.terminate(); p.wait()


main()
