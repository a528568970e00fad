//! The values of `ingest-listen`: `ADDRESS:PORT NAME=VALUE ...`, one behind the other. [`OPTIONS`]
//! are the names.

use super::{Bind, parse::printable};
use ingest::{MaxLen, Sink, Strategy, Target};
use std::fmt;

/// Listeners that `ingest-listen` opens at most.
pub const INGEST_LISTENERS_MAX: usize = 32;

/// The smallest `ingest-window`: room for a frame of some messages in its half.
pub const INGEST_WINDOW_MIN: u64 = 4 << 10;
/// The largest.
pub const INGEST_WINDOW_MAX: u64 = 1 << 30;

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestListen {
    /// The address, as those of `bind` are written.
    pub bind: Bind,
    /// The port; 0 = one that is free.
    pub port: u16,
    /// Its options.
    pub terms: Terms,
}

/// The options of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Where messages go; `None`: where each producer wants them.
    pub sink: Option<Sink>,
    /// Connections at most.
    pub connections_max: Option<u32>,
    /// Bytes of a payload at most; `ingest-max-message` unless told.
    pub message_max: Option<u32>,
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The classic one, with its way to acknowledge.
    Classic(Strategy),
    /// Protocol 2.
    Two {
        /// Bytes that a producer may have under way; `ingest-window` unless told.
        window: Option<u32>,
    },
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Classic(strategy) => strategy.fmt(f),
            Protocol::Two { .. } => f.write_str("protocol-2"),
        }
    }
}

impl Terms {
    /// Those of a classic port that counts messages.
    pub fn classic(strategy: Strategy) -> Self {
        let (protocol, sink) = (Protocol::Classic(strategy), Some(Sink::null()));
        Self { protocol, sink, connections_max: None, message_max: None }
    }

    /// The sink as INFO shows it.
    pub fn sink_text(&self) -> String {
        self.sink.as_ref().map_or_else(|| "any".into(), ToString::to_string)
    }
}

/// What is told of a listener behind its address, each at most once.
#[derive(Default)]
struct Told {
    is_two: bool,
    strategy: Option<Strategy>,
    any: bool,
    sink: Option<Sink>,
    db: Option<u32>,
    maxlen: Option<MaxLen>,
    connections_max: Option<u32>,
    message_max: Option<u32>,
    window: Option<u32>,
}

/// An option: its name, its values as a reader is told them, and what takes one; `None` if it is
/// none.
type TellFn = fn(&mut Told, &str) -> Option<()>;

/// The options.
const OPTIONS: [(&str, &str, TellFn); 8] = [
    ("protocol", "2", |told, version| {
        told.is_two = version == "2";
        told.is_two.then_some(())
    }),
    ("strategy", "request-reply, throttled, head-rest, sync or async", |told, name| {
        told.strategy = Some(Strategy::from_name(name)?);
        Some(())
    }),
    ("sink", "null, list:KEY or stream:KEY; of protocol 2 also any", |told, text| {
        told.any = text == "any";
        told.sink = if told.any { None } else { Some(Sink::parse(text.as_bytes())?) };
        Some(())
    }),
    ("db", "the number of a database", |told, text| {
        told.db = Some(text.parse().ok()?);
        Some(())
    }),
    ("maxlen", "N or ~N", |told, text| {
        told.maxlen = Some(MaxLen::parse(text)?);
        Some(())
    }),
    ("max-connections", "a number above 0", |told, text| {
        told.connections_max = Some(text.parse().ok().filter(|max| *max > 0)?);
        Some(())
    }),
    ("max-message", "a number of bytes", |told, text| {
        told.message_max = Some(text.parse().ok()?);
        Some(())
    }),
    ("window", "a number of bytes from 4096 to 1073741824", |told, text| {
        let bounds = INGEST_WINDOW_MIN..=INGEST_WINDOW_MAX;
        told.window = Some(text.parse().ok().filter(|n| bounds.contains(&u64::from(*n)))?);
        Some(())
    }),
];

