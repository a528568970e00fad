//! Golden files: commands and their exact replies. `tests/README.md` describes the format.

mod script;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

pub use script::{Action, Block, Excuse, Expected, Script};

use crate::render;
use crate::server_process::{Binary, Kind, ServerProcess};
use crate::wire::Wire;

/// The protocols in which every script runs.
pub const PROTOCOLS: [u8; 2] = [2, 3];

/// Runs one file in both protocols. The error lists the differences; with `update` the file is
/// rewritten with the replies received.
pub fn check_file(path: &Path, binary: &Binary, update: bool) -> Result<(), String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let mut script = Script::parse(&text).map_err(|e| format!("{name}:{e}"))?;
    let release = match binary.kind {
        Kind::Redis => Some(binary.release()),
        Kind::SheafDb => None,
    };
    let is_excused = |excuse: &Option<Excuse>| {
        let asked = release.as_deref().zip(excuse.as_ref());
        asked.is_some_and(|(release, excuse)| excuse.excuses(release))
    };
    if is_excused(&script.only_ours) {
        return Ok(());
    }
    let mut wrong = Vec::new();
    for threads in threads(binary, update) {
        let mut args = script.server_args();
        args.extend(threads.iter().flat_map(|n| ["--threads", n]));
        let mut replies = Vec::new();
        for proto in PROTOCOLS {
            let server = ServerProcess::start(binary, &args);
            replies.push(run(&script, &server, proto));
        }
        for (at, block) in script.blocks.iter_mut().enumerate() {
            if is_excused(&block.differs_from_redis) {
                continue;
            }
            for (which, proto) in PROTOCOLS.into_iter().enumerate() {
                let got = &replies[which][at];
                if block.accepts(proto, got) {
                    continue;
                }
                if update {
                    // Patterns written by hand are kept where they match.
                    block.expected.learn(proto, got);
                } else {
                    wrong.push(format!(
                        "{name}:{}: RESP{proto}{}: {}\n  expected:\n{}\n  got:\n{}",
                        block.line,
                        threads.map(|n| format!(", {n} threads")).unwrap_or_default(),
                        block.action,
                        indented(block.expected.of(proto)),
                        indented(got)
                    ));
                }
            }
        }
    }
    if update {
        return std::fs::write(path, script.to_string()).map_err(|e| format!("{name}: {e}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Settings of `--threads`: the connections of a script share one worker, or are spread over two.
fn threads(binary: &Binary, update: bool) -> Vec<Option<&'static str>> {
    match binary.kind {
        Kind::Redis => vec![None],
        Kind::SheafDb if update => vec![Some("1")],
        Kind::SheafDb => vec![Some("1"), Some("2")],
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The replies to all blocks, in order.
fn run(script: &Script, server: &ServerProcess, proto: u8) -> Vec<Vec<String>> {
    let mut connections: BTreeMap<u32, Wire> = BTreeMap::new();
    let mut replies = Vec::new();
    for block in &script.blocks {
        if block.reset {
            connections.clear();
            let mut wire = server.connect();
            wire.command(&["FLUSHALL"]).expect("FLUSHALL is answered");
        }
        if block.sleep_ms > 0 {
            std::thread::sleep(std::time::Duration::from_millis(block.sleep_ms));
        }
        let wire = connections.entry(block.conn).or_insert_with(|| open(server, proto));
        replies.push(match act(wire, &block.action) {
            Ok(lines) => lines,
            Err(e) => match e.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe => vec!["closed".into()],
                _ => vec![format!("no reply: {e}")],
            },
        });
    }
    replies
}

fn open(server: &ServerProcess, proto: u8) -> Wire {
    let mut wire = server.connect();
    if proto == 3 {
        // With a password this is an error, and the script's AUTH comes later.
        wire.command(&["HELLO", "3"]).expect("HELLO is answered");
    }
    wire
}

fn act(wire: &mut Wire, action: &Action) -> io::Result<Vec<String>> {
    match action {
        Action::Command(args) => Ok(render::lines(&wire.command(args)?)),
        Action::Send(args) => {
            wire.send(&crate::wire::encode(args))?;
            Ok(Vec::new())
        }
        Action::Raw(bytes) => {
            wire.send(bytes)?;
            Ok(render::lines(&wire.receive()?))
        }
        Action::Receive => Ok(render::lines(&wire.receive()?)),
    }
}
