//! The options of SET, MSETEX and GETEX. An option may stand twice; one that excludes another may
//! not stand beside it.

use base::UnixMs;
use resp::Args;

use super::text::ArgText;
use crate::error::{Error, InvalidExpire};
use crate::parse::{integer, is};
use crate::record::SetExpiry;

/// A time at which a key is to expire, as a client said it.
#[derive(Clone, Copy, Debug)]
pub(super) struct When<'a> {
    form: Form,
    text: &'a [u8],
}

/// The words that come before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Ex,
    Px,
    ExAt,
    PxAt,
}

impl Form {
    fn of(word: &[u8]) -> Option<Form> {
        let forms =
            [("EX", Form::Ex), ("PX", Form::Px), ("EXAT", Form::ExAt), ("PXAT", Form::PxAt)];
        forms.into_iter().find(|(name, _)| is(word, name)).map(|(_, form)| form)
    }
}

impl<'a> When<'a> {
    /// Seconds from now.
    pub(super) fn seconds(text: &'a [u8]) -> Self {
        When { form: Form::Ex, text }
    }

    /// Milliseconds from now.
    pub(super) fn milliseconds(text: &'a [u8]) -> Self {
        When { form: Form::Px, text }
    }

    /// The time that stands behind `word`, if that says how to read it.
    pub(super) fn named(word: &[u8], text: &'a [u8]) -> Option<Self> {
        Form::of(word).map(|form| When { form, text })
    }

    /// The time, which must be a positive number and fit 64 bits in milliseconds; `command` is the
    /// full name that an error says.
    pub(super) fn resolve(self, now: UnixMs, command: &'static str) -> Result<UnixMs, Error> {
        let number = integer(self.text)?;
        let at = match self.form {
            _ if number <= 0 => None,
            Form::Ex => number.checked_mul(1000).and_then(|ms| ms.checked_add(now.0)),
            Form::Px => number.checked_add(now.0),
            Form::ExAt => number.checked_mul(1000),
            Form::PxAt => Some(number),
        };
        at.map(UnixMs).ok_or_else(|| InvalidExpire { command }.into())
    }
}

/// What SET and MSETEX ask of the keys before they set them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    Always,
    /// `NX`: it does not exist.
    Absent,
    /// `XX`: it exists.
    Present,
    /// `IFEQ`: it holds this string.
    Equal(ArgText<'a>),
    /// `IFNE`: it does not hold this string; one that does not exist does not.
    NotEqual(ArgText<'a>),
    /// `IFDEQ`: the string it holds has this digest.
    DigestEqual(&'a [u8]),
    /// `IFDNE`: the string it holds does not have this digest; one that does not exist does not.
    DigestNotEqual(&'a [u8]),
}

impl<'a> Condition<'a> {
    /// The comparison that this word names, with `text`.
    pub(super) fn comparison(word: &[u8], text: ArgText<'a>) -> Option<Self> {
        if is(word, "IFEQ") {
            Some(Condition::Equal(text))
        } else if is(word, "IFNE") {
            Some(Condition::NotEqual(text))
        } else if is(word, "IFDEQ") {
            Some(Condition::DigestEqual(text.start()))
        } else if is(word, "IFDNE") {
            Some(Condition::DigestNotEqual(text.start()))
        } else {
            None
        }
    }
}

/// What SET and MSETEX do to the expiry of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expiry<'a> {
    /// It goes.
    Clear,
    /// `KEEPTTL`: it stays.
    Keep,
    /// It is set.
    At(When<'a>),
}

/// The same, with the time known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewExpiry {
    /// It stays.
    Keep,
    /// It is this.
    Is(Option<UnixMs>),
}

impl NewExpiry {
    /// As a SET in a record says it.
    pub(super) fn of_record(self) -> SetExpiry {
        match self {
            NewExpiry::Keep => SetExpiry::Keep,
            NewExpiry::Is(at) => at.map_or(SetExpiry::None, SetExpiry::At),
        }
    }
}

impl Expiry<'_> {
    /// Finds out the time, if there is one.
    pub(super) fn resolve(self, now: UnixMs, command: &'static str) -> Result<NewExpiry, Error> {
        Ok(match self {
            Expiry::Clear => NewExpiry::Is(None),
            Expiry::Keep => NewExpiry::Keep,
            Expiry::At(when) => NewExpiry::Is(Some(when.resolve(now, command)?)),
        })
    }
}

/// The options of SET and, but for those that only SET has, of MSETEX.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetOptions<'a> {
    pub condition: Condition<'a>,
    pub expiry: Expiry<'a>,
    /// `GET`: the reply is the old string.
    pub get: bool,
}

