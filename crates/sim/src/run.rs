//! One run: clients make requests while things go wrong, then all leave, then the world is judged.

use crate::clients;
use crate::host::Host;
use crate::judge;
use crate::link::FAILING_ACCEPTS_MAX;
use crate::panics;
use crate::plan::{MS, Plan};
use crate::session::Actor;
use crate::trace::WORLD;
use crate::world::{Phase, Tally, World};
use base::sync::baton::{Group, Status};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rounds after which a run is stuck.
const ROUNDS_MAX: u32 = 400_000;
/// All have left so long after the last request, simulated time.
const LEAVING_NS_MAX: u64 = 60_000 * MS;
/// The world notices that a server has gone after so long, at most.
const GONE_NS_MAX: u64 = MS;
/// How long a dead server is down, at most.
const DOWN_NS_MAX: u64 = 60 * MS;

/// What a run has shown.
#[derive(Debug)]
pub struct Outcome {
    /// What was violated.
    pub failure: Option<String>,
    /// Faults and requests by kind.
    pub tally: Tally,
    /// The same for two runs only if all events were.
    pub digest: u64,
    /// Simulated time.
    pub simulated_ns: u64,
    /// The last events, or all.
    pub trace: String,
}

/// What the world does to the server, and when next.
struct Mishaps {
    restarts_left: u64,
    /// The server dies then; `u64::MAX`: not again.
    dies_ns: u64,
    /// The server starts again then.
    starts_ns: u64,
    accepts_fail_ns: u64,
    clock_steps_ns: u64,
    /// A server that dies after some more switch points.
    dying: Option<Group>,
}

impl Mishaps {
    fn new(world: &mut World) -> Self {
        let plan = &world.plan;
        let (restarts, accepts, steps) = (plan.restarts, plan.failing_accepts, plan.clock_steps);
        let mut sometime = |on: bool| if on { world.soon(world.plan.time_ns) } else { u64::MAX };
        Self {
            restarts_left: restarts,
            dies_ns: sometime(restarts > 0),
            starts_ns: u64::MAX,
            accepts_fail_ns: sometime(accepts),
            clock_steps_ns: sometime(steps),
            dying: None,
        }
    }

    /// Does what is due; returns when something is due next.
    fn turn(&mut self, world: &mut World, actors: &mut [Box<dyn Actor>]) -> u64 {
        let now = world.now();
        if now >= self.dies_ns {
            self.dies_ns = u64::MAX;
            self.end_server(world);
        }
        self.check_server(world);
        if now >= self.starts_ns {
            self.starts_ns = u64::MAX;
            self.start_server(world, actors);
        }
        if now >= self.accepts_fail_ns {
            self.accepts_fail_ns = world.soon(world.plan.time_ns);
            let count = 1 + world.prng.below(FAILING_ACCEPTS_MAX) as u32;
            world.count("failing accepts", WORLD, format_args!("{count} accepts fail"));
            world.net.fail_accepts(count);
        }
        if now >= self.clock_steps_ns {
            self.clock_steps_ns = world.soon(world.plan.time_ns);
            let ms = world.prng.below(400) as i64 - 200;
            world.count("steps of the clock", WORLD, format_args!("the clock steps by {ms} ms"));
            world.step_clock(ms);
        }
        // A server that has gone, or has started, wakes nobody if its clients have left.
        let is_going = self.dying.is_some() || !world.is_served();
        let look_ns = if is_going { world.now() + GONE_NS_MAX } else { u64::MAX };
        let due = [self.dies_ns, self.starts_ns, self.accepts_fail_ns, self.clock_steps_ns];
        due.into_iter().fold(look_ns, u64::min)
    }

    /// Nothing more goes wrong; a server that was to die dies at once, and one that is down starts.
    fn end(&mut self, world: &World) {
        if let Some(group) = self.dying.take() {
            world.baton.kill(group);
        }
        (self.restarts_left, self.dies_ns) = (0, u64::MAX);
        (self.accepts_fail_ns, self.clock_steps_ns) = (u64::MAX, u64::MAX);
    }

