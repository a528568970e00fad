#!/usr/bin/env python3
"""What saving costs, beside Redis: memory, the longest request, throughput, and the times of SAVE and of loading.

    save.py [--keys 5000000] [--parts writes,big,save,load] sheafdb='target/release/sheafdb --port {port} --dir {dir}'

COMMAND is a foreground server command with {port}, {dir} and {threads} in it; `redis-server` from PATH runs beside it.
writes  BGSAVE of KEYS keys (16+64 bytes) under 50 connections of SET, at P=1 and P=16
big     BGSAVE of collections of a million elements and of a string of 256 MB, of which one is being changed
save    SAVE without load, the median of three
load    the start with 2 threads, with the file of either server

Two placements: `shared` has the server on core 0 and the clients on core 1; `free` has the server on cores 0 and 1 and the
clients on core 1, so the server has the part of core 1 which the clients leave. `extra` is memory in % of what the data
takes: the growth of the resident set, and for Redis the pages which the child does not share (rdb_last_cow_size). `rate`
is throughput during the save by that before it. `longest` is the longest request in milliseconds, before and during. A
run during which other processes used more than 0.15 CPUs is marked with `!`. Needs gcc and taskset.
"""
import argparse, atexit, os, re, shlex, shutil, socket, statistics, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
REDIS = ('redis-server --port {port} --dir {dir} --save "" --appendonly no --bind 127.0.0.1 --protected-mode no '
         '--daemonize no --logfile "" --enable-debug-command yes')

