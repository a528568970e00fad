//! Random arguments, many of them at the limits of what commands accept, over few keys, so that
//! commands work on each other's results.

use super::execute::{DATABASES, DUMPED, DUMPED_DAMAGED};
use crate::rng::Rng;

/// Words that become bytes.
pub type Args = Vec<Vec<u8>>;

/// Expiries in milliseconds which have passed after [`SETTLE`](super::execute::SETTLE).
const SHORT_MS: [&str; 2] = ["1", "2"];
/// Keys of the family that a sequence is about.
const KEYS: [&[u8]; 9] =
    [b"a", b"b", b"c", b"d", b"a", b"b", b"{t}1", b"{t}2", b"bin\x00\r\n\xff{}"];
/// Keys which mostly hold values of other types.
const FOREIGN: [&[u8]; 4] = [b"f1", b"f2", b"f3", b""];
/// Channels, one of which is also a pattern.
const CHANNELS: [&[u8]; 7] = [b"a", b"ab", b"b", b"", b"a*", b"a", b"x\x00\r\n"];
/// Patterns that match some of them.
const PATTERNS: [&[u8]; 9] = [b"*", b"a*", b"a?", b"[ab]", b"b", b"\\a", b"ab*", b"", b"?\x00*"];
/// Elements, fields and members.
const MEMBERS: [&[u8]; 16] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"e",
    b"aa",
    b"ab",
    b"B",
    b"",
    b"1",
    b"2",
    b"7",
    b"-3",
    b"x\x00\xff",
    b"1.5",
    b"007",
];

/// The state of one generation.
pub struct Dice {
    /// The random numbers.
    pub rng: Rng,
    /// Whether keys may expire while the sequence runs.
    pub expiring: bool,
    /// Whether the sequence may wait, for an expiry or in a blocking command.
    pub waiting: bool,
    /// The command just made sets a short expiry.
    pub settle: bool,
    /// Percentage of keys which mostly hold values of other types.
    pub foreign: usize,
    /// Expiries made so far.
    expiries: u64,
    /// Different words made so far.
    fresh: u64,
    /// The keys `$1` and `$2` of the current template.
    registers: [Option<Vec<u8>>; 2],
}

impl Dice {
    /// Nothing expires.
    pub fn new(rng: Rng) -> Self {
        Self {
            rng,
            expiring: false,
            waiting: false,
            settle: false,
            foreign: 10,
            expiries: 0,
            fresh: 0,
            registers: [None, None],
        }
    }

    /// Starts a new template.
    pub fn begin(&mut self) {
        self.settle = false;
        self.registers = [None, None];
    }

    /// A repetition count for `<X>`, around the thresholds of encodings.
    pub fn many(&mut self) -> usize {
        match self.rng.below(20) {
            0 => 500 + self.rng.below(30),
            _ => 110 + self.rng.below(30),
        }
    }

    /// Appends the arguments which this word of a template stands for.
    pub fn word(&mut self, word: &str, out: &mut Args) {
        let one = match word {
            "$k" => self.key(),
            "$1" => self.register(0),
            "$2" => self.register(1),
            "$v" => self.value(),
            "$m" => self.member(),
            "$u" => self.unique("", 3),
            "$w" => self.unique("word:", 1),
            "$x" => [b"w_".as_slice(), &self.member()].concat(),
            "$n" => self.integer(),
            "$f" => self.float(),
            "$z" => self.score(),
            "$b" => self.score_bound(),
            "$l" => self.lex_bound(),
            "$i" => self.index(),
            "$c" => self.count(),
            "$d" => self.database(),
            "$s" => self.seconds(),
            "$ms" => self.milliseconds(),
            "$S" => self.moment(1),
            "$MS" => self.moment(1000),
            "$t" => self.timeout(),
            "$o" => self.bit_offset(),
            "$O" => self.far_offset().to_string().into_bytes(),
            "$B" => (self.far_offset() * 8 + self.rng.below(8)).to_string().into_bytes(),
            "$T" => self.bit_type(),
            "$r" => self.radius(),
            "$D" => self.dumped(),
            "$a" => self.rising_id(),
            "$e" => self.entry_id(),
            "$h" => self.rng.pick(&CHANNELS).to_vec(),
            "$q" => self.rng.pick(&PATTERNS).to_vec(),
            "$p" => return self.place(out),
            "$g" => return self.place_with_member(out),
            other => self.spelled(other),
        };
        out.push(one);
    }

