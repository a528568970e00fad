//! A server of two workers on the simulated network, stepped in turn in one thread, and its
//! clients.

pub mod script;

use base::prng::Prng;
use base::sync::Arc;
use driver::sim::{Ending, Faults, SimClient, SimDriver, SimNet};
use driver::{ConnId, Driver, ListenAddr, ListenOptions, MailboxSender, PeerAddr};
use server::boot;
use server::config::Config;
use server::config::ingest::IngestListen;
use server::ingest::ports::IngestPort;
use server::shared::Shared;
use server::worker::Worker;
use server::worker::message::Message;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

pub const MS: u64 = 1_000_000;

/// Longest wait for the threads that save and load, which are real, however busy the computer is.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// The time that they get between two steps. A sleep, however short: on a busy computer a thread
/// that yields has given its share away, and each time costs many milliseconds; one that has slept
/// goes on at once.
pub const BREATH: Duration = Duration::from_micros(1);

/// More than one, so that messages, gates and locks are between workers.
const WORKERS: usize = 2;

/// Steps after which a test that has not ended has failed.
const STEPS_MAX: u32 = 200_000;

/// A network that cuts everything and loses nothing, with buffers that are full soon.
pub const CUTTING: Faults = Faults {
    partial_read_one_in: 2,
    partial_write_one_in: 2,
    reset_one_in: 0,
    blind_poll_one_in: 5,
    delay_ns_max: 300_000,
    buffer_bytes: 700,
};

struct WakeByMail(Vec<MailboxSender<Message>>);

impl keyspace::Waker for WakeByMail {
    fn wake(&self, worker: usize, token: u64) {
        self.0[worker].post(Message::Retry(ConnId::from_token(token)));
    }
}

/// The world.
pub struct Sim {
    pub net: SimNet,
    pub shared: Arc<Shared>,
    pub clients: Vec<Client>,
    pub prng: Prng,
    pub steps: u32,
    workers: Vec<Worker<SimDriver<Message>>>,
    addr: PeerAddr,
    /// Where the ingest listeners are.
    pub ingest: Vec<PeerAddr>,
}

/// One client: the bytes that it has to send, and all that it has received.
pub struct Client {
    conn: Option<SimClient>,
    unsent: Vec<u8>,
    pub got: Vec<u8>,
    pub ending: Option<Ending>,
    /// Bytes of `got` that were taken as replies.
    taken: usize,
}

impl Sim {
    pub fn new(seed: u64, faults: Faults, config: Config) -> Self {
        Self::with_ingest(seed, faults, config, "")
    }

    /// With the listeners that `ingest-listen` would open.
    pub fn with_ingest(seed: u64, faults: Faults, config: Config, listen: &str) -> Self {
        Self::prepared(seed, faults, config, listen, |_, _| ())
    }

    /// The same; `prepare` sees the disk and what the workers share before there are any.
    pub fn prepared(
        seed: u64,
        faults: Faults,
        config: Config,
        listen: &str,
        prepare: impl FnOnce(&SimNet, &Shared),
    ) -> Self {
        let net = SimNet::new(seed, faults);
        let mut drivers: Vec<SimDriver<Message>> = (0..WORKERS).map(|_| net.driver()).collect();
        let at = ListenAddr::Tcp("127.0.0.1:0".parse().expect("an address"));
        let listener = drivers[0].listen(&at, &ListenOptions { backlog: 64 }).expect("a free port");
        let addr = drivers[0].listen_addr(listener).expect("just opened");
        let senders: Vec<_> = drivers.iter().map(Driver::mailbox).collect();
        let mut shared = boot::make_shared(config, &mut drivers[0], WORKERS, || (0, 0));
        let (mut listeners, mut ingest) = (vec![listener], Vec::new());
        let words: Vec<Vec<u8>> = listen.split(' ').map(Vec::from).collect();
        for listen in IngestListen::parse_all(&words).expect("well formed") {
            let id = drivers[0].listen(&at, &ListenOptions { backlog: 64 }).expect("a free port");
            let addr = drivers[0].listen_addr(id).expect("just opened");
            shared.ingest.open.push(IngestPort::new(id, addr.to_string(), listen.terms, WORKERS));
            listeners.push(id);
            ingest.push(addr);
        }
        shared.keyspace.set_waker(Box::new(WakeByMail(senders.clone())));
        assert!(shared.mailboxes.set(senders).is_ok(), "set once");
        let shared = Arc::new(shared);
        prepare(&net, &shared);
        let workers = drivers.into_iter().enumerate().map(|(id, driver)| {
            let listeners = if id == 0 { listeners.clone() } else { Vec::new() };
            Worker::new(driver, shared.clone(), id, listeners)
        });
        let workers = workers.collect();
        let prng = Prng::new(!seed);
        Self { net, shared, clients: Vec::new(), prng, steps: 0, workers, addr, ingest }
    }