class Server:
    def __init__(self, name, command, cpus, folder, threads=1):
        self.name, self.dir = name, folder
        os.makedirs(folder, exist_ok=True)
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0)); self.port = s.getsockname()[1]
        args = shlex.split(command.format(port=self.port, dir=folder, threads=threads))
        atexit.register(self.stop)
        self.log = open(os.path.join(folder, 'log'), 'ab')
        self.started = time.monotonic()
        self.proc = subprocess.Popen(['taskset', '-c', cpus] + args, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        while True:
            try:
                self.conn = socket.create_connection(('127.0.0.1', self.port), 1); break
            except OSError:
                if self.proc.poll() is not None or time.monotonic() > self.started + 60:
                    sys.exit(f'{name} did not start: ' + open(self.log.name).read()[-600:])
                time.sleep(0.002)
        self.conn.settimeout(300); self.rest = b''
        while self.ask('DBSIZE').startswith('-LOADING'): time.sleep(0.005)
        self.ready = time.monotonic() - self.started
    def line(self):
        while b'\n' not in self.rest:
            part = self.conn.recv(1 << 16)
            if not part: sys.exit(f'{self.name} closed the connection: ' + open(self.log.name).read()[-600:])
            self.rest += part
        line, self.rest = self.rest.split(b'\n', 1)
        return line.rstrip(b'\r').decode()
    def ask(self, text):
        self.conn.sendall(text.encode() + b'\r\n'); first = self.line()
        if not first.startswith('$') or first == '$-1': return first
        n = int(first[1:]) + 2
        while len(self.rest) < n: self.rest += self.conn.recv(1 << 16)
        body, self.rest = self.rest[:n - 2], self.rest[n:]
        return body.decode()
    def info(self):
        return dict(l.split(':', 1) for l in self.ask('INFO persistence').splitlines() if ':' in l)
    def anon(self):
        return int(re.search(r'RssAnon:\s+(\d+)', open(f'/proc/{self.proc.pid}/status').read()).group(1)) * 1024
    def place(self, cpus):
        subprocess.run(['taskset', '-apc', cpus, str(self.proc.pid)], check=True, stdout=subprocess.DEVNULL)
    def stop(self):
        if getattr(self, 'proc', None) is None or self.proc.poll() is not None: return
        self.proc.terminate()
        try: self.proc.wait(20)
        except subprocess.TimeoutExpired: self.proc.kill(); self.proc.wait()

def busy(ours):
    """CPU seconds of the machine that these processes (Redis's child among them) have not used."""
    total = sum(map(int, open('/proc/stat').readline().split()[1:4])) / os.sysconf('SC_CLK_TCK')
    return total - ours

def cpu(pid):
    """CPU seconds of a process and of the children that it has waited for."""
    f = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return sum(map(int, f[11:15])) / os.sysconf('SC_CLK_TCK')

def load(lg, srv, *args):
    out = subprocess.run([lg, '-p', str(srv.port), '-v', '64', *map(str, args)], capture_output=True, text=True, timeout=900)
    if out.returncode or ' ERR ' in out.stdout: sys.exit(f'{srv.name}: load generator failed: {out.stderr[-300:]}{out.stdout[-300:]}')

def during_save(lg, srv, op, depth, keys, before_s=2.0, conns=50):
    """BGSAVE beside clients: the figures of one run."""
    base = srv.anon()
    args = ['taskset', '-c', '1', lg, '-p', str(srv.port), '-v', '64', '-t', op, '-c', str(conns), '-P', str(depth), '-r', str(keys), '-d', '600', '-i', '20']
    gen = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(gen.stdout)); reader.start()
    time.sleep(before_s)
    base, peak = max(base, srv.anon()), 0
    b0 = busy(cpu(srv.proc.pid) + cpu(gen.pid)); start = time.monotonic()
    reply = srv.ask('BGSAVE')
    if not reply.startswith('+Background saving started'): sys.exit(f'{srv.name}: BGSAVE: {reply}')
    while True:
        peak = max(peak, srv.anon()); i = srv.info()
        if i['rdb_bgsave_in_progress'] == '0': break
        if time.monotonic() > start + 300: sys.exit(f'{srv.name}: the save does not end')
        time.sleep(0.02)
    end = time.monotonic()
    if i['rdb_last_bgsave_status'] != 'ok': sys.exit(f'{srv.name}: the save has failed')
    other = (busy(cpu(srv.proc.pid) + cpu(gen.pid)) - b0) / (end - start)
    gen.terminate(); gen.wait(); reader.join()
    rows = [tuple(map(float, l.split()[1:])) for l in lines if l.startswith('iv ')]
    first = [r for r in rows if (start - before_s + 0.5) * 1e3 < r[0] <= start * 1e3]
    # The fork of Redis, and what the end of a save costs, belong to it.
    then = [r for r in rows if start * 1e3 < r[0] <= end * 1e3 + 40]
    rate = lambda rs, s: sum(r[1] for r in rs) / s
    before = rate(first, before_s - 0.5); saving = rate(then, max(end - start, 0.02) + 0.04)
    grown = max(peak - base, 0)
    if srv.name == 'redis': grown += int(i.get('rdb_last_cow_size', 0))
    return {'seconds': end - start, 'grown': grown, 'before': before, 'rate': saving / before if before else 0,
            'calm': max([r[2] for r in first], default=0) / 1e3, 'longest': max([r[2] for r in then], default=0) / 1e3,
            'over5': sum(r[2] > 5000 for r in then), 'other': other, 'counted': int(i.get('rdb_last_cow_size', 0))}

def show(label, srv, r, data):
    mark = '!' if r['other'] > 0.15 else ' '
    print(f'{label:26} {srv.name:8}{mark} save {r["seconds"]:6.2f} s  extra {r["grown"] / 1e6:7.1f} MB ({100 * r["grown"] / data:5.1f} %)  '
          f'longest {r["calm"]:6.2f} -> {r["longest"]:7.2f} ms ({r["over5"]:2} of 20 ms above 5)  rate {r["rate"]:5.2f} of {r["before"]:8.0f}/s  other {r["other"]:.2f}', flush=True)

def writes(a, lg, cmds, root, kept):
    for name, cmd in cmds:
        srv = Server(name, cmd, '0', os.path.join(root, name)); kept[name] = srv
        empty = srv.anon()
        load(lg, srv, '-t', 'set', '-c', 8, '-P', 64, '-r', a.keys, '-n', a.keys, '-L')
        srv.data = max(srv.anon() - empty, 1)
        print(f'{name}: {a.keys} keys take {srv.data / 1e6:.0f} MB', flush=True)
    for place, cpus in (('free', '0,1'), ('shared', '0')):
        for depth in (1, 16):
            for name, _ in cmds:
                kept[name].place(cpus)
                show(f'set P={depth} {place}', kept[name], during_save(lg, kept[name], 'set', depth, a.keys), kept[name].data)

