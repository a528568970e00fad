//! The value of `ingest-listen`: one or more listeners, each written as `ADDRESS:PORT NAME=VALUE
//! ...`. [`OPTIONS`] lists the names.

use super::{Bind, parse::printable};
use ingest::{MaxLen, Sink, Strategy, Target};
use std::fmt;

/// Maximum number of listeners.
pub const INGEST_LISTENERS_MAX: usize = 32;

/// The smallest `ingest-window`, in bytes: half of it must hold a frame of a few messages.
pub const INGEST_WINDOW_MIN: u64 = 4 << 10;
/// The largest `ingest-window`, in bytes.
pub const INGEST_WINDOW_MAX: u64 = 1 << 30;

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestListen {
    /// The address, in the syntax of `bind`.
    pub bind: Bind,
    /// The port; 0 = the system chooses a free one.
    pub port: u16,
    /// Its options.
    pub terms: Terms,
}

/// The options of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The protocol of its connections.
    pub protocol: Protocol,
    /// Where messages go; `None`: each producer names its own sink.
    pub sink: Option<Sink>,
    /// Maximum number of connections.
    pub connections_max: Option<u32>,
    /// Maximum payload of a message, in bytes; `None`: `ingest-max-message` applies.
    pub message_max: Option<u32>,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The classic protocol, with its acknowledgement strategy.
    Classic(Strategy),
    /// Protocol 2.
    Two {
        /// Bytes that a producer may have unacknowledged; `None`: `ingest-window` applies.
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
    /// The options of a classic port that only counts messages.
    pub fn classic(strategy: Strategy) -> Self {
        let (protocol, sink) = (Protocol::Classic(strategy), Some(Sink::null()));
        Self { protocol, sink, connections_max: None, message_max: None }
    }

    /// The sink as INFO shows it.
    pub fn sink_text(&self) -> String {
        self.sink.as_ref().map_or_else(|| "any".into(), ToString::to_string)
    }
}

