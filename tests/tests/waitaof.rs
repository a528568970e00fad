//! WAITAOF beside an append-only file: it says 1 when what the client has written was synced, and
//! not before. (That a 1 survives a crash of the machine is tested in the simulation.)

use std::time::Duration;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

const SYNCED: &str = "*2 :1 :0";
const NOT_SYNCED: &str = "*2 :0 :0";
const OFF: &str = "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
/// Connections, so that each of the two workers has some.
const CLIENTS: usize = 6;

fn start(folder: &Folder, appendonly: &str, fsync: &str) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", appendonly, "--appendfsync", fsync];
    ServerProcess::start(&Binary::under_test(), &[&words[..], &["--threads", "2"]].concat())
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> String {
    render::line(&wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}")))
}

fn receive(wire: &mut Wire) -> String {
    render::line(&wire.receive().expect("a reply"))
}

fn clients(server: &ServerProcess) -> Vec<Wire> {
    (0..CLIENTS).map(|_| server.connect()).collect()
}

/// A figure of INFO.
fn figure(wire: &mut Wire, section: &str, name: &str) -> u64 {
    let info = wire.command(&["INFO", section]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Sends WAITAOF on all connections, and waits until they are blocked.
fn block(control: &mut Wire, clients: &mut [Wire], request: &str) {
    for client in clients.iter_mut() {
        client.send(&encode(&words(request))).expect("sent");
    }
    until("they wait", || figure(control, "clients", "blocked_clients") == clients.len() as u64);
}

#[test]
fn a_client_waits_for_the_sync_of_its_last_write() {
    for fsync in ["everysec", "always"] {
        let folder = Folder::new(&format!("waitaof-{fsync}"));
        let server = start(&folder, "yes", fsync);
        let mut control = server.connect();
        assert_eq!(ask(&mut control, "WAITAOF 1 0 0"), SYNCED, "nothing was written");
        let mut clients = clients(&server);
        for round in 0..2 {
            for client in &mut clients {
                assert_eq!(ask(client, "INCR n"), format!(":{}", figure_of(&mut control)));
            }
            let last = figure(&mut control, "persistence", "journal_last_number");
            for client in &mut clients {
                client.send(&encode(&words("WAITAOF 1 0 0"))).expect("sent");
            }
            for client in &mut clients {
                assert_eq!(receive(client), SYNCED, "{fsync} {round}");
            }
            let durable = figure(&mut control, "persistence", "journal_durable_number");
            assert!(durable >= last, "{fsync}: {durable} {last}");
            assert_eq!(ask(&mut clients[0], "WAITAOF 0 0 0"), SYNCED);
            assert_eq!(ask(&mut clients[0], "WAITAOF 1 1 1"), SYNCED, "nobody has a replica");
            assert_eq!(ask(&mut clients[0], "WAITAOF 0 1 1"), SYNCED);
        }
        assert_eq!(figure(&mut control, "clients", "blocked_clients"), 0);
    }
}

/// The counter that all clients increment.
fn figure_of(control: &mut Wire) -> String {
    ask(control, "GET n").trim_matches('"').to_owned()
}

/// Without syncs nothing is synced: not before a rewrite, whose base holds it, or the first sync
/// behind CONFIG SET appendfsync.
#[test]
fn without_syncs_it_waits_until_its_time_is_up() {
    let folder = Folder::new("waitaof-no");
    let server = start(&folder, "yes", "no");
    let mut control = server.connect();
    let mut clients = clients(&server);
    for client in &mut clients {
        assert_eq!(ask(client, "WAITAOF 1 0 1"), SYNCED, "it has written nothing");
        assert_eq!(ask(client, "SET key value"), "+OK");
        assert_eq!(ask(client, "WAITAOF 1 0 20"), NOT_SYNCED);
        assert_eq!(ask(client, "WAITAOF 1 1 20"), NOT_SYNCED);
        assert_eq!(ask(client, "WAITAOF 0 0 0"), NOT_SYNCED);
    }
    block(&mut control, &mut clients, "WAITAOF 1 0 0");
    ask(&mut control, "BGREWRITEAOF");
    for client in &mut clients {
        assert_eq!(receive(client), SYNCED);
        assert_eq!(ask(client, "SET key value"), "+OK");
        assert_eq!(ask(client, "GET key"), "\"value\"");
        assert_eq!(ask(client, "WAITAOF 0 0 0"), NOT_SYNCED);
    }
    block(&mut control, &mut clients, "WAITAOF 1 0 0");
    assert_eq!(ask(&mut control, "CONFIG SET appendfsync everysec"), "+OK");
    for client in &mut clients {
        assert_eq!(receive(client), SYNCED);
    }
}

/// Every way in which a client writes counts: a command in a transaction, one with several keys,
/// one that was served.
#[test]
fn every_kind_of_write_counts() {
    let folder = Folder::new("waitaof-kinds");
    let server = start(&folder, "yes", "no");
    let (mut client, mut other) = (server.connect(), server.connect());
    for request in ["SET a 1", "MSET a 1 b 2", "DEL b", "COPY a c", "FLUSHALL", "RPUSH list 1 2 3"]
    {
        let mut client = server.connect();
        ask(&mut client, request);
        assert_eq!(ask(&mut client, "WAITAOF 1 0 1"), NOT_SYNCED, "{request}");
    }
    for request in ["GET a", "DEL nokey", "LRANGE list 0 -1", "DBSIZE", "SCAN 0"] {
        ask(&mut other, request);
        assert_eq!(ask(&mut other, "WAITAOF 1 0 1"), SYNCED, "{request}");
    }
    for request in ["MULTI", "SET x 1", "WAITAOF 1 0 0"] {
        ask(&mut client, request);
    }
    assert_eq!(ask(&mut client, "EXEC"), "*2 +OK *2 :0 :0", "it does not wait, and its own counts");
    assert_eq!(ask(&mut client, "WAITAOF 1 0 1"), NOT_SYNCED);

    let mut waiter = server.connect();
    block(&mut other, std::slice::from_mut(&mut waiter), "BLPOP queue 0");
    ask(&mut other, "RPUSH queue one");
    assert_eq!(receive(&mut waiter), "*2 \"queue\" \"one\"");
    assert_eq!(ask(&mut waiter, "WAITAOF 1 0 1"), NOT_SYNCED, "it has taken an element");

    assert_eq!(ask(&mut other, "CONFIG SET appendfsync always"), "+OK");
    assert_eq!(ask(&mut other, "WAITAOF 1 0 0"), SYNCED);
    for request in ["MULTI", "WAITAOF 1 0 0", "SET x 1", "WAITAOF 1 0 0"] {
        ask(&mut other, request);
    }
    let replies = ask(&mut other, "EXEC");
    assert_eq!(replies, "*3 *2 :1 :0 +OK *2 :1 :0", "its reply leaves behind the sync");
}

#[test]
fn it_ends_with_the_file_and_by_client_unblock() {
    let folder = Folder::new("waitaof-ends");
    let server = start(&folder, "yes", "no");
    let mut control = server.connect();
    let mut clients = clients(&server);
    for client in &mut clients {
        assert_eq!(ask(client, "SET key value"), "+OK");
    }
    for (how, expected) in
        [("TIMEOUT", NOT_SYNCED), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    {
        let ids: Vec<_> = clients.iter_mut().map(|client| ask(client, "CLIENT ID")).collect();
        block(&mut control, &mut clients, "WAITAOF 1 0 0");
        for (client, id) in clients.iter_mut().zip(ids) {
            let request = format!("CLIENT UNBLOCK {} {how}", id.trim_start_matches(':'));
            assert_eq!(ask(&mut control, &request), ":1");
            assert_eq!(receive(client), expected);
        }
    }
    for request in ["WAITAOF 1 0 0", "WAITAOF 1 1 0"] {
        block(&mut control, &mut clients, request);
        assert_eq!(ask(&mut control, "CONFIG SET appendonly no"), "+OK");
        for client in &mut clients {
            assert_eq!(receive(client), OFF);
            assert_eq!(ask(client, "WAITAOF 1 0 0"), OFF);
            assert_eq!(ask(client, "WAITAOF 0 0 0"), NOT_SYNCED);
        }
        assert_eq!(ask(&mut control, "CONFIG SET appendonly yes"), "+OK");
        for client in &mut clients {
            assert_eq!(ask(client, "WAITAOF 1 0 0"), SYNCED, "the first base holds everything");
            assert_eq!(ask(client, "SET key value"), "+OK");
        }
    }
    // Closed connections leave nothing behind.
    block(&mut control, &mut clients, "WAITAOF 1 0 0");
    drop(clients);
    until("nobody waits", || figure(&mut control, "clients", "blocked_clients") == 0);
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(ask(&mut control, "CONFIG SET appendfsync always"), "+OK");
    assert_eq!(ask(&mut control, "WAITAOF 1 0 0"), SYNCED);
}
