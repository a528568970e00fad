//! Hello and Welcome: authentication, the producer, its sink. (The codec has checked everything
//! about a Hello which does not depend on this server.)

use crate::ingest::kept;
use crate::ingest::marks::Marks;
use crate::ingest::producers::{Claim, Name};
use crate::ingest::v2::producing::{Context, Open, Stop};
use crate::sessions::password::same_bytes;
use crate::worker::core::Core;
use ingest::v2::{Acks, Fault, Hello, Level, Limits, SinkKind, Welcome, write_welcome};
use ingest::{MaxLen, Sink, Target};

const NOTHING_KEPT: &str = "fsynced: a null sink keeps nothing";
/// As AUTH answers.
const NO_AUTH: &str = "NOAUTH Authentication required.";
const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl Open {
    /// Checks a Hello, takes its producer over, and writes Welcome.
    pub(crate) fn accept(
        ctx: &mut Context<'_>,
        hello: &Hello<'_>,
        (limits, window): (Limits, u64),
    ) -> Result<Self, Stop> {
        ctx.core.authenticate_producer(hello)?;
        let own = &ctx.core.shared.ingest.open[ctx.port].terms.sink;
        let is_fsynced = hello.level == Level::Fsynced;
        if let Some(why) = ctx.core.fsyncs_nothing().filter(|_| is_fsynced) {
            return Err(Stop::Fault(Fault::Level, why));
        }
        let sink = sink_of(hello, own.as_ref())?;
        if is_fsynced && sink.is_null() {
            return Err(Stop::Fault(Fault::Level, NOTHING_KEPT));
        }
        let settings = &ctx.core.settings;
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
            worker: ctx.core.id,
            conn: ctx.conn,
            resume: hello.resume,
            most: settings.ingest_producers_max,
            forget_ns: settings.ingest_forget_ns,
            fsynced: ctx.core.fsynced_up_to(),
            now: ctx.core.turn.now(),
        };
        let claimed = ctx.core.shared.ingest.producers.claim(name, &claim)?;
        if claimed.before.is_some() {
            ctx.counters().takeovers.add(1);
            ctx.previous_owner = claimed.before;
        }
        let last_id = claimed.last_id;
        // With this level it leaves when everything that it shows is fsynced.
        let durable = if is_fsynced { last_id } else { claimed.durable };
        let welcome = Welcome {
            level: hello.level,
            acking: hello.acking,
            max_message: limits.max_message,
            max_frame: limits.max_frame,
            idle_ms,
            last_id,
            durable,
            credit: window,
        };
        write_welcome(ctx.out, &welcome);
        let mut acks = Acks::new(hello.acking, hello.ack_messages, hello.ack_micros, last_id);
        acks.note(last_id, durable);
        let (producer, epoch, seen) = (claimed.producer, claimed.epoch, claimed.seen);
        let quoted = journal::producer::quoted_name(hello.producer);
        let kept = kept::kind_of(sink.kind).map(|kind| (kind, quoted));
        let waits = is_fsynced.then(Box::<Marks>::default);
        Ok(Self { producer, epoch, sink, kept, acks, seen, waits, unwritten: None })
    }
}

impl Core {
    /// Checks credentials as AUTH does. Without them the answer is that to any command of an
    /// unauthenticated client.
    fn authenticate_producer(&self, hello: &Hello<'_>) -> Result<(), Stop> {
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
