//! Requests as bytes with holes: encoded once, so that a request costs a copy and some digits.

use base::num::write_u64;
use base::prng::Prng;

use super::values;

/// Keys and `__rand_int__` have this many digits.
pub const DIGITS: usize = 12;
/// First number that has more.
pub const TEN_TO_TWELVE: u64 = 1_000_000_000_000;

/// What stands in an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// These bytes.
    Text(Vec<u8>),
    /// `__key__`: the keys' prefix and twelve digits.
    Key,
    /// `__rand_int__`: twelve digits.
    Random,
    /// `__int__`: a number in as many digits as it needs, as commands want positions.
    Int,
    /// `__int+N__`: the last number of the request and `N` more, for the other end of a range.
    Plus(u64),
    /// `__data__`: a value.
    Data,
}

/// Splits an argument into its tokens. The prefix of the keys before `__rand_int__` is a key,
/// because that is how redis-benchmark spells one.
pub fn tokens(arg: &[u8], prefix: &str) -> Vec<Token> {
    const WORDS: [(&[u8], Token); 3] =
        [(b"__key__", Token::Key), (b"__rand_int__", Token::Random), (b"__data__", Token::Data)];
    let mut found = Vec::new();
    let (mut text, mut at) = (Vec::new(), 0);
    while at < arg.len() {
        let word = WORDS.iter().find(|(word, _)| arg[at..].starts_with(word));
        let word =
            word.map(|(word, token)| (word.len(), token.clone())).or_else(|| int(&arg[at..]));
        if let Some((len, token)) = word {
            if !text.is_empty() {
                found.push(Token::Text(std::mem::take(&mut text)));
            }
            found.push(token);
            at += len;
        } else {
            text.push(arg[at]);
            at += 1;
        }
    }
    if !text.is_empty() || found.is_empty() {
        found.push(Token::Text(text));
    }
    match &found[..] {
        [Token::Text(before), Token::Random] if before == prefix.as_bytes() => vec![Token::Key],
        _ => found,
    }
}

/// `__int__` or `__int+N__` at the beginning, and its length.
fn int(arg: &[u8]) -> Option<(usize, Token)> {
    let rest = arg.strip_prefix(b"__int")?;
    if rest.starts_with(b"__") {
        return Some((b"__int__".len(), Token::Int));
    }
    let digits = rest.strip_prefix(b"+")?;
    let end = digits.windows(2).position(|two| two == b"__")?;
    let more = base::num::parse_i64(&digits[..end]).and_then(|more| u64::try_from(more).ok())?;
    (more < TEN_TO_TWELVE).then_some((b"__int+__".len() + end, Token::Plus(more)))
}

/// What is filled into a request, one thing after the other.
pub trait Fill {
    /// The number of the next key.
    fn key(&mut self) -> u64;
    /// The next number that is no key.
    fn random(&mut self) -> u64;
    /// The length of the next value.
    fn data_len(&mut self) -> usize;
    /// The next value, as long as `data_len` said (or as the template fixes it).
    fn data(&mut self, into: &mut [u8]);
}

/// A command, encoded.
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    /// Bytes whose length never changes, with holes in them.
    Fixed { bytes: Vec<u8>, holes: Vec<Hole> },
    /// An argument whose length is drawn: its tokens.
    Drawn(Vec<Token>),
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    at: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Key,
    Random,
    Data(usize),
}

/// How values come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// So many bytes of filler that never change.
    Constant(usize),
    /// So many bytes, asked for each time.
    Filled(usize),
    /// Length and bytes are asked for each time.
    Drawn,
}

impl Template {
    /// Encodes a command.
    pub fn new(args: &[Vec<Token>], prefix: &str, data: Data) -> Self {
        let mut template = Self { pieces: Vec::new() };
        template.fixed(|bytes, _| header(bytes, b'*', args.len()));
        for arg in args {
            let number = |token: &Token| matches!(token, Token::Int | Token::Plus(_));
            if data == Data::Drawn && arg.contains(&Token::Data) || arg.iter().any(number) {
                template.pieces.push(Piece::Drawn(expand(arg, prefix)));
            } else {
                template.fixed(|bytes, holes| argument(bytes, holes, arg, prefix, data));
            }
        }
        template
    }

    /// A command on one line, without holes.
    pub fn inline(words: &[Vec<u8>]) -> Self {
        let bytes = [words.join(&b' '), b"\r\n".to_vec()].concat();
        Self { pieces: vec![Piece::Fixed { bytes, holes: Vec::new() }] }
    }

    fn fixed(&mut self, write: impl FnOnce(&mut Vec<u8>, &mut Vec<Hole>)) {
        if !matches!(self.pieces.last(), Some(Piece::Fixed { .. })) {
            self.pieces.push(Piece::Fixed { bytes: Vec::new(), holes: Vec::new() });
        }
        if let Some(Piece::Fixed { bytes, holes }) = self.pieces.last_mut() {
            write(bytes, holes);
        }
    }

