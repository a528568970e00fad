//! The programs of `examples/`: each in both languages, on one and on two threads, and its output.
//! Of the work queue, a worker is killed while it holds a job, and no job is lost.

mod frameworks;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use sheafdb_tests::program::{finish, node, python, root, run, spawn};
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

/// Longest wait for a state of the queue.
const PATIENCE: Duration = Duration::from_secs(120);
/// Jobs of the queue's test.
const JOBS: usize = 40;
/// A job which the test adds to them.
const LAST_JOB: &str = "last job";
const TODO: &str = "example:queue:todo";
const DONE: &str = "example:queue:done";

const LEADERBOARD: &str = "\
top three
  1. ada    310
  2. cyd    275
  3. eve    205
fay wins 95 points: place 3 of 6
around fay
  2. cyd    275
  3. fay    255
  4. eve    205
bests after a new game: bob 120, dan 130
players with 200 points and more: 4
with this week's points tenfold
  1. dan    530
  2. ada    310
";

const GEO_SEARCH: &str = "\
7 cities
Berlin to Prague: 280 km
within 200 km of Berlin, nearest first
  Berlin      0 km
  Szczecin  127 km
  Leipzig   149 km
  Dresden   165 km
nearest to 51.3 N 13.0 E: Leipzig, 44 km
in a box of 300 by 250 km around 52 N 13 E: Berlin, Leipzig, Dresden
between 1 and 150 km of Leipzig: Dresden, Berlin
without Prague: 6 cities, geohash of Berlin u33dc0cppj0
";

const RATE_LIMITER: &str = "\
5 requests in 2 seconds are allowed
anna sends 12 at once: 5 allowed, 7 refused
ben sends 3 at once: 3 allowed, 0 refused
after the window: anna sends 8 at once: 5 allowed, 3 refused
";

fn server(threads: &str) -> ServerProcess {
    let binary = Binary::under_test();
    let extra = ["--threads", threads];
    let told = if binary.kind == Kind::SheafDb { extra.len() } else { 0 };
    ServerProcess::start(&binary, &extra[..told])
}

/// Checks that no command panicked: a client which reconnects and retries would hide it.
fn assert_no_panic(server: &ServerProcess) {
    assert!(!server.log().contains("panicked"), "a command panicked");
}

/// The extension of a file.
fn language(path: &Path) -> &str {
    path.extension().and_then(OsStr::to_str).unwrap_or_default()
}

/// The command of an example; the file's extension selects the language.
fn example(file: &str, server: &ServerProcess) -> Command {
    let mut command = if language(Path::new(file)) == "py" { python() } else { node() };
    command.arg(format!("examples/{file}")).arg(server.addr.port().to_string());
    command
}

/// Checks the output in both languages, on one thread and on two, and that no keys remain. A run
/// that takes `valid_for` or longer is repeated.
fn prints_within(valid_for: Duration, name: &str, wanted: &str) {
    for threads in ["1", "2"] {
        let server = server(threads);
        for file in [format!("{name}.py"), format!("{name}.js")] {
            let got = (0..20).find_map(|_| {
                let started = Instant::now();
                let got = run(&mut example(&file, &server), b"");
                (started.elapsed() < valid_for).then_some(got)
            });
            let got = got.unwrap_or_else(|| panic!("{file} never ended in {valid_for:?}"));
            assert_eq!(got, wanted, "{file} on {threads} threads");
            let left = server.connect().command(&["KEYS", "*"]).expect("answered");
            assert_eq!(left, Value::Array(Vec::new()), "{file} left keys behind");
        }
        assert_no_panic(&server);
    }
}

fn prints(name: &str, wanted: &str) {
    prints_within(Duration::MAX, name, wanted);
}

#[test]
fn leaderboard() {
    prints("leaderboard", LEADERBOARD);
}

#[test]
fn geo_search() {
    prints("geo_search", GEO_SEARCH);
}

/// It sleeps for its window of two seconds. If all the rest takes less than two more, no burst of
/// requests has lasted longer than the window.
#[test]
fn rate_limiter() {
    prints_within(Duration::from_secs(4), "rate_limiter", RATE_LIMITER);
}

/// Runs a test on one thread and on two, concurrently: the tests mostly wait.
fn on_one_and_two(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for threads in ["1", "2"] {
            let test = &test;
            scope.spawn(move || test(threads));
        }
    });
}

/// Without arguments the queue runs its demonstration, in which it kills a worker of its own.
#[test]
fn work_queue_demonstration() {
    on_one_and_two(|threads| {
        let server = server(threads);
        for file in ["work_queue.py", "work_queue.js"] {
            let text = run(&mut example(file, &server), b"");
            let all = text.contains("20 of 20 jobs are done\n");
            assert!(all, "{file}, {threads} threads:\n{text}");
            assert!(text.contains("anna is killed in the middle of job "), "{file}:\n{text}");
            assert!(text.contains("\nanna is dead: job "), "{file}:\n{text}");
        }
        assert_no_panic(&server);
    });
}

#[test]
fn work_queue_in_python_loses_nothing() {
    no_job_is_lost("work_queue.py", ["work_queue.py", "work_queue.py"]);
}

#[test]
fn work_queue_in_javascript_loses_nothing() {
    no_job_is_lost("work_queue.js", ["work_queue.js", "work_queue.js"]);
}

/// Workers of one language process the jobs of the other, and recover jobs of its killed workers.
#[test]
fn work_queue_in_both_languages_loses_nothing() {
    no_job_is_lost("work_queue.py", ["work_queue.js", "work_queue.py"]);
}