impl<'a> SetOptions<'a> {
    /// Reads the options of SET.
    pub(super) fn of_set(args: Args<'a>) -> Result<Self, Error> {
        Self::parse(args, true)
    }

    /// Reads the options of MSETEX: no `GET`, no comparisons.
    pub(super) fn of_msetex(args: Args<'a>) -> Result<Self, Error> {
        Self::parse(args, false)
    }

    fn parse(args: Args<'a>, is_set: bool) -> Result<Self, Error> {
        let mut options =
            SetOptions { condition: Condition::Always, expiry: Expiry::Clear, get: false };
        let mut words = ArgText::all(args);
        while let Some(word) = words.next().map(ArgText::start) {
            if is(word, "NX") {
                options.require(Condition::Absent)?;
            } else if is(word, "XX") {
                options.require(Condition::Present)?;
            } else if is(word, "KEEPTTL") {
                options.expire(Expiry::Keep)?;
            } else if is(word, "GET") && is_set {
                options.get = true;
            } else {
                let text = words.next().ok_or(Error::Syntax)?;
                if let Some(form) = Form::of(word) {
                    options.expire(Expiry::At(When { form, text: text.start() }))?;
                } else {
                    let comparison = Condition::comparison(word, text).filter(|_| is_set);
                    options.require(comparison.ok_or(Error::Syntax)?)?;
                }
            }
        }
        Ok(options)
    }

    fn require(&mut self, condition: Condition<'a>) -> Result<(), Error> {
        match (self.condition, condition) {
            (Condition::Always, _)
            | (Condition::Absent, Condition::Absent)
            | (Condition::Present, Condition::Present)
            | (Condition::Equal(_), Condition::Equal(_))
            | (Condition::NotEqual(_), Condition::NotEqual(_))
            | (Condition::DigestEqual(_), Condition::DigestEqual(_))
            | (Condition::DigestNotEqual(_), Condition::DigestNotEqual(_)) => {
                self.condition = condition;
            }
            _ => return Err(Error::Syntax),
        }
        Ok(())
    }

    fn expire(&mut self, expiry: Expiry<'a>) -> Result<(), Error> {
        match (self.expiry, expiry) {
            (Expiry::Clear, _) | (Expiry::Keep, Expiry::Keep) => {}
            (Expiry::At(old), Expiry::At(new)) if old.form == new.form => {}
            _ => return Err(Error::Syntax),
        }
        self.expiry = expiry;
        Ok(())
    }
}

/// The option of GETEX.
#[derive(Clone, Copy, Debug)]
pub(super) enum GetExOption<'a> {
    /// The expiry is left alone.
    None,
    /// `PERSIST`: it goes.
    Persist,
    /// It is set.
    At(When<'a>),
}

impl<'a> GetExOption<'a> {
    /// Reads the options of GETEX.
    pub(super) fn parse(args: Args<'a>) -> Result<Self, Error> {
        let mut option = GetExOption::None;
        let mut words = ArgText::all(args).map(ArgText::start);
        while let Some(word) = words.next() {
            let new = if is(word, "PERSIST") {
                GetExOption::Persist
            } else {
                let form = Form::of(word).ok_or(Error::Syntax)?;
                GetExOption::At(When { form, text: words.next().ok_or(Error::Syntax)? })
            };
            match (option, new) {
                (GetExOption::None, _) | (GetExOption::Persist, GetExOption::Persist) => {}
                (GetExOption::At(old), GetExOption::At(new)) if old.form == new.form => {}
                _ => return Err(Error::Syntax),
            }
            option = new;
        }
        Ok(option)
    }
}
