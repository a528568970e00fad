//! A client which saves: SAVE, BGSAVE, LASTSAVE; which flushes and swaps databases meanwhile; and
//! which shuts the server down. Before each save it sets a mark (`books/saves.rs`).

use crate::clients::ledger::DATABASES;
use crate::closings::Closing;
use crate::journal::Journal;
use crate::session::{Family, Request, Span};
use crate::trace::WORLD;
use crate::world::World;
use client::Value;

/// A client of this family.
#[derive(Default)]
pub struct Saver {
    /// Requests without a reply.
    asking: usize,
    /// The mark of a BGSAVE that has begun and may be under way.
    background: Option<(u32, usize)>,
    /// What LASTSAVE was answered last.
    last_save: i64,
}

/// A request of this family.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// Any reply but an error.
    Any,
    /// The SET of a mark of a server.
    Mark(u32, usize),
    /// SAVE.
    Save(u32, usize),
    /// BGSAVE.
    Background(u32, usize),
    /// BGSAVE inside a transaction.
    Scheduled,
    /// LASTSAVE.
    Last,
    /// INFO persistence.
    Info,
    /// SHUTDOWN.
    Shutdown,
    /// BGREWRITEAOF.
    Rewrite,
}

/// The key of the marks of a server.
pub fn key(epoch: u32) -> String {
    format!("save:mark:{epoch}")
}

impl Saver {
    fn draw(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        let Some(saves) = world.plan.saves else { return Vec::new() };
        if let Some(journal) = world.plan.journal
            && world.prng.chance(2, 3)
        {
            return Self::append(world, journal);
        }
        match world.prng.below(16) {
            0..4 => Self::save(world, "SAVE", Ask::Save),
            4..7 => Self::save(world, "BGSAVE", Ask::Background),
            7 => Self::save(world, "BGSAVE SCHEDULE", Ask::Background),
            8..10 => vec![Request::words("INFO persistence", Ask::Info)],
            10 => vec![Request::words("LASTSAVE", Ask::Last)],
            11 => {
                let db = |world: &mut World| 1 + world.prng.below(DATABASES - 1);
                let swap = format!("SWAPDB {} {}", db(world), db(world));
                world.count("SWAPDB", WORLD, format_args!("{swap}"));
                vec![Request::words(&swap, Ask::Any)]
            }
            12 => Self::flush(world, saves.flushes),
            13 if saves.shutdowns && world.prng.chance(1, 2) => self.shut_down(world),
            // It would save when its mark is an old one.
            14 if !world.plan.saves_on_request() => vec![
                Request::words("MULTI", Ask::Any),
                Request::words("BGSAVE", Ask::Any),
                Request::words("EXEC", Ask::Scheduled),
            ],
            // What is rolled back may have been captured before.
            15 if world.plan.panics => {
                let changes = 1 + world.prng.below(2);
                world.count("panics armed", WORLD, format_args!("a panic in mset"));
                let text = format!("DEBUG PANIC-IN-COMMAND mset {changes} 0");
                vec![Request::words(&text, Ask::Any)]
            }
            _ => Vec::new(),
        }
    }

    /// A save behind a new mark.
    fn save(
        world: &mut World,
        command: &str,
        ask: impl Fn(u32, usize) -> Ask,
    ) -> Vec<Request<Ask>> {
        let (set, epoch, mark) = Self::mark(world);
        world.count("saves asked for", WORLD, format_args!("{command} with mark {mark}"));
        let wait_ns = world.plan.save_ns_max();
        vec![set, Request { wait_ns, ..Request::words(command, ask(epoch, mark)) }]
    }

    /// A mark alone, or something about the append-only file.
    fn append(world: &mut World, journal: Journal) -> Vec<Request<Ask>> {
        match world.prng.below(8) {
            0 => {
                world.count("rewrites asked for", WORLD, format_args!("BGREWRITEAOF"));
                vec![Request::words("BGREWRITEAOF", Ask::Rewrite)]
            }
            1 if journal.switches => {
                let on = ["no", "yes", "yes"][world.prng.below(3) as usize];
                world.count("CONFIG SET appendonly", WORLD, format_args!("{on}"));
                vec![Request::words(&format!("CONFIG SET appendonly {on}"), Ask::Any)]
            }
            _ => vec![Self::mark(world).0],
        }
    }

    fn mark(world: &mut World) -> (Request<Ask>, u32, usize) {
        let (epoch, asked) = (world.epoch, world.tick());
        let mark = world.books.saves.next(epoch, asked);
        let text = format!("SET {} {mark}", key(epoch));
        (Request::words(&text, Ask::Mark(epoch, mark)), epoch, mark)
    }

    fn flush(world: &mut World, everything: bool) -> Vec<Request<Ask>> {
        let how = if world.prng.chance(1, 2) { "ASYNC" } else { "SYNC" };
        if everything && world.prng.chance(1, 2) {
            world.count("FLUSHALL", WORLD, format_args!("{how}"));
            return vec![Request::words(&format!("FLUSHALL {how}"), Ask::Any)];
        }
        let db = 1 + world.prng.below(DATABASES - 1);
        world.count("FLUSHDB", WORLD, format_args!("database {db} {how}"));
        vec![
            Request::words(&format!("SELECT {db}"), Ask::Any),
            Request::words(&format!("FLUSHDB {how}"), Ask::Any),
            Request::words("SELECT 0", Ask::Any),
        ]
    }

