//! Hello: who may send what where, and Welcome. (What is wrong with a Hello whatever the server is
//! found by the codec.)

use crate::ingest::producers::{Claim, Name};
use crate::ingest::v2::{Open, Room, Stop};
use crate::sessions::password::same_bytes;
use crate::worker::core::Core;
use ingest::v2::{Acks, Fault, Hello, Limits, SinkKind, Welcome, write_welcome};
use ingest::{MaxLen, Sink, Target};

/// As AUTH answers.
const NO_AUTH: &str = "NOAUTH Authentication required.";
const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl Open {
    /// Checks a Hello, takes its producer over, and writes Welcome.
    pub(crate) fn greet(
        room: &mut Room<'_>,
        hello: &Hello<'_>,
        (limits, window): (Limits, u64),
    ) -> Result<Self, Stop> {
        room.core.let_in(hello)?;
        let own = &room.core.shared.ingest.open[room.port].terms.sink;
        let sink = sink_of(hello, own.as_ref())?;
        let settings = &room.core.settings;
        if sink.db >= u32::from(settings.command.databases) {
            return Err(Fault::Database.into());
        }
        let idle_ms = settings.ingest_idle_ns.map_or(0, |ns| (ns / 1_000_000) as u32);
        let name = Name {
            producer: hello.producer.into(),
            target: sink.kind,
            db: sink.db,
            key: sink.key.clone(),
        };
        let claim = Claim {
            worker: room.core.id,
            conn: room.conn,
            resume: hello.resume,
            most: settings.ingest_producers_max,
            forget_ns: settings.ingest_forget_ns,
            now: room.core.turn.now(),
        };
        let claimed = room.core.shared.ingest.producers.claim(name, &claim)?;
        if claimed.before.is_some() {
            room.counters().takeovers.add(1);
            room.ousted = claimed.before;
        }
        let last_id = claimed.last_id;
        let welcome = Welcome {
            level: hello.level,
            acking: hello.acking,
            max_message: limits.max_message,
            max_frame: limits.max_frame,
            idle_ms,
            last_id,
            durable: 0,
            credit: window,
        };
        write_welcome(room.out, &welcome);
        let acks = Acks::new(hello.acking, hello.ack_messages, hello.ack_micros, last_id);
        let (producer, epoch, seen) = (claimed.producer, claimed.epoch, claimed.seen);
        Ok(Self { producer, epoch, sink, acks, seen, rest: None })
    }
}

impl Core {
    /// As AUTH judges; without credentials, as any command of a client that has not authenticated.
    fn let_in(&self, hello: &Hello<'_>) -> Result<(), Stop> {
        let needed = self.settings.needs_password();
        if hello.user.is_empty() && hello.password.is_empty() {
            return if needed { Err(Stop::Fault(Fault::Authentication, NO_AUTH)) } else { Ok(()) };
        }
        let right = !needed || same_bytes(&self.settings.password, hello.password);
        let known = hello.user.is_empty() || hello.user == b"default";
        if known && right {
            return Ok(());
        }
        Err(Stop::Fault(Fault::Authentication, WRONG_PASS))
    }
}

/// Where a producer's messages go, on a listener with a sink of its own or with none.
fn sink_of(hello: &Hello<'_>, own: Option<&Sink>) -> Result<Sink, Fault> {
    let kind = match (hello.sink, own) {
        (SinkKind::Listener, Some(own)) => return Ok(own.clone()),
        (SinkKind::Listener, None) | (_, Some(_)) => return Err(Fault::Sink),
        (SinkKind::Null, None) => Target::Null,
        (SinkKind::List, None) => Target::List,
        (SinkKind::Stream, None) => Target::Stream,
    };
    let maxlen = (hello.maxlen > 0).then_some(MaxLen { count: hello.maxlen, exact: hello.exact });
    Ok(Sink { kind, db: hello.db, key: hello.key.into(), maxlen })
}
