//! Random changes of every family on the keys of one client, and what repeats them.

use sheafdb_tests::rng::Rng;

/// A command.
pub type Words = Vec<Vec<u8>>;

/// How an atom is repeated elsewhere with the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// As it was sent.
    Same,
    /// SPOP: the member that the reply names is removed.
    Member,
    /// XADD with `*`: with the id of the reply.
    NewId,
    /// XTRIM with `~`: as many entries as the reply says, exactly.
    Trim,
    /// HINCRBYFLOAT: the value of the reply.
    Float,
    /// The transaction ends with PEXPIRETIME and DUMP of this key, which are what is repeated:
    /// the effect depends on the clock.
    Dump(&'static str),
}

/// Commands that take effect together: one, or a transaction.
#[derive(Clone, Debug)]
pub struct Atom {
    pub commands: Vec<Words>,
    pub repeat: Repeat,
}

impl Atom {
    /// The requests, and how many replies they have.
    pub fn requests(&self) -> Vec<Words> {
        if let [one] = self.commands.as_slice() {
            return vec![one.clone()];
        }
        let mut all = vec![words("MULTI")];
        all.extend(self.commands.iter().cloned());
        all.push(words("EXEC"));
        all
    }

    /// INCR of the key `v`, by which a client's history is found again.
    pub fn is_version(&self) -> bool {
        self.commands == [words("INCR v")]
    }
}

/// What a client sends at a time.
pub struct Op {
    /// Sent first, on a connection of its own, where it waits.
    pub waiter: Option<Words>,
    pub atoms: Vec<Atom>,
}

/// The words of a line.
pub fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Size of a big value.
const BIG: usize = 100_000;

/// Makes the changes of one client.
pub struct Maker {
    rng: Rng,
    /// The database with a client's keys; beside it stands a private one, which is flushed.
    db: u32,
    /// Whether fields of hashes expire.
    has_fields: bool,
    next: u64,
}

impl Maker {
    pub fn new(seed: u64, db: u32, has_fields: bool) -> Self {
        Self { rng: Rng::new(seed), db, has_fields, next: 1 }
    }

    /// The next changes.
    pub fn op(&mut self) -> Op {
        let n = self.next;
        self.next += 1;
        let mut op = Op { waiter: None, atoms: Vec::new() };
        match self.rng.below(24) {
            0..=2 => op.atoms.push(same("INCR v")),
            3 => self.waiting(n, &mut op),
            4 | 5 => self.transaction(n, &mut op),
            6..=8 => op.atoms.push(self.due(n)),
            9 => self.other_db(n, &mut op),
            10 if self.rng.chance(20) => op.atoms.push(self.big(n)),
            11 | 12 => self.stream(n, &mut op),
            _ => {
                let line = self.plain(n);
                op.atoms.push(atom(&line));
            }
        }
        op
    }

    /// A change of one value.
    fn plain(&mut self, n: u64) -> String {
        let (few, bit) = (self.rng.below(8), self.rng.below(3000));
        let lines = [
            format!("SET s{few} value{n}"),
            format!("SET long{few} {n} EXAT 40000000{few}0"),
            format!("APPEND log {n};"),
            format!("INCRBY n {few}"),
            format!("DECR n{few}"),
            format!("GETSET s{few} {n}"),
            format!("GETDEL s{few}"),
            format!("MSET s1 {n} s2 {n}"),
            format!("SETRANGE range {bit} {n}"),
            format!("SETBIT bits {bit} {}", n % 2),
            format!("BITFIELD bits INCRBY u8 {few} 1 SET i16 {bit} {few}"),
            "BITOP XOR bits2 bits log".into(),
            format!("PFADD hll a{n} b{n}"),
            "PFMERGE hll2 hll hll2".into(),
            format!("RPUSH list e{n}"),
            format!("LPUSH list f{n} g{n}"),
            "LMOVE list list2 LEFT RIGHT".into(),
            "RPOPLPUSH list2 list".into(),
            "LPOP list 2".into(),
            "RPOP list2".into(),
            format!("LINSERT list BEFORE e{} i{n}", n.saturating_sub(10)),
            "LTRIM list -40 -1".into(),
            format!("LSET list 0 set{n}"),
            format!("LREM list2 0 e{}", n.saturating_sub(20)),
            format!("SADD set m{n} {n}"),
            format!("SREM set {}", n.saturating_sub(15)),
            "SPOP set".into(),
            format!("SMOVE set set2 m{}", n.saturating_sub(8)),
            "SUNIONSTORE set3 set set2".into(),
            "SDIFFSTORE set2 set3 set".into(),
            format!("HSET hash f{} {n} g{few} {n}", n % 30),
            format!("HINCRBY hash count {few}"),
            "HINCRBYFLOAT hash float 0.5".into(),
            format!("HDEL hash f{}", n % 30),
            format!("ZADD zset {few}.5 z{}", n % 50),
            format!("ZADD zset GT CH {} z{}", n % 9, n % 50),
            format!("ZINCRBY zset 2 z{}", n % 50),
            "ZPOPMIN zset 2".into(),
            "ZREMRANGEBYRANK zset 40 -1".into(),
            "ZUNIONSTORE zset2 2 zset zset2 WEIGHTS 1 2 AGGREGATE MIN".into(),
            format!("GEOADD geo 13.{few} 38.{few} p{few}"),
            format!("COPY list copy{few} REPLACE"),
            "COPY hash hash2 REPLACE".into(),
            format!("RENAME s{few} renamed"),
            "RENAMENX list2 list3".into(),
            format!("EXPIREAT s{few} 4000000000"),
            format!("PERSIST long{few}"),
            format!("DEL copy{few} list3"),
            format!("UNLINK s{few} set3"),
            "SORT set2 ALPHA LIMIT 0 5 STORE sorted".into(),
        ];
        lines[self.rng.below(lines.len())].clone()
    }

