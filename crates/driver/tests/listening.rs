//! Real listening sockets: both families, unix sockets, options, queues, addresses.

use crate::common::{OPTIONS, Patience, RealClient, World};
use driver::poller::{LISTENERS_MAX, Poller};
use driver::reactor::Reactor;
use driver::{Driver, Event, ListenAddr, ListenOptions, ListenerId, PeerAddr, Socket};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

crate::on_real_worlds!(
    several_addresses_and_both_families_on_one_port,
    a_port_in_use_is_reported,
    a_port_can_be_reused_at_once,
    overflows_of_the_queue_are_counted,
    the_number_of_listeners_is_bounded,
    unix_sockets_have_a_mode_and_a_name,
    only_a_stale_unix_socket_is_replaced,
    a_unix_socket_path_which_is_too_long_is_an_error,
);

const QUEUE: ListenOptions = ListenOptions { backlog: 511 };

fn tcp(text: &str) -> ListenAddr {
    ListenAddr::Tcp(text.parse().expect("an address"))
}

fn listen<P: Poller>(driver: &mut Reactor<P, u32>, at: &ListenAddr) -> (ListenerId, SocketAddr) {
    let id = driver.listen(at, &QUEUE).expect("a free port");
    match driver.listen_addr(id) {
        Some(PeerAddr::Tcp(addr)) => (id, addr),
        other => panic!("{other:?}"),
    }
}

fn accept<P: Poller>(driver: &mut Reactor<P, u32>) -> (ListenerId, Socket, PeerAddr) {
    let mut patience = Patience::new();
    loop {
        patience.step();
        let until = driver.refresh_now().plus(2_000_000);
        driver.wait(Some(until));
        if let Some(Event::Accepted { listener, socket, peer }) = driver.next() {
            return (listener, socket, peer);
        }
    }
}

fn path_for(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("{name}-{}.sock", std::process::id()))
}

fn several_addresses_and_both_families_on_one_port<W: World<C = RealClient>>() {
    let mut driver = W::new().driver();
    let (four, addr) = listen(&mut driver, &tcp("127.0.0.1:0"));
    // Both families can use one port only because IPv6 sockets are bound with IPV6_V6ONLY.
    let six_at = format!("[::]:{}", addr.port());
    let (six, _) = listen(&mut driver, &tcp(&six_at));
    let _a = TcpStream::connect(addr).expect("it listens");
    let (listener, socket, peer) = accept(&mut driver);
    assert_eq!(listener, four);
    assert!(peer.to_string().starts_with("127.0.0.1:"), "{peer}");
    let conn = driver.adopt(socket, &OPTIONS);
    assert_eq!(driver.local_addr(conn), PeerAddr::Tcp(addr));
    let b = TcpStream::connect(format!("[::1]:{}", addr.port())).expect("it listens");
    let (listener, socket, peer) = accept(&mut driver);
    assert_eq!(listener, six);
    assert_eq!(peer, PeerAddr::Tcp(b.local_addr().expect("connected")));
    let conn = driver.adopt(socket, &OPTIONS);
    assert_eq!(driver.local_addr(conn).to_string(), format!("[::1]:{}", addr.port()));
}

fn a_port_in_use_is_reported<W: World<C = RealClient>>() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = ListenAddr::Tcp(taken.local_addr().expect("bound"));
    let error = W::new().driver().listen(&at, &QUEUE).expect_err("taken");
    assert!(error.to_string().starts_with("Address already in use"), "{error}");
}

fn a_port_can_be_reused_at_once<W: World<C = RealClient>>() {
    // A connection which the server closed first stays in TIME_WAIT on the server's port.
    let mut driver = W::new().driver();
    let (id, addr) = listen(&mut driver, &tcp("127.0.0.1:0"));
    let mut client = TcpStream::connect(addr).expect("it listens");
    let (_, socket, _) = accept(&mut driver);
    drop(socket);
    assert_eq!(client.read(&mut [0]).expect("a good end"), 0);
    drop(client);
    driver.close_listener(id);
    assert!(TcpStream::connect(addr).is_err(), "closed");
    listen(&mut driver, &ListenAddr::Tcp(addr));
}