    fn spelled(&mut self, word: &str) -> Vec<u8> {
        let mut word = word.as_bytes().to_vec();
        if self.rng.chance(15) {
            word.make_ascii_lowercase();
        }
        word
    }

    /// One of a few keys.
    pub fn key(&mut self) -> Vec<u8> {
        if self.rng.chance(self.foreign) {
            self.rng.pick(&FOREIGN).to_vec()
        } else if self.rng.chance(1) {
            vec![b'L'; 300]
        } else {
            self.rng.pick(&KEYS).to_vec()
        }
    }

    fn register(&mut self, at: usize) -> Vec<u8> {
        let key = self.registers[at].take().unwrap_or_else(|| self.key());
        self.registers[at].insert(key).clone()
    }

    /// An element, mostly one of a few.
    fn member(&mut self) -> Vec<u8> {
        match self.rng.below(100) {
            0..80 => self.rng.pick(&MEMBERS).to_vec(),
            80..88 => self.rng.below(30).to_string().into_bytes(),
            88..92 => self.integer(),
            // The longest element of small encodings, and one byte more.
            92 => vec![b'm'; 63 + self.rng.below(3)],
            _ => self.value(),
        }
    }

    /// A word which is new in the sequence, with at least this many digits.
    fn unique(&mut self, start: &str, digits: usize) -> Vec<u8> {
        self.fresh += 1;
        format!("{start}{:0digits$}", 100 + self.fresh).into_bytes()
    }

    /// A score, valid or not.
    fn score(&mut self) -> Vec<u8> {
        const EDGES: [&str; 29] = [
            "inf",
            "-inf",
            "+inf",
            "nan",
            "-0",
            "0",
            "0.1",
            "-0.1",
            "3.3333333333333335",
            "1e17",
            "1e20",
            "1e308",
            "-1e308",
            "1e-7",
            "5e-324",
            "1e308",
            "9007199254740993",
            "x",
            "",
            " 1",
            "0x10",
            "1.5e0",
            "Infinity",
            "4503599627370497",
            "1700000000123456789",
            "1e16",
            "4611686018427387904",
            "-4611686018427388928",
            "4.7e18",
        ];
        match self.rng.below(10) {
            0..6 => (self.rng.below(12) as i64 - 3).to_string().into_bytes(),
            6 | 7 => format!("{}.5", self.rng.below(5)).into_bytes(),
            _ => self.rng.pick(&EDGES).as_bytes().to_vec(),
        }
    }

    /// An end of a range of scores.
    fn score_bound(&mut self) -> Vec<u8> {
        const EDGES: [&str; 10] =
            ["-inf", "+inf", "(-inf", "(inf", "-inf", "+inf", "(x", "(", "nan", "[1"];
        match self.rng.below(10) {
            0..3 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            3 | 4 => [b"(".as_slice(), &self.score()].concat(),
            _ => self.score(),
        }
    }

    /// An end of a range of members.
    fn lex_bound(&mut self) -> Vec<u8> {
        const EDGES: [&str; 10] = ["-", "+", "-", "+", "[", "(", "a", "+a", "--", ""];
        match self.rng.below(10) {
            0..4 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            4..7 => [b"(".as_slice(), &self.member()].concat(),
            _ => [b"[".as_slice(), &self.member()].concat(),
        }
    }

    /// A small number of elements.
    fn count(&mut self) -> Vec<u8> {
        const EDGES: [&str; 6] = ["-1", "1000", "x", "9223372036854775807", "-5", ""];
        if self.rng.chance(80) {
            self.rng.below(6).to_string().into_bytes()
        } else {
            self.rng.pick(&EDGES).as_bytes().to_vec()
        }
    }

