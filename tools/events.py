#!/usr/bin/env python3
"""Records which keyspace events a live server tells of each request in a list.

    events.py [--server redis-server] [FILE]

FILE (crates/command/tests/golden/events.txt) has a request on each line, and behind `->` its events as `name@database:key`,
which are written anew. `@db N` selects a database, `@wait N` lets N milliseconds pass, `@dump KEY` keeps what DUMP replies
for `$dump`. `RPUSH*300 KEY` adds 300 elements; SADD, HSET and ZADD likewise.
"""
import argparse, os, socket, subprocess, tempfile, time

GOLDEN = 'crates/command/tests/golden/events.txt'


class Client:
    def __init__(self, path):
        deadline = time.time() + 20
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                assert time.time() < deadline, 'the server does not start'
                time.sleep(0.02)
        self.file = self.socket.makefile('rb')

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else word.encode() for word in words]
        body = b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in words)
        self.socket.sendall(b'*%d\r\n' % len(words) + body)
        return self.read()

    def read(self):
        line = self.file.readline()[:-2]
        lead, rest = line[:1], line[1:]
        if lead == b'$':
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if lead == b'*':
            return [self.read() for _ in range(max(int(rest), 0))]
        return line


def words_of(text):
    words = text.split()
    name, times, count = words[0].partition('*')
    if times:
        items = [('f%d' % i, str(i)) if name == 'HSET' else (str(i), 'e%d' % i) for i in range(int(count))]
        if name in ('RPUSH', 'SADD'):
            items = [('e%d' % i,) for i in range(int(count))]
        return [name, words[1]] + [word for item in items for word in item]
    return words


def record(lines, asker, listener):
    dump = b''
    for line in lines:
        text = line.split(' ->')[0].strip()
        words = text.split()
        if not text or text.startswith('#'):
            yield line
        elif words[0] == '@db':
            asker.ask('SELECT', words[1])
            yield text
        elif words[0] == '@wait':
            time.sleep(int(words[1]) / 1000)
            yield text
        elif words[0] == '@dump':
            dump = asker.ask('DUMP', words[1])
            yield text
        else:
            asker.ask(*[dump if word == '$dump' else word.replace('""', '') for word in words_of(text)])
            asker.ask('PUBLISH', 'done', '')
            events = []
            while (message := listener.read())[0] != b'message':
                place, event = message[2].decode()[len('__keyevent@'):].split('__:', 1)
                events.append(f'{event}@{place}:{message[3].decode()}')
            yield ' '.join([text, '->'] + events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='redis-server')
    parser.add_argument('file', nargs='?', default=GOLDEN)
    args = parser.parse_args()
    with open(args.file) as file:
        lines = file.read().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'socket')
        options = ['--port', '0', '--save', '', '--dir', folder, '--unixsocket', path]
        options += ['--notify-keyspace-events', 'KEAmn', '--enable-debug-command', 'yes']
        server = subprocess.Popen([args.server] + options, stdout=subprocess.DEVNULL)
        try:
            asker, listener = Client(path), Client(path)
            # Only those who look for a key see that it has expired: else its event comes at any time.
            asker.ask('DEBUG', 'SET-ACTIVE-EXPIRE', '0')
            listener.ask('PSUBSCRIBE', '__keyevent@*__:*')
            listener.ask('SUBSCRIBE', 'done')
            recorded = list(record(lines, asker, listener))
        finally:
            server.kill()
            server.wait()
    with open(args.file, 'w') as file:
        file.write('\n'.join(recorded) + '\n')


if __name__ == '__main__':
    main()