/// Kills a worker which holds a job, starts another one and checks that every job is done.
fn no_job_is_lost(adder: &str, workers: [&str; 2]) {
    on_one_and_two(|threads| {
        let server = server(threads);
        let mut wire = server.connect();
        let added = run(example(adder, &server).args(["add", &JOBS.to_string()]), b"");
        assert_eq!(added, "", "{adder}");
        let mut first = Worker::start(workers[0], &["first"], &server);
        wait_for("a third of the jobs", &mut wire, |wire| words(wire, DONE).len() >= JOBS / 3);
        let mut output = first.end();
        wait_for("its last request", &mut wire, |wire| clients(wire, "connected") == 1);

        // However long that took, a job is left: its second life, which is slow, holds one.
        wire.command(&["LPUSH", TODO, LAST_JOB]).expect("answered");
        let mut first = Worker::start(workers[0], &["first", "3600"], &server);
        let list = "example:queue:doing:first";
        wait_for("a job in its list", &mut wire, |wire| !words(wire, list).is_empty());
        output.push_str(&first.end());
        let held = words(&mut wire, list).pop().expect("it held one");
        assert!(!distinct(&mut wire).contains(&held), "{held} is done and held");

        let mut second = Worker::start(workers[1], &["second"], &server);
        wait_for("every job", &mut wire, |wire| distinct(wire).len() > JOBS);
        wait_for("nothing left", &mut wire, |wire| {
            let rest = [TODO, "example:queue:doing:first", "example:queue:doing:second"];
            rest.iter().all(|list| words(wire, list).is_empty())
        });
        // It waits for more jobs, so it has reported all it has done.
        wait_for("a worker that waits", &mut wire, |wire| clients(wire, "blocked") == 1);
        let mut all: BTreeSet<String> = (0..JOBS).map(|n| format!("job {n}")).collect();
        all.insert(LAST_JOB.to_owned());
        assert_eq!(distinct(&mut wire), all);
        assert_output_matches_queue(&output, &second.end(), &held, &words(&mut wire, DONE));
        assert_no_panic(&server);
    });
}

/// The output of the workers agrees with the lists: who did which job, and who returned one.
fn assert_output_matches_queue(first: &str, second: &str, held: &str, done: &[String]) {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for line in first.lines().chain(second.lines()) {
        if let Some((_, job)) = line.split_once(" did ") {
            *told.entry(job).or_default() += 1;
        }
    }
    for job in told.keys() {
        assert!(done.iter().any(|other| other == job), "{job} was told and is not done");
    }
    assert!(!first.contains(&format!("did {held}\n")), "it was not done by then:\n{first}");
    for line in [format!("first is dead: {held} goes back\n"), format!("second did {held}\n")] {
        assert!(second.contains(&line), "'{line}' is missing:\n{second}");
    }
}

/// One worker of the queue, a process of its own.
struct Worker {
    child: Option<Child>,
}

impl Worker {
    fn start(file: &str, words: &[&str], server: &ServerProcess) -> Self {
        Self { child: Some(spawn(example(file, server).arg("work").args(words))) }
    }

    /// Kills it if it still runs; returns its output.
    fn end(&mut self) -> String {
        let mut child = self.child.take().expect("it ends once");
        child.kill().expect("it is our child");
        let out = finish(child);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(errors, "", "it complained");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The elements of a list.
fn words(wire: &mut Wire, list: &str) -> Vec<String> {
    match wire.command(&["LRANGE", list, "0", "-1"]).expect("answered") {
        Value::Array(elements) => elements
            .into_iter()
            .map(|element| match element {
                Value::Bulk(bytes) => String::from_utf8(bytes).expect("jobs are text"),
                other => panic!("an element of {list} is {other:?}"),
            })
            .collect(),
        other => panic!("LRANGE {list}: {other:?}"),
    }
}

/// How many clients are connected or blocked, from INFO.
fn clients(wire: &mut Wire, which: &str) -> usize {
    let info = match wire.command(&["INFO", "clients"]).expect("answered") {
        Value::Bulk(info) => String::from_utf8(info).expect("INFO is text"),
        other => panic!("INFO clients: {other:?}"),
    };
    let field = format!("{which}_clients:");
    let count = info.lines().find_map(|line| line.strip_prefix(&field)).expect("it is there");
    count.trim().parse().expect("a number")
}

/// The jobs that are done, each once.
fn distinct(wire: &mut Wire) -> BTreeSet<String> {
    words(wire, DONE).into_iter().collect()
}

fn wait_for(what: &str, wire: &mut Wire, mut reached: impl FnMut(&mut Wire) -> bool) {
    let started = Instant::now();
    while !reached(wire) {
        if started.elapsed() > PATIENCE {
            let missing: Vec<String> = (0..JOBS)
                .map(|n| format!("job {n}"))
                .filter(|job| !distinct(wire).contains(job))
                .collect();
            panic!("{what}: not in {PATIENCE:?}; not done: {missing:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `examples/README.md` states this limit.
#[test]
fn every_example_is_short() {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("examples")).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        if ["py", "js"].contains(&language(&path)) {
            let lines = std::fs::read_to_string(&path).expect("it is text").lines().count();
            assert!(lines < 60, "{name} has {lines} lines");
            names.insert(name);
        }
    }
    for name in ["leaderboard", "geo_search", "rate_limiter", "work_queue"] {
        for language in ["py", "js"] {
            assert!(names.remove(&format!("{name}.{language}")), "{name}.{language} is missing");
        }
    }
    assert!(names.is_empty(), "no test runs {names:?}");
}
