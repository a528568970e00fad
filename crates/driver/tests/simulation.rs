//! Guarantees of the simulated network: the same seed gives the same run, and whatever it does to
//! connections, each of them ends exactly once and every received byte is the right one.

use crate::common::{Calm, Client, Happened, Server, World, noise, read_some, send};
use base::prng::Prng;
use driver::reactor::ACCEPT_RETRY_NS;
use driver::sim::{Ending, Faults, SimNet};
use driver::{CloseReason, Driver};
use rustix::io::Errno;

const HARSH: Faults = Faults { reset_one_in: 300, ..Faults::ROUGH };

/// Echoes with clients which connect, write, read and disconnect at random. Returns all events.
fn random_run(seed: u64, faults: Faults) -> Vec<String> {
    let mut server = Server::<Calm>::new_in(Calm(SimNet::new(seed, faults)));
    let mut prng = Prng::new(seed);
    let mut clients = Vec::new();
    let mut open = Vec::new();
    let mut told = Vec::new();
    for step in 0..1500 {
        if clients.len() < 10 && prng.chance(1, 5) {
            let bytes = noise(step, 20_000);
            clients.push((server.world.connect(&server.addr), bytes, 0, Vec::new()));
        }
        for (client, bytes, written, got) in &mut clients {
            let most = (bytes.len() - *written).min(1 + prng.below(2000) as usize);
            *written += client.write(&bytes[*written..*written + most]);
            read_some(client, got, 1 + prng.below(3000) as usize);
            assert!(bytes.starts_with(got), "what comes back is what was written");
        }
        let mut i = 0;
        while i < clients.len() {
            let ending = clients[i].0.ending();
            if ending == Some(Ending::Closed) {
                panic!("nobody closes these in good order");
            } else if ending == Some(Ending::Reset) || prng.chance(1, 200) {
                clients.swap_remove(i);
            } else {
                i += 1;
            }
        }
        for event in server.turn() {
            told.push(format!("{:?} {event:?}", server.driver.now()));
            match event {
                Happened::Accepted(conn) => open.push(conn),
                Happened::Data(conn, bytes) => {
                    assert!(open.contains(&conn), "{conn:?} is open");
                    send(&mut server.driver, conn, &bytes);
                }
                Happened::Drained(conn) => assert!(open.contains(&conn)),
                Happened::Closed(conn, _) => {
                    let at = open.iter().position(|c| *c == conn);
                    open.swap_remove(at.expect("each ends once"));
                    server.driver.release(conn);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    drop(clients);
    while !open.is_empty() {
        for event in server.turn() {
            match event {
                Happened::Accepted(conn) => open.push(conn),
                Happened::Closed(conn, _) => {
                    open.retain(|c| *c != conn);
                    server.driver.release(conn);
                }
                _ => (),
            }
        }
    }
    told
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for faults in [Faults::NONE, Faults::ROUGH, HARSH] {
        assert!(random_run(11, faults) == random_run(11, faults));
        assert!(random_run(11, faults) != random_run(12, faults));
    }
}

#[test]
fn every_connection_ends_once_on_a_faulty_network() {
    let (mut errors, mut closed, mut drained) = (0, 0, 0);
    for seed in 100..130 {
        for line in random_run(seed, HARSH) {
            errors += u32::from(line.contains("Closed") && line.contains("Error"));
            closed += u32::from(line.contains("Closed"));
            drained += u32::from(line.contains("Drained"));
        }
    }
    // The faults did occur.
    assert!(errors > 100 && closed > errors && drained > 100, "{errors} {closed} {drained}");
}

#[test]
fn accepting_resumes_after_a_lack_of_descriptors() {
    let mut server = Server::<Calm>::new();
    let _client = server.world.connect(&server.addr);
    server.world.0.fail_accepts(1);
    let since = server.driver.refresh_now();
    let accepted = loop {
        if let Some(Happened::Accepted(conn)) = server.turn().pop() {
            break conn;
        }
    };
    assert!(server.driver.now().since(since) >= ACCEPT_RETRY_NS);
    assert!(server.driver.stats().polls < 200, "it does not spin on the queue");
    assert_eq!(server.driver.stats().accept_errors, 1);
    // A released connection ends the suspension.
    let _second = server.world.connect(&server.addr);
    server.world.0.fail_accepts(1);
    assert!(server.turn().is_empty());
    let since = server.driver.refresh_now();
    server.driver.release(accepted);
    assert!(matches!(server.turn()[..], [Happened::Accepted(_)]));
    assert!(server.driver.now().since(since) < ACCEPT_RETRY_NS);
}

/// Connections which are closed before they are accepted do not delay later ones.
#[test]
fn connections_closed_before_accept_are_skipped() {
    for error in [Errno::CONNABORTED, Errno::PROTO, Errno::PERM, Errno::NETDOWN] {
        let mut server = Server::<Calm>::new();
        let _client = server.world.connect(&server.addr);
        server.world.0.fail_accepts_with(3, error);
        assert!(matches!(server.turn()[..], [Happened::Accepted(_)]), "{error}");
        assert_eq!(server.driver.stats().accept_errors, 3);
    }
}

/// An error of the listening socket itself is permanent: each turn would meet it again.
#[test]
#[should_panic(expected = "accept failed for good: Bad file descriptor")]
fn a_lost_listening_socket_is_fatal() {
    let mut server = Server::<Calm>::new();
    let _client = server.world.connect(&server.addr);
    server.world.0.fail_accepts_with(u32::MAX, Errno::BADF);
    for _ in 0..100 {
        server.turn();
    }
}

/// A connection whose registration cannot be changed would get no further events: it is closed.
#[test]
fn a_failed_registration_closes_its_connection() {
    let mut server = Server::<Calm>::new();
    let (_client, conn) = server.connect();
    server.driver.pause(conn);
    server.world.0.fail_change();
    server.expect(&Happened::Closed(conn, CloseReason::Error));
    server.rests();
}

#[test]
fn a_full_queue_refuses_and_counts() {
    let mut server = Server::<Calm>::new();
    let at = driver::ListenAddr::Tcp("127.0.0.1:7777".parse().expect("an address"));
    let options = driver::ListenOptions { backlog: 2 };
    let short = server.driver.listen(&at, &options).expect("free");
    assert!(server.driver.listen(&at, &options).is_err(), "taken");
    let addr = server.driver.listen_addr(short).expect("open");
    let clients: Vec<_> = (0..5).map(|_| server.world.0.connect(&addr)).collect();
    assert_eq!(clients.iter().flatten().count(), 2);
    assert_eq!(server.driver.listener_overflows(), 3);
    server.driver.close_listener(short);
    assert_eq!(server.driver.listener_overflows(), 3, "they happened");
    assert!(server.world.0.connect(&addr).is_none());
}

#[test]
fn a_socket_which_is_not_adopted_is_closed() {
    let mut server = Server::<Calm>::new();
    let mut refused = server.world.connect(&server.addr);
    let mut dropped = server.world.connect(&server.addr);
    for why in [&b"too many"[..], b""] {
        server.driver.wait(None);
        let Some(driver::Event::Accepted { socket, .. }) = server.driver.next() else {
            panic!("two were waiting")
        };
        if why.is_empty() {
            drop(socket);
        } else {
            socket.refuse(why);
        }
    }
    server.quiet(3);
    let mut got = Vec::new();
    read_some(&mut refused, &mut got, 100);
    assert_eq!(got, b"too many");
    assert_eq!(Client::ending(&mut refused), Some(Ending::Closed));
    assert_eq!(Client::ending(&mut dropped), Some(Ending::Closed));
}

#[test]
fn a_client_disconnect_is_reported_as_closed_by_the_peer() {
    let mut server = Server::<Calm>::new();
    let (client, conn) = server.connect();
    drop(client);
    server.expect(&Happened::Closed(conn, CloseReason::Peer));
}
