//! The producers of ingest protocol 2 in Python, C and Rust: the test vectors, a peer which
//! simulates the server and cuts connections, and the real server behind a proxy which cuts
//! connections.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{python, root, run};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::Value;

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"];
const SANITIZE: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The folder of this test program's profile.
fn profile() -> PathBuf {
    let here = std::env::current_exe().expect("a program has a path");
    here.ancestors().nth(2).expect("PROFILE/deps/NAME").into()
}

/// Compiles a source file; with sanitizers where the compiler supports them.
fn compile(compiler: &str, standard: &str, source: &str, name: &str) -> PathBuf {
    let out = profile().join(name);
    let sanitized = [SANITIZE, STRICT].concat();
    for flags in [sanitized.as_slice(), STRICT] {
        let mut command = Command::new(compiler);
        command
            .args(flags)
            .arg(standard)
            .args(["-x", if standard.contains("++") { "c++" } else { "c" }]);
        command.args(["-I", "clients/c", source, "-o"]).arg(&out).current_dir(root());
        let made = command.output().expect("there is a compiler");
        let told = String::from_utf8_lossy(&made.stderr);
        assert!(!told.contains("warning") && !told.contains(source), "{command:?}:\n{told}");
        if made.status.success() {
            return out;
        }
        println!("{compiler} has no sanitizers here: {told}");
    }
    panic!("{compiler} cannot compile {source}");
}

/// An example program of the Rust producer; builds it first if it is out of date.
fn rust_example(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "sheafdb-producer", "--example", name]);
    let status = build.current_dir(root()).stdin(Stdio::null()).status().expect("cargo runs");
    assert!(status.success(), "{name} does not build");
    let target = profile().parent().expect("below the target folder").join("debug");
    target.join("examples").join(name)
}

/// The tools of the three producers, as `NAME=PROGRAM`.
fn tools() -> &'static [String; 3] {
    static TOOLS: OnceLock<[String; 3]> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let python = root().join(".venv/bin/python");
        let c = compile("cc", "-std=c99", "tests/clients/producers/tool.c", "producers-tool-c");
        [
            format!("Python={} tests/clients/producers/tool.py", python.display()),
            format!("C={}", c.display()),
            format!("Rust={}", rust_example("producer_tool").display()),
        ]
    })
}

#[test]
fn python_agrees_with_the_vectors() {
    let mut command = python();
    print!("{}", run(command.args(["clients/python/test_sheafdb_producer.py"]), b""));
}

#[test]
fn c_agrees_with_the_vectors_also_as_cpp() {
    for (compiler, standard) in [("cc", "-std=c99"), ("c++", "-std=c++11")] {
        let name = format!("producers-vectors-{compiler}");
        let program = compile(compiler, standard, "clients/c/test_vectors.c", &name);
        print!("{}", run(Command::new(program).arg("docs/formats/ingest2-vectors.txt"), b""));
    }
}

/// Runs the tool against a script which simulates everything that a server may do.
fn against_a_peer(tool: &str) {
    print!("{}", run(python().args(["tests/clients/producers/scripted.py", tool]), b""));
}

#[test]
fn python_against_a_peer_that_plays_the_server() {
    against_a_peer(&tools()[0]);
}

#[test]
fn c_against_a_peer_that_plays_the_server() {
    against_a_peer(&tools()[1]);
}

#[test]
fn rust_against_a_peer_that_plays_the_server() {
    against_a_peer(&tools()[2]);
}

/// On the real server: cut connections, exhausted credit, passwords, takeover, a restarted server.
fn on_a_server(parts: &str) {
    let mut command = python();
    command.arg("tests/clients/producers/live.py").arg(Binary::under_test().path);
    print!("{}", run(command.args(tools()).arg(parts), b""));
}

#[test]
fn python_on_a_server() {
    on_a_server("Python");
}

#[test]
fn c_on_a_server() {
    on_a_server("C");
}

#[test]
fn rust_on_a_server() {
    on_a_server("Rust");
}

#[test]
fn a_consumer_group_reads_what_all_three_push_while_they_are_cut() {
    on_a_server("Together");
}

/// The programs of `examples/ingest`: their messages are in the stream, and a second run resumes
/// where the first one ended.
#[test]
fn examples() {
    let listen = free_addr().expect("a free port");
    let option = format!("{listen} protocol=2");
    let server = ServerProcess::start(&Binary::under_test(), &["--ingest-listen", &option]);
    let c = compile("cc", "-std=c99", "examples/ingest/producer.c", "producers-example-c");
    let built = rust_example("ingest_producer");
    let (address, port) = (listen.to_string(), listen.port().to_string());
    for count in ["500", "700"] {
        let mut in_python = python();
        in_python.args(["examples/ingest/producer.py", &address, count]);
        let mut in_c = Command::new(&c);
        let mut in_rust = Command::new(&built);
        for example in [&mut in_python, in_c.args([&port, count]), in_rust.args([&address, count])]
        {
            assert_eq!(run(example, b""), format!("{count} are in the stream\n"));
        }
    }
    let length = server.connect().command(&["XLEN", "example:ingest"]).expect("answered");
    assert_eq!(length, Value::Int(3 * 700));
}