    fn stream(&mut self, n: u64, op: &mut Op) {
        let consumer = self.rng.below(2);
        let lines = [
            format!("XADD stream * n {n}"),
            format!("XADD stream * n {n} more {n}"),
            "XGROUP CREATE stream g $ MKSTREAM".into(),
            format!("XREADGROUP GROUP g c{consumer} COUNT 2 STREAMS stream >"),
            format!("XREADGROUP GROUP g c{consumer} STREAMS stream 0"),
            format!("XACK2 {n}"),
            format!("XAUTOCLAIM stream g c{consumer} 0 0 COUNT 3"),
            "XTRIM stream MAXLEN ~ 20".into(),
            "XTRIM stream MAXLEN 150".into(),
            format!("XADD ids {n}-1 n {n}"),
            format!("XADD ids MAXLEN 20 {n}-2 n {n}"),
            format!("XDEL ids {}-2", n.saturating_sub(3)),
            format!("XGROUP CREATECONSUMER stream g c{n}"),
            format!("XGROUP DELCONSUMER stream g c{}", n.saturating_sub(2)),
            "XGROUP CREATE ids g 0".into(),
            format!("XREADGROUP GROUP g c{consumer} COUNT 1 STREAMS ids >"),
            format!("XACK ids g {}-1 {}-2", n.saturating_sub(4), n.saturating_sub(6)),
            format!("XSETID ids {}-9", n + 1),
        ];
        let line = lines[self.rng.below(lines.len())].clone();
        match line.strip_prefix("XACK2 ") {
            // (The ids of entries that were added with * are the server's.)
            Some(_) => op.atoms.push(atom("XGROUP SETID stream g 0")),
            None => op.atoms.push(atom(&line)),
        }
    }

    /// What a waiting client takes as soon as it is there. Its queues are empty before.
    fn waiting(&mut self, n: u64, op: &mut Op) {
        let (waiter, push, same) = match self.rng.below(4) {
            0 => ("BLPOP q 0", format!("RPUSH q w{n}"), "LPOP q"),
            1 => ("BLMOVE q list LEFT RIGHT 0", format!("RPUSH q w{n}"), "LMOVE q list LEFT RIGHT"),
            2 => ("BRPOPLPUSH q list2 0", format!("LPUSH q w{n}"), "RPOPLPUSH q list2"),
            _ => ("BZPOPMIN zq 0", format!("ZADD zq 1 w{n}"), "ZPOPMIN zq"),
        };
        op.waiter = Some(words(waiter));
        op.atoms.extend([atom(&push), atom(same)]);
    }

    /// Several keys, and both databases.
    fn transaction(&mut self, n: u64, op: &mut Op) {
        let beside = format!("SELECT {}", self.db + 8);
        let back = format!("SELECT {}", self.db);
        let count = 2 + self.rng.below(4);
        let mut lines: Vec<String> = (0..count).map(|_| self.plain(n)).collect();
        lines.retain(|line| atom(line).repeat == Repeat::Same);
        if self.rng.chance(50) {
            lines.extend([beside, format!("SET other{} {n}", n % 5), "INCR both".into(), back]);
            lines.push("INCR both".into());
        }
        lines.extend(["INCR n".to_owned(), "INCR n2".to_owned()]);
        let commands = lines.iter().map(|line| words(line)).collect();
        op.atoms.push(Atom { commands, repeat: Repeat::Same });
    }

