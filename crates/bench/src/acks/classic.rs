//! The bytes of the five classic strategies.

use super::connection::{Account, Broken, Wire};
use super::spec::{BATCH_MAX, Spec};
use ingest::{ACK_BYTES, HEADER_BYTES, Order, Strategy};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::IoSlice;
use std::net::TcpStream;
use std::ops::Range;

/// A write of messages whose ids are set anew for each, and the checks of acknowledgements.
pub struct Classic {
    chunk: Vec<u8>,
    message_size: usize,
    /// Write with `writev`, a slice per message.
    slices: bool,
    ack_bytes: usize,
    /// An acknowledgement that has not come whole.
    partial: Vec<u8>,
}

impl Classic {
    pub fn new(spec: &Spec, strategy: Strategy) -> Self {
        let batch = spec.batch_len();
        let payload = (spec.message_size - HEADER_BYTES) as u32;
        let size = match strategy.order() {
            Order::Big => payload.to_be_bytes(),
            Order::Little => payload.to_le_bytes(),
        };
        let mut chunk = vec![b'x'; batch * spec.message_size];
        for message in chunk.chunks_exact_mut(spec.message_size) {
            message[8..HEADER_BYTES].copy_from_slice(&size);
        }
        Self {
            chunk,
            message_size: spec.message_size,
            slices: spec.block.is_none() && batch > 1,
            ack_bytes: if strategy == Strategy::RequestReply { 8 } else { ACK_BYTES },
            partial: Vec::with_capacity(ACK_BYTES),
        }
    }

    fn check(ack: &[u8], account: &mut Account) -> Result<(), Broken> {
        let id = u64::from_le_bytes(*ack.first_chunk().expect("8 bytes of id"));
        let skipped = ack[8..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
        // `previous + skipped + 1 == id`, where `previous` is one less than what was acknowledged.
        if id != account.acknowledged.wrapping_add(u64::from(skipped)) {
            let previous = i128::from(account.acknowledged) - 1;
            return Err(Broken::Wrong(format!(
                "acknowledgement of {id} with {skipped} skipped follows that of {previous}"
            )));
        }
        let written = account.written;
        if id >= written {
            return Err(Broken::Wrong(format!(
                "acknowledgement of {id}, which was not sent whole: {written} were"
            )));
        }
        account.acknowledged = id + 1;
        account.acks += 1;
        Ok(())
    }
}

impl Wire for Classic {
    fn admits(&self, _: u64) -> bool {
        true
    }

    fn fill(&mut self, before: u64, count: u64) -> usize {
        let messages = self.chunk.chunks_exact_mut(self.message_size);
        for (id, message) in (before..before + count).zip(messages) {
            message[..8].copy_from_slice(&id.to_le_bytes());
        }
        count as usize * self.message_size
    }

    fn send(&self, stream: &TcpStream, part: Range<usize>) -> Result<usize, Errno> {
        let bytes = &self.chunk[part];
        if !self.slices {
            return send(stream, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        // The rest of a message that left in part, then whole ones.
        let first = bytes.len() % self.message_size;
        let (part, whole) = bytes.split_at(first);
        let mut slices = [IoSlice::new(&[]); BATCH_MAX];
        let mut count = 0;
        let pieces = std::iter::once(part).chain(whole.chunks_exact(self.message_size));
        for (place, piece) in slices.iter_mut().zip(pieces.filter(|p| !p.is_empty())) {
            *place = IoSlice::new(piece);
            count += 1;
        }
        rustix::io::writev(stream, &slices[..count])
    }

    fn receive(&mut self, mut bytes: &[u8], account: &mut Account) -> Result<(), Broken> {
        if !self.partial.is_empty() {
            let n = bytes.len().min(self.ack_bytes - self.partial.len());
            self.partial.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.partial.len() < self.ack_bytes {
                return Ok(());
            }
            let ack = std::mem::take(&mut self.partial);
            Self::check(&ack, account)?;
        }
        let acks = bytes.chunks_exact(self.ack_bytes);
        self.partial.extend_from_slice(acks.remainder());
        for ack in acks {
            Self::check(ack, account)?;
        }
        Ok(())
    }

    fn say_bye(&self, _: &TcpStream) {}
}

#[cfg(test)]
mod tests {
    use super::super::connection::{Connection, trial};
    use super::*;

    fn connection(strategy: Strategy, written: u64) -> Connection<Classic> {
        let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let spec = Spec { messages: 100, ..Spec::new(nobody, strategy) };
        trial::connection(&spec, Classic::new(&spec, strategy), written)
    }

    fn ack(id: u64, skipped: u32) -> Vec<u8> {
        [&id.to_le_bytes()[..], &skipped.to_le_bytes()].concat()
    }

    #[test]
    fn valid_acknowledgements_are_accepted_in_any_pieces() {
        let acks = [ack(0, 0), ack(4, 3), ack(5, 0), ack(9, 3)].concat();
        for piece in 1..acks.len() {
            let mut c = connection(Strategy::Sync, 10);
            for part in acks.chunks(piece) {
                c.inject(part).expect("they are right");
            }
            assert_eq!((c.account.acknowledged, c.account.acks), (10, 4));
        }
        let mut c = connection(Strategy::RequestReply, 3);
        let ids: Vec<u8> = (0..3u64).flat_map(u64::to_le_bytes).collect();
        ids.chunks(5).for_each(|part| c.inject(part).expect("they are right"));
        assert_eq!(c.account.acknowledged, 3);
    }

    #[test]
    fn invalid_acknowledgements_are_refused() {
        for wrong in [ack(1, 0), ack(0, 1), ack(10, 10), ack(u64::MAX, 0), ack(3, 2)] {
            let mut c = connection(Strategy::Async, 10);
            assert!(matches!(c.inject(&wrong), Err(Broken::Wrong(_))), "{wrong:?}");
        }
        let mut c = connection(Strategy::Async, 10);
        c.inject(&ack(2, 2)).expect("right");
        assert!(matches!(c.inject(&ack(2, 0)), Err(Broken::Wrong(_))), "twice");
    }

    #[test]
    fn a_partly_sent_message_must_not_be_acknowledged() {
        let mut c = connection(Strategy::Sync, 10);
        c.unsend(1);
        c.inject(&ack(8, 8)).expect("right");
        assert!(matches!(c.inject(&ack(9, 0)), Err(Broken::Wrong(_))));
    }
}