/// The options given for one listener.
#[derive(Default)]
struct GivenOptions {
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

/// Stores the value of an option; `None` if the value is not valid.
type ParseFn = fn(&mut GivenOptions, &str) -> Option<()>;

/// Every option: its name, its values as error messages describe them, and its parser.
const OPTIONS: [(&str, &str, ParseFn); 8] = [
    ("protocol", "2", |given, version| {
        given.is_two = version == "2";
        given.is_two.then_some(())
    }),
    ("strategy", "request-reply, throttled, head-rest, sync or async", |given, name| {
        given.strategy = Some(Strategy::from_name(name)?);
        Some(())
    }),
    ("sink", "null, list:KEY or stream:KEY; with protocol=2 also any", |given, text| {
        given.any = text == "any";
        given.sink = if given.any { None } else { Some(Sink::parse(text.as_bytes())?) };
        Some(())
    }),
    ("db", "the number of a database", |given, text| {
        given.db = Some(text.parse().ok()?);
        Some(())
    }),
    ("maxlen", "N or ~N", |given, text| {
        given.maxlen = Some(MaxLen::parse(text)?);
        Some(())
    }),
    ("max-connections", "a number above 0", |given, text| {
        given.connections_max = Some(text.parse().ok().filter(|max| *max > 0)?);
        Some(())
    }),
    ("max-message", "a number of bytes", |given, text| {
        given.message_max = Some(text.parse().ok()?);
        Some(())
    }),
    ("window", "a number of bytes from 4096 to 1073741824", |given, text| {
        let bounds = INGEST_WINDOW_MIN..=INGEST_WINDOW_MAX;
        given.window = Some(text.parse().ok().filter(|n| bounds.contains(&u64::from(*n)))?);
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
            .ok_or_else(|| format!("'{place}' is not of the form ADDRESS:PORT"))?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let bind = Bind { host: host.to_owned(), optional: false };
        let mut given = GivenOptions::default();
        for option in options {
            given.parse_option(option)?;
        }
        let (connections_max, message_max) = (given.connections_max, given.message_max);
        let (protocol, sink) = (given.protocol(place)?, given.sink(place)?);
        Ok(Self { bind, port, terms: Terms { protocol, sink, connections_max, message_max } })
    }

    /// The words that read back as these listeners, with blanks between them.
    pub fn show_all(all: &[Self]) -> Vec<u8> {
        let each: Vec<String> = all.iter().map(ToString::to_string).collect();
        each.join(" ").into_bytes()
    }
}

impl GivenOptions {
    fn parse_option(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let Some((_, values, parse)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = OPTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(format!(
                "'{option}' is not an option; the options are {}",
                names.join(", ")
            ));
        };
        parse(self, value).ok_or_else(|| format!("'{option}': {name} must be {values}"))
    }

    fn protocol(&self, place: &str) -> Result<Protocol, String> {
        match (self.is_two, self.strategy) {
            (true, Some(_)) => Err(format!("'{place}': strategy cannot be used with protocol=2")),
            (true, None) => Ok(Protocol::Two { window: self.window }),
            (false, None) => Err(format!("'{place}': strategy=NAME is missing")),
            (false, Some(_)) if self.any || self.window.is_some() => {
                Err(format!("'{place}': sink=any and window=N need protocol=2"))
            }
            (false, Some(strategy)) => Ok(Protocol::Classic(strategy)),
        }
    }

    /// The sink with its database and bound; `None` if each producer names its own.
    fn sink(&self, place: &str) -> Result<Option<Sink>, String> {
        let mut sink = self.sink.clone().unwrap_or_else(Sink::null);
        if sink.is_null() && self.db.is_some() {
            return Err(format!("'{place}': db=N needs sink=list:KEY or sink=stream:KEY"));
        }
        if sink.kind != Target::Stream && self.maxlen.is_some() {
            return Err(format!("'{place}': maxlen=N needs sink=stream:KEY"));
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

/// Checks that a word can be written into the configuration file without quotes.
fn readable(word: &[u8]) -> Result<&str, String> {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    str::from_utf8(word).ok().filter(|text| !text.contains(is_odd)).ok_or_else(|| {
        format!(
            "'{}': a value must not contain spaces, quotes or control characters",
            printable(word)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<IngestListen>, String> {
        let words: Vec<Vec<u8>> = text.split(' ').map(|w| w.as_bytes().to_vec()).collect();
        IngestListen::parse_all(&words)
    }

    #[test]
    fn several_listeners_are_shown_as_they_are_parsed() {
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
    fn errors_name_the_invalid_part() {
        for (text, wanted) in [
            ("127.0.0.1:9000", "'127.0.0.1:9000': strategy=NAME is missing"),
            ("127.0.0.1 strategy=sync", "'127.0.0.1' is not of the form ADDRESS:PORT"),
            ("127.0.0.1:70000 strategy=sync", "'127.0.0.1:70000' is not of the form ADDRESS:PORT"),
            (":9000 strategy=sync", "':9000' is not of the form ADDRESS:PORT"),
            ("strategy=sync", "'strategy=sync' is not of the form ADDRESS:PORT"),
            (
                "a:1 strategy=quick",
                "'strategy=quick': strategy must be request-reply, throttled, head-rest, sync or async",
            ),
            (
                "a:1 strategy=sync sink=stream",
                "'sink=stream': sink must be null, list:KEY or stream:KEY; with protocol=2 also any",
            ),
            (
                "a:1 strategy=sync colour=red",
                "'colour=red' is not an option; the options are protocol, strategy, sink, db, maxlen, max-connections, \
                 max-message, window",
            ),
            ("a:1 strategy=sync sink=any", "'a:1': sink=any and window=N need protocol=2"),
            ("a:1 strategy=sync window=4096", "'a:1': sink=any and window=N need protocol=2"),
            ("a:1 protocol=3", "'protocol=3': protocol must be 2"),
            ("a:1 protocol=2 strategy=sync", "'a:1': strategy cannot be used with protocol=2"),
            (
                "a:1 protocol=2 window=9",
                "'window=9': window must be a number of bytes from 4096 to 1073741824",
            ),
            ("a:1 protocol=2 db=1", "'a:1': db=N needs sink=list:KEY or sink=stream:KEY"),
            ("a:1 protocol=2 maxlen=1", "'a:1': maxlen=N needs sink=stream:KEY"),
            ("a:1 strategy=sync db=1", "'a:1': db=N needs sink=list:KEY or sink=stream:KEY"),
            ("a:1 strategy=sync sink=list:l maxlen=1", "'a:1': maxlen=N needs sink=stream:KEY"),
            ("a:1 strategy=sync maxlen=x", "'maxlen=x': maxlen must be N or ~N"),
            (
                "a:1 max-connections=0",
                "'max-connections=0': max-connections must be a number above 0",
            ),
            ("a:1 max-message=-1", "'max-message=-1': max-message must be a number of bytes"),
            (
                "a:1 sink=list:\u{7}",
                "'sink=list: ': a value must not contain spaces, quotes or control characters",
            ),
            ("a:1 strategy=sync b", "'b' is not of the form ADDRESS:PORT"),
        ] {
            assert_eq!(parse(text), Err(wanted.to_owned()), "{text}");
        }
    }
}