fn overflows_of_the_queue_are_counted<W: World<C = RealClient>>() {
    let mut driver = W::new().driver();
    let id = driver.listen(&tcp("127.0.0.1:0"), &ListenOptions { backlog: 1 }).expect("free");
    let Some(PeerAddr::Tcp(addr)) = driver.listen_addr(id) else { panic!("it is TCP") };
    assert_eq!(driver.listener_overflows(), 0);
    let mut open = Vec::new();
    let mut patience = Patience::new();
    while driver.listener_overflows() == 0 {
        patience.step();
        open.extend(TcpStream::connect_timeout(&addr, Duration::from_millis(5)));
    }
    assert_eq!(open.len(), 2, "a queue of one holds one more");
    let counted = driver.listener_overflows();
    driver.close_listener(id);
    assert!(driver.listener_overflows() >= counted, "they happened");
}

fn the_number_of_listeners_is_bounded<W: World<C = RealClient>>() {
    let mut driver = W::new().driver();
    let ids: Vec<_> =
        (0..LISTENERS_MAX).map(|_| listen(&mut driver, &tcp("127.0.0.1:0")).0).collect();
    assert!(driver.listen(&tcp("127.0.0.1:0"), &QUEUE).is_err());
    driver.close_listener(ids[3]);
    assert_eq!(listen(&mut driver, &tcp("127.0.0.1:0")).0, ids[3]);
}

fn unix_sockets_have_a_mode_and_a_name<W: World<C = RealClient>>() {
    let path = path_for("mode");
    let at = ListenAddr::Unix { path: path.clone(), permissions: Some(0o640) };
    let mut driver = W::new().driver();
    let id = driver.listen(&at, &QUEUE).expect("a free path");
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let mut client = UnixStream::connect(&path).expect("it listens");
    let (_, socket, peer) = accept(&mut driver);
    assert_eq!(peer, PeerAddr::Unix(path.clone()));
    assert_eq!(peer.to_string(), format!("{}:0", path.display()));
    let conn = driver.adopt(socket, &OPTIONS);
    assert_eq!(driver.local_addr(conn), PeerAddr::Unix(path.clone()));
    client.write_all(b"over a path").expect("connected");
    let mut got = Vec::new();
    while got.len() < 11 {
        driver.wait(None);
        while let Some(event) = driver.next() {
            let Event::Data { start, end, .. } = event else { panic!("{event:?}") };
            got.extend_from_slice(&driver.io().0[start..end]);
        }
    }
    assert_eq!(got, b"over a path");
    driver.close_listener(id);
    assert!(!path.exists(), "the file goes with the listener");
}

fn only_a_stale_unix_socket_is_replaced<W: World<C = RealClient>>() {
    let path = path_for("stale");
    let at = ListenAddr::Unix { path: path.clone(), permissions: None };
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a free path"));
    assert!(path.exists(), "left behind");
    let mut driver = W::new().driver();
    let id = driver.listen(&at, &QUEUE).expect("replaced");
    // Another process binds the path: closing does not remove that socket.
    let mut other = W::new().driver();
    other.listen(&at, &QUEUE).expect("replaced again");
    driver.close_listener(id);
    UnixStream::connect(&path).expect("the other one's");
    drop(other);
    assert!(!path.exists());
    std::fs::write(&path, "somebody's data").expect("a free path");
    let error = driver.listen(&at, &QUEUE).expect_err("in the way");
    assert!(error.to_string().starts_with("Address already in use"), "{error}");
    let kept = std::fs::metadata(&path).expect("still there");
    assert!(kept.file_type().is_file() && !kept.file_type().is_socket());
    std::fs::remove_file(&path).expect("a temporary file");
}

fn a_unix_socket_path_which_is_too_long_is_an_error<W: World<C = RealClient>>() {
    let path = PathBuf::from("/tmp").join("x".repeat(120));
    let at = ListenAddr::Unix { path, permissions: None };
    W::new().driver().listen(&at, &QUEUE).expect_err("sun_path has 108 bytes");
}