    /// Connects so many clients and waits until each of them is served.
    pub fn connect(&mut self, count: usize) {
        for _ in 0..count {
            let conn = self.net.connect(&self.addr).expect("it listens and has room");
            self.clients.push(Client {
                conn: Some(conn),
                unsent: Vec::new(),
                got: Vec::new(),
                ending: None,
                taken: 0,
            });
            let served = self.clients.iter().filter(|c| c.conn.is_some()).count();
            self.run_until(|sim| sim.shared.registry.len() == served);
        }
    }

    /// One more connection, which its owner reads and writes; not among the clients.
    pub fn join(&mut self) -> SimClient {
        let served = self.shared.registry.len();
        let client = self.net.connect(&self.addr).expect("it listens and has room");
        self.run_until(|sim| sim.shared.registry.len() > served);
        client
    }

    /// A connection to an ingest listener, which its owner reads and writes.
    pub fn join_ingest(&mut self, port: usize) -> SimClient {
        self.net.connect(&self.ingest[port]).expect("it listens and has room")
    }

    /// Counts steps from zero.
    pub fn forget_steps(&mut self) {
        self.steps = 0;
    }

    /// One step of the world: clients write and read random parts, each worker turns once.
    pub fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the story does not end");
        for client in &mut self.clients {
            client.pump(&mut self.prng);
        }
        self.workers.iter_mut().for_each(Worker::turn);
        self.end_step();
    }

    /// The same, but only this worker turns, as if the others were in the middle of something.
    pub fn step_only(&mut self, worker: usize) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the story does not end");
        for client in &mut self.clients {
            client.pump(&mut self.prng);
        }
        self.workers[worker].turn();
        self.end_step();
    }

    fn end_step(&mut self) {
        // Time would not go on while one is there and does not wait.
        self.workers.retain(|w| !w.is_done());
    }

    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.step();
        }
    }

    /// Lets virtual time pass.
    pub fn run_for(&mut self, ns: u64) {
        let end = self.net.now().plus(ns);
        self.run_until(|sim| sim.net.now() >= end);
    }

    /// One request of one client, and its reply.
    pub fn ask(&mut self, client: usize, args: &[&str]) -> Reply {
        self.clients[client].say(args);
        self.reply(client)
    }

    /// The next reply to one client.
    pub fn reply(&mut self, client: usize) -> Reply {
        loop {
            if let Some(reply) = self.clients[client].take_reply() {
                return reply;
            }
            self.step();
        }
    }

    /// All replies to a client, up to the reply to its last request.
    pub fn ask_last(&mut self, client: usize) -> Vec<Reply> {
        let end = Reply::Bulk("the end".into());
        self.clients[client].say(&["ECHO", "the end"]);
        let mut replies = Vec::new();
        loop {
            match self.reply(client) {
                reply if reply == end => return replies,
                reply => replies.push(reply),
            }
        }
    }

    /// True once every worker has ended.
    pub fn has_ended(&self) -> bool {
        self.workers.iter().all(Worker::is_done)
    }

    /// Disconnects every client, and fails if anything of them is left.
    pub fn end(mut self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for client in &mut self.clients {
            hasher.write(&client.got);
            hasher.write_usize(client.got.len());
            client.conn = None;
        }
        self.run_until(|sim| sim.shared.registry.is_empty());
        self.run_for(200 * MS);
        assert_eq!(self.shared.connections(), 0, "sessions that nobody has");
        assert_eq!(self.shared.keyspace.watched_slots(), 0, "watches that nobody has");
        assert_eq!(self.shared.client_memory(), 0, "bytes that are held for nobody");
        hasher.write_u32(self.steps);
        hasher.write_u64(self.net.now().0);
        hasher.finish()
    }
}

