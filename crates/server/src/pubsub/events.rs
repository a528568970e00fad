//! Keyspace notifications: what happens to keys is published, under the locks of the change. So the
//! events of a key have the order of its changes, whoever makes them, and stand in the inboxes of
//! subscribers before anybody can see the change.

use crate::pubsub::inbox::{NOBODY, Text};
use crate::pubsub::names::Asked;
use crate::pubsub::registry::ToPublish;
use crate::sessions::output::Hold;
use crate::shared::Shared;
use crate::tracking::changes::Changed;
use crate::worker::message::Message;
use base::SeqNo;
use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{Arc, Mutex, PoisonError};
use command::ops::Subject;
use config::Events;
use driver::ConnId;
use keyspace::{Event, EventClass, EventClasses, EventSink, KeyEvent};
use std::io::Write;

/// Room for the name of a channel that is kept for the next one.
const NAME_KEPT_MAX: usize = 64 << 10;

/// What one worker publishes of its changes.
pub(crate) struct KeyEvents {
    shared: Arc<Shared>,
    worker: usize,
    /// The client with subscriptions, or that tracks keys, whose command runs: it receives what it
    /// causes itself behind the reply.
    runner: AtomicU64,
    /// The name of a channel, while it is published to.
    name: Mutex<Vec<u8>>,
}

impl KeyEvents {
    /// For the changes of a worker.
    pub fn new(shared: Arc<Shared>, worker: usize) -> Self {
        let runner = AtomicU64::new(NOBODY.token());
        Self { shared, worker, runner, name: Mutex::default() }
    }

    /// A command of this client, which listens, runs, or has ended.
    pub fn set_runner(&self, conn: Option<ConnId>) {
        self.runner.store(conn.unwrap_or(NOBODY).token(), Relaxed);
    }

    /// On whose behalf things happen now.
    fn runner(&self) -> (usize, ConnId) {
        (self.worker, ConnId::from_token(self.runner.load(Relaxed)))
    }

    /// For client-side caching.
    #[cold]
    fn track(&self, event: &KeyEvent, hold: Hold) {
        let (worker, runner) = self.runner();
        let is_made = event.event != Event::DUE_TOUCHED;
        let changed = Changed { by: (worker, runner), hold, is_made };
        let key = Asked { hash: self.shared.keyspace.key(&event.key).hash, text: &event.key };
        match event.event {
            Event::TOUCHED | Event::DUE_TOUCHED => self.shared.tell_touched(key, changed),
            Event::ALL_TOUCHED => self.shared.tell_all_touched(changed),
            Event::READ if runner != NOBODY && self.shared.tracking.is_told() => {
                self.shared.remember_read(key, worker, runner);
            }
            _ => {}
        }
    }

    /// Nobody's command runs for a while. Returns whose did.
    pub fn take_runner(&self) -> Option<ConnId> {
        let (_, conn) = self.runner();
        self.set_runner(None);
        (conn != NOBODY).then_some(conn)
    }

    fn publish(&self, channel: &[u8], text: &[u8], hold: Hold) {
        let hash = self.shared.keyspace.key(channel).hash;
        let message = ToPublish {
            subject: Subject::Channel,
            channel: Asked { hash, text: channel },
            text: &|| Text::Short(text.into()),
            epoch: None,
            hold,
            from: self.runner(),
            skips_publisher: false,
            cannot_wait: true,
        };
        let published = self.shared.pubsub.publish(&message, |to| self.shared.announce(to));
        published.expect("it does not wait for room");
    }
}

/// Appends the first part of a channel's name: `write!` would take a tenth of an event.
fn begin_name(channel: &mut Vec<u8>, kind: &[u8], db: u32) {
    channel.extend_from_slice(kind);
    match u8::try_from(db) {
        Ok(digit @ 0..=9) => channel.push(b'0' + digit),
        _ => write!(channel, "{db}").expect("memory takes it"),
    }
    channel.extend_from_slice(b"__:");
}

impl EventSink for KeyEvents {
    fn tell(&self, event: &KeyEvent, seq: SeqNo) {
        let awaits = self.shared.are_replies_held();
        let hold = if awaits { Hold { seq, ..Hold::NONE } } else { Hold::NONE };
        if event.event.class() == EventClass::Tracking {
            return self.track(event, hold);
        }
        let pubsub = &self.shared.pubsub;
        if pubsub.is_idle(Subject::Channel) {
            return;
        }
        let KeyEvent { event, db, key } = event;
        let (of_key, of_event) = pubsub.notified();
        let mut channel = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        if of_key {
            channel.clear();
            begin_name(&mut channel, b"__keyspace@", db.0);
            channel.extend_from_slice(key);
            self.publish(&channel, event.name().as_bytes(), hold);
        }
        if of_event {
            channel.clear();
            begin_name(&mut channel, b"__keyevent@", db.0);
            channel.extend_from_slice(event.name().as_bytes());
            self.publish(&channel, key, hold);
        }
        channel.clear();
        channel.shrink_to(NAME_KEPT_MAX);
    }
}

impl Shared {
    /// Has a worker deliver what is in its inbox, unless it was told already.
    pub(crate) fn announce(&self, worker: usize) {
        if self.pubsub.inbox(worker).announce() {
            self.post(worker, Message::Published);
        }
    }

    /// `notify-keyspace-events` selects these.
    pub(crate) fn publish_events(&self, events: Events) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = events;
        self.select_key_events();
    }

    /// Has workers tell of what `notify-keyspace-events` selects, and of every change while clients
    /// track keys.
    pub(crate) fn select_key_events(&self) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_key, of_event) = (events.has('K'), events.has('E'));
        self.pubsub.set_notified(of_key, of_event, events.has('m'));
        let is_any = of_key || of_event;
        let classes = EventClasses::select(|class| is_any && events.has(class.letter()));
        let is_told = self.tracking.is_told();
        self.keyspace.select_events(if is_told { classes.with_tracking() } else { classes });
    }

    /// True while a worker is behind and changes are told of: whoever would change more waits.
    pub(crate) fn are_events_behind(&self) -> bool {
        (self.pubsub.tells_of_keys().0 || self.tracking.is_told()) && self.pubsub.is_any_behind()
    }

    /// As [`Shared::are_events_behind`], if reads that find no key are told of.
    pub(crate) fn are_misses_behind(&self) -> bool {
        self.pubsub.tells_of_keys().1 && self.pubsub.is_any_behind()
    }
}
