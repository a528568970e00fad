//! From a seed to a sequence: few keys, so that commands meet each other's work, and values that sit
//! on the edges of what the commands accept.

use super::execute::DATABASES;
use super::family;
use super::sequence::{Delivery, Sequence, Step};
use crate::rng::Rng;

/// Steps of the longest sequence.
const STEPS_MAX: usize = 60;
/// Expiries of so many milliseconds are over after settling.
const SHORT_MS: [&str; 2] = ["1", "2"];

/// Words that become bytes.
pub type Args = Vec<Vec<u8>>;

/// The state of one generation.
pub struct Dice {
    /// Where chance comes from.
    pub rng: Rng,
    /// May keys expire while the sequence runs? Commands that see due keys are left out then.
    pub expiring: bool,
    /// May the sequence wait for an expiry?
    waiting: bool,
    /// The command just made sets a short expiry.
    pub settle: bool,
    /// Expiries made so far.
    expiries: u64,
}

/// The sequence of this seed.
pub fn generate(seed: u64) -> Sequence {
    let mut rng = Rng::new(seed);
    let proto = rng.pick(&[2, 3]);
    let delivery = match rng.below(10) {
        0..5 => Delivery::OneByOne,
        5..8 => Delivery::Pipelined,
        _ => Delivery::Pieces(1 + rng.below(60)),
    };
    let alone = delivery != Delivery::OneByOne;
    let expiring = rng.chance(35);
    let conns = if alone { 1 } else { 1 + rng.below(3) };
    let count = 4 + rng.below(STEPS_MAX - 4);
    let mut dice = Dice { expiring, waiting: !alone, ..Dice::new(rng) };
    let mut steps = Vec::new();
    while steps.len() < count {
        let conn = 1 + dice.rng.below(conns) as u8;
        if dice.rng.chance(8) {
            transaction(&mut dice, conn, conns, &mut steps);
        } else {
            steps.push(dice.step(conn));
        }
    }
    Sequence { proto, delivery, steps }
}

/// A whole transaction, often with a watch before it and somebody else's write in between.
fn transaction(dice: &mut Dice, conn: u8, conns: usize, steps: &mut Vec<Step>) {
    let plain = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let step = |args, settle| Step { conn, args, settle };
    if dice.rng.chance(40) {
        let mut args: Args = plain(&["WATCH"]);
        args.extend((0..=dice.rng.below(2)).map(|_| dice.key()));
        steps.push(step(args, false));
        for _ in 0..dice.rng.below(3) {
            let other = 1 + dice.rng.below(conns) as u8;
            steps.push(dice.step(other));
        }
    }
    steps.push(step(plain(&["MULTI"]), false));
    let mut settle = false;
    for _ in 0..dice.rng.below(6) {
        let mut inner = dice.step(conn);
        settle |= std::mem::take(&mut inner.settle);
        steps.push(inner);
    }
    if conns > 1 && dice.rng.chance(30) {
        let other = 1 + dice.rng.below(conns) as u8;
        if other != conn {
            steps.push(dice.step(other));
        }
    }
    let end = if dice.rng.chance(85) { "EXEC" } else { "DISCARD" };
    steps.push(step(plain(&[end]), settle));
}

impl Dice {
    /// Nothing expires.
    pub fn new(rng: Rng) -> Self {
        Self { rng, expiring: false, waiting: false, settle: false, expiries: 0 }
    }

    /// Seconds until an expiry that this test does not live to see. No two are closer than 100, so
    /// that which of two is later never depends on when a command ran.
    fn far_seconds(&mut self) -> u64 {
        self.expiries += 1;
        1000 + self.expiries * 7919 % 1009 * 100
    }

    /// One command of any family, sometimes spoiled.
    fn step(&mut self, conn: u8) -> Step {
        self.settle = false;
        let mut args = match self.rng.below(100) {
            0..38 => family::string::command(self),
            38..52 => family::bitmap::command(self),
            52..62 => family::hyperloglog::command(self),
            62..90 => family::generic::command(self),
            90..97 => family::database::command(self),
            _ => family::transactions::command(self),
        };
        self.spoil(&mut args);
        Step { conn, args, settle: self.settle }
    }

    /// Now and then the mistakes that clients make.
    fn spoil(&mut self, args: &mut Args) {
        match self.rng.below(100) {
            0..2 if args.len() > 1 => {
                args.pop();
            }
            2..4 => args.push(self.value()),
            4 if args.len() > 2 => {
                let at = 1 + self.rng.below(args.len() - 1);
                args[at] = self.value();
            }
            5 if args.len() > 2 => {
                let (a, b) = (self.rng.below(args.len() - 1), self.rng.below(args.len() - 1));
                args.swap(1 + a, 1 + b);
            }
            6 if self.rng.chance(30) => args[0] = b"NOSUCHCOMMAND".to_vec(),
            7..20 => {
                for byte in &mut args[0] {
                    if self.rng.chance(50) {
                        *byte = byte.to_ascii_lowercase();
                    }
                }
            }
            _ => {}
        }
    }

