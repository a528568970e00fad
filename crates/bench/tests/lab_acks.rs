//! The experiment on acknowledgements: its short form on a complete server, and on servers which
//! violate the protocol.

#[path = "support/lab.rs"]
mod lab;
#[path = "support/two.rs"]
mod two;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use bench::lab::Output;
use bench::lab::acks::{Options, run};
use bench::lab::target::{Target, free_ports};
use bench::models::{Model, serve as serve_model};
use ingest::v2::Acking;
use ingest::{HEADER_BYTES, Order, PORTS, Strategy};
use two::acceptor::Acceptor;

/// How an acknowledgement is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// It is right.
    No,
    /// `skipped` is one too high.
    Skipped,
    /// The id is that of a later message.
    Ahead,
    /// The connection is closed after the first acknowledgement.
    Closes,
}

/// Five listeners on consecutive ports which acknowledge the messages completed by each read, with
/// a violation in one strategy.
struct Liar {
    base: SocketAddr,
    _acceptors: Vec<Acceptor>,
}

impl Liar {
    fn start(lies: Strategy, lie: Lie) -> Self {
        let (base, listeners) = five();
        let acceptors = listeners.into_iter().zip(Strategy::ALL).map(|(listener, strategy)| {
            let lie = if strategy == lies { lie } else { Lie::No };
            Acceptor::on(listener, move |stream| serve(stream, strategy, lie))
        });
        Self { base, _acceptors: acceptors.collect() }
    }

    fn output(&self) -> Output {
        short(&[&self.base.to_string()], &Options { clients: vec![1], ..Options::default() })
    }
}

fn five() -> (SocketAddr, Vec<TcpListener>) {
    for _ in 0..100 {
        let base = free_ports(PORTS).expect("five free ports");
        let bind = |n| TcpListener::bind(("127.0.0.1", base + n)).ok();
        if let Some(listeners) = (0..PORTS).map(bind).collect::<Option<Vec<_>>>() {
            return (SocketAddr::from(([127, 0, 0, 1], base)), listeners);
        }
    }
    panic!("somebody takes every port");
}

fn serve(mut stream: TcpStream, strategy: Strategy, lie: Lie) {
    let mut room = vec![0; 64 << 10];
    let (mut held, mut whole) = (Vec::new(), 0u64);
    while let Ok(n @ 1..) = stream.read(&mut room) {
        held.extend_from_slice(&room[..n]);
        let (mut at, mut covered, mut acks) = (0, 0u32, Vec::new());
        while let Some(head) = held.get(at..at + HEADER_BYTES) {
            let size = *head.last_chunk().expect("4 bytes");
            let size = match strategy.order() {
                Order::Big => u32::from_be_bytes(size),
                Order::Little => u32::from_le_bytes(size),
            };
            let end = at + HEADER_BYTES + size as usize;
            if held.len() < end {
                break;
            }
            if strategy == Strategy::RequestReply {
                acks.extend_from_slice(&held[at..at + 8]);
            }
            (at, covered, whole) = (end, covered + 1, whole + 1);
        }
        held.drain(..at);
        if strategy != Strategy::RequestReply && covered > 0 {
            let id = whole - 1 + u64::from(lie == Lie::Ahead) * 1_000_000;
            let skipped = covered - 1 + u32::from(lie == Lie::Skipped);
            acks.extend_from_slice(&id.to_le_bytes());
            acks.extend_from_slice(&skipped.to_le_bytes());
        }
        if stream.write_all(&acks).is_err() || lie == Lie::Closes {
            return;
        }
    }
}

fn short(targets: &[&str], options: &Options) -> Output {
    run(&lab::short(targets, Some(0.01)), options, &mut |_| {}).expect("it can be run")
}

#[test]
fn an_honest_server_passes_at_every_point() {
    let output = Liar::start(Strategy::Sync, Lie::No).output();
    assert_eq!(output.failed, Vec::<String>::new());
    // Points: the base, a size, a batch, two without NODELAY, one which checks after every write,
    // blocks, and one which waits. Five strategies and three models, one of which never
    // acknowledges.
    assert_eq!(output.measurements.len(), 8 * 8 - 1);
    assert!(output.measurements.iter().all(|m| m.requests > 0 && m.failures.is_empty()));
}

#[test]
fn a_wrong_acknowledgement_makes_the_run_fail_and_names_the_strategy() {
    for (strategy, lie, why) in [
        (Strategy::Sync, Lie::Skipped, "skipped follows that of"),
        (Strategy::Async, Lie::Ahead, "acknowledgement of"),
        (Strategy::Throttled, Lie::Closes, "lost"),
    ] {
        let liar = Liar::start(strategy, lie);
        let output = liar.output();
        let way = format!(", {},", strategy.name());
        assert!(!output.failed.is_empty(), "{lie:?} is not seen");
        for failed in &output.failed {
            assert!(failed.contains(&way) && failed.contains(why), "{lie:?}: {failed}");
        }
        let all = &output.sections[0].tables[0].rows;
        let of = |row: &&Vec<String>| row[2] == strategy.name();
        assert!(all.iter().filter(of).any(|row| row[3] == "failed"), "{all:?}");
        let others = all.iter().filter(|row| row[2] != strategy.name());
        assert!(others.into_iter().all(|row| row[3] != "failed"), "{all:?}");
    }
}

