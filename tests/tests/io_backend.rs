//! `io-backend`: which back end is used, what is logged, and the fallback where io_uring is
//! forbidden.

use sheafdb_tests::no_io_uring::{forbid, is_forbidden};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn info(server: &ServerProcess, section: &str, name: &str) -> String {
    let reply = server.connect().command(&["INFO", section]).expect("it answers");
    let Value::Bulk(text) = reply else { panic!("{reply:?}") };
    let text = String::from_utf8(text).expect("INFO is text");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn assert_runs_on(server: &ServerProcess, back_end: &str) {
    assert_eq!(info(server, "server", "multiplexing_api"), back_end);
    assert_eq!(info(server, "io", "io_backend"), back_end);
    assert!(server.log().contains(&format!("I/O by {back_end}\n")), "{}", server.log());
}

/// Lines of the log which report that io_uring is not available.
fn io_uring_lines(server: &ServerProcess) -> Vec<String> {
    server.log().lines().filter(|l| l.contains("io_uring")).map(str::to_owned).collect()
}

/// Where it is forbidden the server starts and serves on epoll. It logs one line if io_uring was
/// configured, however many workers it has.
#[test]
fn a_seccomp_filter_means_epoll_and_one_line() {
    let text = |errno| std::io::Error::from_raw_os_error(errno).to_string();
    for errno in [libc::EPERM, libc::ENOSYS] {
        for (wanted, lines) in [("auto", 0), ("io_uring", 1)] {
            let binary = Binary::under_test();
            let args = ["--io-backend", wanted, "--threads", "3"];
            let server =
                ServerProcess::start_with(&binary, &args, |command| forbid(command, errno));
            assert_runs_on(&server, "epoll");
            let told = io_uring_lines(&server);
            assert_eq!(told.len(), lines, "{wanted}: {told:?}");
            for line in told {
                assert!(line.contains(&text(errno)) && line.contains(" # "), "{line}");
                assert!(line.contains("using epoll"), "{line}");
            }
            let mut wire = server.connect();
            assert_eq!(
                wire.command(&["SET", "k", "v"]).expect("served"),
                Value::Simple(b"OK".into())
            );
        }
    }
}

#[test]
fn the_configured_back_end_is_used() {
    let binary = Binary::under_test();
    let server = ServerProcess::start(&binary, &["--io-backend", "epoll"]);
    assert_runs_on(&server, "epoll");
    assert_eq!(io_uring_lines(&server), Vec::<String>::new());
    if is_forbidden() {
        eprintln!("not run: io_uring is forbidden here");
        return;
    }
    for wanted in ["auto", "io_uring"] {
        let server = ServerProcess::start(&binary, &["--io-backend", wanted, "--threads", "2"]);
        assert_runs_on(&server, "io_uring");
    }
}

/// Many pipelines whose replies are not read for a while: every byte arrives, in order, on either
/// back end.
#[test]
fn slow_readers_get_every_byte() {
    for back_end in ["epoll", "io_uring"] {
        let args = ["--io-backend", back_end, "--threads", "1"];
        let server = ServerProcess::start(&Binary::under_test(), &args);
        let count = 40_000;
        let mut readers: Vec<TcpStream> = (0..4)
            .map(|i| {
                let stream = TcpStream::connect(server.addr).expect("it listens");
                stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a limit");
                let mut writer = stream.try_clone().expect("a second handle");
                // ECHO of numbers reveals swapped, lost and repeated replies. The replies differ in
                // size.
                std::thread::spawn(move || {
                    for n in 0..count {
                        let text = echoed(i, n);
                        let request = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{text}\r\n", text.len());
                        writer.write_all(request.as_bytes()).expect("it takes requests");
                    }
                });
                stream.set_nodelay(true).expect("TCP");
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        for (i, reader) in readers.iter_mut().enumerate() {
            let replies = (0..count).map(|n| echoed(i, n));
            let expected = replies
                .flat_map(|text| [format!("${}\r\n", text.len()), text, "\r\n".to_owned()])
                .collect::<String>();
            let mut got = vec![0; expected.len()];
            reader.read_exact(&mut got).expect("all of it comes");
            assert!(got == expected.as_bytes(), "{back_end}, reader {i}");
        }
    }
}

fn echoed(reader: usize, n: usize) -> String {
    format!("{reader}-{n}-{}", "x".repeat(if n.is_multiple_of(100) { 3000 } else { n % 60 }))
}