    /// Whether the server lives as it must.
    fn check_server(&mut self, world: &mut World) {
        let Some(host) = &world.host else { return };
        let (status, is_ending) = (host.status(&world.baton), host.is_ending());
        let why = host.shared().map(|_| ());
        match status {
            Status::Running => return,
            Status::Exited(0) if is_ending => {}
            Status::Exited(_) if why.as_ref().is_err_and(|why| is_disk_error(world, why)) => {
                world.count("loads that failed", WORLD, format_args!("{why:?}"));
            }
            Status::Exited(1) if why.as_ref().is_err_and(|why| is_given_up(world, why)) => {
                world.count("journals given up", WORLD, format_args!("{why:?}"));
            }
            Status::Killed => Self::crash_machine(world),
            Status::Exited(code) => {
                let why = why.map_or_else(|why| format!(": {why}"), |()| String::new());
                world.fail(format!("the server exited with {code}{why}"));
            }
        }
        world.note(WORLD, format_args!("the server is gone: {status:?}"));
        let at = (world.tick(), world.now());
        world.books.saves.died(world.epoch, at, status == Status::Exited(0));
        (world.host, self.dying) = (None, None);
        self.starts_ns = world.soon(DOWN_NS_MAX);
    }

    /// A server was killed: perhaps because its machine has crashed.
    fn crash_machine(world: &mut World) {
        if world.plan.crashes && world.prng.chance(1, 2) {
            world.count("crashes of the machine", WORLD, format_args!("the machine crashes"));
            world.machine.disk.crash();
        }
        match world.machine.check_history() {
            Ok(0) => {}
            Ok(kept) => world.count("kept history", WORLD, format_args!("{kept} generations")),
            Err(why) => world.fail(why),
        }
    }

    fn end_server(&mut self, world: &mut World) {
        let Some(host) = &world.host else { return };
        let group = host.group();
        if world.prng.chance(1, 3) {
            let _ = host.begin_end();
            world.books.saves.end_unsaved(world.epoch);
            // It ends a CONFIG REWRITE first.
            world.disturb(world.plan.end_ns_max());
            world.count("ends in order", WORLD, format_args!("the server ends in order"));
        } else {
            let points = world.prng.below(3_000);
            world.baton.kill_after(group, points);
            self.dying = Some(group);
            let text = format_args!("the server is killed in {points} switch points");
            world.count("kills of the server", WORLD, text);
        }
    }

    fn start_server(&mut self, world: &mut World, actors: &mut [Box<dyn Actor>]) {
        world.note(WORLD, format_args!("a server starts"));
        world.epoch += 1;
        world.reset_clock();
        let saved = match world.machine.check_file() {
            Ok(saved) => saved,
            Err(why) => return world.fail(why),
        };
        if world.machine.has_data() || world.plan.journal.is_some() {
            // Whoever is connected already waits until it has loaded.
            world.disturb(world.plan.save_ns_max());
        }
        let machine = (&world.net, &world.machine);
        world.host = Some(Host::start(&world.baton, machine, (&world.plan, saved), world.epoch));
        if !world.plan.is_durable() {
            world.books.registers.restart();
            world.books.transactions.restart();
        }
        for actor in actors {
            actor.on_restart(world);
        }
        self.restarts_left = self.restarts_left.saturating_sub(1);
        if self.restarts_left > 0 {
            self.dies_ns = world.soon(world.plan.time_ns);
        }
    }
}

/// Whether a server could not start because a read of its data failed: then it is not to start.
fn is_disk_error(world: &World, why: &str) -> bool {
    let is_full = why.contains("No space left on device");
    let is_read = why.contains("cannot be loaded")
        && (why.contains("Input/output error") || is_full && world.plan.journal_may_fail());
    let is_begun = world.plan.journal_may_fail() && why.contains("cannot be begun");
    world.plan.disk.read_error_one_in > 0 && is_read || is_begun
}