/// The experiment with protocol 2 at an address, next to correct classic listeners.
fn with_protocol2(address: SocketAddr) -> Output {
    let five = Liar::start(Strategy::Sync, Lie::No);
    let options = Options { clients: vec![1, 2], protocol2: Some(address), ..Options::default() };
    short(&[&five.base.to_string()], &options)
}

#[test]
fn adaptive_is_compared_with_the_other_strategies_for_both_kinds_of_client() {
    let model =
        serve_model(Model::AckEachRead, &bench::models::Options::default()).expect("a free port");
    let output = with_protocol2(model.address);
    assert_eq!(output.failed, Vec::<String>::new());
    let section = &output.sections[0];
    let table = section.tables.last().expect("there are tables");
    assert!(table.title.ends_with("adaptive beside the better of the other two"), "{table:?}");
    let sent: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    // The base, two clients, a size, a batch, two without NODELAY, both clients with a check after
    // every write, blocks, and both clients again with waiting.
    assert_eq!(sent.len(), 2 + 1 + 1 + 2 + 2 + 1 + 2, "{sent:?}");
    assert_eq!(sent.iter().filter(|sent| sent.ends_with(", waits")).count(), 2, "{sent:?}");
    let verdicts = section.prose.iter().filter(|text| {
        text.contains(": adaptive holds at all 11 points") || text.contains(" of 11 points: more")
    });
    assert_eq!(verdicts.count(), 1, "{:?}", section.prose);
    let plot = section.plots.last().expect("there are plots");
    assert_eq!(plot.categories, ["c=1", "c=2", "c=1 waits", "c=2 waits"]);
    assert_eq!(plot.series.len(), 4, "three strategies and the model: {plot:?}");
    assert!(plot.series.iter().all(|series| series.points.len() == 4), "{plot:?}");
    assert!(output.findings.iter().any(|finding| finding.target.ends_with(", adaptive")));
}

#[test]
fn a_wrong_acknowledgement_of_protocol_2_makes_the_run_fail() {
    let liar = two::Two::start(two::Lie::Hidden, 4 << 20);
    let output = with_protocol2(liar.address);
    assert!(!output.failed.is_empty());
    for failed in &output.failed {
        assert!(failed.contains("readers see up to"), "{failed}");
        assert!(Acking::ALL.iter().any(|acking| failed.contains(acking.name())), "{failed}");
    }
}

#[test]
fn a_failing_command_still_writes_its_files() {
    let liar = Liar::start(Strategy::Async, Lie::Skipped);
    let json = std::env::temp_dir().join(format!("bench-acks-{}.json", std::process::id()));
    let out = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"))
        .args(["lab", "acks", "--short", "--seconds", "0.01", "--clients", "1"])
        .args(["--target", &liar.base.to_string(), "--json", json.to_str().expect("ASCII")])
        .output()
        .expect("it starts");
    assert!(!out.status.success());
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("skipped follows that of"), "{stderr}");
    assert!(json.exists());
    std::fs::remove_file(&json).expect("a temporary file");
}

#[test]
fn a_complete_server_is_measured_with_its_own_counters() {
    let target = Target::parse("sheafdb").expect("a target");
    if !target.is_there() {
        // Only if this package is tested on its own: `make test` builds the server first.
        assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug/sheafdb").exists());
        return;
    }
    let output = short(&["sheafdb"], &Options::default());
    assert_eq!(output.failed, Vec::<String>::new());
    let section = &output.sections[0];
    let answer = section.answer();
    assert!(answer.len() == 1 && answer[0].contains("wins here: "), "{answer:?}");
    assert!(
        section.prose.iter().any(|text| text.contains("the server reads")),
        "{:?}",
        section.prose
    );
    assert!(section.prose.iter().any(|text| text.contains(": adaptive ")), "{:?}", section.prose);
    let all = &section.tables[0].rows;
    for acking in Acking::ALL {
        let own = || all.iter().filter(|row| row[1] == "sheafdb" && row[2] == acking.name());
        assert!(own().count() > 0 && own().all(|row| row[5] != "-"), "{acking}: {all:?}");
    }
    let published = &section.tables[1];
    let figures: Vec<&str> = published.rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(figures, ["22,000", "100,000", "250,000", "2,500,000", "3,360,000"]);
    assert!(published.rows.iter().all(|row| row[3] != "-"), "{published:?}");
    let of = |strategy: Strategy| {
        let rows = section.tables[0].rows.iter();
        rows.filter(move |row| row[1] == "sheafdb" && row[2] == strategy.name())
    };
    // Request-reply answers every message. With 64 KiB blocks async never acknowledges more often
    // than sync.
    assert!(of(Strategy::RequestReply).all(|row| row[4] == "1,000"), "{section:?}");
    assert_eq!(
        output.findings.iter().filter(|f| f.target.starts_with("sheafdb, ")).count(),
        output.findings.len()
    );
}