    /// Appends one request to `out`.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, fill: &mut impl Fill) {
        let mut last = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Fixed { bytes, holes } => {
                    let start = out.len();
                    out.extend_from_slice(bytes);
                    let fresh = &mut out[start..];
                    for hole in holes {
                        match hole.what {
                            What::Key => put_digits(&mut fresh[hole.at..], fill.key()),
                            What::Random => {
                                last = fill.random();
                                put_digits(&mut fresh[hole.at..], last);
                            }
                            What::Data(len) => fill.data(&mut fresh[hole.at..hole.at + len]),
                        }
                    }
                }
                Piece::Drawn(tokens) => drawn(out, tokens, fill, &mut last),
            }
        }
    }
}

/// A key's prefix becomes text, so that only digits are left to draw; `Key` then means the digits.
fn expand(arg: &[Token], prefix: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for token in arg {
        if *token == Token::Key {
            tokens.push(Token::Text(prefix.as_bytes().to_vec()));
        }
        tokens.push(token.clone());
    }
    tokens
}

fn argument(bytes: &mut Vec<u8>, holes: &mut Vec<Hole>, arg: &[Token], prefix: &str, data: Data) {
    let data_len = match data {
        Data::Constant(len) | Data::Filled(len) => len,
        Data::Drawn => 0,
    };
    let tokens = expand(arg, prefix);
    let len: usize = tokens.iter().map(|token| token_len(token, data_len)).sum();
    header(bytes, b'$', len);
    for token in &tokens {
        let at = bytes.len();
        let mut hole = |what| holes.push(Hole { at, what });
        match token {
            Token::Text(text) => bytes.extend_from_slice(text),
            Token::Key => hole(What::Key),
            Token::Random => hole(What::Random),
            Token::Data if matches!(data, Data::Filled(_)) => hole(What::Data(data_len)),
            Token::Data => {}
            Token::Int | Token::Plus(_) => unreachable!("its length is drawn"),
        }
        bytes.resize(at + token_len(token, data_len), values::FILLER);
    }
    bytes.extend_from_slice(b"\r\n");
}

fn token_len(token: &Token, data_len: usize) -> usize {
    match token {
        Token::Text(text) => text.len(),
        Token::Key | Token::Random => DIGITS,
        Token::Data => data_len,
        Token::Int | Token::Plus(_) => unreachable!("its length is drawn"),
    }
}

