#!/usr/bin/env python3
"""For how long one client's command keeps the server from others.

    fairness.py longest [--elements 1000000] [--args 10000] [--only REGEX] [--tries 3] SERVER
    fairness.py latency [--elements 1000000] [--seconds 5] NAME=SERVER ...
    fairness.py pipelined [--seconds 5] [--depth 64] [--heavy 1] NAME=SERVER ...

    fairness.py moving [--seconds 10] [--depth 64] NAME=SERVER ...

SERVER is a command with {port} and {dir}; `redis` alone stands for redis-server.

`longest` runs every command whose time grows with its data or its arguments, once alone, and asks
the server (INFO longest) for how long it held its locks, how long it or one of its steps ran, and
how long the longest turn of the worker was, all in microseconds. Figures below 100 us are not kept
by the server and shown as `-`. Each is the least of all tries, since a try may be disturbed from
outside. `*` marks a hold of more than 1 ms and a turn of more than 2 ms.

`latency` measures GETs of small keys on one connection while another sends one of five heavy
commands again and again: medians, 99 % and the longest in microseconds, for each server.

`pipelined` measures the same GETs while other clients (`--heavy`) each send pipelines of `--depth`
commands, each of which reads a collection of a thousand elements: ZUNION, SMEMBERS, LRANGE, and a
GET for comparison. It also shows how many of these commands the server executed per second.

`moving` places two clients on one worker of two, each of which sends pipelines of `--depth` LPOS
over 2,000 elements, and shows how many commands per second each of them gets: while clients do not
move (DEBUG PAUSE-CRON 1), and then while they may. SERVER needs `--threads 2
--enable-debug-command yes`; the machine needs a core for each worker and each client.

Run it on a quiet machine, or with `chrt --fifo 10` in front of SERVER.
"""
import argparse, atexit, os, re, shlex, shutil, socket, subprocess, sys, tempfile, threading, time

REDIS = 'redis-server --port {port} --dir {dir} --save "" --appendonly no --logfile ""'
HOLD_MAX_US, TURN_MAX_US = 1000, 2000


def encode(args):
    parts = [b'*%d\r\n' % len(args)]
    for a in args:
        a = a if isinstance(a, bytes) else str(a).encode()
        parts += (b'$%d\r\n' % len(a), a, b'\r\n')
    return b''.join(parts)