def saves(a, lg, cmds, kept):
    times = {}
    for name, _ in cmds:
        srv = kept[name]; srv.place('0,1'); runs = []
        for _ in range(3):
            t = time.monotonic(); reply = srv.ask('SAVE'); runs.append(time.monotonic() - t)
            if reply != '+OK': sys.exit(f'{name}: SAVE: {reply}')
        times[name] = statistics.median(runs)
        size = os.path.getsize(os.path.join(srv.dir, 'dump.rdb'))
        print(f'SAVE                       {name:8}  {times[name]:6.2f} s (x{times[name] / times[cmds[0][0]]:.2f})  file {size / 1e6:.0f} MB', flush=True)

def loads(a, cmds, root, kept):
    for name in kept: kept[name].stop()
    for of, _ in cmds:
        base = None
        for name, cmd in cmds:
            folder = os.path.join(root, f'load-{of}-{name}'); os.makedirs(folder)
            os.link(os.path.join(root, of, 'dump.rdb'), os.path.join(folder, 'dump.rdb'))
            runs = []
            for _ in range(3):
                srv = Server(name, cmd, '0,1', folder, 2); runs.append(srv.ready)
                size = srv.ask('DBSIZE'); srv.ask('CONFIG SET save ""'); srv.proc.kill(); srv.proc.wait()
                if size != f':{a.keys}': sys.exit(f'{name}: {size} keys of the file of {of}, not {a.keys}')
            t = statistics.median(runs); base = base or t
            print(f'load the file of {of:9} {name:8}  {t:6.2f} s (x{t / base:.2f})', flush=True)
            shutil.rmtree(folder)

def big(a, lg, cmds, root):
    for name, cmd in cmds:
        srv = Server(name, cmd, '0,1', os.path.join(root, 'big-' + name))
        empty = srv.anon()
        for op in ('hset', 'zadd', 'sadd'): load(lg, srv, '-t', op, '-c', 8, '-P', 64, '-r', a.elements, '-n', a.elements, '-L')
        load(lg, srv, '-t', 'lpush', '-c', 8, '-P', 64, '-r', a.elements, '-n', a.elements)
        srv.ask(f'SETRANGE bigstring {a.text - 1} x')
        load(lg, srv, '-t', 'setrange', '-c', 8, '-P', 64, '-r', a.text - 100_000_000, '-n', 200_000)
        data = max(srv.anon() - empty, 1)
        print(f'{name}: 4 collections of {a.elements} elements and a string of {a.text / 1e6:.0f} MB take {data / 1e6:.0f} MB', flush=True)
        for op, keys in (('hset', a.elements), ('zadd', a.elements), ('lpush', 1), ('setrange', a.text - 100_000_000)):
            show(f'{op} P=1 free', srv, during_save(lg, srv, op, 1, keys), data)
        srv.stop()

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('server', help='NAME=COMMAND'); ap.add_argument('--keys', type=int, default=5_000_000)
    ap.add_argument('--elements', type=int, default=1_000_000); ap.add_argument('--text', type=int, default=256_000_000)
    ap.add_argument('--parts', default='writes,big,save,load'); ap.add_argument('--dir', help='where the files are written')
    ap.add_argument('--without-redis', action='store_true')
    a = ap.parse_args()
    root = tempfile.mkdtemp(prefix='save-', dir=a.dir); atexit.register(shutil.rmtree, root, True)
    lg = os.path.join(root, 'lg')
    subprocess.run(['gcc', '-O3', '-march=native', '-w', '-o', lg, os.path.join(HERE, 'lg.c')], check=True)
    ours = tuple(a.server.split('=', 1)); cmds = ([] if a.without_redis else [('redis', REDIS)]) + [ours]
    parts, kept = a.parts.split(','), {}
    if {'writes', 'save', 'load'} & set(parts): writes(a, lg, cmds, root, kept)
    if {'save', 'load'} & set(parts): saves(a, lg, cmds, kept)
    if 'load' in parts: loads(a, cmds, root, kept)
    for srv in kept.values(): srv.stop()
    if 'big' in parts: big(a, lg, cmds, root)

main()
