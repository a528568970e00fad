//! The beginnings of the requests framed last, and the commands which they name. Clients send many
//! requests which begin alike; for these nothing is looked up.

use crate::execute::window::Window;
use command::CommandId;
use resp::{Args, Beginning, Framed, Limits};

/// The beginnings of two kinds of requests, for clients that send two in turn.
#[derive(Debug, Default)]
pub struct Recent {
    kinds: [(Beginning, Option<CommandId>); 2],
    /// The kind of the last request.
    last: usize,
}

impl Recent {
    /// Frames the request at `input[at]`.
    #[inline(always)]
    pub fn frame(
        &mut self,
        window: &mut Window,
        input: &[u8],
        at: usize,
        limits: &Limits,
    ) -> Framed {
        if !self.kinds[self.last & 1].0.is_at(input, at) {
            self.last ^= 1;
        }
        match self.kinds[self.last & 1].0.frame(input, at, &mut window.spans) {
            Some(end) => Framed::Complete { end },
            None => self.frame_another(window, input, at, limits),
        }
    }

    /// The command of the request framed last; `None` if its name is unknown.
    #[inline(always)]
    pub fn command(&self) -> Option<CommandId> {
        self.kinds[self.last & 1].1
    }

    /// Frames a request of another kind, and looks up its command.
    #[inline(never)]
    fn frame_another(
        &mut self,
        window: &mut Window,
        input: &[u8],
        at: usize,
        limits: &Limits,
    ) -> Framed {
        let spans_from = window.spans.len();
        let framed = resp::frame(input, at, &mut window.spans, &mut window.blobs, limits);
        if let Framed::Complete { .. } = framed {
            let spans = &window.spans[spans_from..];
            let name = Args::new(input, spans, &window.blobs).get(0);
            self.kinds[self.last & 1] = (Beginning::of(input, at, spans), command::lookup(name));
        }
        framed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a stream's commands, in upper case, in the order in which they are found.
    fn commands(stream: &[u8]) -> Vec<Option<&'static str>> {
        let (mut recent, mut window, mut at) = (Recent::default(), Window::new(), 0);
        let mut found = Vec::new();
        while at < stream.len() {
            match recent.frame(&mut window, stream, at, &Limits::default()) {
                Framed::Complete { end } => {
                    found.push(recent.command().map(|id| id.spec().name));
                    at = end;
                }
                other => panic!("{other:?} at {at}"),
            }
        }
        found
    }

    #[test]
    fn a_command_is_named_whatever_precedes_it() {
        let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".as_slice();
        let set = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n".as_slice();
        let (none, inline) =
            (b"*2\r\n$3\r\nGOT\r\n$1\r\nk\r\n".as_slice(), b"DBSIZE\r\n".as_slice());
        let kinds =
            [(get, Some("get")), (set, Some("set")), (none, None), (inline, Some("dbsize"))];
        // Every sequence of four.
        for order in 0..256 {
            let chosen = (0..4).map(|place| kinds[order >> (2 * place) & 3]);
            let (stream, names): (Vec<&[u8]>, Vec<_>) = chosen.unzip();
            assert_eq!(commands(&stream.concat()), names, "order {order}");
        }
    }
}
