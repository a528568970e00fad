//! Parses the frames of the server, for a producer.

use crate::v2::frame::{
    ACK_BODY, CREDIT_BODY, ERROR_BODY, Fields, Header, NOTHING_NEW, WELCOME_BODY, kind,
};
use crate::v2::{Ack, Acking, Fault, HEADER_BYTES, Level, VERSION, Welcome};

/// A frame of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// The server accepted the Hello.
    Welcome(Welcome),
    /// The server holds messages.
    Ack(Ack),
    /// Data may be sent up to so many bytes in all.
    Credit(u64),
    /// The connection ends.
    Error {
        /// The reason; [`Fault::from_code`] knows those of this version.
        code: u16,
        /// The highest number held, 0 if the producer is not known.
        id: u64,
        /// For people.
        text: &'a [u8],
    },
}

/// One connection's incoming frames. Does not check their order (a Welcome or an Error comes
/// first).
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The beginning of a frame that the input cut.
    partial: Vec<u8>,
    /// The frame in `partial` was yielded; the next call clears it.
    yielded: bool,
    over: bool,
}

impl Reader {
    /// The beginning of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one frame off the front of `input`. `None`: all of it is used, or there was a fault,
    /// after which no frame follows.
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Option<Result<ServerFrame<'a>, Fault>> {
        if std::mem::take(&mut self.yielded) {
            self.partial.clear();
        }
        if self.over {
            return None;
        }
        let frame = match self.frame(input) {
            Ok(None) => return None,
            Ok(Some(Frame::Input(frame))) => parse(frame),
            Ok(Some(Frame::Buffered)) => {
                self.yielded = true;
                parse(&self.partial)
            }
            Err(fault) => Err(fault),
        };
        self.over = frame.is_err();
        Some(frame)
    }

    /// A whole frame with its header.
    fn frame<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Fault> {
        if self.partial.is_empty()
            && let Some(header) = input.first_chunk().copied()
            && let Some((frame, rest)) = input.split_at_checked(length(header)?)
        {
            *input = rest;
            return Ok(Some(Frame::Input(frame)));
        }
        self.buffer(input, HEADER_BYTES);
        let Some(header) = self.partial.first_chunk().copied() else { return Ok(None) };
        let length = length(header)?;
        self.buffer(input, length);
        Ok((self.partial.len() == length).then_some(Frame::Buffered))
    }

    fn buffer(&mut self, input: &mut &[u8], whole: usize) {
        let missing = whole.saturating_sub(self.partial.len());
        let (bytes, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(bytes);
        *input = rest;
    }
}

enum Frame<'a> {
    Input(&'a [u8]),
    Buffered,
}

/// Bytes of a frame, header included; bounded by what its type allows.
fn length(header: [u8; HEADER_BYTES]) -> Result<usize, Fault> {
    let Header { length, kind, flags, reserved } = Header::parse(header);
    let length = length as usize;
    let flag = if kind == kind::ACK { NOTHING_NEW } else { 0 };
    let fits = match kind {
        kind::WELCOME => length == WELCOME_BODY,
        kind::ACK => length == ACK_BODY,
        kind::CREDIT => length == CREDIT_BODY,
        kind::ERROR => (ERROR_BODY..=ERROR_BODY + usize::from(u16::MAX)).contains(&length),
        _ => false,
    };
    if fits && flags & !flag == 0 && reserved == 0 {
        Ok(HEADER_BYTES + length)
    } else {
        Err(Fault::Malformed)
    }
}

fn parse(frame: &[u8]) -> Result<ServerFrame<'_>, Fault> {
    let (header, body) = frame.split_first_chunk().ok_or(Fault::Malformed)?;
    let header = Header::parse(*header);
    let mut fields = Fields(body);
    match header.kind {
        kind::WELCOME => welcome(&mut fields).map(ServerFrame::Welcome),
        kind::ACK => ack(&mut fields, header.flags & NOTHING_NEW != 0).map(ServerFrame::Ack),
        kind::CREDIT => fields.u64().map(ServerFrame::Credit),
        kind::ERROR => error(&mut fields),
        _ => Err(Fault::Malformed),
    }
}

fn welcome(fields: &mut Fields<'_>) -> Result<Welcome, Fault> {
    if fields.u16()? != VERSION {
        return Err(Fault::Version);
    }
    Ok(Welcome {
        level: fields.one_of(&Level::ALL)?,
        acking: fields.one_of(&Acking::ALL)?,
        max_message: fields.u32()?,
        max_frame: fields.u32()?,
        idle_ms: fields.u32()?,
        last_id: fields.u64()?,
        durable: fields.u64()?,
        credit: fields.u64()?,
    })
}

fn ack(fields: &mut Fields<'_>, nothing_new: bool) -> Result<Ack, Fault> {
    let (id, skipped, reserved) = (fields.u64()?, fields.u32()?, fields.u32()?);
    if reserved != 0 || (nothing_new && skipped != 0) {
        return Err(Fault::Malformed);
    }
    Ok(Ack { nothing_new, id, skipped, memory: fields.u64()?, durable: fields.u64()? })
}

fn error<'a>(fields: &mut Fields<'a>) -> Result<ServerFrame<'a>, Fault> {
    let (code, len, reserved, id) = (fields.u16()?, fields.u16()?, fields.u32()?, fields.u64()?);
    if reserved != 0 || usize::from(len) != fields.0.len() {
        return Err(Fault::Malformed);
    }
    Ok(ServerFrame::Error { code, id, text: fields.0 })
}