    /// Builds a command: `$k` is a key, `$v` a value, `$n` an integer, `$f` a float, `$i` an index,
    /// `$b` an offset of a bit, `$t` a type of BITFIELD, `$h` a key of HyperLogLogs, `$many` a lot of
    /// elements, `$d` a database, `$s`/`$ms` an expiry, `$S`/`$MS` a point in time; other words stand as they are.
    pub fn words(&mut self, text: &str) -> Args {
        let mut words = Args::new();
        for word in text.split_whitespace() {
            if word == "$many" {
                self.elements(&mut words);
            } else {
                words.push(self.word(word));
            }
        }
        words
    }

    fn word(&mut self, word: &str) -> Vec<u8> {
        match word {
            "$k" => self.key(),
            "$v" => self.value(),
            "$n" => self.integer(),
            "$f" => self.float(),
            "$i" => self.index(),
            "$b" => self.bit_offset(),
            "$t" => self.field_type(),
            "$h" => self.rng.pick(&[b"h1", b"h2", b"h3"]).to_vec(),
            "$d" => self.database(),
            "$s" => self.seconds(),
            "$ms" => self.milliseconds(),
            "$S" => self.moment(1),
            "$MS" => self.moment(1000),
            other => {
                let mut word = other.as_bytes().to_vec();
                if self.rng.chance(15) {
                    word.make_ascii_lowercase();
                }
                word
            }
        }
    }

    /// One of a few keys.
    pub fn key(&mut self) -> Vec<u8> {
        const KEYS: [&[u8]; 8] =
            [b"a", b"b", b"c", b"d", b"{t}1", b"{t}2", b"", b"bin\x00\r\n\xff{}"];
        let long: [&[u8]; 1] = [&[b'L'; 300]];
        if self.rng.chance(3) { long[0].to_vec() } else { self.rng.pick(&KEYS).to_vec() }
    }

    /// A value, often a number, sometimes long.
    pub fn value(&mut self) -> Vec<u8> {
        match self.rng.below(100) {
            0..30 => self.integer(),
            30..45 => self.float(),
            45..85 => {
                const WORDS: [&[u8]; 10] = [
                    b"",
                    b"x",
                    b"ohmytext",
                    b"mynewtext",
                    b"NX",
                    b"GET",
                    b"\x00\xff\r\n",
                    b"abcabcabcabc",
                    b"01234567890123456789012345678901234567890123",
                    b"012345678901234567890123456789012345678901234",
                ];
                self.rng.pick(&WORDS).to_vec()
            }
            85..97 => {
                let len = self.rng.below(200);
                self.rng.bytes(len)
            }
            97 => vec![b'm'; 16_000 + self.rng.below(800)],
            98 => vec![b'b'; 32_700 + self.rng.below(100)],
            _ => vec![b'B'; 70_000],
        }
    }

    /// An integer, or what only looks like one.
    pub fn integer(&mut self) -> Vec<u8> {
        const EDGES: [&str; 22] = [
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "-9223372036854775809",
            "9223372036854775806",
            "18446744073709551616",
            "4294967296",
            "2147483648",
            "-2147483649",
            "00",
            "01",
            "-0",
            "+1",
            " 1",
            "1 ",
            "",
            "1.0",
            "1e3",
            "0x10",
            "nan",
            "9999",
            "10000",
        ];
        if self.rng.chance(75) {
            (self.rng.below(24) as i64 - 8).to_string().into_bytes()
        } else {
            self.rng.pick(&EDGES).as_bytes().to_vec()
        }
    }

    /// A float, or what only looks like one.
    pub fn float(&mut self) -> Vec<u8> {
        const EDGES: [&str; 24] = [
            "0.1",
            "0.2",
            "-0.3",
            "3.0e3",
            "1e-17",
            "1e-18",
            "1e20",
            "1e400",
            "-1e4931",
            "inf",
            "-inf",
            "nan",
            ".5",
            "5.",
            "1e",
            "0x1p3",
            " 1.5",
            "1.5 ",
            "",
            "-0",
            "1.0000000000001",
            "123456.000000000000012345",
            "1e30",
            "99999999999999999999.5",
        ];
        if self.rng.chance(40) {
            let n = self.rng.below(2_000_000) as f64 / 1000.0 - 1000.0;
            n.to_string().into_bytes()
        } else {
            self.rng.pick(&EDGES).as_bytes().to_vec()
        }
    }