    /// A timeout in seconds: 0 where another connection can serve the command, else very short.
    fn timeout(&mut self) -> Vec<u8> {
        const EDGES: [&str; 7] = ["-1", "x", "1e400", "inf", "nan", "", "0.001"];
        if self.rng.chance(15) {
            self.rng.pick(&EDGES).as_bytes().to_vec()
        } else if self.waiting {
            self.rng.pick(&["0", "0", "0", "1000", "0.01"]).into()
        } else {
            b"0.001".to_vec()
        }
    }

    /// An id for a new entry of a stream, mostly higher than those before.
    fn rising_id(&mut self) -> Vec<u8> {
        const EDGES: [&str; 12] = [
            "0-0",
            "0-*",
            "1-1",
            "x",
            "5-x",
            "-",
            "+",
            "007-1",
            "",
            "1-2-3",
            "99999-99999999999",
            "-5",
        ];
        self.fresh += 1;
        let ms = 10 + self.fresh / 2;
        match self.rng.below(20) {
            0 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            1..6 => format!("{ms}-*").into_bytes(),
            6..9 => format!("{ms}-{}", self.rng.below(100_000)).into_bytes(),
            9 => format!("{}-0", ms * 1_000_000).into_bytes(),
            _ => format!("{ms}-{}", self.fresh).into_bytes(),
        }
    }

    /// An id around those of entries, or an end of a range.
    fn entry_id(&mut self) -> Vec<u8> {
        const EDGES: [&str; 12] = [
            "-",
            "+",
            "0",
            "0-0",
            "(0-0",
            "x",
            "(x",
            "$",
            ">",
            "",
            "18446744073709551615-18446744073709551615",
            "(18446744073709551615-18446744073709551615",
        ];
        let ms = 8 + self.rng.below(6 + self.fresh as usize / 2);
        match self.rng.below(12) {
            0 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            1 => format!("({ms}").into_bytes(),
            2 => format!("{ms}-{}", self.rng.below(4)).into_bytes(),
            3..6 => format!("{ms}-{}", 2 * ms.saturating_sub(10) + self.rng.below(2)).into_bytes(),
            6 => self.rng.pick(&["-", "+", "0"]).as_bytes().to_vec(),
            _ => ms.to_string().into_bytes(),
        }
    }

    fn bit_offset(&mut self) -> Vec<u8> {
        const EDGES: [&str; 9] =
            ["-1", "4294967296", "4294967297", "x", "", "4000", "131072", "#-1", "#4294967296"];
        match self.rng.below(20) {
            0 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            1..4 => format!("#{}", self.rng.below(8)).into_bytes(),
            _ => self.rng.below(100).to_string().into_bytes(),
        }
    }

    /// A byte around the end of a page, or around the length from which strings have pages.
    fn far_offset(&mut self) -> usize {
        const PAGE: usize = 64 << 10;
        let page = [0, 1, 2, 15, 16, 17, 20][self.rng.below(7)];
        (page * PAGE + self.rng.below(9)).saturating_sub(4)
    }

    fn bit_type(&mut self) -> Vec<u8> {
        const EDGES: [&str; 8] = ["u64", "i65", "u0", "i0", "x8", "u", "", "i64"];
        match self.rng.below(20) {
            0 | 1 => self.rng.pick(&EDGES).as_bytes().to_vec(),
            n => format!("{}{}", if n % 2 == 0 { 'u' } else { 'i' }, 1 + self.rng.below(63)).into(),
        }
    }

    fn radius(&mut self) -> Vec<u8> {
        const SOME: [&str; 12] =
            ["0", "1", "100", "500.5", "2000", "20000", "1e7", "-1", "x", "nan", "inf", "300000"];
        self.rng.pick(&SOME).as_bytes().to_vec()
    }

