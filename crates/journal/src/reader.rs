//! Reads the commands of an append-only file, in blocks of any size.
//!
//! ```text
//!  bytes:   | given already | the item at hand | not read yet |
//!           0               start              pos            len
//!  offsets: base            base + start       base + pos
//! ```
//!
//! An item is parsed once, however it is cut into blocks: `left` and `argument` say what stands at
//! `pos`. Cost: O(bytes). Memory: what was fed and not given yet, and 8 bytes per argument of the
//! command at hand, whatever lengths the file claims.

use crate::damage::{Damage, DamageKind};

/// The largest number of arguments of a command. Redis 7.0 takes a file with 2147483647, and calls
/// 2147483648 a bad format.
pub const ARGUMENTS_MAX: u64 = i32::MAX as u64;
/// The largest number of bytes of a command as it stands in the file. Redis has no such bound; here
/// the places of arguments have 31 bits.
pub const COMMAND_MAX: u64 = i32::MAX as u64;
/// The largest number of bytes of an annotation, its line end included, as for `redis-check-aof`.
pub const ANNOTATION_MAX: usize = 1023;
/// Characters of a length; 64 bits have up to 20 digits.
const DIGITS_MAX: usize = 20;
/// Bytes of memory that are kept when a long command was given.
const KEPT_BYTES: usize = 4 << 20;
/// Places of arguments that are kept when a command of many was given.
const KEPT_SPANS: usize = 64 << 10;

/// The reader of one file of commands: an INCR file, a BASE file or an old single file without its
/// RDB preamble.
#[derive(Debug)]
pub struct Reader {
    /// Bytes of the file from `base` on.
    bytes: Vec<u8>,
    base: u64,
    /// Where the item at hand begins, and how far it is parsed.
    start: usize,
    pos: usize,
    /// The item from `start` to `pos` was given; the next one begins at `pos`.
    is_given: bool,
    /// Arguments of the command at hand which are not read yet; 0 between two items.
    left: u64,
    /// The length of the argument which begins at `pos`, if it was read.
    argument: Option<usize>,
    /// The arguments of the command at hand, or of the last one.
    spans: Vec<(u32, u32)>,
    valid: u64,
    /// Where the open transaction begins.
    multi: Option<u64>,
    damage: Option<Damage>,
    /// From here on every byte that was fed is zero.
    zeros: Option<Zeros>,
}

/// Zero bytes where something else was to follow. If nothing else follows up to the end, the file
/// is truncated: a machine which loses its power may have made a file longer and not have written
/// what belongs there.
#[derive(Debug)]
struct Zeros {
    /// What is wrong if something else follows.
    damage: Damage,
    /// How many of them were fed and not kept.
    dropped: u64,
}

/// What stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'r> {
    /// A command.
    Command(Words<'r>),
    /// A line that begins with `#`, such as `#TS:1700000000`. It may stand between the commands of
    /// a transaction.
    Annotation {
        /// Its offset in the file.
        at: u64,
        /// The offset behind it.
        end: u64,
        /// Where the transaction begins in which it stands.
        multi: Option<u64>,
        /// The line without its end.
        text: &'r [u8],
    },
}

/// The words of a command: its name and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'r> {
    /// The offset of the command in the file.
    pub at: u64,
    /// The command as it stands in the file.
    pub raw: &'r [u8],
    /// Start and length of each word in `raw`. There is at least one.
    pub spans: &'r [(u32, u32)],
}

impl<'r> Words<'r> {
    /// The number of words.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Never true: a command without words is damage.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// A word.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'r [u8]> {
        let &(start, len) = self.spans.get(index)?;
        self.raw.get(start as usize..start as usize + len as usize)
    }

    /// All words.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'r [u8]> + use<'r> {
        let raw = self.raw;
        self.spans.iter().map(move |&(start, len)| &raw[start as usize..][..len as usize])
    }
}

/// What stands from `start` to `pos`.
enum Found {
    /// Nothing whole.
    More,
    Command,
    Annotation,
}

impl Reader {
    /// The reader of a file, or of what follows its first `at` bytes.
    pub fn new(at: u64) -> Self {
        Self {
            bytes: Vec::new(),
            base: at,
            start: 0,
            pos: 0,
            is_given: true,
            left: 0,
            argument: None,
            spans: Vec::new(),
            valid: at,
            multi: None,
            damage: None,
            zeros: None,
        }
    }

