//! Handlers alone, for instruction counts: `hotpath nothing|get|set|setex|incr COUNT`. The
//! difference between two counts is the cost of one command: its slot locked, the handler run, the
//! change committed. Neither framing nor the dispatcher's gates are in it.

use std::hint::black_box;

use base::out::OutBuf;
use base::sync::Arc;
use base::{DbIndex, UnixMs};
use command::spec::DataFn;
use command::{Ctx, Done, Settings, Tally, string};
use keyspace::{Access, Intent, Key, Keyspace, Options};
use resp::{Args, Proto, Reply, Span};

const NOW: UnixMs = UnixMs(1_700_000_000_000);
/// Keys that are there before anything is counted: six to a slot.
const KEYS: usize = 100_000;

/// A request as framing leaves it.
struct Request {
    base: Vec<u8>,
    spans: Vec<Span>,
}

impl Request {
    fn new(words: &[&[u8]]) -> Request {
        let (mut base, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: base.len() as u32, len: word.len() as u32 });
            base.extend_from_slice(word);
        }
        Request { base, spans }
    }

    fn args(&self) -> Args<'_> {
        Args::new(&self.base, &self.spans, &[])
    }
}

/// A worker, in small.
struct Bench {
    access: Access,
    settings: Settings,
    tally: Tally,
    out: OutBuf,
}

impl Bench {
    #[inline(never)]
    fn run(&mut self, handler: DataFn, args: Args<'_>, key: Key<'_>) {
        self.out.clear();
        let mut guard =
            self.access.lock_one(key.slot, NOW, Intent::Write).expect("nobody else is there");
        let reply = Reply::new(&mut self.out, Proto::Resp2);
        let (settings, tally) = (&self.settings, &mut self.tally);
        let first = command::First { arg: 1, slot: key.slot, hash: key.hash };
        let mut ctx = Ctx::new(&mut guard, reply, args, DbIndex(0), NOW, settings, tally, first);
        assert!(matches!(handler(&mut ctx), Ok(Done::Replied)), "a right request");
        guard.commit();
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().expect("a command");
    let count: usize = args.next().expect("a count").parse().expect("a number");
    assert!(count <= KEYS);
    let options = Options { databases: 16, hash_secret: 1, workers: 2 };
    let keyspace = Arc::new(Keyspace::new(&options));
    let mut access = Access::new(Arc::clone(&keyspace), 0);
    assert!(access.enter());
    let mut bench = Bench {
        access,
        settings: Settings::default(),
        tally: Tally::default(),
        out: OutBuf::new(),
    };
    let value: &[u8] = if what == "incr" { b"123456" } else { &[b'v'; 64] };
    let names: Vec<String> = (0..KEYS).map(|n| format!("key:{n:012}")).collect();
    let request = |name: &str| match what.as_str() {
        "set" => Request::new(&[b"SET", name.as_bytes(), &[b'w'; 64]]),
        "setex" => Request::new(&[b"SET", name.as_bytes(), &[b'w'; 64], b"EX", b"100"]),
        "incr" => Request::new(&[b"INCR", name.as_bytes()]),
        _ => Request::new(&[b"GET", name.as_bytes()]),
    };
    let handler: DataFn = match what.as_str() {
        "set" | "setex" => string::set,
        "incr" => string::incr,
        "get" | "nothing" => string::get,
        other => panic!("unknown command {other}"),
    };
    for name in &names {
        let first = Request::new(&[b"SET", name.as_bytes(), value]);
        bench.run(string::set, first.args(), keyspace.key(name.as_bytes()));
        if what == "setex" {
            bench.run(string::set, request(name).args(), keyspace.key(name.as_bytes()));
        }
    }
    let requests: Vec<_> = names.iter().map(|name| request(name)).collect();
    let keys: Vec<_> = names.iter().map(|name| keyspace.key(name.as_bytes())).collect();
    for (request, key) in requests.iter().zip(&keys).take(count) {
        if what == "nothing" {
            black_box((request.args(), key));
        } else {
            bench.run(handler, black_box(request.args()), *black_box(key));
        }
    }
    std::process::exit(0);
}
