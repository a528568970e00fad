//! One client's line in CLIENT LIST: the fields of Redis 7.2 in its order, then those of Redis 8
//! and Valkey 9.

use crate::execute::sizes::protocol_len;
use crate::sessions::card::{ClientCard, flag};
use crate::sessions::session::CLIENT_BYTES;
use crate::worker::core::Core;
use base::sync::atomic::Ordering::Relaxed;
use command::CommandId;
use command::ops::Subject;
use resp::Args;

impl Core {
    /// The line, without its newline. `asking` is the request that asks for it, if this client sent
    /// it.
    pub(crate) fn client_line(&self, card: &ClientCard, asking: Option<Args<'_>>) -> String {
        let now_s = self.turn.unix_ms().0 / 1000;
        let text = card.text().clone();
        let last = card.last_command.load(Relaxed);
        let command = CommandId::from_index(last as usize).map_or("NULL", |id| id.spec().full_name);
        let multi = card.multi.load(Relaxed);
        let input = card.input_bytes.load(Relaxed) + asking.map_or(0, protocol_len);
        let output = card.output_bytes.load(Relaxed);
        let multi_bytes = card.multi_bytes.load(Relaxed);
        let words = asking.map_or(0, |args| args.lens().sum());
        let waiting = card.waiting_bytes.load(Relaxed);
        let argv = card.argv_bytes.load(Relaxed) + waiting + words as u64;
        // `input` includes a request that runs, but not one that arrives in parts.
        let read = input + card.argv_bytes.load(Relaxed);
        let total =
            CLIENT_BYTES + card.held_bytes() + asking.map_or(0, protocol_len) + words as u64;
        let subscriptions = |subject: Subject| card.subscriptions[subject as usize].load(Relaxed);
        let events = if output > 0 { "rw" } else { "r" };
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} \
             multi={multi} watch={} qbuf={input} qbuf-free=0 argv-mem={argv} multi-mem={multi_bytes} rbs={} rbp={} obl={output} \
             oll={} omem={output} tot-mem={total} events={events} cmd={command} user=default redir={} resp={} \
             lib-name={} lib-ver={} tot-net-in={} tot-net-out={} tot-cmds={}",
            card.id,
            card.addr,
            card.laddr,
            card.fd,
            text.name,
            (now_s - card.since_s).max(0),
            (now_s - card.last_s.load(Relaxed)).max(0),
            flags(card),
            card.db.load(Relaxed),
            subscriptions(Subject::Channel),
            subscriptions(Subject::Pattern),
            subscriptions(Subject::Shard),
            card.watching.load(Relaxed),
            read,
            card.input_peak.load(Relaxed).max(read),
            u8::from(output > 0),
            card.redirection.load(Relaxed),
            card.proto.load(Relaxed),
            text.lib_name,
            text.lib_ver,
            card.net_in.get(),
            card.net_out.get(),
            card.commands.get(),
        )
    }
}

/// The letters of `flags=`, `N` for none.
pub(crate) fn flags(card: &ClientCard) -> String {
    let letters = [
        (flag::MONITOR, 'O'),
        (flag::PUBSUB, 'P'),
        (flag::MULTI, 'x'),
        (flag::BLOCKED, 'b'),
        (flag::TRACKING, 't'),
        (flag::BROKEN_REDIRECTION, 'R'),
        (flag::BROADCAST, 'B'),
        (flag::DIRTY_EXEC, 'd'),
        (flag::CLOSE_AFTER_REPLY, 'c'),
        (flag::UNIX, 'U'),
        (flag::CLOSE_ASAP, 'A'),
        (flag::NO_EVICT, 'e'),
        (flag::NO_TOUCH, 'T'),
        (flag::IMPORT_SOURCE, 'I'),
    ];
    let text: String =
        letters.iter().filter(|(bit, _)| card.has_flag(*bit)).map(|(_, c)| *c).collect();
    if text.is_empty() { "N".into() } else { text }
}
