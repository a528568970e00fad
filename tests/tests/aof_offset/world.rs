//! A folder which servers write one after the other, and end in several ways.

use std::fs;
use std::path::Path;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::producer::{Hello, Producer, data};
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::Binary;
use sheafdb_tests::wire::{Value, Wire, encode};

use super::recount::{FILES, MANIFEST, Recount};
use super::{NO_ID, ask, assert_goes_on, persistence, rewrite, rewrites_end, shown, start};

/// Changes of all kinds: what several wires write in several databases, transactions, values which
/// are written in parts, keys which are due, producers, and a cut.
pub struct World {
    pub folder: Folder,
    pub rng: Rng,
    /// Ids which INFO has shown.
    pub seen: Vec<String>,
    round: usize,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let folder = Folder::new(&format!("aof-offset-{seed}"));
        Self { folder, rng: Rng::new(seed), seen: Vec::new(), round: 0 }
    }

    pub fn count(&self) -> Recount {
        Recount::of(Path::new(self.folder.path()))
    }

    fn line(&mut self) -> Vec<Vec<u8>> {
        let (key, round) = (self.rng.below(9), self.round);
        let text = match self.rng.below(8) {
            0 => format!("RPUSH list{key} {round} b c"),
            1 => format!("MSET a{key} {round} b{key} 2"),
            2 => format!("INCR n{key}"),
            3 => format!("DEL a{key} list{key}"),
            4 => format!("SET due{key} 1 PX {}", 1 + self.rng.below(20)),
            5 => format!("SELECT {}", self.rng.below(3)),
            6 => format!("HSET h{key} f {round} g 2"),
            _ => format!("SET s{key} {round}"),
        };
        let mut words: Vec<Vec<u8>> = text.split(' ').map(|word| word.as_bytes().into()).collect();
        if words[0] == b"SET" && self.rng.chance(5) {
            let len = 60_000 + self.rng.below(300_000);
            words[2] = self.rng.bytes(len);
        }
        words
    }

    fn change(&mut self, wires: &mut [Wire]) {
        let (wire, is_transaction) = (self.rng.below(wires.len()), self.rng.chance(15));
        let count = if is_transaction { 4 } else { 1 + self.rng.below(6) };
        let mut lines: Vec<_> = (0..count).map(|_| self.line()).collect();
        if is_transaction {
            lines.insert(0, vec![b"MULTI".to_vec()]);
            lines.push(vec![b"EXEC".to_vec()]);
        }
        let bytes: Vec<u8> = lines.iter().flat_map(|line| encode(line)).collect();
        wires[wire].send(&bytes).expect("sent");
        for line in &lines {
            let reply = wires[wire].receive().expect("an answer");
            assert!(!matches!(reply, Value::Error(_)), "{line:?}: {reply:?}");
        }
    }

    /// A server on the folder, for a while.
    pub fn run(&mut self) {
        self.round += 1;
        let preamble = self.rng.pick(&["yes", "no"]);
        let listen = free_addr().expect("a free port");
        let ingest = format!("{listen} protocol=2");
        let more = ["--aof-use-rdb-preamble", preamble, "--aof-history", "1gb"];
        let threads = self.rng.pick(&["1", "2", "3"]);
        let more = [&more[..], &["--threads", threads, "--ingest-listen", &ingest]].concat();
        let before = (self.round > 1).then(|| self.count());
        let server = start(&Binary::under_test(), &self.folder, &more);
        let mut wires = [server.connect(), server.connect(), server.connect()];
        let first = shown(&mut wires[0]);
        match before {
            Some(before) => assert_goes_on(&first, before.position(), &self.seen),
            None => assert_eq!((&*first.id2, first.offset2), (NO_ID, -1)),
        }
        self.seen.push(first.id);
        let hello = Hello { sink: 2, ..Hello::new(&format!("p{}", self.round), "ingested") };
        let (mut producer, _) = Producer::greet(listen, &hello);
        let mut sent = 0;
        for _ in 0..20 + self.rng.below(60) {
            match self.rng.below(40) {
                0 => rewrite(&mut wires[0]),
                1 => self.turn_off_and_on(&mut wires[0]),
                2 => {
                    ask(&mut wires[1], "DEBUG CHANGE-REPL-ID");
                    let shown = shown(&mut wires[0]);
                    assert_eq!((&*shown.id2, shown.offset2), (NO_ID, -1));
                    self.seen.push(shown.id);
                }
                3..8 => {
                    producer.send(&data(sent + 1, &[b"one", b"two"]));
                    sent += 2;
                    producer.until_acked(sent);
                }
                _ => self.change(&mut wires),
            }
        }
        self.await_count(&mut wires[0]);
        match self.rng.below(3) {
            0 => server.end(),
            1 => drop(server.kill()),
            // Within records.
            _ => {
                let bytes: Vec<u8> = (0..200).flat_map(|_| encode(&self.line())).collect();
                wires[2].send(&bytes).expect("sent");
                drop(server.kill());
                self.cut_the_end();
            }
        }
    }

    /// INFO and the files say the same. (What is due goes meanwhile.)
    pub fn await_count(&self, wire: &mut Wire) {
        until("INFO says what the files hold", || {
            let (shown, count) = (shown(wire), self.count());
            // (Behind a change of the id there is a record before the files say it.)
            assert!(count.id.is_none_or(|id| self.seen.contains(&id)), "{shown:?}");
            shown.offset == count.offset
        });
    }

    fn turn_off_and_on(&mut self, wire: &mut Wire) {
        let before = persistence(wire, "aof_rewrites");
        ask(wire, "CONFIG SET appendonly no");
        until("it is off", || persistence(wire, "aof_enabled") == 0);
        let off = shown(wire);
        assert!(!self.seen.contains(&off.id), "{off:?}: the stream has ended");
        ask(wire, "INCR not-counted");
        assert_eq!(shown(wire), off);
        ask(wire, "CONFIG SET appendonly yes");
        rewrites_end(wire, before);
        let on = shown(wire);
        assert!(on.id != off.id && !self.seen.contains(&on.id), "{on:?}: another stream");
        assert!(on.offset >= off.offset, "{on:?}");
        self.seen.extend([off.id, on.id]);
    }

    /// As a power failure leaves it: a part of the last file is missing.
    fn cut_the_end(&mut self) {
        let text = fs::read_to_string(self.folder.at(MANIFEST)).expect("a manifest");
        let last = text.lines().last().and_then(|line| line.split(' ').nth(1)).expect("a name");
        let path = self.folder.at(FILES).join(last);
        let len = fs::metadata(&path).expect("a file").len();
        let kept = len - (self.rng.below(90) as u64).min(len);
        fs::File::options().write(true).open(&path).and_then(|f| f.set_len(kept)).expect("cut");
    }
}
