//! Two ways to parse a byte stream. Every user of the crate has one or the other.

use resp::{Args, Assembler, Framed, Limits, ProtocolError, frame};

/// Handles the requests of a stream. It may change the limits for later ones.
pub trait Handler {
    fn request(&mut self, args: Args<'_>) -> Option<Limits>;
}

/// A stream parsed like in a server's session: in place, with an assembler for large requests.
pub struct Session<H> {
    kept: Vec<u8>,
    assembler: Option<Assembler>,
    limits: Limits,
    pub handler: H,
}

impl<H: Handler> Session<H> {
    pub fn new(limits: Limits, handler: H) -> Self {
        Self { kept: Vec::new(), assembler: None, limits, handler }
    }

    pub fn receive(&mut self, piece: &[u8]) -> Result<(), ProtocolError> {
        self.kept.extend_from_slice(piece);
        let mut at = 0;
        while at < self.kept.len() {
            let taken = match &self.assembler {
                Some(_) => self.assemble(at)?,
                None => self.frame(at)?,
            };
            if taken == 0 && self.assembler.is_none() {
                break;
            }
            at += taken;
        }
        self.kept.drain(..at);
        Ok(())
    }

    fn assemble(&mut self, at: usize) -> Result<usize, ProtocolError> {
        let assembler = self.assembler.as_mut().expect("only called with one");
        let (taken, complete) = assembler.feed(&self.kept[at..])?;
        assert!(complete || at + taken == self.kept.len());
        if complete {
            handle(&mut self.handler, &mut self.limits, assembler.args());
            self.assembler = None;
        }
        Ok(taken)
    }

    fn frame(&mut self, at: usize) -> Result<usize, ProtocolError> {
        let (mut spans, mut blobs) = (Vec::new(), Vec::new());
        let framed = frame(&self.kept, at, &mut spans, &mut blobs, &self.limits);
        let complete = matches!(framed, Framed::Complete { .. });
        assert!(complete || spans.is_empty() && blobs.is_empty());
        match framed {
            Framed::Complete { end } => {
                assert!(end > at && end <= self.kept.len() && !spans.is_empty());
                let args = Args::new(&self.kept, &spans, &blobs);
                handle(&mut self.handler, &mut self.limits, args);
                Ok(end - at)
            }
            Framed::Empty { end } => {
                assert!(end > at && end <= self.kept.len());
                Ok(end - at)
            }
            Framed::Incomplete => Ok(0),
            Framed::Big => {
                self.assembler = Some(Assembler::new(self.limits));
                Ok(0)
            }
            Framed::Error(error) => Err(error),
        }
    }
}

fn handle<H: Handler>(handler: &mut H, limits: &mut Limits, args: Args<'_>) {
    if !args.is_empty()
        && let Some(changed) = handler.request(args)
    {
        *limits = changed;
    }
}

/// Parses the pieces with a session.
pub fn by_session<'a, H: Handler>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: Limits,
    handler: H,
) -> (H, Option<ProtocolError>) {
    let mut session = Session::new(limits, handler);
    let error = pieces.into_iter().find_map(|piece| session.receive(piece).err());
    (session.handler, error)
}

/// Parses the pieces with assemblers alone.
pub fn by_assembler<'a, H: Handler>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    mut limits: Limits,
    mut handler: H,
) -> (H, Option<ProtocolError>) {
    let mut assembler = Assembler::new(limits);
    for mut piece in pieces {
        while !piece.is_empty() {
            let (taken, complete) = match assembler.feed(piece) {
                Ok(fed) => fed,
                Err(error) => {
                    assert_eq!(assembler.feed(b"x"), Err(error), "a failure stays");
                    return (handler, Some(error));
                }
            };
            assert!(complete || taken == piece.len());
            piece = &piece[taken..];
            if complete {
                assert_eq!(assembler.feed(b"x"), Ok((0, true)), "complete stays complete");
                handle(&mut handler, &mut limits, assembler.take_request().args());
                assembler = Assembler::new(limits);
            }
        }
    }
    (handler, None)
}
