//! The traffic figures of CLIENT LIST: bytes received and sent, commands executed. The expected
//! figures are those of Valkey 9.1 for the same requests.

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Maximum number of reads until a figure has its value: sent bytes are counted after the reply.
const PATIENCE: usize = 2_000;

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// Bytes received, bytes sent and commands of a client in its line of CLIENT LIST.
fn in_line(line: &str) -> [u64; 3] {
    ["tot-net-in=", "tot-net-out=", "tot-cmds="].map(|name| {
        let word = line.split([' ', '\n']).find_map(|word| word.strip_prefix(name));
        word.unwrap_or_else(|| panic!("{name} in {line}")).parse().expect("a number")
    })
}

fn text(reply: &Value) -> String {
    let Value::Bulk(text) = reply else { panic!("a text: {reply:?}") };
    String::from_utf8_lossy(text).into_owned()
}

struct Watched {
    server: ServerProcess,
    wire: Wire,
    id: i64,
    other: Wire,
}

impl Watched {
    fn start(threads: &str) -> Self {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let (mut wire, other) = (server.connect(), server.connect());
        let Value::Int(id) = ask(&mut wire, "CLIENT ID") else { panic!("an id") };
        let mut watched = Self { server, wire, id, other };
        watched.await_figures([24, 4 + id.to_string().len() as u64 - 1, 1], "CLIENT ID");
        watched
    }

    fn figures(&mut self) -> [u64; 3] {
        in_line(&text(&ask(&mut self.other, &format!("CLIENT LIST ID {}", self.id))))
    }

    /// Sends commands in one write, reads their replies, and checks the growth of the figures.
    fn grows(&mut self, lines: &[&str], by: [u64; 3]) {
        let before = self.figures();
        let words = lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        let bytes: Vec<u8> = words.flat_map(|words| encode(&words)).collect();
        self.wire.send(&bytes).expect("open");
        for _ in lines {
            self.wire.receive().expect("answered");
        }
        self.await_figures(std::array::from_fn(|at| before[at] + by[at]), &format!("{lines:?}"));
    }

