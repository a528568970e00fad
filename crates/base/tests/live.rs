//! Random operands compared with a real redis-server, if there is one on PATH: floats, extended
//! sums, integers and glob patterns must be accepted, refused and answered the same way.
//!
//! `SHEAFDB_LIVE_SEED` and `SHEAFDB_LIVE_ROUNDS` repeat or extend a run. Without a redis-server the
//! tests pass with a note, unless `CI` is set: then they fail.

#[path = "support/live.rs"]
mod support;

use base::glob::{Case, matches};
use base::longdouble::LongDouble;
use base::prng::Prng;
use base::{double, num};
use support::{Answer, Live};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number in the setting"))
}

/// Runs `round` repeatedly with a live server and a seeded generator.
fn rounds(default: u64, mut round: impl FnMut(&mut Live, &mut Prng)) {
    let Some(mut live) = Live::start() else { return };
    let seed = setting("SHEAFDB_LIVE_SEED", 20_240_229);
    let mut prng = Prng::new(seed);
    for _ in 0..setting("SHEAFDB_LIVE_ROUNDS", default) {
        round(&mut live, &mut prng);
    }
}

fn pick<'a>(prng: &mut Prng, among: &[&'a str]) -> &'a str {
    among[prng.below(among.len() as u64) as usize]
}

fn digits(prng: &mut Prng, most: u64) -> String {
    (0..=prng.below(most)).map(|_| char::from(b'0' + prng.below(10) as u8)).collect()
}

/// A text which usually is a number of any size, sometimes near the ends of the range.
fn number(prng: &mut Prng) -> String {
    let sign = pick(prng, &["", "", "", "-", "+"]);
    let body = match prng.below(8) {
        0 => digits(prng, 8),
        1 => format!("{}.{}", digits(prng, 6), digits(prng, 8)),
        2 => format!("{}.{}", digits(prng, 22), digits(prng, 24)),
        3 => {
            let exponent = prng.below(80) as i64 - 40;
            format!("{}.{}e{exponent}", digits(prng, 3), digits(prng, 20))
        }
        4 => {
            let exponent = prng.below(9_940) as i64 - 4_980;
            format!("{}.{}E{exponent}", digits(prng, 2), digits(prng, 20))
        }
        5 => format!("0x{:x}.{:x}p{}", prng.draw(), prng.draw(), prng.below(200) as i64 - 120),
        6 => (u128::from(prng.draw() | 1 << 63) * 2 + 1).to_string(), // a tie of 64 bits
        _ => pick(
            prng,
            &[
                "0", "1", "0.1", "0.2", "5e-18", "1e17", "inf", "nan", "1e-324", "1e309", "", ".",
                "1e",
            ],
        )
        .to_string(),
    };
    let tail = if prng.chance(1, 40) { pick(prng, &[" ", "\0", "x", "e", "."]) } else { "" };
    format!("{sign}{body}{tail}")
}

#[test]
fn extended_sums_match_redis() {
    rounds(2_000, |live, prng| {
        let (stored, by) = (number(prng), number(prng));
        live.call(&[b"SET", b"k", stored.as_bytes()]);
        let answer = live.call(&[b"INCRBYFLOAT", b"k", by.as_bytes()]);
        let operands = LongDouble::parse(stored.as_bytes()).zip(LongDouble::parse(by.as_bytes()));
        let ours = match operands.map(|(stored, by)| stored.checked_add(by)) {
            None => Answer::Error("ERR value is not a valid float".into()),
            Some(None) => Answer::Error("ERR increment would produce NaN or Infinity".into()),
            Some(Some(sum)) => {
                let mut out = Vec::new();
                sum.write(&mut out);
                Answer::Bulk(Some(out))
            }
        };
        assert_eq!(ours, answer, "{stored:?} + {by:?}");
    });
}

#[test]
fn doubles_match_redis() {
    rounds(2_000, |live, prng| {
        let text = number(prng);
        live.call(&[b"DEL", b"z"]);
        let taken = live.call(&[b"ZADD", b"z", text.as_bytes(), b"m"]);
        let ours = double::parse(text.as_bytes());
        assert_eq!(matches!(taken, Answer::Integer(1)), ours.is_some(), "{text:?}: {taken:?}");
        if let Some(ours) = ours {
            let Answer::Bulk(Some(score)) = live.call(&[b"ZSCORE", b"z", b"m"]) else {
                panic!("the score of {text:?}")
            };
            // Compared as numbers: a small sorted set loses the sign of zero.
            assert_eq!(double::parse(&score), Some(ours), "{text:?}");
            let mut written = Vec::new();
            double::write(&mut written, ours);
            live.call(&[b"ZADD", b"z", &written, b"m"]);
            let again = live.call(&[b"ZSCORE", b"z", b"m"]);
            assert_eq!(again, Answer::Bulk(Some(score)), "{text:?} written as {written:?}");
        }
    });
}

#[test]
fn integers_match_redis() {
    rounds(1_000, |live, prng| {
        let text = match prng.below(3) {
            0 => format!("{}{}", pick(prng, &["", "-", "+", " ", "0", "-0"]), digits(prng, 21)),
            1 => ((prng.draw() as i64) >> prng.below(64)).to_string(),
            _ => (i128::from(
                pick(prng, &["9223372036854775807", "-9223372036854775808", "0"])
                    .parse::<i64>()
                    .expect("an integer"),
            ) + i128::from(prng.below(5))
                - 2)
            .to_string(),
        };
        live.call(&[b"SET", b"k", text.as_bytes()]);
        let answer = live.call(&[b"INCRBY", b"k", b"0"]);
        let ours = match num::parse_i64(text.as_bytes()) {
            Some(value) => Answer::Integer(value),
            None => Answer::Error("ERR value is not an integer or out of range".into()),
        };
        assert_eq!(ours, answer, "{text:?}");
    });
}

#[test]
fn patterns_match_redis() {
    let draw = |prng: &mut Prng, most, among: &[&str]| -> String {
        (0..=prng.below(most)).map(|_| pick(prng, among)).collect()
    };
    rounds(2_000, |live, prng| {
        let pattern = draw(prng, 9, &["a", "b", "c", "*", "?", "[", "]", "^", "-", "\\"]);
        let key = draw(prng, 4, &["a", "b", "c", "d", "*", "[", "]", "^", "-", "\\"]);
        live.call(&[b"FLUSHALL"]);
        live.call(&[b"SET", key.as_bytes(), b""]);
        let Answer::Array(found) = live.call(&[b"KEYS", pattern.as_bytes()]) else {
            panic!("KEYS answers an array")
        };
        let ours = matches(pattern.as_bytes(), key.as_bytes(), Case::Sensitive);
        assert_eq!(ours, found.len() == 1, "{pattern:?} on {key:?}");
    });
}