/// Whether a server ended although its disk could not be written.
fn is_given_up(world: &World, why: &str) -> bool {
    world.plan.journal_may_fail() && why.contains("could not be written")
}

/// Runs a plan.
pub fn run(plan: Plan, whole_trace: bool) -> Outcome {
    let mut world = World::new(plan);
    world.trace.whole = whole_trace;
    let text = world.plan.to_string();
    world.note(WORLD, format_args!("{text}"));
    let ran = catch_unwind(AssertUnwindSafe(|| run_world(&mut world)));
    if let Some(panic) = panics::unexpected() {
        world.fail(format!("a panic: {panic}"));
    } else if ran.is_err() {
        world.fail("a panic which the hook did not see");
    }
    let summary = world.baton.summary();
    world.note(WORLD, format_args!("{summary:?}"));
    if world.failure.is_some() {
        let report = world.baton.report();
        report.lines().for_each(|line| world.note(WORLD, format_args!("{line}")));
    }
    let mut tally = std::mem::take(&mut world.tally);
    tally.insert("holds of a thread", summary.holds);
    tally.insert("hand-overs", summary.hand_overs);
    tally.insert("switch points", summary.points);
    Outcome {
        failure: world.failure.clone(),
        tally,
        digest: world.trace.digest(),
        simulated_ns: world.elapsed_ns(),
        trace: world.trace.to_string(),
    }
}

/// The whole life of a world.
fn run_world(world: &mut World) {
    let mut actors = clients::all(world);
    let mut mishaps = Mishaps::new(world);
    if world.plan.journal.is_some() {
        world.disturb(world.plan.save_ns_max()); // the first server makes its first files
    }
    let busy_until = world.now() + world.plan.time_ns;
    run_until(world, &mut actors, &mut mishaps, busy_until);
    if world.failure.is_some() {
        return;
    }
    world.phase = Phase::Ending;
    world.note(WORLD, format_args!("clients leave"));
    mishaps.end(world);
    world.calm_network();
    world.calm_disk();
    let left_until = world.now() + LEAVING_NS_MAX;
    run_until(world, &mut actors, &mut mishaps, left_until);
    if world.failure.is_some() {
        return;
    }
    let staying: Vec<String> =
        actors.iter().filter(|actor| !actor.has_left()).map(|actor| actor.state()).collect();
    if !staying.is_empty() {
        return world.fail(format!("clients wait for ever: {}", staying.join("; ")));
    }
    if !world.is_served() {
        let how = world.host.as_ref().map_or_else(|| "none".to_owned(), Host::journal);
        return world.fail(format!("no server serves at the end: {how}"));
    }
    let questions = actors.iter_mut().flat_map(|actor| actor.questions()).collect();
    drop(actors);
    let judged = judge::judge(world, questions).and_then(|()| world.machine.check_file());
    if let Err(what) = judged {
        world.fail(what);
    }
}

/// Turns of all until this time, or until all clients have left.
fn run_until(world: &mut World, actors: &mut [Box<dyn Actor>], mishaps: &mut Mishaps, end: u64) {
    let mut rounds = 0;
    while world.now() < end && world.failure.is_none() {
        let moment = world.net.moment();
        let mut until = end.min(mishaps.turn(world, actors));
        let mut first = "the world".to_owned();
        for actor in actors.iter_mut() {
            let wants = actor.turn(world);
            if wants < until && rounds == ROUNDS_MAX {
                first = actor.state();
            }
            until = until.min(wants);
        }
        if rounds == ROUNDS_MAX {
            let left = until.saturating_sub(world.now());
            world.fail(format!("somebody is busy for ever: {first}, again in {left} ns"));
        }
        rounds += 1;
        // A SHUTDOWN of a client that has left may be unread.
        let is_over = world.plan.saves.is_none() || world.host.as_ref().is_some_and(Host::is_idle);
        if actors.iter().all(|actor| actor.has_left()) && world.is_served() && is_over {
            return;
        }
        world.rest(moment, until);
        if let Some(panic) = panics::unexpected() {
            world.fail(format!("a panic: {panic}"));
        }
    }
}