class Client:
    MARK = b'$6\r\n-mark-\r\n'

    def __init__(self, port):
        self.sock = socket.create_connection(('127.0.0.1', port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.room = bytearray(1 << 20)

    def send(self, *commands):
        """Sends commands, waits for all replies; returns the first bytes of the replies."""
        data = b''.join(c if isinstance(c, bytes) else encode(c) for c in commands)
        data += encode(['ECHO', '-mark-'])
        # The replies may fill the sockets before the server has read everything.
        sender = threading.Thread(target=self.sock.sendall, args=(data,)) if len(data) > 1 << 16 \
            else None
        sender.start() if sender else self.sock.sendall(data)
        head, tail = b'', b''
        while not tail.endswith(self.MARK):
            n = self.sock.recv_into(self.room)
            if n == 0:
                sys.exit(f'the connection was closed after {head[:200]}')
            got = bytes(self.room[:n]) if n < 400 else bytes(self.room[n - 400:n])
            if len(head) < 400:
                head += bytes(self.room[:400])[:n]
            tail = (tail + got)[-400:]
        if sender:
            sender.join()
        return head[:400]

    def text(self, *args):
        """A command whose reply is a bulk string."""
        self.sock.sendall(encode(args))
        got = b''
        while b'\r\n' not in got:
            got += self.sock.recv(1 << 16)
        head, _, rest = got.partition(b'\r\n')
        size = int(head[1:])
        while len(rest) < size + 2:
            rest += self.sock.recv(1 << 16)
        return rest[:size]


class Server:
    def __init__(self, command, root):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        d = tempfile.mkdtemp(dir=root)
        command = REDIS if command == 'redis' else command
        self.proc = subprocess.Popen(shlex.split(command.format(port=self.port, dir=d)),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.STDOUT)
        atexit.register(self.stop)
        until = time.time() + 20
        while True:
            try:
                self.client = Client(self.port)
                break
            except OSError:
                if self.proc.poll() is not None or time.time() > until:
                    sys.exit(f'{command} did not start')
                time.sleep(0.05)

    def stop(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


def each(n, chunk=1000):
    return (range(at, min(at + chunk, n)) for at in range(0, n, chunk))


def pages(n, head, element, chunk=1000):
    """Commands which add n elements."""
    for some in each(n, chunk):
        args = list(head)
        for i in some:
            args += element(i)
        yield encode(args)


FILLS = {
    'set': lambda n: pages(n, ['SADD', 'set'], lambda i: (f'm:{i}',)),
    'half': lambda n: pages(n, ['SADD', 'half'], lambda i: (f'm:{i + n // 2}',)),
    '{t}a': lambda n: pages(n, ['SADD', '{t}a'], lambda i: (f'm:{i}',)),
    '{t}b': lambda n: pages(n, ['SADD', '{t}b'], lambda i: (f'm:{i + n // 2}',)),
    'ints': lambda n: pages(n, ['SADD', 'ints'], lambda i: (i,)),
    'hash': lambda n: pages(n, ['HSET', 'hash'], lambda i: (f'f:{i}', f'value:{i}')),
    'list': lambda n: pages(n, ['RPUSH', 'list'], lambda i: (f'e:{i}',)),
    'nums': lambda n: pages(n, ['RPUSH', 'nums'], lambda i: (i * 7919 % n,)),
    'zset': lambda n: pages(n, ['ZADD', 'zset'], lambda i: (i % 1000, f'm:{i}')),
    'zhalf': lambda n: pages(n, ['ZADD', 'zhalf'], lambda i: (i % 1000, f'm:{i + n // 2}')),
    'zlex': lambda n: pages(n, ['ZADD', 'zlex'], lambda i: (0, f'm:{i:09}')),
    'geo': lambda n: pages(n, ['GEOADD', 'geo'],
                           lambda i: (i % 3600 / 10 - 180, i % 1700 / 10 - 85, f'm:{i}')),
    'stream': lambda n: (b''.join(encode(['XADD', 'stream', f'{i + 1}-0', 'f', i]) for i in some)
                         for some in each(n)),
    'group': lambda n: [encode(['XGROUP', 'CREATE', 'stream', 'g', '0']),
                        encode(['XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', n, 'STREAMS', 'stream',
                                '>'])],
    'big': lambda n: [encode(['SETRANGE', 'big', min(n * 12, 500 << 20), 'x'])] +
                     [encode(['SETRANGE', 'big', at << 20, os.urandom(4096) * 256])
                      for at in range(min(n * 12, 500 << 20) >> 20)],
    'big2': lambda n: [encode(['COPY', 'big', 'big2']), encode(['APPEND', 'big2', 'y']),
                       encode(['SETBIT', 'big2', 7, 1])],
    'thousand': lambda n: [
        encode(['ZADD', 'z1'] + [x for i in range(1000) for x in (i, f'm:{i}')]),
        encode(['ZADD', 'z2'] + [x for i in range(1000) for x in (i, f'm:{i + 500}')]),
        encode(['SADD', 's'] + [f'm:{i}' for i in range(1000)]),
        encode(['RPUSH', 'l'] + [f'e:{i}' for i in range(1000)])],
    'keys': lambda n: [encode(['DEBUG', 'POPULATE', n, 'key'])],
    'few': lambda n: (b''.join(encode(['SADD', f'few:{i}', 'a', 'b', i]) for i in some)
                      for some in each(20_000)),
    'hll': lambda n: (b''.join(encode(['PFADD', f'hll:{i}'] + list(range(i, i + 20)))
                               for i in some) for some in each(2_000)),
    'long': lambda n: [encode(['SET', 'a' * 5000 + str(i), 'v']) for i in range(300)],
    'packed': lambda n: [encode(['CONFIG', 'SET', 'hash-max-listpack-entries', '512'])],
}


def cases(n, args):
    """Label, fills that are needed, commands before each try, the command, its name in INFO."""
    many = range(args)

    def names(prefix):
        return [f'{prefix}:{i}' for i in many]

    def pairs(prefix):
        return [x for i in many for x in (f'{prefix}:{i}', f'v:{i}')]

    mset = encode(['MSET'] + pairs('many'))
    cruel = '*a' * 12 + 'b'
    longcruel = '*a' * 1000 + 'b'
    text = ['abcdefghij' * 100, 'jihgfedcba' * 100]
    yes = []
    copy = lambda what: [['COPY', what, 'to', 'REPLACE']]
    dump = lambda what: ('dump', what)
    return [
        # The keyspace.
        ('KEYS *', ['keys'], yes, ['KEYS', '*']),
        ('KEYS, 13 stars', ['keys'], yes, ['KEYS', cruel]),
        ('KEYS, 1,000 stars, keys of 5 kB', ['long'], yes, ['KEYS', longcruel]),
        ('SCAN COUNT 10,000,000', ['keys'], yes, ['SCAN', '0', 'COUNT', 10_000_000]),
        ('SCAN with 1,000 stars, keys of 5 kB', ['long'], yes,
         ['SCAN', '0', 'MATCH', longcruel, 'COUNT', 10_000_000]),
        ('SCAN TYPE', ['keys'], yes, ['SCAN', '0', 'COUNT', 10_000_000, 'TYPE', 'hash']),
        ('DBSIZE', ['keys'], yes, ['DBSIZE']),
        ('RANDOMKEY', ['keys'], yes, ['RANDOMKEY']),
        ('FLUSHDB', [], [['SELECT', 1], ['DEBUG', 'POPULATE', n, 'k']],
         [['FLUSHDB'], ['SELECT', 0]]),
        ('FLUSHDB SYNC', [], [['SELECT', 1], ['DEBUG', 'POPULATE', n, 'k']],
         [['FLUSHDB', 'SYNC'], ['SELECT', 0]]),
        ('SWAPDB', ['keys'], yes, [['SWAPDB', 0, 1], ['SWAPDB', 0, 1]]),
        ('DEBUG DIGEST-VALUE', ['set'], yes, ['DEBUG', 'DIGEST-VALUE', 'set']),
        # Many keys.
        ('MSET', [], yes, mset),
        ('MSET over values', [], [mset], mset),
        ('MSETNX', [], [['DEL'] + names('nx')], ['MSETNX'] + pairs('nx')),
        ('MSETEX', [], yes, ['MSETEX', args] + pairs('ex')),
        ('MGET', [], [mset], ['MGET'] + names('many')),
        ('EXISTS', [], [mset], ['EXISTS'] + names('many')),
        ('TOUCH', [], [mset], ['TOUCH'] + names('many')),
        ('DEL', [], [mset], ['DEL'] + names('many')),
        ('UNLINK', [], [mset], ['UNLINK'] + names('many')),
        ('WATCH', [], yes, [['WATCH'] + names('many'), ['UNWATCH']]),
        ('SUNION of small sets', ['few'], yes, ['SUNION'] + names('few')),
        ('SUNIONSTORE of small sets', ['few'], yes, ['SUNIONSTORE', 'to'] + names('few')),
        ('SINTER of small sets', ['few'], yes, ['SINTER'] + names('few')),
        ('SDIFF of small sets', ['few'], yes, ['SDIFF'] + names('few')),
        ('SINTERCARD of small sets', ['few'], yes, ['SINTERCARD', args] + names('few')),
        ('ZUNION of small sets', ['few'], yes, ['ZUNION', args] + names('few')),
        ('ZUNIONSTORE of small sets', ['few'], yes, ['ZUNIONSTORE', 'to', args] + names('few')),
        ('ZINTERSTORE of small sets', ['few'], yes, ['ZINTERSTORE', 'to', args] + names('few')),
        ('ZDIFF of small sets', ['few'], yes, ['ZDIFF', args] + names('few')),
        ('PFCOUNT of many', ['hll'], yes, ['PFCOUNT'] + [f'hll:{i}' for i in range(2000)]),
        ('PFMERGE of many', ['hll'], yes, ['PFMERGE', 'to'] + [f'hll:{i}' for i in range(2000)]),
        ('BITOP of many', [], [mset], ['BITOP', 'OR', 'to'] + names('many')),
        ('XREAD of many', [], yes, ['XREAD', 'STREAMS'] + names('nox') + ['0'] * args),
        ('LMPOP of many', [], yes, ['LMPOP', args] + names('nol') + ['LEFT']),
        ('ZMPOP of many', [], yes, ['ZMPOP', args] + names('noz') + ['MIN']),
        ('BLPOP of many', [], [['RPUSH', 'bl:last', 'x']],
         ['BLPOP'] + names('bl') + ['bl:last', 1]),
        # Many elements.
        ('SADD', ['set'], copy('set'), ['SADD', 'to'] + names('new')),
        ('SADD, new key', [], [['DEL', 'to']], ['SADD', 'to'] + names('new')),
        ('SREM', ['set'], copy('set'), ['SREM', 'to'] + names('m')),
        ('SMISMEMBER', ['set'], yes, ['SMISMEMBER', 'set'] + names('m')),
        ('HSET', ['hash'], copy('hash'), ['HSET', 'to'] + pairs('new')),
        ('HSET, new key', [], [['DEL', 'to']], ['HSET', 'to'] + pairs('new')),
        ('HMGET', ['hash'], yes, ['HMGET', 'hash'] + names('f')),
        ('HDEL', ['hash'], copy('hash'), ['HDEL', 'to'] + names('f')),
        ('HEXPIRE', ['hash'], copy('hash'),
         ['HEXPIRE', 'to', 1000, 'FIELDS', args] + names('f')),
        ('HTTL', ['hash'], yes, ['HTTL', 'hash', 'FIELDS', args] + names('f')),
        ('HGETDEL', ['hash'], copy('hash'), ['HGETDEL', 'to', 'FIELDS', args] + names('f')),
        ('HGETEX', ['hash'], copy('hash'),
         ['HGETEX', 'to', 'EX', 100, 'FIELDS', args] + names('f')),
        ('HSETEX', ['hash'], copy('hash'),
         ['HSETEX', 'to', 'EX', 100, 'FIELDS', args] + pairs('f')),
        ('RPUSH', ['list'], copy('list'), ['RPUSH', 'to'] + names('new')),
        ('LPUSH, new key', [], [['DEL', 'to']], ['LPUSH', 'to'] + names('new')),
        ('ZADD', ['zset'], copy('zset'),
         ['ZADD', 'to'] + [x for i in many for x in (i, f'new:{i}')]),
        ('ZADD, new key', [], [['DEL', 'to']],
         ['ZADD', 'to'] + [x for i in many for x in (i, f'new:{i}')]),
        ('ZREM', ['zset'], copy('zset'), ['ZREM', 'to'] + names('m')),
        ('ZMSCORE', ['zset'], yes, ['ZMSCORE', 'zset'] + names('m')),
        ('GEOADD', [], [['DEL', 'to']],
         ['GEOADD', 'to'] + [x for i in many for x in (i % 180, i % 80, f'm:{i}')]),
        ('GEOPOS', ['geo'], yes, ['GEOPOS', 'geo'] + names('m')),
        ('GEOHASH', ['geo'], yes, ['GEOHASH', 'geo'] + names('m')),
        ('PFADD', [], [['DEL', 'to']], ['PFADD', 'to'] + names('m')),
        ('BITFIELD', ['big'], copy('big'),
         ['BITFIELD', 'to'] + [x for i in many for x in ('INCRBY', 'u16', i * 9999, 1)]),
        ('XADD of many fields', [], [['DEL', 'to']], ['XADD', 'to', '*'] + pairs('f')),
        ('XDEL', ['stream'], copy('stream'), ['XDEL', 'to'] + [f'{i * 7 + 1}-0' for i in many]),
        ('XACK', ['stream', 'group'], copy('stream'),
         ['XACK', 'to', 'g'] + [f'{i * 7 + 1}-0' for i in many]),
        ('XCLAIM', ['stream', 'group'], copy('stream'),
         ['XCLAIM', 'to', 'g', 'd', 0] + [f'{i * 7 + 1}-0' for i in many]),
        # Large collections: reads.
        ('SMEMBERS', ['set'], yes, ['SMEMBERS', 'set']),
        ('SSCAN', ['set'], yes, ['SSCAN', 'set', '0', 'COUNT', 10_000_000]),
        ('SSCAN, 13 stars', ['set'], yes,
         ['SSCAN', 'set', '0', 'COUNT', 10_000_000, 'MATCH', cruel]),
        ('HSCAN', ['hash'], yes, ['HSCAN', 'hash', '0', 'COUNT', 10_000_000]),
        ('ZSCAN', ['zset'], yes, ['ZSCAN', 'zset', '0', 'COUNT', 10_000_000]),
        ('SRANDMEMBER', ['set'], yes, ['SRANDMEMBER', 'set', n]),
        ('SRANDMEMBER, repeated', ['set'], yes, ['SRANDMEMBER', 'set', -n]),
        ('HRANDFIELD', ['hash'], yes, ['HRANDFIELD', 'hash', n, 'WITHVALUES']),
        ('ZRANDMEMBER', ['zset'], yes, ['ZRANDMEMBER', 'zset', n]),
        ('HGETALL', ['hash'], yes, ['HGETALL', 'hash']),
        ('HKEYS', ['hash'], yes, ['HKEYS', 'hash']),
        ('HVALS', ['hash'], yes, ['HVALS', 'hash']),
        ('LRANGE', ['list'], yes, ['LRANGE', 'list', 0, -1]),
        ('LINDEX', ['list'], yes, ['LINDEX', 'list', n // 2]),
        ('LPOS', ['list'], yes, ['LPOS', 'list', 'none']),
        ('ZRANGE', ['zset'], yes, ['ZRANGE', 'zset', 0, -1]),
        ('ZREVRANGE WITHSCORES', ['zset'], yes, ['ZREVRANGE', 'zset', 0, -1, 'WITHSCORES']),
        ('ZRANGEBYSCORE', ['zset'], yes, ['ZRANGEBYSCORE', 'zset', '-inf', 'inf']),
        ('ZRANGEBYSCORE LIMIT', ['zset'], yes,
         ['ZRANGEBYSCORE', 'zset', '-inf', 'inf', 'LIMIT', n - 10, 10]),
        ('ZRANGEBYLEX', ['zlex'], yes, ['ZRANGEBYLEX', 'zlex', '-', '+']),
        ('ZCOUNT', ['zset'], yes, ['ZCOUNT', 'zset', '10', '900']),
        ('ZLEXCOUNT', ['zlex'], yes, ['ZLEXCOUNT', 'zlex', '-', '+']),
        ('ZRANK', ['zset'], yes, ['ZRANK', 'zset', 'm:5']),
        ('SINTER', ['set', 'half'], yes, ['SINTER', 'set', 'half']),
        ('SUNION', ['set', 'half'], yes, ['SUNION', 'set', 'half']),
        ('SDIFF', ['set', 'half'], yes, ['SDIFF', 'set', 'half']),
        ('SINTERCARD', ['set', 'half'], yes, ['SINTERCARD', 2, 'set', 'half']),
        ('SUNIONCARD', ['set', 'half'], yes, ['SUNIONCARD', 2, 'set', 'half']),
        ('SDIFFCARD', ['set', 'half'], yes, ['SDIFFCARD', 2, 'set', 'half']),
        ('ZUNION', ['zset', 'zhalf'], yes, ['ZUNION', 2, 'zset', 'zhalf']),
        ('ZINTER', ['zset', 'zhalf'], yes, ['ZINTER', 2, 'zset', 'zhalf']),
        ('ZDIFF', ['zset', 'zhalf'], yes, ['ZDIFF', 2, 'zset', 'zhalf']),
        ('ZINTERCARD', ['zset', 'zhalf'], yes, ['ZINTERCARD', 2, 'zset', 'zhalf']),
        ('GEOSEARCH', ['geo'], yes,
         ['GEOSEARCH', 'geo', 'FROMLONLAT', 0, 0, 'BYRADIUS', 20000, 'km', 'ASC']),
        ('GEOSEARCH unsorted', ['geo'], yes,
         ['GEOSEARCH', 'geo', 'FROMLONLAT', 0, 0, 'BYRADIUS', 20000, 'km']),
        ('GEORADIUS COUNT', ['geo'], yes,
         ['GEORADIUS', 'geo', 0, 0, 20000, 'km', 'COUNT', 10, 'ASC']),
        ('XRANGE', ['stream'], yes, ['XRANGE', 'stream', '-', '+']),
        ('XREVRANGE', ['stream'], yes, ['XREVRANGE', 'stream', '+', '-']),
        ('XREAD', ['stream'], yes, ['XREAD', 'STREAMS', 'stream', 0]),
        ('XINFO STREAM FULL', ['stream', 'group'], yes,
         ['XINFO', 'STREAM', 'stream', 'FULL', 'COUNT', 0]),
        ('XPENDING', ['stream', 'group'], yes, ['XPENDING', 'stream', 'g']),
        ('XPENDING range', ['stream', 'group'], yes,
         ['XPENDING', 'stream', 'g', '-', '+', n]),
        ('XPENDING IDLE', ['stream', 'group'], yes,
         ['XPENDING', 'stream', 'g', 'IDLE', 10_000_000, '-', '+', n]),
        ('SORT', ['nums'], yes, ['SORT', 'nums']),
        ('SORT ALPHA', ['set'], yes, ['SORT', 'set', 'ALPHA']),
        ('SORT LIMIT', ['nums'], yes, ['SORT', 'nums', 'LIMIT', 0, 10]),
        ('SORT BY a pattern', ['nums'], yes, ['SORT', 'nums', 'BY', 'key:*']),
        ('SORT GET', ['nums', 'keys'], yes, ['SORT', 'nums', 'GET', 'key:*']),
        ('SORT BY a field', ['nums', 'hash'], yes, ['SORT', 'nums', 'BY', 'x*->y']),
        ('SORT_RO', ['nums'], yes, ['SORT_RO', 'nums']),
        ('MEMORY USAGE', ['set'], yes, ['MEMORY', 'USAGE', 'set', 'SAMPLES', 0]),
        ('OBJECT ENCODING', ['set'], yes, ['OBJECT', 'ENCODING', 'set']),
        # Large collections: changes.
        ('DEL of a set', ['set'], copy('set'), ['DEL', 'to']),
        ('DEL of a hash', [], list(pages(n // 10, ['HSET', 'to'],
                                         lambda i: (f'f:{i}', f'v:{i}'))), ['DEL', 'to']),
        ('SET over a set', ['set'], copy('set'), ['SET', 'to', 'x']),
        ('RENAME', ['set'], copy('set'), ['RENAME', 'to', 'to2']),
        ('COPY', ['zset'], yes, ['COPY', 'zset', 'to', 'REPLACE']),
        ('MOVE', ['set'], copy('set'), [['MOVE', 'to', 1], ['SELECT', 1], ['DEL', 'to'],
                                        ['SELECT', 0]]),
        ('EXPIRE', ['set'], copy('set'), ['PEXPIRE', 'to', 1]),
        ('SINTERSTORE', ['set', 'half'], yes, ['SINTERSTORE', 'to', 'set', 'half']),
        ('SINTERSTORE, one slot', ['{t}a', '{t}b'], yes, ['SINTERSTORE', '{t}c', '{t}a', '{t}b']),
        ('SUNIONSTORE', ['set', 'half'], yes, ['SUNIONSTORE', 'to', 'set', 'half']),
        ('SDIFFSTORE', ['set', 'half'], yes, ['SDIFFSTORE', 'to', 'set', 'half']),
        ('ZUNIONSTORE', ['zset', 'zhalf'], yes, ['ZUNIONSTORE', 'to', 2, 'zset', 'zhalf']),
        ('ZINTERSTORE', ['zset', 'zhalf'], yes, ['ZINTERSTORE', 'to', 2, 'zset', 'zhalf']),
        ('ZDIFFSTORE', ['zset', 'zhalf'], yes, ['ZDIFFSTORE', 'to', 2, 'zset', 'zhalf']),
        ('ZRANGESTORE', ['zset'], yes, ['ZRANGESTORE', 'to', 'zset', 0, -1]),
        ('ZRANGESTORE BYSCORE', ['zset'], yes,
         ['ZRANGESTORE', 'to', 'zset', '-inf', 'inf', 'BYSCORE']),
        ('GEOSEARCHSTORE', ['geo'], yes,
         ['GEOSEARCHSTORE', 'to', 'geo', 'FROMLONLAT', 0, 0, 'BYRADIUS', 20000, 'km']),
        ('GEORADIUS STORE', ['geo'], yes,
         ['GEORADIUS', 'geo', 0, 0, 20000, 'km', 'STORE', 'to']),
        ('SPOP', ['set'], copy('set'), ['SPOP', 'to', n // 2]),
        ('ZPOPMIN', ['zset'], copy('zset'), ['ZPOPMIN', 'to', n // 2]),
        ('ZMPOP', ['zset'], copy('zset'), ['ZMPOP', 1, 'to', 'MAX', 'COUNT', n // 2]),
        ('ZREMRANGEBYRANK', ['zset'], copy('zset'), ['ZREMRANGEBYRANK', 'to', 10, n // 2]),
        ('ZREMRANGEBYSCORE', ['zset'], copy('zset'), ['ZREMRANGEBYSCORE', 'to', 10, 600]),
        ('ZREMRANGEBYLEX', ['zlex'], copy('zlex'), ['ZREMRANGEBYLEX', 'to', '-', '[m:0004']),
        ('LPOP', ['list'], copy('list'), ['LPOP', 'to', n // 2]),
        ('LMPOP', ['list'], copy('list'), ['LMPOP', 1, 'to', 'LEFT', 'COUNT', n // 2]),
        ('LTRIM', ['list'], copy('list'), ['LTRIM', 'to', n // 3, n // 2]),
        ('LREM', ['list'], copy('list'), ['LREM', 'to', 0, 'e:5']),
        ('LREM of a missing one', ['list'], copy('list'), ['LREM', 'to', 0, 'none']),
        ('LINSERT', ['list'], copy('list'), ['LINSERT', 'to', 'BEFORE', f'e:{n - 5}', 'x']),
        ('LINSERT, no pivot', ['list'], copy('list'), ['LINSERT', 'to', 'BEFORE', 'none', 'x']),
        ('LSET', ['list'], copy('list'), ['LSET', 'to', n // 2, 'x']),
        ('SORT STORE', ['nums'], yes, ['SORT', 'nums', 'STORE', 'to']),
        ('SORT BY a pattern STORE', ['nums'], yes,
         ['SORT', 'nums', 'BY', 'key:*', 'STORE', 'to']),
        ('XTRIM', ['stream'], copy('stream'), ['XTRIM', 'to', 'MAXLEN', 10]),
        ('XTRIM DELREF', ['stream', 'group'], copy('stream'),
         ['XTRIM', 'to', 'MAXLEN', 10, 'DELREF']),
        ('XADD MAXLEN', ['stream'], copy('stream'),
         ['XADD', 'to', 'MAXLEN', 10, '*', 'f', 'v']),
        ('XREADGROUP', ['stream'], [*copy('stream'), ['XGROUP', 'CREATE', 'to', 'g2', 0]],
         ['XREADGROUP', 'GROUP', 'g2', 'c', 'STREAMS', 'to', '>']),
        ('XREADGROUP pending', ['stream', 'group'], copy('stream'),
         ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'to', 0]),
        ('XAUTOCLAIM', ['stream', 'group'], copy('stream'),
         ['XAUTOCLAIM', 'to', 'g', 'd', 0, 0, 'COUNT', n]),
        ('XGROUP DELCONSUMER', ['stream', 'group'], copy('stream'),
         ['XGROUP', 'DELCONSUMER', 'to', 'g', 'c']),
        ('XGROUP DESTROY', ['stream', 'group'], copy('stream'), ['XGROUP', 'DESTROY', 'to', 'g']),
        ('XSETID', ['stream'], copy('stream'), ['XSETID', 'to', '99999999999-0']),
        # Big strings.
        ('SET of 10 MB', [], yes, ['SET', 'to', b'x' * 10_000_000]),
        ('SET GET of 10 MB', [], yes, ['SET', 'to', b'x' * 10_000_000, 'GET']),
        ('MSET of 10 MB', [], yes, ['MSET', 'to', b'x' * 10_000_000, 'to2', b'y' * 10_000_000]),
        ('SADD of 10 MB', [], [['DEL', 'to']], ['SADD', 'to', b'x' * 10_000_000]),
        ('HSET of 10 MB', [], [['DEL', 'to']], ['HSET', 'to', 'f', b'x' * 10_000_000]),
        ('RPUSH of 10 MB', [], [['DEL', 'to']], ['RPUSH', 'to', b'x' * 10_000_000]),
        ('ZADD of 10 MB', [], [['DEL', 'to']], ['ZADD', 'to', 1, b'x' * 10_000_000]),
        ('XADD of 10 MB', [], [['DEL', 'to']], ['XADD', 'to', '*', 'f', b'x' * 10_000_000]),
        ('PFADD of 10 MB', [], [['DEL', 'to']], ['PFADD', 'to', b'x' * 10_000_000]),
        ('ECHO of 10 MB', [], yes, ['ECHO', b'x' * 10_000_000]),
        ('PUBLISH of 10 MB', [], yes, ['PUBLISH', 'to', b'x' * 10_000_000]),
        ('GET', ['big'], yes, ['GET', 'big']),
        ('GETRANGE', ['big'], yes, ['GETRANGE', 'big', 1, -2]),
        ('MGET of big', ['big', 'big2'], yes, ['MGET', 'big', 'big2']),
        ('GETSET', ['big'], copy('big'), ['GETSET', 'to', 'x']),
        ('APPEND', ['big'], copy('big'), ['APPEND', 'to', 'x' * 100]),
        ('SETRANGE', ['big'], copy('big'), ['SETRANGE', 'to', 1000, 'x' * 100]),
        ('SETRANGE of 10 MB', ['big'], copy('big'), ['SETRANGE', 'to', 1000, b'x' * 10_000_000]),
        ('SETBIT far', [], [['DEL', 'to']], ['SETBIT', 'to', 4294967295, 1]),
        ('BITCOUNT', ['big'], yes, ['BITCOUNT', 'big']),
        ('BITPOS', [], [['DEL', 'to'], ['SETBIT', 'to', 4_000_000_000, 0]], ['BITPOS', 'to', 1]),
        ('BITOP', ['big', 'big2'], yes, ['BITOP', 'XOR', 'to', 'big', 'big2']),
        ('BITOP NOT', ['big'], yes, ['BITOP', 'NOT', 'to', 'big']),
        ('DIGEST', ['big'], yes, ['DIGEST', 'big']),
        ('LCS of 10 kB', [], [['MSET', 'la', text[0] * 10, 'lb', text[1] * 10]],
         ['LCS', 'la', 'lb']),
        ('LCS IDX of 10 kB', [], [['MSET', 'la', text[0] * 10, 'lb', text[1] * 10]],
         ['LCS', 'la', 'lb', 'IDX', 'WITHMATCHLEN']),
        ('LCS LEN, 1 byte and 100 MB', ['big'], [['SET', 'la', 'x']], ['LCS', 'la', 'big', 'LEN']),
        # DUMP and RESTORE.
        ('DUMP of a string', ['big'], yes, ['DUMP', 'big']),
        ('DUMP of a set', ['set'], yes, ['DUMP', 'set']),
        ('DUMP of a stream', ['stream', 'group'], yes, ['DUMP', 'stream']),
        ('RESTORE of a string', ['big'], [], dump('big')),
        ('RESTORE of a set', ['set'], [], dump('set')),
        ('RESTORE of a zset', ['zset'], [], dump('zset')),
        ('RESTORE of a stream', ['stream', 'group'], [], dump('stream')),
        # Others.
        ('COMMAND', [], yes, ['COMMAND']),
        ('COMMAND DOCS', [], yes, ['COMMAND', 'DOCS']),
        ('COMMAND LIST, stars', [], yes, ['COMMAND', 'LIST', 'FILTERBY', 'PATTERN', longcruel]),
        ('CONFIG GET *', [], yes, ['CONFIG', 'GET', '*']),
        ('CONFIG GET, stars', [], yes, ['CONFIG', 'GET', longcruel]),
        ('INFO', [], yes, ['INFO', 'everything']),
        ('MEMORY STATS', ['keys'], yes, ['MEMORY', 'STATS']),
        ('SLOWLOG GET', [], yes, ['SLOWLOG', 'GET', -1]),
        ('CLIENT LIST', [], yes, ['CLIENT', 'LIST']),
        ('LATENCY HISTOGRAM', [], yes, ['LATENCY', 'HISTOGRAM']),
        ('an unknown command', [], yes, ['NONE'] + names('x')),
        ('COMMAND GETKEYS', [], yes, ['COMMAND', 'GETKEYS', 'MSET'] + pairs('x')),
    ]


def longest(server):
    """INFO longest as numbers."""
    lines = server.client.text('INFO', 'longest').decode().split('\r\n')
    turn, rows = 0, {}
    for line in lines:
        name, _, value = line.partition(':')
        if name == 'longest_turn_usec':
            turn = int(value)
        elif name.startswith('longest_'):
            rows[name[len('longest_'):]] = [int(v.split('=')[1]) for v in value.split(',')]
    return turn, rows


def one_try(server, command):
    time.sleep(0.25)  # the figures of the driver follow ten times a second
    server.client.send(['CONFIG', 'RESETSTAT'])
    commands = [command] if isinstance(command, bytes) or not isinstance(command[0], list) \
        else command
    reply = server.client.send(*commands)
    if reply.startswith(b'-') and b'DEBUG' not in reply and b'unknown' not in reply:
        print('    replied', reply[:100], file=sys.stderr)
    time.sleep(0.25)
    turn, rows = longest(server)
    rows = {name: row for name, row in rows.items() if name not in ('info', 'config|resetstat')}
    return turn, max((r[0] for r in rows.values()), default=0), \
        max((r[1] for r in rows.values()), default=0)


def payload(server, key):
    return server.client.text('DUMP', key)


def run_longest(a, root):
    server = Server(a.servers[0], root)
    n, filled, bad = a.elements, set(), []
    print(f'| command | hold us | run us | turn us |\n|---|---|---|---|')
    for label, fills, before, command in cases(n, a.args):
        if a.only and not re.search(a.only, label):
            continue
        for fill in fills:
            if fill not in filled:
                filled.add(fill)
                for data in FILLS[fill](n):
                    server.client.send(data)
        if isinstance(command, tuple):
            command = ['RESTORE', 'to', 0, payload(server, command[1]), 'REPLACE']
        if not (isinstance(command, (bytes,)) or isinstance(command[0], list)):
            command = encode(command)
        tries = []
        for _ in range(a.tries):
            if before:
                server.client.send(*before)
            tries.append(one_try(server, command))
        turn, hold, run = (min(t[i] for t in tries) for i in range(3))
        show = lambda us, limit: '-' if us == 0 else f'{us:,}' + (' *' if us > limit else '')
        is_bad = hold > HOLD_MAX_US or turn > TURN_MAX_US
        if is_bad:
            bad.append(label)
        print(f'| {label} | {show(hold, HOLD_MAX_US)} | {show(run, TURN_MAX_US)} '
              f'| {show(turn, TURN_MAX_US)} |', flush=True)
    print(f'\n{len(bad)} too long: ' + ', '.join(bad))


def heavy(n):
    """The loops beside which GETs are timed: fills, and what is sent again and again."""
    refill = [encode(['COPY', 'set', 'to', 'REPLACE'])]
    return [
        ('nothing', [], None),
        ('KEYS *', ['keys'], [['KEYS', '*']]),
        ('SORT', ['nums'], [['SORT', 'nums']]),
        ('SET of 10 MB', [], [['SET', 'to', b'x' * 10_000_000]]),
        ('LRANGE', ['list'], [['LRANGE', 'list', 0, -1]]),
        ('DEL', ['set'], None if not refill else refill + [encode(['DEL', 'to'])]),
    ]


def pipelines(depth):
    """As `heavy`, with commands of which each takes some 100 us."""
    commands = [['GET', 'small:1'], ['ZUNION', 2, 'z1', 'z2'], ['SMEMBERS', 's'],
                ['LRANGE', 'l', 0, -1]]
    return [('nothing', ['thousand'], None)] + \
        [(f'{depth} {c[0]}s', ['thousand'], [c] * depth) for c in commands]


def executed(server, command):
    """How often the server has executed a command."""
    stats = server.client.text('INFO', 'commandstats').decode()
    found = re.search(rf'cmdstat_{command.lower()}:calls=(\d+)', stats)
    return int(found[1]) if found else 0


def time_gets(client, seconds, keys):
    times, until, at = [], time.perf_counter() + seconds, 0
    requests = [encode(['GET', f'small:{i}']) for i in range(keys)]
    while True:
        begun = time.perf_counter()
        if begun > until:
            return times
        client.sock.sendall(requests[at % keys])
        client.sock.recv_into(client.room)
        times.append(time.perf_counter() - begun)
        at += 1
        time.sleep(0.0002)


def load_process(port, commands):
    """A process of its own, so that it does not disturb the clock of the GETs."""
    pid = os.fork()
    if pid:
        return pid
    client = Client(port)
    while True:
        try:
            client.send(*commands)
        except (OSError, SystemExit):
            os._exit(0)


def run_latency(a, root):
    is_pipelined = a.what == 'pipelined'
    more = ' heavy/s |' if is_pipelined else ''
    print(f'| beside | server | GETs | median us | 99 % | 99.9 % | longest |{more}\n' +
          '|---' * (8 if is_pipelined else 7) + '|')
    for label, fills, commands in pipelines(a.depth) if is_pipelined else heavy(a.elements):
        if a.only and not re.search(a.only, label):
            continue
        for spec in a.servers:
            name, _, command = spec.partition('=')
            server = Server(command or name, root)
            server.client.send(*[encode(['SET', f'small:{i}', 'v' * 16]) for i in range(100)])
            for fill in fills:
                for data in FILLS[fill](a.elements):
                    server.client.send(data)
            clients_of_load = range(a.heavy if is_pipelined else 1) if commands else ()
            pids = [load_process(server.port, commands) for _ in clients_of_load]
            time.sleep(0.3)
            counts = is_pipelined and commands and commands[0][0] != 'GET'
            before, began = executed(server, commands[0][0]) if counts else 0, time.time()
            clients = [Client(server.port) for _ in range(4)]
            times = sorted(t for c in clients for t in time_gets(c, a.seconds / 4, 100))
            rate = (executed(server, commands[0][0]) - before) / (time.time() - began) \
                if counts else 0
            for pid in pids:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            us = lambda share: f'{times[min(int(len(times) * share), len(times) - 1)] * 1e6:,.0f}'
            print(f'| {label} | {name} | {len(times)} | {us(0.5)} | {us(0.99)} | {us(0.999)} '
                  f'| {us(1)} |' + (f' {rate:,.0f} |' if is_pipelined else ''), flush=True)
            server.stop()


def info(client, section, name):
    text = client.text('INFO', section).decode()
    return int(re.search(f'^{name}:(\\d+)', text, re.M).group(1))


def load_counted(port, requests, count, counter):
    """A process with one client, which is connected when this returns. It adds to a file."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid:
        os.close(told)
        os.read(ready, 1)
        os.close(ready)
        return pid
    sock = socket.create_connection(('127.0.0.1', port))
    sock.sendall(encode(['PING']))
    sock.recv(100)
    os.write(told, b'x')
    replies = len(b'$-1\r\n') * count
    while True:
        sock.sendall(requests)
        left = replies
        while left:
            left -= len(sock.recv(left))
        os.write(counter, b'x')


def run_moving(a, root):
    print('| server | clients | client 1, commands/s | client 2 | both | moved |\n' + '|---' * 6 + '|')
    for spec in a.servers:
        name, _, command = spec.partition('=')
        server = Server(command or name, root)
        admin = server.client
        admin.send(encode(['RPUSH', 'list', *range(2000)]), encode(['DEBUG', 'PAUSE-CRON', 1]))
        # The worker with the fewest connections gets the next one: the other one gets the first.
        files, pids, idle = [], [], []
        for place in range(4):
            if place % 2:
                idle.append(Client(server.port))
                idle[-1].send(encode(['PING']))
                continue
            path = os.path.join(root, f'{server.port}-{place}')
            files.append(path)
            counter = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            requests = encode(['LPOS', 'list', 'none']) * a.depth
            pids.append(load_counted(server.port, requests, a.depth, counter))
        for label, paused in ('stay', 1), ('may move', 0):
            admin.send(encode(['DEBUG', 'PAUSE-CRON', paused]))
            time.sleep(2)
            before, began = [os.path.getsize(f) for f in files], time.time()
            time.sleep(a.seconds)
            took = time.time() - began
            rates = [(os.path.getsize(f) - b) * a.depth / took for f, b in zip(files, before)]
            print(f'| {name} | {label} | {rates[0]:,.0f} | {rates[1]:,.0f} | {sum(rates):,.0f} '
                  f'| {info(admin, "stats", "moved_clients")} |', flush=True)
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        server.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=['longest', 'latency', 'pipelined', 'moving'])
    p.add_argument('servers', nargs='+')
    p.add_argument('--elements', type=int, default=1_000_000)
    p.add_argument('--args', type=int, default=10_000)
    p.add_argument('--only')
    p.add_argument('--tries', type=int, default=3)
    p.add_argument('--seconds', type=float, default=5)
    p.add_argument('--depth', type=int, default=64)
    p.add_argument('--heavy', type=int, default=1)
    a = p.parse_args()
    root = tempfile.mkdtemp(prefix='fairness-')
    atexit.register(shutil.rmtree, root, True)
    run = {'longest': run_longest, 'moving': run_moving}.get(a.what, run_latency)
    run(a, root)


main()
