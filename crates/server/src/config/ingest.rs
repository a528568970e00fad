//! The values of `ingest-listen`: `ADDRESS:PORT strategy=NAME sink=NAME`, one behind the other.

use super::{Bind, parse::printable};
use ingest::{Sink, Strategy};
use std::fmt;

/// Listeners that `ingest-listen` opens at most.
pub const INGEST_LISTENERS_MAX: usize = 32;

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestListen {
    /// The address, as those of `bind` are written.
    pub bind: Bind,
    /// The port; 0 = one that is free.
    pub port: u16,
    /// How its messages are acknowledged.
    pub strategy: Strategy,
    /// Where they go.
    pub sink: Sink,
}

impl IngestListen {
    /// Reads listeners from words; the first word without `=` begins a new one.
    pub fn parse_all(words: &[Vec<u8>]) -> Result<Vec<Self>, String> {
        let texts: Vec<String> = words.iter().map(|w| printable(w)).collect();
        let mut all = Vec::new();
        let mut rest = texts.iter().map(String::as_str).filter(|w| !w.is_empty()).peekable();
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
        let (mut strategy, mut sink) = (None, Sink::Null);
        for option in options {
            match option.split_once('=') {
                Some(("strategy", name)) => {
                    let names = Strategy::ALL.map(Strategy::name).join(", ");
                    let found = Strategy::from_name(name);
                    strategy = Some(found.ok_or(format!("no strategy '{name}', only {names}"))?);
                }
                Some(("sink", name)) => {
                    let names = Sink::ALL.map(Sink::name).join(", ");
                    sink =
                        Sink::from_name(name).ok_or(format!("no sink '{name}', only {names}"))?;
                }
                _ => return Err(format!("'{option}' is neither strategy=NAME nor sink=NAME")),
            }
        }
        let strategy = strategy.ok_or_else(|| format!("'{place}' has no strategy=NAME"))?;
        let bind = Bind { host: host.to_owned(), optional: false };
        Ok(Self { bind, port, strategy, sink })
    }

    /// The words that read back as these listeners, with blanks between them.
    pub fn show_all(all: &[Self]) -> Vec<u8> {
        let each: Vec<String> = all.iter().map(ToString::to_string).collect();
        each.join(" ").into_bytes()
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
        write!(f, ":{} strategy={} sink={}", self.port, self.strategy, self.sink)
    }
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
        let short = parse("*:9000  strategy=head-rest").expect("the sink has a default");
        assert_eq!(IngestListen::show_all(&short), b"*:9000 strategy=head-rest sink=null");
        assert_eq!(parse("").expect("nothing is none"), []);
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
                "no strategy 'quick', only request-reply, throttled, head-rest, sync, async",
            ),
            ("a:1 strategy=sync sink=stream", "no sink 'stream', only null"),
            ("a:1 strategy=sync colour=red", "'colour=red' is neither strategy=NAME nor sink=NAME"),
            ("a:1 strategy=sync b", "'b' is no address with a port"),
        ] {
            assert_eq!(parse(text), Err(wanted.to_owned()), "{text}");
        }
    }
}
