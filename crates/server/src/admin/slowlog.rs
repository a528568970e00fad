//! SLOWLOG.

use crate::worker::{Core, Outcome};
use command::ops::SlowlogOp;
use driver::ConnId;
use resp::{OutBuf, Reply};

impl Core {
    /// Carries out a SLOWLOG subcommand.
    pub(crate) fn slowlog_op(&mut self, out: &mut OutBuf, conn: ConnId, op: SlowlogOp) -> Outcome {
        let Some(proto) = self.session_mut(conn).map(|s| s.proto) else { return Outcome::Done };
        let mut reply = Reply::new(out, proto);
        let log = &self.shared.slowlog;
        match op {
            SlowlogOp::Len => reply.integer(log.len() as i64),
            SlowlogOp::Reset => {
                log.reset();
                reply.ok();
            }
            SlowlogOp::Get { count } => {
                let entries = log
                    .newest(count.map_or(usize::MAX, |c| usize::try_from(c).unwrap_or(usize::MAX)));
                reply.array(entries.len());
                for entry in entries {
                    reply.array(6);
                    reply.integer(entry.id as i64);
                    reply.integer(entry.unix_s);
                    reply.integer(entry.micros as i64);
                    reply.array(entry.args.len());
                    entry.args.iter().for_each(|a| reply.bulk(a));
                    reply.bulk(entry.client.as_bytes());
                    reply.bulk(&entry.name);
                }
            }
        }
        Outcome::Done
    }
}
