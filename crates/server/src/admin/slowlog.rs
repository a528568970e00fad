//! COMMANDLOG, and SLOWLOG, which is its log of slow commands.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::worker::core::Core;
use command::ops::{LogKind, LogOp};
use resp::OutBuf;

impl Core {
    /// Carries out a subcommand on one of the logs.
    pub(crate) fn log_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        kind: LogKind,
        op: LogOp,
    ) -> Outcome {
        let mut reply = caller.reply(out);
        let log = match kind {
            LogKind::Slow => &self.shared.slowlog,
            LogKind::LargeRequest => &self.shared.large_requests,
            LogKind::LargeReply => &self.shared.large_replies,
        };
        match op {
            LogOp::Len => reply.integer(log.len() as i64),
            LogOp::Reset => {
                log.reset();
                reply.ok();
            }
            LogOp::Get { count, waited } => {
                let entries = log
                    .newest(count.map_or(usize::MAX, |c| usize::try_from(c).unwrap_or(usize::MAX)));
                reply.array(entries.len());
                for entry in entries {
                    reply.array(6 + usize::from(waited));
                    reply.integer(entry.id as i64);
                    reply.integer(entry.unix_s);
                    reply.integer(entry.value as i64);
                    reply.array(entry.args.len());
                    entry.args.iter().for_each(|a| reply.bulk(a));
                    reply.bulk(entry.client.as_bytes());
                    reply.bulk(&entry.name);
                    if waited {
                        reply.integer(entry.waited_us as i64);
                    }
                }
            }
        }
        Outcome::Done
    }
}