    /// A position in a string.
    pub fn index(&mut self) -> Vec<u8> {
        match self.rng.below(20) {
            0 => self.integer(),
            1 => b"536870912".to_vec(),
            2 => b"-200".to_vec(),
            3 => b"70000".to_vec(),
            _ => (self.rng.below(30) as i64 - 12).to_string().into_bytes(),
        }
    }

    /// An offset of a bit, plain or in steps of a type's width.
    fn bit_offset(&mut self) -> Vec<u8> {
        const ODD: [&str; 7] = ["4294967296", "#536870912", "#", "#-1", "# 1", "-1", "#x"];
        match self.rng.below(40) {
            0 => self.integer(),
            1 => self.rng.pick(&ODD).as_bytes().to_vec(),
            2 => (100_000 + self.rng.below(80_000)).to_string().into_bytes(),
            3 => self.rng.below(9_000).to_string().into_bytes(),
            4..12 => format!("#{}", self.rng.below(9)).into_bytes(),
            _ => self.rng.below(200).to_string().into_bytes(),
        }
    }

    /// A type of BITFIELD, or what only looks like one.
    fn field_type(&mut self) -> Vec<u8> {
        const ODD: [&str; 8] = ["u64", "i65", "i0", "u0", "x8", "i", "U8", "u-1"];
        match self.rng.below(12) {
            0 if self.rng.chance(30) => self.rng.pick(&ODD).as_bytes().to_vec(),
            0 | 1 => self.rng.pick(&["i64", "u63", "i1", "u1", "i63"]).as_bytes().to_vec(),
            n => {
                let sign = if n % 2 == 0 { 'i' } else { 'u' };
                format!("{sign}{}", 1 + self.rng.below(63)).into_bytes()
            }
        }
    }

    /// Enough different elements to fill runs, or to make a sketch dense.
    fn elements(&mut self, words: &mut Args) {
        let (first, count) = (self.rng.below(1000), self.rng.pick(&[30, 200, 900]));
        words.extend((first..first + count).map(|n| format!("e{n}").into_bytes()));
    }

    /// A database, mostly one whose state is compared.
    pub fn database(&mut self) -> Vec<u8> {
        const WRONG: [&str; 5] = ["16", "-1", "x", "", "99999999999999999999"];
        if self.rng.chance(92) {
            self.rng.below(usize::from(DATABASES)).to_string().into_bytes()
        } else {
            self.rng.pick(&WRONG).as_bytes().to_vec()
        }
    }

    /// An expiry in seconds: far away, or refused, or over at once.
    pub fn seconds(&mut self) -> Vec<u8> {
        const ODD: [&str; 10] = [
            "0",
            "-1",
            "-100",
            "x",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775",
            "9223370400000000",
            "",
            "1.5",
        ];
        if self.rng.chance(75) {
            self.far_seconds().to_string().into_bytes()
        } else {
            self.rng.pick(&ODD).as_bytes().to_vec()
        }
    }

    /// The same in milliseconds; short ones where keys may expire while the sequence runs.
    pub fn milliseconds(&mut self) -> Vec<u8> {
        if self.expiring && self.waiting && self.rng.chance(40) {
            self.settle = true;
            return self.rng.pick(&SHORT_MS).as_bytes().to_vec();
        }
        if self.rng.chance(75) {
            (self.far_seconds() * 1000).to_string().into_bytes()
        } else {
            self.seconds()
        }
    }

    /// A point in time in units of `1/per_second` s: long ago, or far in the future.
    pub fn moment(&mut self, per_second: u64) -> Vec<u8> {
        const FUTURE_S: u64 = 4_000_000_000;
        match self.rng.below(10) {
            0 if self.expiring => self.seconds(),
            // SET takes a time that is over, and then the key is due but there.
            1 | 2 if self.expiring => {
                self.rng.pick(&["1", "1000", "1600000000"]).as_bytes().to_vec()
            }
            n => ((FUTURE_S + n as u64 * 1000) * per_second).to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_repeat_and_differ() {
        assert_eq!(generate(5), generate(5));
        assert_ne!(generate(5), generate(6));
    }

    #[test]
    fn pipelines_use_one_connection_and_never_wait() {
        for sequence in (0..300).map(generate) {
            let alone = sequence.delivery != Delivery::OneByOne;
            assert!(sequence.steps.iter().all(|step| !alone || (step.conn == 1 && !step.settle)));
        }
    }
}