impl Drop for Sim {
    /// Ends the threads of the server, wherever they are. They hold what it shares, so it would
    /// stay in memory together with them.
    fn drop(&mut self) {
        self.workers.clear();
        self.shared.end_threads();
    }
}

impl Client {
    /// Adds a request to what will be written.
    pub fn say(&mut self, args: &[&str]) {
        self.unsent.extend(encode(args));
    }

    /// Adds bytes to what will be written.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.unsent.extend(bytes);
    }

    /// True once everything was written.
    pub fn has_said_all(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Breaks the connection.
    pub fn reset(&mut self) {
        if let Some(conn) = self.conn.take() {
            conn.reset();
        }
    }

    fn pump(&mut self, prng: &mut Prng) {
        let Some(conn) = &self.conn else { return };
        let part = prng.below(self.unsent.len() as u64 + 1) as usize;
        let part = if prng.chance(1, 2) { part } else { part.min(9) };
        if part > 0 {
            let written = conn.write(&self.unsent[..part]);
            self.unsent.drain(..written);
        }
        let mut room = [0; 4096];
        let most = 1 + prng.below(room.len() as u64) as usize;
        let read = conn.read(&mut room[..most]);
        self.got.extend(&room[..read]);
        self.ending = conn.ending();
    }

    /// Shuts down sending; requests that are not written yet are dropped.
    pub fn stop_sending(&mut self) {
        self.unsent.clear();
        if let Some(conn) = &self.conn {
            conn.shutdown_write();
        }
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.conn = None;
    }

    /// Drops all received bytes.
    pub fn forget(&mut self) {
        assert_eq!(self.taken, self.got.len(), "a reply that nobody took");
        (self.got, self.taken) = (Vec::new(), 0);
    }

    /// Removes and returns the next whole reply.
    pub fn take_reply(&mut self) -> Option<Reply> {
        let (reply, len) = parse(&self.got[self.taken..])?;
        self.taken += len;
        Some(reply)
    }
}

/// A request as clients write it.
pub fn encode(args: &[&str]) -> Vec<u8> {
    let args: Vec<String> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

/// A reply of protocol 2, or what is needed of protocol 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(String),
    Null,
    NullArray,
    Array(Vec<Reply>),
    Push(Vec<Reply>),
}

impl Reply {
    pub fn ok() -> Self {
        Self::Simple("OK".into())
    }

    pub fn integer(&self) -> i64 {
        let Self::Integer(n) = self else { panic!("{self:?} is no integer") };
        *n
    }
}

/// The first reply and its length, if it is whole.
pub fn parse(bytes: &[u8]) -> Option<(Reply, usize)> {
    let line = bytes.windows(2).position(|two| two == b"\r\n")?;
    let text = String::from_utf8(bytes[1..line].to_vec()).expect("lines are ASCII here");
    let number = || text.parse::<i64>().expect("a number");
    let mut at = line + 2;
    let reply = match bytes[0] {
        b'+' => Reply::Simple(text),
        b'-' => Reply::Error(text),
        b':' => Reply::Integer(number()),
        b'$' if text == "-1" => Reply::Null,
        b'*' if text == "-1" => Reply::NullArray,
        b'$' => {
            let end = at + number() as usize;
            let bulk = bytes.get(at..end + 2)?;
            let (bulk, tail) = bulk.split_at(bulk.len() - 2);
            assert_eq!(tail, b"\r\n", "the end of a bulk string");
            at = end + 2;
            Reply::Bulk(String::from_utf8(bulk.to_vec()).expect("values are ASCII here"))
        }
        b'_' => Reply::Null,
        kind @ (b'*' | b'>' | b'%') => {
            // (A map as the array of its keys and values.)
            let count = number() * if kind == b'%' { 2 } else { 1 };
            let mut members = Vec::new();
            for _ in 0..count {
                let (member, len) = parse(&bytes[at..])?;
                members.push(member);
                at += len;
            }
            if kind == b'>' { Reply::Push(members) } else { Reply::Array(members) }
        }
        other => panic!("{:?} begins no reply", other as char),
    };
    Some((reply, at))
}
