//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::sessions::card::{ClientCard, flag};
use crate::sessions::session::{Session, Suspended, gate};
use crate::tracking::state::{Mode, Tracking};
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use command::error::{PrefixExists, PrefixesOverlap};
use command::ops;
use driver::ConnId;
use keyspace::{Guard, Parked};
use resp::{OutBuf, Reply};

impl Core {
    /// CLIENT TRACKING.
    pub(crate) fn tracking_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        asked: ops::Tracking,
    ) -> Result<Outcome, Error> {
        let target = self.redirection_target(asked.redirect)?;
        if let Some(wrong) = asked.wrong {
            return Err(*wrong);
        }
        match asked.on {
            None => return Err(Error::Syntax),
            Some(false) => self.end_tracking(caller.conn()),
            Some(true) => {
                check(caller.session(self).tracking.as_deref(), &asked)?;
                if !self.begin_tracking(guard, caller) {
                    // The first client begins under World, alone: then every worker tells of every
                    // change behind it.
                    caller.session(self).suspend(Suspended::Parked(Parked::Gate));
                    self.shared.post(self.id, Message::Retry(caller.conn()));
                    return Ok(Outcome::Retry);
                }
                self.set_tracking(caller, &asked, target);
            }
        }
        caller.reply(out).ok();
        Ok(Outcome::Done)
    }

    /// The client to which messages are redirected, which must be connected.
    fn redirection_target(&self, id: Option<i64>) -> Result<Option<Arc<ClientCard>>, Error> {
        let Some(id) = id else { return Ok(None) };
        let found = u64::try_from(id).ok().and_then(|id| self.shared.registry.get(id));
        found.map(Some).ok_or(Error::NoRedirectionTarget)
    }

    /// The session counts among those that track. False if it must try again under World.
    fn begin_tracking(&mut self, guard: &mut Guard<'_>, caller: &Caller) -> bool {
        let conn = caller.conn();
        if caller.session(self).tracking.is_some() {
            return true;
        }
        let (shared, is_alone) = (self.shared.clone(), guard.is_world());
        let at = (self.id, conn);
        if !shared.tracking.join(at, is_alone, || shared.select_key_events()) {
            return false;
        }
        guard.follow_events();
        if caller.is_in_exec() {
            self.key_events.set_runner(Some(conn)); // of what it reads behind this
        }
        let s = caller.session(self);
        let share = s.requests_held.another();
        s.tracking = Some(Box::new(Tracking::new(Mode::Reads, share)));
        s.set_gate(gate::TRACKING, true);
        true
    }

    /// Sets what a session that tracks asks for, which was checked.
    fn set_tracking(
        &mut self,
        caller: &Caller,
        asked: &ops::Tracking,
        target: Option<Arc<ClientCard>>,
    ) {
        if let Some(target) = &target {
            target.set_flag(flag::REDIRECTION_TARGET, true);
        }
        let (shared, id, conn) = (self.shared.clone(), self.id, caller.conn());
        let s = caller.session(self);
        let Some(tracking) = &mut s.tracking else { return };
        tracking.mode = match (asked.broadcast, asked.opt_in, asked.opt_out) {
            (true, ..) => Mode::Broadcast,
            (_, true, _) => Mode::OptIn,
            (.., true) => Mode::OptOut,
            _ => Mode::Reads,
        };
        tracking.no_loop = asked.no_loop;
        tracking.redirect = target;
        tracking.is_broken = false;
        if asked.broadcast {
            let all: &[ops::Bytes] = &[[].as_slice().into()];
            let prefixes = if asked.prefixes.is_empty() { all } else { &asked.prefixes };
            for prefix in prefixes {
                if tracking.add_prefix(prefix) {
                    shared.tracking.join_prefix(prefix, id, conn);
                }
            }
        }
        s.publish_tracking();
    }

    /// The session tracks no more.
    pub(crate) fn end_tracking(&mut self, conn: ConnId) {
        let (shared, at) = (self.shared.clone(), (self.id, conn));
        self.redirect_waiting(conn);
        let Some(s) = self.session_mut(conn) else { return };
        let Some(tracking) = s.tracking.take() else { return };
        s.set_gate(gate::TRACKING | gate::CACHING, false);
        s.publish_tracking();
        shared.tracking.leave_prefixes(tracking.prefixes(), at);
        let forgotten = shared.tracking.leave(at, || shared.select_key_events());
        if let Some(forgotten) = forgotten {
            shared.keyspace.reclaimer().reclaim_parts(Box::new(forgotten));
        }
    }

    /// CLIENT CACHING: holds for the next command that is none of CLIENT.
    pub(crate) fn caching_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        on: Option<bool>,
    ) -> Result<(), Error> {
        let s = caller.session(self);
        let Some(tracking) = &s.tracking else { return Err(Error::CachingWithoutTracking) };
        match (on, tracking.mode) {
            (None, _) => return Err(Error::Syntax),
            (Some(true), Mode::OptIn) | (Some(false), Mode::OptOut) => {}
            (Some(true), _) => return Err(Error::CachingWithoutOptIn),
            (Some(false), _) => return Err(Error::CachingWithoutOptOut),
        }
        s.set_gate(gate::CACHING, true);
        caller.reply(out).ok();
        Ok(())
    }
}

impl Session {
    /// Publishes on the card how it tracks.
    fn publish_tracking(&self) {
        let tracking = self.tracking.as_deref();
        let mode = |mode| tracking.is_some_and(|tracking| tracking.mode == mode);
        self.card.set_flag(flag::TRACKING, tracking.is_some());
        self.card.set_flag(flag::BROADCAST, mode(Mode::Broadcast));
        self.card.set_flag(flag::BROKEN_REDIRECTION, false);
        self.card.redirection.store(self.redirection(), Relaxed);
        self.card.tracking_bytes.store(tracking.map_or(0, Tracking::bytes), Relaxed);
    }