/// Writes an argument whose length is known when it is drawn; `last` is the request's last number.
fn drawn(out: &mut Vec<u8>, tokens: &[Token], fill: &mut impl Fill, last: &mut u64) {
    let data_len = if tokens.contains(&Token::Data) { fill.data_len() } else { 0 };
    let numbers: Vec<Option<u64>> = tokens.iter().map(|token| number(token, fill, last)).collect();
    let lens = tokens.iter().zip(&numbers).map(|(token, number)| match number {
        Some(number) => number.checked_ilog10().unwrap_or(0) as usize + 1,
        None => token_len(token, data_len),
    });
    header(out, b'$', lens.sum());
    for (token, number) in tokens.iter().zip(numbers) {
        if let Some(number) = number {
            write_u64(out, number);
            continue;
        }
        let at = out.len();
        match token {
            Token::Text(text) => out.extend_from_slice(text),
            _ => out.resize(at + token_len(token, data_len), values::FILLER),
        }
        match token {
            Token::Text(_) => {}
            Token::Key => put_digits(&mut out[at..], fill.key()),
            Token::Data => fill.data(&mut out[at..]),
            Token::Random => {
                *last = fill.random();
                put_digits(&mut out[at..], *last);
            }
            Token::Int | Token::Plus(_) => unreachable!("it was a number"),
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The number that a token stands for, if it is one of those in as many digits as they need.
fn number(token: &Token, fill: &mut impl Fill, last: &mut u64) -> Option<u64> {
    match token {
        Token::Int => {
            *last = fill.random();
            Some(*last)
        }
        Token::Plus(more) => Some(*last + more),
        _ => None,
    }
}

fn header(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.push(kind);
    write_u64(out, len as u64);
    out.extend_from_slice(b"\r\n");
}

/// Writes twelve digits. `number` must be below [`TEN_TO_TWELVE`].
#[inline]
pub fn put_digits(into: &mut [u8], number: u64) {
    let (high, low) = ((number / 100_000_000) as u32, (number % 100_000_000) as u32);
    into[..4].copy_from_slice(&eight_digits(high).to_le_bytes()[4..]);
    into[4..DIGITS].copy_from_slice(&eight_digits(low).to_le_bytes());
}

/// Eight decimal digits of a number below 10^8, the first in the lowest byte: halves, quarters and
/// eighths are split off in the lanes of one word, dividing by multiplication with a reciprocal
/// that is exact in that range (10486/2^20 for 100 below 10,000; 103/2^10 for 10 below 100).
#[inline]
fn eight_digits(number: u32) -> u64 {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = (halves - 100 * hundreds) << 16 | hundreds;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    ((pairs - 10 * tens) << 8 | tens) | 0x3030_3030_3030_3030
}

/// Draws a length between two, both included.
#[inline]
pub fn draw_len(prng: &mut Prng, (low, high): (usize, usize)) -> usize {
    if low == high { low } else { low + prng.below((high - low + 1) as u64) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequential keys, a constant number, and values which grow by one byte each time.
    struct Count {
        key: u64,
        number: u64,
        len: usize,
    }

    impl Fill for Count {
        fn key(&mut self) -> u64 {
            self.key += 1;
            self.key - 1
        }
        fn random(&mut self) -> u64 {
            self.number
        }
        fn data_len(&mut self) -> usize {
            self.len += 1;
            self.len
        }
        fn data(&mut self, into: &mut [u8]) {
            into.fill(b'd');
        }
    }

    fn written(words: &[&str], data: Data) -> String {
        let args: Vec<_> = words.iter().map(|word| tokens(word.as_bytes(), "key:")).collect();
        let (mut out, mut count) = (Vec::new(), Count { key: 7, number: 100, len: 1 });
        Template::new(&args, "key:", data).write(&mut out, &mut count);
        String::from_utf8(out).expect("these are ASCII").replace("\r\n", "|")
    }

    #[test]
    fn placeholders_are_filled_in_place() {
        assert_eq!(written(&["PING"], Data::Constant(3)), "*1|$4|PING|");
        assert_eq!(
            written(&["SET", "__key__", "__data__"], Data::Constant(3)),
            "*3|$3|SET|$16|key:000000000007|$3|xxx|"
        );
        assert_eq!(
            written(&["SET", "key:__rand_int__", "a__data__b"], Data::Filled(2)),
            "*3|$3|SET|$16|key:000000000007|$4|addb|"
        );
        assert_eq!(
            written(&["MSET", "__key__", "__data__", "__key__", "__data__"], Data::Drawn),
            "*5|$4|MSET|$16|key:000000000007|$2|dd|$16|key:000000000008|$3|ddd|"
        );
        assert_eq!(
            written(&["X", "e:__rand_int__", "", "__key__:__data__"], Data::Drawn),
            "*4|$1|X|$14|e:000000000100|$0||$19|key:000000000007:dd|"
        );
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        assert_eq!(
            written(&["ZRANGE", "z", "__int__", "__int+9__"], Data::Constant(3)),
            "*4|$6|ZRANGE|$1|z|$3|100|$3|109|"
        );
        assert_eq!(
            written(&["SADD", "s__int__:__key__", "__int+x__ __data__"], Data::Drawn),
            "*3|$4|SADD|$21|s100:key:000000000007|$12|__int+x__ dd|"
        );
        let (mut out, mut zero) = (Vec::new(), Count { key: 0, number: 0, len: 0 });
        let args = [tokens(b"__int__", ""), tokens(b"__int+0__", "")];
        Template::new(&args, "", Data::Constant(3)).write(&mut out, &mut zero);
        assert_eq!(out, b"*2\r\n$1\r\n0\r\n$1\r\n0\r\n");
    }

    #[test]
    fn an_inline_command_is_written_as_its_words() {
        let (mut out, mut count) = (Vec::new(), Count { key: 0, number: 0, len: 0 });
        Template::inline(&[b"PING".to_vec(), b"x".to_vec()]).write(&mut out, &mut count);
        assert_eq!(out, b"PING x\r\n");
    }

    #[test]
    fn put_digits_writes_twelve_digits() {
        let mut prng = Prng::new(5);
        let edges = [0, 9, 10, 99, 100, 9_999, 10_000, 99_999_999, 100_000_000, TEN_TO_TWELVE - 1];
        let drawn: Vec<u64> = (0..20_000).map(|_| prng.below(TEN_TO_TWELVE)).collect();
        for number in edges.into_iter().chain(drawn).chain(0..10_000) {
            let mut text = [0; DIGITS];
            put_digits(&mut text, number);
            assert_eq!(std::str::from_utf8(&text), Ok(format!("{number:012}").as_str()));
        }
    }

    #[test]
    fn random_lengths_include_both_limits() {
        let mut prng = Prng::new(1);
        let drawn: Vec<usize> = (0..200).map(|_| draw_len(&mut prng, (3, 5))).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&5)));
        assert_eq!(draw_len(&mut prng, (4, 4)), 4);
    }
}