impl IngestListen {
    /// Reads listeners from words; the first word without `=` begins a new one.
    pub fn parse_all(words: &[Vec<u8>]) -> Result<Vec<Self>, String> {
        let texts: Vec<&str> = words.iter().map(|w| readable(w)).collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        let mut rest = texts.into_iter().filter(|w| !w.is_empty()).peekable();
        while let Some(place) = rest.next() {
            let mut options = Vec::new();
            while let Some(option) = rest.next_if(|w| w.contains('=')) {
                options.push(option);
            }
            all.push(Self::parse(place, &options)?);
        }
        Ok(all)
    }

    fn parse(place: &str, options: &[&str]) -> Result<Self, String> {
        let (host, port) = place
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse().ok()?)))
            .filter(|(host, _)| !host.is_empty() && !host.starts_with('-') && !host.contains('='))
            .ok_or_else(|| format!("'{place}' is no address with a port"))?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let bind = Bind { host: host.to_owned(), optional: false };
        let mut told = Told::default();
        for option in options {
            told.tell(option)?;
        }
        let (connections_max, message_max) = (told.connections_max, told.message_max);
        let (protocol, sink) = (told.protocol(place)?, told.sink(place)?);
        Ok(Self { bind, port, terms: Terms { protocol, sink, connections_max, message_max } })
    }

    /// The words that read back as these listeners, with blanks between them.
    pub fn show_all(all: &[Self]) -> Vec<u8> {
        let each: Vec<String> = all.iter().map(ToString::to_string).collect();
        each.join(" ").into_bytes()
    }
}

impl Told {
    fn tell(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let Some((_, values, tell)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = OPTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(format!("'{option}' is no option, only {}", names.join(", ")));
        };
        tell(self, value).ok_or_else(|| format!("'{option}': {name} is {values}"))
    }

    fn protocol(&self, place: &str) -> Result<Protocol, String> {
        match (self.is_two, self.strategy) {
            (true, Some(_)) => Err(format!("'{place}' has a strategy, which is not of protocol 2")),
            (true, None) => Ok(Protocol::Two { window: self.window }),
            (false, None) => Err(format!("'{place}' has no strategy=NAME")),
            (false, Some(_)) if self.any || self.window.is_some() => {
                Err(format!("'{place}' has what is of protocol=2 only"))
            }
            (false, Some(strategy)) => Ok(Protocol::Classic(strategy)),
        }
    }

    /// The sink with its database and bound; `None` if each producer names its own.
    fn sink(&self, place: &str) -> Result<Option<Sink>, String> {
        let mut sink = self.sink.clone().unwrap_or_else(Sink::null);
        if sink.is_null() && self.db.is_some() {
            return Err(format!("'{place}' has db=N without a key"));
        }
        if sink.kind != Target::Stream && self.maxlen.is_some() {
            return Err(format!("'{place}' has maxlen=N without a stream"));
        }
        (sink.db, sink.maxlen) = (self.db.unwrap_or(0), self.maxlen);
        Ok(if self.is_two && self.sink.is_none() { None } else { Some(sink) })
    }
}

impl fmt::Display for IngestListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.bind.host;
        if host.contains(':') {
            write!(f, "[{host}]")?;
        } else {
            f.write_str(host)?;
        }
        write!(f, ":{} {}", self.port, self.terms)
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = match self.protocol {
            Protocol::Classic(strategy) => {
                write!(f, "strategy={strategy}")?;
                None
            }
            Protocol::Two { window } => {
                f.write_str("protocol=2")?;
                window
            }
        };
        write!(f, " sink={}", self.sink_text())?;
        if let Some(db) = self.sink.as_ref().map(|sink| sink.db).filter(|db| *db > 0) {
            write!(f, " db={db}")?;
        }
        if let Some(maxlen) = self.sink.as_ref().and_then(|sink| sink.maxlen) {
            write!(f, " maxlen={maxlen}")?;
        }
        let numbers = [
            ("max-connections", self.connections_max),
            ("max-message", self.message_max),
            ("window", window),
        ];
        numbers
            .into_iter()
            .filter_map(|(name, n)| n.map(|n| (name, n)))
            .try_for_each(|(name, n)| write!(f, " {name}={n}"))
    }
}

