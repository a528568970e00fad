#!/usr/bin/env python3
"""What SET and GET of big strings cost: server CPU per request, user and kernel apart.

    big.py [--sizes 1,2,4,8,16,64] [--ops set,get] [--rounds 11] [--unix] NAME=COMMAND ...

COMMAND and `redis` are as in compare.py. One client sends one request after the other. A round
measures every server once at a size, about --mib MiB each; the medians of all rounds are printed,
with their ratio to the first server. CPU is that of all threads of the server, from schedstat; the
kernel's share is from /proc/PID/stat over all rounds. `faults` are minor page faults per request,
`calls` are what the client needed to send a request or to receive a reply (bigger is finer).
`other` is what other programs used meanwhile, in CPUs: medians stand some of it, but not all.
"""
import argparse, atexit, glob, os, shlex, shutil, socket, statistics, subprocess, sys, tempfile, time

REDIS = ('redis-server --port {port} --unixsocket {sock} --dir {dir} --save "" --appendonly no '
         '--bind 127.0.0.1 --protected-mode no --daemonize no --logfile /dev/null')


def cpu_ns(pid):
    """CPU nanoseconds of each thread of a process; of all processes for '[0-9]*'."""
    times = {}
    for path in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        try:
            times[path] = int(open(path).read().split()[0])
        except (OSError, IndexError, ValueError):
            pass  # it has ended
    return times


def spent(before, after):
    return sum(after[thread] - before.get(thread, 0) for thread in after)


def stat(pid):
    """User ticks, kernel ticks and minor faults of a process."""
    f = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return int(f[11]), int(f[12]), int(f[7])


class Server:
    def __init__(self, name, command, cpus, root, unix):
        self.name, d = name, os.path.join(root, name)
        os.makedirs(d)
        sock = os.path.join(d, 's')
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        args = shlex.split(command.format(port=port, sock=sock, dir=d))
        self.log = open(os.path.join(d, 'log'), 'wb')
        self.proc = subprocess.Popen(['taskset', '-c', cpus] + args, stdin=subprocess.DEVNULL,
                                     stdout=self.log, stderr=self.log)
        atexit.register(self.stop)  # also when a later server or a request fails
        self.pid = self.proc.pid
        deadline = time.time() + 20
        while True:
            try:
                self.conn = self.connect(port, sock, unix)
                break
            except OSError:
                if self.proc.poll() is not None or time.time() > deadline:
                    sys.exit(f'{name} did not start: ' + open(self.log.name).read()[-400:])
                time.sleep(0.05)

    def connect(self, port, sock, unix):
        if unix:
            conn = socket.socket(socket.AF_UNIX)
            conn.connect(sock)
            return conn
        conn = socket.create_connection(('127.0.0.1', port), 1)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.settimeout(None)
        return conn

    def request(self, request, reply, room):
        """Sends a request, and receives its reply, which has as many bytes as `reply`."""
        self.conn.sendall(request)
        at, view = 0, memoryview(room)
        while at < len(reply):
            n = self.conn.recv_into(view[at:len(reply)])
            if n == 0:
                sys.exit(f'{self.name} closed the connection')
            at += n
        if room[:4] != reply[:4] or room[len(reply) - 2:len(reply)] != reply[-2:]:
            sys.exit(f'{self.name} replied {bytes(room[:60])}')

    def stop(self):
        if self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait(20)


def payloads(op, size):
    value = os.urandom(4096) * (size // 4096)
    bulk = b'$%d\r\n' % size + value + b'\r\n'
    if op == 'set':
        return b'*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n' + bulk, b'+OK\r\n', None
    return b'*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n', bulk, b'*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n' + bulk


def measure(server, request, reply, room, count):
    server.request(request, reply, room)  # a first one is not measured
    everybody, start = cpu_ns('[0-9]*'), time.time()
    before, (user, kernel, faults) = cpu_ns(server.pid), stat(server.pid)
    for _ in range(count):
        server.request(request, reply, room)
    time.sleep(0.005)  # what is freed in the background belongs to the requests
    used, (user1, kernel1, faults1) = spent(before, cpu_ns(server.pid)), stat(server.pid)
    wall, own = time.time() - start, cpu_ns(os.getpid())
    others = spent(everybody, cpu_ns('[0-9]*')) - used - spent(everybody, own)
    return {'ms': used / 1e6 / count, 'user': user1 - user, 'kernel': kernel1 - kernel,
            'faults': (faults1 - faults) / count, 'other': others / 1e9 / wall}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('servers', nargs='+')
    p.add_argument('--sizes', default='1,2,4,8,16,64', help='MiB')
    p.add_argument('--ops', default='set,get')
    p.add_argument('--rounds', type=int, default=11)
    p.add_argument('--mib', type=int, default=128, help='MiB per server and round')
    p.add_argument('--unix', action='store_true', help='over a Unix socket')
    p.add_argument('--server-cpus', default='0')
    p.add_argument('--client-cpus', default='1')
    a = p.parse_args()
    os.sched_setaffinity(0, {int(c) for c in a.client_cpus.split(',')})
    root = tempfile.mkdtemp(prefix='big-')
    atexit.register(shutil.rmtree, root, True)
    servers = [Server(s.split('=', 1)[0], s.split('=', 1)[1] if '=' in s else REDIS, a.server_cpus,
                      root, a.unix) for s in a.servers]
    socket_kind = 'unix' if a.unix else 'TCP'
    print(f'| {socket_kind} | server | CPU ms | least | of {servers[0].name} | kernel | faults '
          '| other |\n|' + '---|' * 8)
    for op in a.ops.split(','):
        for mib in map(int, a.sizes.split(',')):
            size = mib << 20
            request, reply, fill = payloads(op, size)
            room = bytearray(max(len(reply), 64))
            count = max(a.mib // mib, 2)
            for s in servers:
                if fill:
                    s.request(fill, b'+OK\r\n', room)
            runs = {s.name: [] for s in servers}
            for _ in range(a.rounds):
                for s in servers:
                    runs[s.name].append(measure(s, request, reply, room, count))
            base = None
            for s in servers:
                of = runs[s.name]
                ms = statistics.median(r['ms'] for r in of)
                base = base or ms
                user, kernel = (sum(r[k] for r in of) for k in ('user', 'kernel'))
                print(f"| {op} {mib} MiB | {s.name} | {ms:.3f} | {min(r['ms'] for r in of):.3f} "
                      f"| {ms / base:.2f} | {kernel / max(user + kernel, 1):.2f} "
                      f"| {statistics.median(r['faults'] for r in of):.0f} "
                      f"| {statistics.median(r['other'] for r in of):.2f} |", flush=True)


main()