    /// A key that is due in a moment.
    fn due(&mut self, n: u64) -> Atom {
        let ms = 1 + self.rng.below(40);
        let field = n % 4;
        let key = self.rng.pick(&["e", "el", "eh", "es", "ef"]);
        let lines: Vec<String> = match (key, self.rng.below(6)) {
            ("e", 5) => vec![format!("SETEX e 1000 {n}")],
            ("el" | "eh" | "es", 5) => vec![format!("EXPIRE {key} 1000")],
            ("e", 0) => vec![format!("SET e {n} PX {ms}")],
            ("e", 1) => vec![format!("GETEX e PX {ms}")],
            ("e", 2) => vec!["GETEX e PERSIST".into()],
            ("e", 3) => vec!["INCR e".into(), format!("PEXPIRE e {ms}")],
            ("e", _) => vec!["INCR e".into()],
            ("el", 0) => vec![format!("PEXPIRE el {ms}")],
            ("el", _) => vec![format!("RPUSH el {n}")],
            ("es", 0) => vec![format!("PEXPIRE es {ms}")],
            ("es", _) => vec![format!("SADD es {n}")],
            ("ef", 0 | 1) if self.has_fields => {
                vec![format!("HSET ef f{field} {n}"), format!("HPEXPIRE ef {ms} FIELDS 1 f{field}")]
            }
            ("ef", 2) if self.has_fields => vec![format!("HINCRBY ef f{field} 1")],
            ("ef", 3) if self.has_fields => vec![format!("HDEL ef f{field}")],
            ("ef", _) if self.has_fields => vec![format!("HPERSIST ef FIELDS 1 f{field}")],
            (_, 0) => vec![format!("PEXPIRE eh {ms}")],
            _ => vec![format!("HSET eh {field} {n}")],
        };
        let key = if key == "ef" && !self.has_fields { "eh" } else { key };
        let mut commands: Vec<Words> = lines.iter().map(|line| words(line)).collect();
        commands.extend([words(&format!("PEXPIRETIME {key}")), words(&format!("DUMP {key}"))]);
        Atom { commands, repeat: Repeat::Dump(key) }
    }

    /// The private database.
    fn other_db(&mut self, n: u64, op: &mut Op) {
        op.atoms.push(atom(&format!("SELECT {}", self.db + 8)));
        op.atoms.push(match self.rng.below(4) {
            0 => atom("FLUSHDB"),
            1 => atom(&format!("MOVE moved {}", self.db)),
            2 => atom(&format!("COPY other1 copied DB {} REPLACE", self.db)),
            _ => atom(&format!("SET moved {n}")),
        });
        op.atoms.push(atom(&format!("SELECT {}", self.db)));
    }

    fn big(&mut self, n: u64) -> Atom {
        let text = format!("{n}-").repeat(BIG / 8);
        match self.rng.below(5) {
            0 => atom(&format!("SETRANGE big {} {n}", self.rng.below(BIG))),
            1 => atom(&format!("SETRANGE big {BIG} {n}")),
            2 => atom(&format!("SET big {text}")),
            3 => atom(&format!("HSET hash big {text}")),
            _ => atom(&format!("RPUSH list {text}")),
        }
    }
}

/// One command that is repeated as it is.
fn same(line: &str) -> Atom {
    Atom { commands: vec![words(line)], repeat: Repeat::Same }
}

/// One command.
pub fn atom(line: &str) -> Atom {
    let mut one = same(line);
    one.repeat = match line.split(' ').next().expect("a name") {
        "SPOP" => Repeat::Member,
        "XADD" if line.contains(" * ") => Repeat::NewId,
        "XTRIM" if line.contains(" ~ ") => Repeat::Trim,
        "HINCRBYFLOAT" => Repeat::Float,
        // (Two servers may write the same HyperLogLog with other bytes.)
        "PFADD" => return dumped(one, "hll"),
        "PFMERGE" => return dumped(one, "hll2"),
        _ => Repeat::Same,
    };
    one
}

/// The command, and what the key holds then.
fn dumped(mut one: Atom, key: &'static str) -> Atom {
    one.commands.extend([words(&format!("PEXPIRETIME {key}")), words(&format!("DUMP {key}"))]);
    one.repeat = Repeat::Dump(key);
    one
}
