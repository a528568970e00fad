//! The elements with what they are sorted by.

use std::cmp::Ordering;

use base::Blob;
use value::keyed::Val;

use crate::collection::REFERENCE_MIN;
use crate::error::Error;

/// Bytes of one piece of texts: what grows is never copied, and each piece is freed quickly.
const PIECE_BYTES: usize = 64 * 1024;

/// The piece of a text which is not in a piece, but a reference.
const REFERENCE: u32 = u32::MAX;

/// Short texts one after the other, in pieces, and references to long ones.
#[derive(Default)]
pub(crate) struct Texts {
    pieces: Vec<Vec<u8>>,
    references: Vec<Blob>,
}

/// Where a text stands.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    piece: u32,
    /// Its first byte in the piece, or the index of its reference.
    at: u32,
    len: u32,
}

impl Texts {
    /// Copies a text. One that is longer than a piece gets its own.
    pub fn push(&mut self, text: &[u8]) -> Text {
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= text.len();
        if !self.pieces.last().is_some_and(has_room) {
            // A few small texts do not take a whole piece.
            let bytes = if self.pieces.is_empty() { 0 } else { PIECE_BYTES };
            self.pieces.push(Vec::with_capacity(bytes.max(2 * text.len().min(PIECE_BYTES))));
        }
        let piece = self.pieces.last_mut().expect("one was added");
        let at = piece.len();
        piece.extend_from_slice(text);
        let piece = self.pieces.len() - 1;
        Text { piece: narrow(piece), at: narrow(at), len: narrow(text.len()) }
    }

    /// Adds a text: a long one by reference, O(1); the bytes of others are copied.
    pub fn push_val(&mut self, text: Val<'_>) -> Text {
        match text {
            Val::Bytes(bytes) => self.push(bytes),
            Val::Blob(blob) => match blob.contiguous() {
                Some(bytes) if bytes.len() < REFERENCE_MIN => self.push(bytes),
                _ => {
                    self.references.push(blob.clone());
                    let at = narrow(self.references.len() - 1);
                    Text { piece: REFERENCE, at, len: narrow(blob.len()) }
                }
            },
        }
    }

    /// The text.
    #[inline]
    pub fn get(&self, text: Text) -> Val<'_> {
        if text.piece == REFERENCE {
            return Val::Blob(&self.references[text.at as usize]);
        }
        Val::Bytes(self.bytes(text))
    }

    /// A text which was added by [`Texts::push`].
    #[inline]
    pub fn bytes(&self, text: Text) -> &[u8] {
        let at = text.at as usize;
        &self.pieces[text.piece as usize][at..at + text.len as usize]
    }

    /// Bytes of all pieces and references. What a reference refers to belongs to a key, or did when
    /// it was added.
    pub fn memory(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum::<usize>()
            + self.references.capacity() * size_of::<Blob>()
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).expect("a text is below 4 GiB, and so are the pieces")
}

/// What an element is sorted by.
#[derive(Clone, Copy)]
pub(crate) enum Weight {
    /// Itself, or a key that is not there.
    None,
    Number(f64),
    Text(Text),
}

impl Weight {
    /// A number as C's `strtod` reads it, and nothing behind it; an empty text is 0.
    pub fn of_number(text: &[u8]) -> Result<Self, Error> {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        if text.is_empty() {
            return Ok(Self::Number(0.0));
        }
        let start = text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len());
        let value = base::double::parse(&text[start..]).ok_or(Error::SortScore)?;
        // What is too small for all its digits is out of range, too.
        if value.is_subnormal() { Err(Error::SortScore) } else { Ok(Self::Number(value)) }
    }

    /// As [`Weight::of_number`]. A text of pages is copied up to its first zero byte, and only
    /// while it can still be a number.
    pub fn of_val(text: Val<'_>) -> Result<Self, Error> {
        if let Some(bytes) = text.block() {
            return Self::of_number(bytes);
        }
        let mut number = Vec::new();
        for run in text.runs() {
            let end = run.iter().position(|byte| *byte == 0).unwrap_or(run.len());
            let mut part = &run[..end];
            if number.iter().copied().all(is_blank) {
                let digits = part.iter().position(|byte| !is_blank(*byte)).unwrap_or(end);
                // Blanks alone are no number, which one of them shows.
                number.resize(number.len().max(digits.min(1)), b' ');
                part = &part[digits..];
            }
            number.extend_from_slice(part);
            if end < run.len() {
                break;
            }
            if number.len() > INFINITY_MAX && !(begins_digits(&number) && is_of_digits(part)) {
                return Err(Error::SortScore);
            }
        }
        Self::of_number(&number)
    }
}

/// Bytes of the longest text which means infinity, with one blank in front.
const INFINITY_MAX: usize = " +infinity".len();

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn begins_digits(number: &[u8]) -> bool {
    let number = number.strip_prefix(b" ").unwrap_or(number);
    let number = number.strip_prefix(b"-").or(number.strip_prefix(b"+")).unwrap_or(number);
    matches!(number.first(), Some(b'0'..=b'9' | b'.'))
}

/// True if all bytes can be of one decimal or hexadecimal number.
fn is_of_digits(part: &[u8]) -> bool {
    let is_of = |byte: &u8| byte.is_ascii_hexdigit() || b".+-xXpP".contains(byte);
    part.iter().all(is_of)
}

/// An element.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub element: Text,
    pub weight: Weight,
}

impl Row {
    /// The number it is sorted by.
    pub fn score(&self) -> f64 {
        match self.weight {
            Weight::Number(number) => number,
            _ => unreachable!("it is sorted by a number"),
        }
    }
}

/// How it is sorted.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    /// As it was.
    pub kept: bool,
    pub alpha: bool,
    pub by: bool,
    pub desc: bool,
}

impl Order {
    /// Sorts. Numbers that are equal are in the order of the elements; what BY finds equal as texts
    /// stays as it was.
    pub fn sort(self, texts: &Texts, rows: &mut [Row]) {
        if !self.kept {
            rows.sort_by(|a, b| self.compare(texts, a, b));
        }
    }

    /// Which of two stands first; equal if that is the one that stood first.
    pub fn compare(self, texts: &Texts, a: &Row, b: &Row) -> Ordering {
        if self.kept {
            return Ordering::Equal;
        }
        let order = self.ascending(texts, a, b);
        if self.desc { order.reverse() } else { order }
    }

    fn ascending(self, texts: &Texts, a: &Row, b: &Row) -> Ordering {
        let elements = || texts.get(a.element).compare(texts.get(b.element));
        if self.alpha && !self.by {
            return elements();
        }
        match (a.weight, b.weight) {
            (Weight::Number(a), Weight::Number(b)) => {
                a.partial_cmp(&b).expect("weights are numbers").then_with(elements)
            }
            (Weight::Text(a), Weight::Text(b)) => texts.get(a).compare(texts.get(b)),
            (Weight::None, Weight::None) => Ordering::Equal,
            (Weight::None, _) => Ordering::Less,
            (_, Weight::None) => Ordering::Greater,
            _ => unreachable!("all weights of a request are of one kind"),
        }
    }
}
