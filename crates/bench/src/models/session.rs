//! One connection's conversation without its socket: bytes in, replies out, one request at a time.

use resp::{
    Args, Assembler, BULK_MAX_LEAST, BigArg, Framed, Limits, OutBuf, Proto, ProtocolError, Reply,
    Span, frame,
};

use super::input::Input;

/// Longest argument.
const ARGUMENT_BYTES_MAX: u64 = BULK_MAX_LEAST;
/// Most memory that one incomplete request may take.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request was executed; its reply, if it has one, is written.
    Replied,
    /// A request went to another thread; its reply comes later.
    Deferred,
    /// There is no whole request.
    Starved,
    /// Nothing that follows will be read.
    End,
}

/// A conversation.
pub trait Session {
    /// Executes at most one request.
    fn step(&mut self, input: &mut Input, out: &mut OutBuf) -> Step;

    /// What there is to say after the replies to all requests, once the conversation has ended.
    fn farewell(&mut self, out: &mut OutBuf);
}

/// What executes requests.
pub trait Executor {
    /// Executes one, or passes it on; says which by [`Step::Replied`] or [`Step::Deferred`], or
    /// that it cannot by [`Step::End`].
    fn execute(&mut self, args: Args<'_>, proto: Proto, out: &mut OutBuf) -> Step;
}

/// A conversation in Redis's protocol.
pub struct RespSession<E> {
    executor: E,
    proto: Proto,
    limits: Limits,
    request_max: usize,
    spans: Vec<Span>,
    blobs: Vec<BigArg>,
    /// A request that is too big to be executed where it arrives.
    big: Option<Box<Assembler>>,
    end: Option<Ending>,
}

/// Why a conversation ended.
enum Ending {
    Quit,
    Protocol(ProtocolError),
    TooBig,
}

impl<E: Executor> RespSession<E> {
    /// A conversation whose requests `executor` executes.
    pub fn new(executor: E) -> Self {
        Self::within(executor, ARGUMENT_BYTES_MAX, REQUEST_BYTES_MAX)
    }

    /// The same with other bounds of an argument and of an incomplete request, in bytes.
    pub fn within(executor: E, argument_max: u64, request_max: usize) -> Self {
        Self {
            executor,
            proto: Proto::Resp2,
            limits: Limits::new(argument_max, true),
            request_max,
            spans: Vec::new(),
            blobs: Vec::new(),
            big: None,
            end: None,
        }
    }

    fn execute(&mut self, args: Args<'_>, out: &mut OutBuf) -> Step {
        if args.is_empty() {
            return Step::Replied;
        }
        if is_quit(args) {
            self.end = Some(Ending::Quit);
        }
        self.proto = proto_after(args, self.proto);
        self.executor.execute(args, self.proto, out)
    }

    fn end(&mut self, why: Ending) -> Step {
        self.end = Some(why);
        Step::End
    }

    /// Goes on with a big request.
    fn assemble(&mut self, mut big: Box<Assembler>, input: &mut Input, out: &mut OutBuf) -> Step {
        match big.feed(input.unread()) {
            Err(error) => self.end(Ending::Protocol(error)),
            Ok((taken, true)) => {
                input.consume(taken);
                self.execute(big.args(), out)
            }
            Ok(_) if big.memory() > self.request_max => self.end(Ending::TooBig),
            Ok((taken, false)) => {
                input.consume(taken);
                self.big = Some(big);
                Step::Starved
            }
        }
    }
}

impl<E: Executor> Session for RespSession<E> {
    fn step(&mut self, input: &mut Input, out: &mut OutBuf) -> Step {
        if self.end.is_some() {
            return Step::End;
        }
        if let Some(big) = self.big.take() {
            return self.assemble(big, input, out);
        }
        let (mut spans, mut blobs) =
            (std::mem::take(&mut self.spans), std::mem::take(&mut self.blobs));
        spans.clear();
        blobs.clear();
        let mut skipped = 0;
        let framed = loop {
            match frame(input.unread(), skipped, &mut spans, &mut blobs, &self.limits) {
                Framed::Empty { end } => skipped = end,
                other => break other,
            }
        };
        let step = match framed {
            Framed::Complete { end } => {
                let step = self.execute(Args::new(input.unread(), &spans, &blobs), out);
                input.consume(end);
                step
            }
            Framed::Big => {
                input.consume(skipped);
                self.assemble(Box::new(Assembler::new(self.limits)), input, out)
            }
            Framed::Error(error) => self.end(Ending::Protocol(error)),
            Framed::Incomplete | Framed::Empty { .. } => {
                input.consume(skipped);
                Step::Starved
            }
        };
        (self.spans, self.blobs) = (spans, blobs);
        step
    }

