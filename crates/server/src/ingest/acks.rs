//! Acknowledgements which may not leave yet, because the change that wrote their messages is not
//! safe.

use crate::worker::Worker;
use crate::worker::message::Message;
use driver::{ConnId, Driver};
use resp::OutBuf;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Holds the acknowledgements at the end of the arena, unless they may leave; true if held.
    #[cold]
    pub(crate) fn hold_acks(&mut self, conn: ConnId, from: usize) -> bool {
        let safe = self.core.safe();
        let Some(c) = self.ingest.find(conn) else { return false };
        let is_fsynced = c.is_fsynced();
        let safe = if is_fsynced { self.core.fsynced(safe) } else { safe };
        let mut hold = c.hold();
        if c.outbox.is_none() && safe.meets(&mut hold) {
            return false;
        }
        let (_, out) = self.driver.io();
        let bytes = out.bytes.split_off(from);
        if c.outbox.is_none() {
            self.ingest.holding.push(conn);
        }
        let Some(c) = self.ingest.find(conn) else { return false };
        c.outbox.get_or_insert_default().push(OutBuf { bytes, blobs: Vec::new() }, hold);
        c.count_memory();
        if c.is_over_bound() && !c.blocked {
            c.blocked = true;
            self.driver.pause(conn);
        }
        if is_fsynced {
            self.wait_for_fsynced(hold.seq);
        }
        true
    }

    /// Sends held acknowledgements which may leave now.
    #[cold]
    pub(crate) fn release_acks(&mut self) {
        let (safe, fsynced) = (self.core.safe(), self.core.fsynced(self.core.safe()));
        for conn in std::mem::take(&mut self.ingest.holding) {
            let is_fsynced = self.ingest.find(conn).is_some_and(|c| c.is_fsynced());
            let safe = if is_fsynced { fsynced } else { safe };
            while let Some(c) = self.ingest.find(conn)
                && let Some((chunk, _)) = c.outbox.as_mut().and_then(|outbox| outbox.pop(safe))
            {
                let (_, out) = self.driver.io();
                let from = out.bytes.len();
                out.bytes.extend_from_slice(&chunk.bytes);
                self.send_acks_now(conn, from);
            }
            let Some(c) = self.ingest.find(conn) else { continue };
            let blocked = c.blocked;
            c.count_memory();
            if let Some(waits_for) = c.outbox.as_ref().and_then(|outbox| outbox.awaits()) {
                self.ingest.holding.push(conn);
                if is_fsynced {
                    self.wait_for_fsynced(waits_for);
                }
            } else {
                c.outbox = None;
                if c.closing && !c.is_two() {
                    self.driver.close_after_flush(conn);
                } else if c.closing && !blocked {
                    self.end_output(conn);
                }
            }
            if blocked && self.driver.backlog(conn) == 0 {
                self.on_ingest_drained(conn);
            }
        }
    }
}