    fn await_figures(&mut self, expected: [u64; 3], what: &str) {
        for _ in 0..PATIENCE {
            if self.figures() == expected {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(self.figures(), expected, "{what}");
    }
}

fn on_one_and_two(test: impl Fn(Watched)) {
    for threads in ["1", "2"] {
        test(Watched::start(threads));
    }
}

#[test]
fn commands_count_when_they_have_been_executed() {
    on_one_and_two(|mut client| {
        client.grows(&["SET k v"], [27, 5, 1]);
        client.grows(&["GET k", "GET k"], [40, 14, 2]);
        let unknown = "-ERR unknown command 'NOPE', with args beginning with: \r\n".len() as u64;
        client.grows(&["NOPE"], [14, unknown, 0]);
        client.grows(&["GET"], [13, 50, 0]);
        client.grows(&["MULTI"], [15, 5, 1]);
        client.grows(&["SET k v"], [27, 9, 0]);
        client.grows(&["GET k"], [20, 9, 0]);
        client.grows(&["EXEC"], [14, 16, 3]);
        client.grows(&["EXEC"], [14, 25, 1]);
        client.grows(&["LPUSH k v"], [29, 68, 1]);
        client.grows(&["GET k", "NOPE", "GET k", "LPUSH k v", "GET k"], [103, 146, 4]);
        // Commands without a time bound are counted separately.
        client.grows(&["GET k", "KEYS x", "GET k"], [61, 18, 3]);
        client.grows(&["CONFIG RESETSTAT"], [37 - 6, 5, 1]);
    });
}

#[test]
fn a_client_list_reply_excludes_its_own_command() {
    on_one_and_two(|mut client| {
        let [read, sent, commands] = client.figures();
        client.wire.send(b"PING\r\nGET k\r\nCLIENT INFO\r\nGET k\r\nPING\r\n").expect("open");
        client.wire.receive().expect("answered");
        client.wire.receive().expect("answered");
        let own = in_line(&text(&client.wire.receive().expect("answered")));
        // A slow worker may send the replies of PING and GET before the client goes on.
        let of_others = [0, 7, 7 + 5].into_iter().find(|more| sent + more == own[1]);
        assert_eq!((own[0], own[2]), (read + 6 + 7 + 13 + 7 + 6, commands + 2));
        assert!(of_others.is_some(), "{} bytes were sent, {sent} before", own[1]);
        client.wire.receive().expect("answered");
        client.wire.receive().expect("answered");
        let commands = client.figures()[2] - commands;
        assert_eq!(commands, 5);
    });
}

#[test]
fn bytes_count_when_they_arrive() {
    on_one_and_two(|mut client| {
        client.grows(&["SET k v"], [27, 5, 1]);
        let [read, sent, commands] = client.figures();
        client.wire.send(b"*2\r\n$3\r\nGET").expect("open");
        client.await_figures([read + 11, sent, commands], "half a request");
        client.wire.send(b"\r\n$1\r\nk\r\n").expect("open");
        client.wire.receive().expect("answered");
        client.await_figures([read + 20, sent + 7, commands + 1], "the rest");
        // A big request is assembled, and so is its reply.
        let value = "v".repeat(300_000);
        let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n";
        client.wire.send(head).expect("open");
        client.wire.send(&value.as_bytes()[..200_000]).expect("open");
        let read = read + 20 + head.len() as u64;
        client.await_figures([read + 200_000, sent + 7, commands + 1], "most of a big one");
        client.wire.send(&value.as_bytes()[200_000..]).expect("open");
        client.wire.send(b"\r\n").expect("open");
        client.wire.receive().expect("answered");
        client.await_figures([read + 300_002, sent + 12, commands + 2], "all of it");
        client.wire.send(b"GET k\r\n").expect("open");
        client.wire.receive().expect("answered");
        client.await_figures([read + 300_009, sent + 12 + 300_011, commands + 3], "read again");
    });
}

#[test]
fn a_waiting_command_is_not_counted_as_executed() {
    on_one_and_two(|mut client| {
        for end in ["RPUSH q x", "CLIENT UNBLOCK ID", "CLIENT UNBLOCK ID ERROR"] {
            let [read, sent, commands] = client.figures();
            client.wire.send(&encode(&["BLPOP", "q", "0"])).expect("open");
            client.await_figures([read + 29, sent, commands], "it waits");
            let end = end.replace("ID", &client.id.to_string());
            while !matches!(ask(&mut client.other, &end), Value::Int(1)) {}
            let reply = client.wire.receive_bytes().expect("answered").len() as u64;
            client.await_figures([read + 29, sent + reply, commands + 1], &end);
        }
        client.grows(&["BLPOP q 0.01"], [32, 5, 1]);
        // A command held back by a pause is read but not executed.
        let [read, sent, commands] = client.figures();
        ask(&mut client.other, "CLIENT PAUSE 100000 WRITE");
        client.wire.send(&encode(&["SET", "k", "v"])).expect("open");
        client.await_figures([read + 27, sent, commands], "it is held back");
        ask(&mut client.other, "CLIENT UNPAUSE");
        client.wire.receive().expect("answered");
        client.await_figures([read + 27, sent + 5, commands + 1], "it goes on");
        assert!(client.server.answers());
    });
}

/// Replies which the client does not read do not count as sent.
#[test]
fn unread_replies_count_when_they_are_sent() {
    on_one_and_two(|mut client| {
        let value = "v".repeat(1 << 20);
        let [read, sent, commands] = client.figures();
        let set = encode(&["SET", "k", &value]);
        client.wire.send(&set).expect("open");
        client.wire.receive().expect("answered");
        let [read, sent, commands] = [read + set.len() as u64, sent + 5, commands + 1];
        client.await_figures([read, sent, commands], "SET");
        let requests = 64;
        client.wire.send(&encode(&["GET", "k"]).repeat(requests)).expect("open");
        let reply = (value.len() + "$1048576\r\n\r\n".len()) as u64;
        let mut held = 0;
        for _ in 0..PATIENCE {
            held = client.figures()[1] - sent;
            if held > 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(held < reply * requests as u64, "a socket does not take 64 MiB");
        for _ in 0..requests {
            client.wire.receive().expect("answered");
        }
        let n = requests as u64;
        client.await_figures([read + 20 * n, sent + reply * n, commands + n], "all was read");
    });
}