    /// Ends the server, with a save or without.
    fn shut_down(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        let how = ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN SAVE", "SHUTDOWN NOSAVE"]
            [world.prng.below(4) as usize];
        let points = world.plan.saves.is_some_and(|saves| saves.points);
        let (set, epoch, mark) = Self::mark(world);
        if how != "SHUTDOWN SAVE" && (!points || how != "SHUTDOWN") {
            world.books.saves.end_unsaved(epoch);
        }
        world.count("shutdowns by clients", WORLD, format_args!("{how} with mark {mark}"));
        // It gives up a save under way, and all writes wait for its own.
        self.background = None;
        let wait_ns = world.plan.save_ns_max() + world.plan.end_ns_max();
        world.disturb(wait_ns);
        vec![set, Request { wait_ns, ..Request::words(how, Ask::Shutdown) }]
    }

    /// A save was refused, or has failed.
    fn refused(world: &mut World, ask: Ask, reply: &Value) {
        let text = reply.as_str().unwrap_or_default();
        let saves = world.plan.saves;
        let is_given_up = saves.is_some_and(|saves| saves.flushes || saves.shutdowns);
        let is_under_way = text.contains("in progress");
        if reply.is_error() && (is_under_way || is_given_up || world.plan.saves_may_fail()) {
            return world.count("saves refused", WORLD, format_args!("{ask:?}: {text}"));
        }
        world.fail(format!("{ask:?} is answered {reply:?}"));
    }

    /// The reply to INFO persistence: its fields go with each other and with what was answered.
    fn informed(&mut self, world: &mut World, reply: &Value) {
        let text = reply.as_str().unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<i64>().ok());
        let (status, runs) = (field("rdb_last_bgsave_status"), number("rdb_bgsave_in_progress"));
        let is_right = matches!((status, runs), (Some("ok" | "err"), Some(0 | 1)))
            && number("rdb_changes_since_last_save").is_some_and(|changes| changes >= 0)
            && number("rdb_last_save_time").is_some()
            && field("loading") == Some("0")
            && (status == Some("ok") || world.plan.saves_may_fail());
        if !is_right {
            return world.fail(format!("INFO persistence is answered {reply:?}"));
        }
        // Nobody else saves in such a world: it is the status of that BGSAVE.
        if runs == Some(0)
            && let Some((epoch, mark)) = self.background.take()
            && status == Some("ok")
            && world.plan.saves_on_request()
        {
            world.books.saves.promise(epoch, mark);
        }
    }
}

impl Family for Saver {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.asking > 0 {
            return Vec::new();
        }
        let all = self.draw(world);
        self.asking = all.len();
        all
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        self.asking -= 1;
        match ask {
            Ask::Mark(epoch, mark) if reply == Value::ok() => {
                world.books.saves.set(epoch, mark, (span.ret, span.ret_ns));
            }
            Ask::Save(epoch, mark) if reply == Value::ok() => {
                world.books.saves.saved(epoch, mark, span.ret);
                world.books.saves.promise(epoch, mark);
                self.background = None;
            }
            Ask::Background(epoch, mark) if reply == Value::simple("Background saving started") => {
                world.books.saves.saved(epoch, mark, span.ret);
                self.background = Some((epoch, mark));
            }
            // It waits for a rewrite, which is answered at once.
            Ask::Background(..)
                if world.plan.journal.is_some()
                    && reply == Value::simple("Background saving scheduled") => {}
            Ask::Save(..) | Ask::Background(..) | Ask::Shutdown => {
                Self::refused(world, ask, &reply);
            }
            Ask::Scheduled => match reply.as_members() {
                Some([one]) if *one == Value::simple("Background saving scheduled") => {}
                Some([one]) => Self::refused(world, ask, one),
                _ => world.fail(format!("EXEC is answered {reply:?}")),
            },
            Ask::Last => match reply {
                Value::Integer(at) if at >= self.last_save || world.plan.clock_steps => {
                    self.last_save = at;
                }
                _ => world.fail(format!("LASTSAVE is answered {reply:?}")),
            },
            Ask::Info => self.informed(world, &reply),
            Ask::Rewrite => {
                let text = reply.as_str().unwrap_or_default();
                if !text.starts_with("Background append only file rewriting")
                    && !text.contains("already in progress")
                {
                    world.fail(format!("BGREWRITEAOF is answered {reply:?}"));
                }
            }
            Ask::Any if !reply.is_error() => {}
            Ask::Any | Ask::Mark(..) => world.fail(format!("{ask:?} is answered {reply:?}")),
        }
    }

    fn lost(&mut self, _: &mut World, _: Ask, _: u64, _: u64) {}

    fn disconnected(&mut self, _: Closing) {
        *self = Self::default();
    }
}
