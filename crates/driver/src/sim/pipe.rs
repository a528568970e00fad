//! One direction of a simulated connection: bytes with arrival times in a bounded buffer.

use base::prng::Prng;
use std::collections::VecDeque;

/// Bytes in flight or unread, and perhaps an end of the stream.
#[derive(Debug, Default)]
pub struct Pipe {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The latest arrival so far: bytes never overtake earlier ones.
    last_arrival: u64,
    /// When the reader sees the end of the stream, if the writer has closed.
    end_at: Option<u64>,
}

#[derive(Debug)]
struct Chunk {
    at: u64,
    bytes: VecDeque<u8>,
}

impl Pipe {
    /// Room in a buffer of `size` bytes.
    pub fn room(&self, size: usize) -> usize {
        size.saturating_sub(self.bytes)
    }

    /// Writes bytes that arrive at `at`, or later if earlier bytes arrive later.
    pub fn write(&mut self, bytes: &[u8], at: u64) {
        assert!(self.end_at.is_none(), "nothing follows the end");
        if bytes.is_empty() {
            return; // an empty write has no effect
        }
        self.last_arrival = self.last_arrival.max(at);
        self.bytes += bytes.len();
        self.chunks
            .push_back(Chunk { at: self.last_arrival, bytes: bytes.iter().copied().collect() });
    }

    /// The writer closes its end.
    pub fn end(&mut self, at: u64) {
        if self.end_at.is_none() {
            self.last_arrival = self.last_arrival.max(at);
            self.end_at = Some(self.last_arrival);
        }
    }

    pub fn is_ended(&self) -> bool {
        self.end_at.is_some()
    }

    /// Bytes that have arrived.
    pub fn arrived(&self, now: u64) -> usize {
        self.chunks.iter().take_while(|c| c.at <= now).map(|c| c.bytes.len()).sum()
    }

    /// True if the end has arrived (there may be bytes in front of it).
    pub fn end_arrived(&self, now: u64) -> bool {
        self.end_at.is_some_and(|at| at <= now)
    }

    /// Moves arrived bytes into `room`: all that fit, or a random part of them if `part` is given.
    pub fn read(&mut self, room: &mut [u8], now: u64, part: Option<&mut Prng>) -> usize {
        let mut count = self.arrived(now).min(room.len());
        if let Some(prng) = part
            && count > 1
        {
            count = 1 + prng.below(count as u64) as usize;
        }
        let mut done = 0;
        while done < count {
            let chunk = self.chunks.front_mut().expect("as many have arrived");
            let len = chunk.bytes.len().min(count - done);
            for (place, byte) in room[done..done + len].iter_mut().zip(chunk.bytes.drain(..len)) {
                *place = byte;
            }
            done += len;
            if chunk.bytes.is_empty() {
                self.chunks.pop_front();
            }
        }
        self.bytes -= count;
        count
    }

    /// The first arrival after `now`.
    pub fn next_arrival(&self, now: u64) -> Option<u64> {
        let chunks = self.chunks.iter().map(|c| c.at);
        chunks.chain(self.end_at).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_in_time() {
        let mut pipe = Pipe::default();
        pipe.write(b"late", 50);
        pipe.write(b"early", 10); // overtakes nothing
        pipe.end(20);
        assert_eq!((pipe.arrived(49), pipe.next_arrival(49)), (0, Some(50)));
        assert!(!pipe.end_arrived(49));
        assert_eq!((pipe.arrived(50), pipe.next_arrival(50)), (9, None));
        assert!(pipe.end_arrived(50));
        let mut room = [0; 6];
        assert_eq!(pipe.read(&mut room, 50, None), 6);
        assert_eq!(&room, b"lateea");
        assert_eq!((pipe.room(10), pipe.room(2)), (7, 0));
        assert_eq!(pipe.read(&mut room, 50, None), 3);
        assert_eq!(&room[..3], b"rly");
    }

    #[test]
    fn partial_reads_bring_something() {
        let mut prng = Prng::new(1);
        let mut pipe = Pipe::default();
        pipe.write(&[7; 1000], 0);
        let (mut total, mut reads) = (0, 0);
        while total < 1000 {
            let n = pipe.read(&mut [0; 100], 0, Some(&mut prng));
            assert!((1..=100).contains(&n));
            total += n;
            reads += 1;
        }
        assert!(reads > 10);
    }
}