    /// The payload of the last DUMP, or an invalid one.
    fn dumped(&mut self) -> Vec<u8> {
        match self.rng.below(10) {
            0 => DUMPED_DAMAGED.to_vec(),
            1 => self.value(),
            _ => DUMPED.to_vec(),
        }
    }

    /// Longitude and latitude.
    fn place(&mut self, out: &mut Args) {
        const EDGES: [(&str, &str); 8] = [
            ("180", "85.05112878"),
            ("-180", "-85.05112878"),
            ("181", "0"),
            ("0", "86"),
            ("x", "1"),
            ("nan", "0"),
            ("0", "0"),
            ("179.99", "0.01"),
        ];
        if self.rng.chance(15) {
            let (longitude, latitude) = self.rng.pick(&EDGES);
            return out.extend([longitude.into(), latitude.into()]);
        }
        let at = self.rng.below(40);
        put_place(at, out);
    }

    /// A place and a member; two members never share a place, so that no two are equally far.
    fn place_with_member(&mut self, out: &mut Args) {
        let which = self.rng.below(MEMBERS.len());
        let at = which + MEMBERS.len() * self.rng.below(40);
        put_place(at, out);
        out.push(MEMBERS[which].to_vec());
    }

    /// Seconds until an expiry after the end of the test. No two are closer than 100 s, so their
    /// order does not depend on when a command ran.
    fn far_seconds(&mut self) -> u64 {
        self.expiries += 1;
        1000 + self.expiries * 7919 % 1009 * 100
    }

    /// A value, often a number, sometimes long.
    fn value(&mut self) -> Vec<u8> {
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

    /// An integer, valid or not.
    fn integer(&mut self) -> Vec<u8> {
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

    /// A float, valid or not.
    fn float(&mut self) -> Vec<u8> {
        const EDGES: [&str; 24] = [
            "0.1",
            "0.2",
            "-0.3",
            "3.0e3",
            "1e-17",
            "1e-18",
            "1e20",
            "1e308",
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
    fn index(&mut self) -> Vec<u8> {
        match self.rng.below(20) {
            0 => self.integer(),
            1 => b"536870912".to_vec(),
            2 => b"-200".to_vec(),
            3 => b"70000".to_vec(),
            _ => (self.rng.below(30) as i64 - 12).to_string().into_bytes(),
        }
    }

    /// A database, mostly one whose state is compared.
    fn database(&mut self) -> Vec<u8> {
        const WRONG: [&str; 5] = ["16", "-1", "x", "", "99999999999999999999"];
        if self.rng.chance(92) {
            self.rng.below(usize::from(DATABASES)).to_string().into_bytes()
        } else {
            self.rng.pick(&WRONG).as_bytes().to_vec()
        }
    }

    /// An expiry in seconds: far in the future, invalid, or already passed.
    fn seconds(&mut self) -> Vec<u8> {
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
    fn milliseconds(&mut self) -> Vec<u8> {
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
    fn moment(&mut self, per_second: u64) -> Vec<u8> {
        const FUTURE_S: u64 = 4_000_000_000;
        match self.rng.below(10) {
            0 if self.expiring => self.seconds(),
            // SET accepts a time in the past; the key then exists but is due.
            1 | 2 if self.expiring => {
                self.rng.pick(&["1", "1000", "1600000000"]).as_bytes().to_vec()
            }
            n => ((FUTURE_S + n as u64 * 1000) * per_second).to_string().into_bytes(),
        }
    }
}

/// Appends distinct coordinates, clustered around a few cities.
fn put_place(at: usize, out: &mut Args) {
    const CITIES: [(f64, f64); 5] = [
        (13.361_389, 38.115_556),
        (15.087_269, 37.502_669),
        (2.35, 48.85),
        (-74.0, 40.7),
        (179.9, -17.7),
    ];
    let (longitude, latitude) = CITIES[at % CITIES.len()];
    let away = at as f64;
    out.push(format!("{:.6}", longitude - away * 0.013_717).into_bytes());
    out.push(format!("{:.6}", latitude + away * 0.009_131).into_bytes());
}