    fn farewell(&mut self, out: &mut OutBuf) {
        let mut reply = Reply::new(out, self.proto);
        match self.end {
            Some(Ending::Protocol(error)) => reply.protocol_error(error),
            Some(Ending::TooBig) => reply.error("ERR Protocol error: too big request"),
            Some(Ending::Quit) | None => {}
        }
    }
}

/// True if nothing behind this request is to be read.
fn is_quit(args: Args<'_>) -> bool {
    args.get(0).eq_ignore_ascii_case(b"quit")
}

/// The protocol version from this request's reply on.
fn proto_after(args: Args<'_>, before: Proto) -> Proto {
    if !args.get(0).eq_ignore_ascii_case(b"hello") {
        return before;
    }
    match (args.try_get(1), valid_hello(args)) {
        (Some(b"2"), true) => Proto::Resp2,
        (Some(b"3"), true) => Proto::Resp3,
        _ => before,
    }
}

/// Are the options of a HELLO, if it has any, complete and known?
pub fn valid_hello(args: Args<'_>) -> bool {
    let mut at = 2;
    while let Some(option) = args.try_get(at) {
        at += match option.to_ascii_lowercase().as_slice() {
            b"auth" => 3,
            b"setname" => 2,
            _ => return false,
        };
        if at > args.len() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Replies with the request's arguments.
    struct Mirror;

    impl Executor for Mirror {
        fn execute(&mut self, args: Args<'_>, proto: Proto, out: &mut OutBuf) -> Step {
            let mut reply = Reply::new(out, proto);
            reply.array(args.len());
            for arg in args {
                reply.bulk(arg);
            }
            Step::Replied
        }
    }

    /// The replies to these pieces, and how the conversation ends.
    fn converse(pieces: &[&[u8]]) -> (Vec<u8>, Step) {
        let mut session = RespSession::new(Mirror);
        let (mut input, mut out, mut last) = (Input::default(), OutBuf::new(), Step::Starved);
        for piece in pieces {
            input.push(piece);
            last = loop {
                match session.step(&mut input, &mut out) {
                    Step::Replied => {}
                    other => break other,
                }
            };
        }
        session.farewell(&mut out);
        (out.to_vec(), last)
    }

    fn request(args: &[&[u8]]) -> Vec<u8> {
        client::encode(args)
    }

    #[test]
    fn requests_may_be_split_anywhere() {
        let big = vec![b'v'; 3 * resp::BIG_BULK];
        let mut all = request(&[b"SET", b"k", b"v\r\n"]);
        all.extend_from_slice(b"PING\r\n\r\n*0\r\nECHO \"a b\"\r\n");
        all.extend(request(&[b"SET", b"big", &big]));
        all.extend(request(&[b"GET", b"k"]));
        let (whole, _) = converse(&[&all]);
        let requests: [&[&[u8]]; 5] = [
            &[b"SET", b"k", b"v\r\n"],
            &[b"PING"],
            &[b"ECHO", b"a b"],
            &[b"SET", b"big", &big],
            &[b"GET", b"k"],
        ];
        assert!(whole == requests.map(request).concat(), "every request once");
        for at in (0..200).chain([20_000, 90_000, all.len() - 30, all.len() - 1]) {
            let (left, right) = all.split_at(at);
            assert!(converse(&[left, right]).0 == whole, "split at {at}");
        }
        let bytes: Vec<&[u8]> = all.chunks(1).collect();
        assert!(converse(&bytes).0 == whole, "byte by byte");
    }

    #[test]
    fn nothing_is_read_after_quit_or_an_error() {
        let (out, last) = converse(&[b"QUIT\r\nPING\r\n"]);
        assert_eq!((&out[..], last), (&b"*1\r\n$4\r\nQUIT\r\n"[..], Step::End));
        let (out, last) = converse(&[b"PING\r\n*1\r\n!4\r\nPING\r\nPING\r\n"]);
        let expected = b"*1\r\n$4\r\nPING\r\n-ERR Protocol error: expected '$', got '!'\r\n";
        assert_eq!((&out[..], last), (&expected[..], Step::End));
    }

    #[test]
    fn the_size_of_a_request_is_limited() {
        let (out, last) = converse(&[b"*2\r\n$3\r\nGET\r\n$1048577\r\n"]);
        assert_eq!(&out[..], b"-ERR Protocol error: invalid bulk length\r\n");
        assert_eq!(last, Step::End);
        let part = request(&[&vec![b'x'; 1 << 20]]);
        let mut pieces: Vec<&[u8]> = vec![b"*100\r\n"];
        pieces.extend(std::iter::repeat_n(&part[4..], 8));
        let (out, last) = converse(&pieces);
        assert_eq!(&out[..], b"-ERR Protocol error: too big request\r\n");
        assert_eq!(last, Step::End);
        let most = REQUEST_BYTES_MAX >> 20;
        assert!(converse(&pieces[..most]).1 == Step::Starved, "a little less is waited for");
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(
            pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(
                b"*$-+0123456789\r\n\"' abGETPING\0\xff".as_slice()), 0..40), 0..20)
        ) {
            let split: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let (apart, last) = converse(&split);
            let (whole, end) = converse(&[&pieces.concat()]);
            prop_assert_eq!(apart, whole);
            prop_assert_eq!(last, end);
        }
    }
}
