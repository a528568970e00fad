//! *Request and reply, one at a time, by a loop that sleeps.* Messages of classic ingest come in
//! (id of 8 bytes, size of 4 bytes in big-endian, payload) and the ids go back, one for each whole
//! message. The loop is the plain epoll loop of `event-loop`: it sleeps in its poll whenever there
//! is nothing to do, so every exchange pays a wake-up.

use std::io;
use std::sync::Arc;

use resp::OutBuf;

use super::context::Context;
use super::event_loops::deal;
use super::input::Input;
use super::reactor::Reactor;
use super::session::{Session, Step};

/// Bytes of an id.
const ID_BYTES: usize = 8;
/// Bytes before the payload.
const HEAD_BYTES: usize = 12;

/// Makes its loop ready to run.
pub fn prepare(context: &Arc<Context>) -> io::Result<impl FnOnce(&Arc<Context>) + Send + use<>> {
    let reactor = Reactor::new(context, |_: &_, _| EchoSession::default())?;
    Ok(|context: &Arc<Context>| deal(context, vec![reactor]))
}

/// One connection's messages. No payload is kept, so there is no bound to its size but 32 bits.
#[derive(Default)]
struct EchoSession {
    /// The message that is arriving: its id, and how much of its payload is missing.
    arriving: Option<([u8; ID_BYTES], usize)>,
}

impl Session for EchoSession {
    fn step(&mut self, input: &mut Input, out: &mut OutBuf) -> Step {
        if self.arriving.is_none() {
            self.arriving = head(input);
        }
        let Some((id, missing)) = self.arriving.take() else { return Step::Starved };
        let came = missing.min(input.unread().len());
        input.consume(came);
        if came < missing {
            self.arriving = Some((id, missing - came));
            return Step::Starved;
        }
        out.bytes.extend_from_slice(&id);
        Step::Replied
    }

    fn farewell(&mut self, _: &mut OutBuf) {}
}

/// Takes the next message's head: its id and the size of its payload.
fn head(input: &mut Input) -> Option<([u8; ID_BYTES], usize)> {
    let [id @ .., a, b, c, d] = *input.unread().first_chunk::<HEAD_BYTES>()?;
    input.consume(HEAD_BYTES);
    Some((id, u32::from_be_bytes([a, b, c, d]) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_messages_are_acknowledged_for_any_split() {
        let mut bytes = Vec::new();
        for (id, size) in [(1u64, 0), (2, 5), (3, 70_000), (4, 1)] {
            bytes.extend(id.to_be_bytes());
            bytes.extend(u32::to_be_bytes(size));
            bytes.extend(vec![b'x'; size as usize]);
        }
        let ends = [12, 29, 29 + 70_012, bytes.len()];
        for at in (0..60).chain([40_000, 70_040, 70_041, 70_042, 70_043, bytes.len() - 1]) {
            let mut session = EchoSession::default();
            let (mut input, mut out) = (Input::default(), OutBuf::new());
            let (left, right) = bytes.split_at(at);
            for (piece, end) in [(left, at), (right, bytes.len())] {
                input.push(piece);
                while session.step(&mut input, &mut out) == Step::Replied {}
                let whole = ends.iter().filter(|whole| **whole <= end).count();
                assert_eq!(out.bytes.len(), ID_BYTES * whole, "split at {at}");
            }
            let ids: Vec<u8> = out.bytes.iter().skip(7).step_by(8).copied().collect();
            assert_eq!(ids, [1, 2, 3, 4]);
        }
    }
}