    /// The id of the client that is told instead; 0 if none is, -1 without tracking.
    pub(crate) fn redirection(&self) -> i64 {
        let target = |tracking: &Tracking| tracking.redirect.as_ref().map_or(0, |t| t.id as i64);
        self.tracking.as_deref().map_or(-1, target)
    }

    /// CLIENT TRACKINGINFO.
    pub(crate) fn write_tracking_info(&self, reply: &mut Reply<'_>) {
        let is_caching = self.gates & gate::CACHING != 0;
        let mut flags: Vec<&[u8]> = Vec::new();
        let Some(tracking) = &self.tracking else {
            return write_info(reply, &[b"off"], -1, std::iter::empty());
        };
        flags.push(b"on");
        match tracking.mode {
            Mode::Reads => {}
            Mode::Broadcast => flags.push(b"bcast"),
            Mode::OptIn => {
                flags.push(b"optin");
                flags.extend(is_caching.then_some(b"caching-yes".as_slice()));
            }
            Mode::OptOut => {
                flags.push(b"optout");
                flags.extend(is_caching.then_some(b"caching-no".as_slice()));
            }
        }
        flags.extend(tracking.no_loop.then_some(b"noloop".as_slice()));
        flags.extend(tracking.is_broken.then_some(b"broken_redirect".as_slice()));
        write_info(reply, &flags, self.redirection(), tracking.prefixes());
    }
}

fn write_info<'a>(
    reply: &mut Reply<'_>,
    flags: &[&[u8]],
    redirection: i64,
    prefixes: impl ExactSizeIterator<Item = &'a [u8]>,
) {
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk(b"redirect");
    reply.integer(redirection);
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    for prefix in prefixes {
        reply.bulk(prefix);
    }
}

/// Whether a session may begin to track so, or go on, in the order in which Redis looks.
fn check(now: Option<&Tracking>, asked: &ops::Tracking) -> Result<(), Error> {
    if !asked.broadcast && !asked.prefixes.is_empty() {
        return Err(Error::PrefixWithoutBroadcast);
    }
    if now.is_some_and(|now| (now.mode == Mode::Broadcast) != asked.broadcast) {
        return Err(Error::BroadcastSwitched);
    }
    if asked.broadcast && (asked.opt_in || asked.opt_out) {
        return Err(Error::OptionsInBroadcast);
    }
    if asked.opt_in && asked.opt_out {
        return Err(Error::OptInAndOut);
    }
    let is = |mode| now.is_some_and(|now| now.mode == mode);
    if asked.opt_in && is(Mode::OptOut) || asked.opt_out && is(Mode::OptIn) {
        return Err(Error::OptSwitched);
    }
    // Each is compared with those that the session has, and then with those behind it.
    let overlapping = first_overlapping(&asked.prefixes).unwrap_or(usize::MAX);
    if let Some(now) = now {
        for prefix in asked.prefixes.iter().take(overlapping.saturating_add(1)) {
            if let Some(other) = now.overlap(prefix) {
                let (prefix, other) = ((&**prefix).into(), other.into());
                return Err(PrefixExists { prefix, other }.into());
            }
        }
    }
    let Some(prefix) = asked.prefixes.get(overlapping) else { return Ok(()) };
    let mut others = asked.prefixes[overlapping + 1..].iter();
    let overlaps = |other: &&ops::Bytes| other.starts_with(prefix) || prefix.starts_with(other);
    let other = others.find(overlaps).expect("it overlaps one behind it");
    Err(PrefixesOverlap { prefix: (&**prefix).into(), other: (&**other).into() }.into())
}

/// The first prefix that overlaps another one of them.
fn first_overlapping(prefixes: &[ops::Bytes]) -> Option<usize> {
    let mut sorted: Vec<(&[u8], usize)> =
        prefixes.iter().enumerate().map(|(at, prefix)| (&**prefix, at)).collect();
    sorted.sort_unstable();
    // Those that are beginnings of the present one, each with the first of it and those before it.
    let mut beginnings: Vec<(&[u8], usize)> = Vec::new();
    let mut first = usize::MAX;
    for (prefix, at) in sorted {
        while beginnings.pop_if(|(other, _)| !prefix.starts_with(other)).is_some() {}
        let outer = beginnings.last().map(|(_, first)| *first);
        first = outer.map_or(first, |outer| first.min(outer).min(at));
        beginnings.push((prefix, outer.map_or(at, |outer| outer.min(at))));
    }
    (first != usize::MAX).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_prefixes_are_named_in_their_order() {
        let text = |words: &str| {
            let prefixes: Vec<ops::Bytes> =
                words.split(',').map(|word| word.as_bytes().into()).collect();
            let asked = ops::Tracking { broadcast: true, prefixes, ..Default::default() };
            check(None, &asked).err().map(|e| String::from_utf8(e.text().into()).expect("text"))
        };
        assert_eq!(text("a,b,c"), None);
        assert_eq!(text("ab,ac,b"), None);
        for (words, first, second) in [
            ("foo,foobar", "foo", "foobar"),
            ("foobar,foo", "foobar", "foo"),
            ("x,x", "x", "x"),
            ("t,b,", "t", ""),
            ("z,a,b,ab,abc", "a", "ab"),
            ("abc,z,b,a,ab", "abc", "a"),
        ] {
            let told = text(words).expect("they overlap");
            let start =
                format!("ERR Prefix '{first}' overlaps with another provided prefix '{second}'.");
            assert!(told.starts_with(&start), "{words}: {told}");
        }
    }
}