/// A word that can be shown as it is: it is written into the configuration file with blanks around
/// it.
fn readable(word: &[u8]) -> Result<&str, String> {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    str::from_utf8(word)
        .ok()
        .filter(|text| !text.contains(is_odd))
        .ok_or_else(|| format!("'{}': words have no blanks, quotes or binary", printable(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<IngestListen>, String> {
        let words: Vec<Vec<u8>> = text.split(' ').map(|w| w.as_bytes().to_vec()).collect();
        IngestListen::parse_all(&words)
    }

    #[test]
    fn several_in_a_row_are_shown_as_they_are_read() {
        let text = "127.0.0.1:9000 strategy=sync sink=null [::1]:0 strategy=async sink=null";
        let all = parse(text).expect("well formed");
        assert_eq!(all.len(), 2);
        assert_eq!((all[1].bind.host.as_str(), all[1].port), ("::1", 0));
        assert_eq!(IngestListen::show_all(&all), text.as_bytes());
        let text = "h:1 strategy=sync sink=stream:a:b db=3 maxlen=~10 max-connections=2 max-message=99 \
                    [::]:2 strategy=async sink=list:jobs";
        let all = parse(text).expect("well formed");
        assert_eq!(all[0].terms.sink.as_ref().map(|s| (&*s.key, s.db)), Some((&b"a:b"[..], 3)));
        assert_eq!(all[0].terms.message_max, Some(99));
        assert_eq!(IngestListen::show_all(&all), text.as_bytes());
        let short = parse("*:9000  strategy=head-rest").expect("the sink has a default");
        assert_eq!(IngestListen::show_all(&short), b"*:9000 strategy=head-rest sink=null");
        assert_eq!(parse("").expect("nothing is none"), []);
        for text in [
            "a:1 protocol=2 sink=any",
            "a:1 protocol=2 sink=stream:s db=3 maxlen=~1000 max-connections=9 max-message=0 window=4096",
            "a:1 protocol=2 sink=null b:2 protocol=2 sink=stream:x maxlen=5",
        ] {
            assert_eq!(IngestListen::show_all(&parse(text).expect(text)), text.as_bytes());
        }
        assert_eq!(parse("a:1 protocol=2").expect("the sink has a default")[0].terms.sink, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("127.0.0.1:9000", "'127.0.0.1:9000' has no strategy=NAME"),
            ("127.0.0.1 strategy=sync", "'127.0.0.1' is no address with a port"),
            ("127.0.0.1:70000 strategy=sync", "'127.0.0.1:70000' is no address with a port"),
            (":9000 strategy=sync", "':9000' is no address with a port"),
            ("strategy=sync", "'strategy=sync' is no address with a port"),
            (
                "a:1 strategy=quick",
                "'strategy=quick': strategy is request-reply, throttled, head-rest, sync or async",
            ),
            (
                "a:1 strategy=sync sink=stream",
                "'sink=stream': sink is null, list:KEY or stream:KEY; of protocol 2 also any",
            ),
            (
                "a:1 strategy=sync colour=red",
                "'colour=red' is no option, only protocol, strategy, sink, db, maxlen, max-connections, \
                 max-message, window",
            ),
            ("a:1 strategy=sync sink=any", "'a:1' has what is of protocol=2 only"),
            ("a:1 strategy=sync window=4096", "'a:1' has what is of protocol=2 only"),
            ("a:1 protocol=3", "'protocol=3': protocol is 2"),
            ("a:1 protocol=2 strategy=sync", "'a:1' has a strategy, which is not of protocol 2"),
            (
                "a:1 protocol=2 window=9",
                "'window=9': window is a number of bytes from 4096 to 1073741824",
            ),
            ("a:1 protocol=2 db=1", "'a:1' has db=N without a key"),
            ("a:1 protocol=2 maxlen=1", "'a:1' has maxlen=N without a stream"),
            ("a:1 strategy=sync db=1", "'a:1' has db=N without a key"),
            ("a:1 strategy=sync sink=list:l maxlen=1", "'a:1' has maxlen=N without a stream"),
            ("a:1 strategy=sync maxlen=x", "'maxlen=x': maxlen is N or ~N"),
            ("a:1 max-connections=0", "'max-connections=0': max-connections is a number above 0"),
            ("a:1 max-message=-1", "'max-message=-1': max-message is a number of bytes"),
            ("a:1 sink=list:\u{7}", "'sink=list: ': words have no blanks, quotes or binary"),
            ("a:1 strategy=sync b", "'b' is no address with a port"),
        ] {
            assert_eq!(parse(text), Err(wanted.to_owned()), "{text}");
        }
    }
}