    /// Takes the next block of the file, of any size. Call it when [`Reader::next`] said `None`.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.damage.is_some() {
            return;
        }
        if let Some(zeros) = &mut self.zeros {
            zeros.dropped += bytes.len() as u64;
            if bytes.iter().any(|&byte| byte != 0) {
                self.damage = Some(zeros.damage);
            }
            return;
        }
        self.begin_next();
        // Moved seldom, so that small blocks do not move the same bytes again and again.
        if self.start > 0 && self.start >= self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.base += self.start as u64;
            self.pos -= self.start;
            self.start = 0;
            let needed = self.bytes.len() + bytes.len();
            if self.bytes.capacity() > KEPT_BYTES && needed < self.bytes.capacity() / 4 {
                self.bytes.shrink_to(needed.max(KEPT_BYTES));
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next item; `None` if it needs more bytes. O(bytes of the item): what was seen of an item
    /// is not parsed again.
    ///
    /// # Errors
    /// The file is wrong here. Nothing more can be read; further calls say the same.
    #[expect(clippy::should_implement_trait, reason = "its end is not that of an iterator")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Damage> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        if self.zeros.is_some() {
            return Ok(None);
        }
        self.begin_next();
        let found = match self.advance() {
            Ok(found) => found,
            Err(kind) if self.ends_in_zeros(kind) => {
                self.zeros = Some(Zeros { damage: self.describe(kind), dropped: 0 });
                return Ok(None);
            }
            Err(kind) => return Err(self.fail(kind)),
        };
        let (at, raw) = (self.offset(self.start), &self.bytes[self.start..self.pos]);
        Ok(match found {
            Found::More => None,
            Found::Command => Some(Item::Command(Words { at, raw, spans: &self.spans })),
            Found::Annotation => {
                let line = raw.strip_suffix(b"\n").unwrap_or(raw);
                Some(Item::Annotation {
                    at,
                    end: self.offset(self.pos),
                    multi: self.multi,
                    text: line.strip_suffix(b"\r").unwrap_or(line),
                })
            }
        })
    }

    /// Whether the file may end behind what was fed. Call it when [`Reader::next`] said `None`.
    ///
    /// # Errors
    /// [`DamageKind::Truncated`] if a command, an annotation or a transaction is incomplete, also
    /// if there are only zero bytes where it should be or go on; or what [`Reader::next`] said.
    pub fn finish(&self) -> Result<(), Damage> {
        let is_whole = self.at() == self.fed() && self.multi.is_none();
        match self.damage {
            Some(damage) => Err(damage),
            None if is_whole => Ok(()),
            None => Err(self.describe(DamageKind::Truncated)),
        }
    }

    /// The offset up to which the file is whole: behind the last complete command or annotation
    /// outside of a transaction, or behind its EXEC.
    pub fn valid_up_to(&self) -> u64 {
        self.valid
    }

    /// The offset behind the last item returned.
    pub fn at(&self) -> u64 {
        self.offset(if self.is_given { self.pos } else { self.start })
    }

    /// Where the MULTI begins whose EXEC was not read yet.
    pub fn multi(&self) -> Option<u64> {
        self.multi
    }

    /// The offset behind what was fed.
    pub fn fed(&self) -> u64 {
        self.offset(self.bytes.len()) + self.zeros.as_ref().map_or(0, |zeros| zeros.dropped)
    }

    /// Heap bytes of what was fed and not given yet.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<(u32, u32)>()
    }

    fn offset(&self, place: usize) -> u64 {
        self.base + place as u64
    }

    /// Leaves the item that was given.
    fn begin_next(&mut self) {
        if self.is_given {
            self.start = self.pos;
        }
    }

    fn describe(&self, kind: DamageKind) -> Damage {
        Damage { at: self.offset(self.pos), kind, valid_up_to: self.valid, multi: self.multi }
    }

    /// Whether the first byte that is wrong, and all others, are zero.
    #[cold]
    fn ends_in_zeros(&self, kind: DamageKind) -> bool {
        let rest = &self.bytes[self.pos..];
        let place = match kind {
            DamageKind::NoCommand(_) | DamageKind::NoArgument(_) => Some(0),
            DamageKind::Length => {
                let digits = rest[1..].iter().take(DIGITS_MAX).take_while(|b| b.is_ascii_digit());
                let end = 1 + digits.count();
                let is_at_cr = end > 1 && rest.get(end) == Some(&b'\r');
                Some(end + usize::from(is_at_cr)).filter(|&at| rest.get(at) == Some(&0))
            }
            DamageKind::AnnotationTooLong => {
                rest.iter().take(ANNOTATION_MAX).position(|&byte| byte == 0)
            }
            DamageKind::LineEnd => {
                let end = self.argument.unwrap_or(0);
                (end..end + 2).find(|&at| rest.get(at) == Some(&0))
            }
            _ => None,
        };
        place.is_some_and(|place| rest[place..].iter().all(|&byte| byte == 0))
    }

    #[cold]
    fn fail(&mut self, kind: DamageKind) -> Damage {
        let damage = self.describe(kind);
        self.damage = Some(damage);
        damage
    }

    fn advance(&mut self) -> Result<Found, DamageKind> {
        if self.left == 0 {
            match self.bytes.get(self.pos) {
                None => return Ok(Found::More),
                Some(b'#') => return self.annotation(),
                Some(_) => {}
            }
            self.is_given = false;
            let Some((count, next)) = self.length(b'*', DamageKind::NoCommand)? else {
                return Ok(Found::More);
            };
            if count == 0 || count > ARGUMENTS_MAX {
                return Err(DamageKind::ArgumentCount(count));
            }
            self.left = count;
            self.pos = next;
            self.spans.clear();
            self.spans.shrink_to(KEPT_SPANS);
        }
        while self.left > 0 {
            if !self.argument()? {
                return Ok(Found::More);
            }
        }
        self.end_command()?;
        Ok(Found::Command)
    }

    /// Reads the next argument; false if it is not there yet.
    #[inline]
    fn argument(&mut self) -> Result<bool, DamageKind> {
        let len = if let Some(len) = self.argument {
            len
        } else {
            let Some((len, next)) = self.length(b'$', DamageKind::NoArgument)? else {
                return Ok(false);
            };
            let before = (next - self.start) as u64;
            if before.saturating_add(len).saturating_add(2) > COMMAND_MAX {
                return Err(DamageKind::CommandTooLong);
            }
            self.pos = next;
            len as usize
        };
        let end = self.pos + len;
        match self.bytes.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => {
                self.argument = Some(len);
                return Err(DamageKind::LineEnd);
            }
            None => {
                self.argument = Some(len);
                return Ok(false);
            }
        }
        self.spans.push(((self.pos - self.start) as u32, len as u32));
        self.argument = None;
        self.pos = end + 2;
        self.left -= 1;
        Ok(true)
    }

    /// Reads a length behind this mark: the number, and the place behind its line. `None` if it is
    /// not there yet.
    #[inline]
    fn length(
        &self,
        mark: u8,
        wrong: fn(u8) -> DamageKind,
    ) -> Result<Option<(u64, usize)>, DamageKind> {
        let text = &self.bytes[self.pos..];
        if let &[first, digit @ b'0'..=b'9', b'\r', b'\n', ..] = text
            && first == mark
        {
            return Ok(Some((u64::from(digit - b'0'), self.pos + 4)));
        }
        match text.first() {
            None => return Ok(None),
            Some(&first) if first != mark => return Err(wrong(first)),
            Some(_) => {}
        }
        let mut number = 0_u64;
        for (count, &byte) in text[1..].iter().enumerate() {
            match byte {
                b'0'..=b'9' if count < DIGITS_MAX => {
                    number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                }
                b'\r' if count > 0 => {
                    return match text.get(count + 2) {
                        Some(b'\n') => Ok(Some((number, self.pos + count + 3))),
                        Some(_) => Err(DamageKind::Length),
                        None => Ok(None),
                    };
                }
                _ => return Err(DamageKind::Length),
            }
        }
        Ok(None)
    }

    fn annotation(&mut self) -> Result<Found, DamageKind> {
        self.is_given = false;
        let line = &self.bytes[self.pos..];
        let line = &line[..line.len().min(ANNOTATION_MAX)];
        let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
            let is_long = line.len() == ANNOTATION_MAX;
            return if is_long { Err(DamageKind::AnnotationTooLong) } else { Ok(Found::More) };
        };
        self.pos += end + 1;
        self.is_given = true;
        if self.multi.is_none() {
            self.valid = self.offset(self.pos);
        }
        Ok(Found::Annotation)
    }

    /// Follows transactions, and counts a whole command as valid.
    #[inline]
    fn end_command(&mut self) -> Result<(), DamageKind> {
        let (start, len) = self.spans[0];
        let at = self.start + start as usize;
        let name = &self.bytes[at..at + len as usize];
        if len == 5 && name.eq_ignore_ascii_case(b"MULTI") {
            if self.multi.is_some() {
                self.pos = at;
                return Err(DamageKind::NestedMulti);
            }
            self.multi = Some(self.offset(self.start));
        } else if len == 4 && name.eq_ignore_ascii_case(b"EXEC") && self.multi.take().is_none() {
            self.pos = at;
            return Err(DamageKind::StrayExec);
        }
        self.is_given = true;
        if self.multi.is_none() {
            self.valid = self.offset(self.pos);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
