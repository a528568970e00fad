//! Commands that the load generator understands: it knows what they must answer.

use super::template::Token;

/// What a command does with its keys, as far as a reply can be judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// `PING`: `+PONG`.
    Ping,
    /// `ECHO __data__`: the value.
    Echo,
    /// `SET __key__ __data__`, with a lifetime or not: `+OK`.
    Set,
    /// `MSET` of keys and values: `+OK`.
    Mset,
    /// `GET __key__`: the value.
    Get,
    /// `MGET` of so many keys: the values.
    Mget(u32),
    /// `STRLEN __key__`: the value's length.
    Strlen,
    /// `EXISTS` of keys: how many exist.
    Exists,
    /// `DEL` or `UNLINK` of keys: how many existed.
    Del,
    /// Anything else: only an error is known to be wrong.
    Other,
}

impl Meaning {
    /// Recognises a command.
    pub fn of(args: &[Vec<Token>]) -> Self {
        let Some(([Token::Text(name)], rest)) = args.split_first().map(|(n, r)| (&n[..], r)) else {
            return Self::Other;
        };
        let keys = !rest.is_empty() && rest.iter().all(|arg| **arg == [Token::Key]);
        let pairs = !rest.is_empty()
            && rest.len().is_multiple_of(2)
            && rest.chunks(2).all(|pair| pair[0] == [Token::Key] && pair[1] == [Token::Data]);
        match name.to_ascii_uppercase().as_slice() {
            b"PING" if rest.is_empty() => Self::Ping,
            b"ECHO" if rest.len() == 1 && rest[0] == [Token::Data] => Self::Echo,
            b"SET" if rest.len() == 2 && pairs || is_set_with_lifetime(rest) => Self::Set,
            b"MSET" if pairs => Self::Mset,
            b"GET" if keys && rest.len() == 1 => Self::Get,
            b"MGET" if keys => Self::Mget(rest.len() as u32),
            b"STRLEN" if keys && rest.len() == 1 => Self::Strlen,
            b"EXISTS" if keys => Self::Exists,
            b"DEL" | b"UNLINK" if keys => Self::Del,
            _ => Self::Other,
        }
    }

    /// Does it read values, so that keys must be there?
    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Mget(_) | Self::Strlen | Self::Exists)
    }

    /// Is nil a failure where no option decides?
    pub fn nil_fails(self) -> bool {
        self != Self::Other
    }
}

/// `SET __key__ __data__ EX|PX NUMBER`. A lifetime may end before the key is read: only those
/// beyond an hour are understood.
fn is_set_with_lifetime(rest: &[Vec<Token>]) -> bool {
    const HOUR_S: u64 = 3600;
    let [key, data, unit, time] = rest else { return false };
    let (Some(unit), Some(time)) = (text(unit), text(time).and_then(|t| t.parse::<u64>().ok()))
    else {
        return false;
    };
    let seconds = match unit.to_ascii_uppercase().as_str() {
        "EX" => time,
        "PX" => time / 1000,
        _ => return false,
    };
    *key == [Token::Key] && *data == [Token::Data] && seconds >= HOUR_S
}

fn text(arg: &[Token]) -> Option<&str> {
    match arg {
        [Token::Text(text)] => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::template::tokens;

    fn of(command: &str) -> Meaning {
        let args: Vec<_> = command.split(' ').map(|w| tokens(w.as_bytes(), "key:")).collect();
        Meaning::of(&args)
    }

    #[test]
    fn commands_are_classified_by_name_and_arguments() {
        assert_eq!(of("ping"), Meaning::Ping);
        assert_eq!(of("PING hello"), Meaning::Other);
        assert_eq!(of("SET __key__ __data__"), Meaning::Set);
        assert_eq!(of("set key:__rand_int__ __data__"), Meaning::Set);
        assert_eq!(of("SET __key__ __data__ EX 86400"), Meaning::Set);
        assert_eq!(of("SET __key__ __data__ PX 100"), Meaning::Other);
        assert_eq!(of("SET __key__ __data__ NX"), Meaning::Other);
        assert_eq!(of("SET a__key__ __data__"), Meaning::Other);
        assert_eq!(of("GET __key__"), Meaning::Get);
        assert_eq!(of("GET name"), Meaning::Other);
        assert_eq!(of("MGET __key__ __key__"), Meaning::Mget(2));
        assert_eq!(of("MSET __key__ __data__ __key__ __data__"), Meaning::Mset);
        assert_eq!(of("MSET __key__ __data__ __key__"), Meaning::Other);
        assert_eq!(of("unlink __key__ __key__"), Meaning::Del);
        assert_eq!(of("EXISTS __key__"), Meaning::Exists);
        assert_eq!(of("STRLEN __key__"), Meaning::Strlen);
        assert_eq!(of("ECHO __data__"), Meaning::Echo);
        assert_eq!(of("__key__"), Meaning::Other);
        assert!(Meaning::Mget(1).reads() && !Meaning::Set.reads());
    }
}
