//! The client connected to a minimal server, over TCP and a unix socket.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::{Address, Client, Error, Value, WINDOW_BYTES_MAX};
use resp::{Args, Framed, Limits, OutBuf, Proto, Reply, frame};

const PATIENCE: Duration = Duration::from_secs(10);

/// Serves one connection: REPEAT sends text many times, PUSH a push message and OK, SILENCE
/// nothing, and any other request its last argument.
fn serve(mut stream: impl Read + Write) {
    let (mut input, mut at) = (Vec::new(), 0);
    let (mut spans, mut blobs) = (Vec::new(), Vec::new());
    let mut buf = vec![0; 4096];
    loop {
        spans.clear();
        match frame(&input, at, &mut spans, &mut blobs, &Limits::default()) {
            Framed::Complete { end } => {
                let reply = answer(Args::new(&input, &spans, &blobs));
                at = end;
                if stream.write_all(&reply).is_err() {
                    return;
                }
            }
            _ => match stream.read(&mut buf) {
                Ok(0) | Err(_) => return,
                Ok(received) => input.extend_from_slice(&buf[..received]),
            },
        }
    }
}

fn answer(args: Args<'_>) -> Vec<u8> {
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, Proto::Resp3);
    match args.get(0) {
        b"REPEAT" => {
            let times = std::str::from_utf8(args.get(2)).expect("a number");
            reply.bulk(&args.get(1).repeat(times.parse().expect("a number")));
        }
        b"PUSH" => {
            reply.push(1);
            reply.bulk(b"news");
            reply.ok();
        }
        b"SILENCE" => {}
        _ => reply.bulk(args.get(args.len() - 1)),
    }
    out.bytes
}

fn tcp() -> (Client, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let server = std::thread::spawn(move || serve(listener.accept().expect("a client").0));
    let client = Client::connect(&Address::Tcp(address), PATIENCE).expect("the server listens");
    (client, server)
}

#[test]
fn calls_work_over_tcp_and_a_unix_socket() {
    let (mut client, server) = tcp();
    assert_eq!(client.call(&[b"ECHO", b"a\r\nb"]).expect("a reply"), Value::bulk("a\r\nb"));
    assert_eq!(client.call(&[b"ECHO", b""]).expect("a reply"), Value::bulk(""));
    client.finish_sending().expect("it is connected");
    server.join().expect("it saw the end");
    assert!(matches!(client.read(), Err(Error::Closed)));

    let path = std::env::temp_dir().join(format!("client-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).expect("a free name");
    let server = std::thread::spawn(move || serve(listener.accept().expect("a client").0));
    let mut client = Client::connect(&Address::Unix(path.clone()), PATIENCE).expect("it listens");
    std::fs::remove_file(&path).expect("it was made");
    assert_eq!(client.call(&[b"ECHO", b"x"]).expect("a reply"), Value::bulk("x"));
    drop(client);
    server.join().expect("it saw the end");
}

/// The server stops reading while its replies are not read. If the client sent everything first,
/// both would wait forever.
#[test]
fn a_pipeline_larger_than_the_socket_buffers_completes() {
    let (mut client, _server) = tcp();
    let big = vec![b'v'; 3 * WINDOW_BYTES_MAX];
    let mut requests: Vec<&[&[u8]]> = Vec::new();
    let small: [&[u8]; 3] = [b"REPEAT", b"0123456789abcdef", b"1000"];
    let large: [&[u8]; 2] = [b"ECHO", &big];
    for n in 0..3000 {
        requests.push(if n % 100 == 0 { &large } else { &small });
    }
    let replies = client.pipeline(requests).expect("all replies");
    assert_eq!(replies.len(), 3000);
    for (n, reply) in replies.iter().enumerate() {
        let len = if n % 100 == 0 { big.len() } else { 16_000 };
        assert_eq!(reply.as_bytes().map(<[u8]>::len), Some(len), "reply {n}");
    }
}

#[test]
fn push_messages_are_not_taken_for_replies() {
    let (mut client, _server) = tcp();
    assert_eq!(client.call(&[b"PUSH"]).expect("a reply"), Value::ok());
    assert_eq!(client.next_push(), Some(Value::Push(vec![Value::bulk("news")])));
    assert_eq!(client.next_push(), None);
    client.send(&[b"PUSH"]).expect("it is connected");
    assert!(matches!(client.read(), Ok(Value::Push(_))));
    assert_eq!(client.read().expect("a reply"), Value::ok());
}

#[test]
fn a_missing_reply_times_out() {
    let (mut client, _server) = tcp();
    client.set_timeout(Some(Duration::from_millis(50))).expect("it is connected");
    let start = Instant::now();
    assert!(matches!(client.call(&[b"SILENCE"]), Err(Error::Timeout)));
    assert!(start.elapsed() >= Duration::from_millis(45));
}

#[test]
fn connecting_without_a_listener_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    assert!(matches!(Client::connect(&Address::Tcp(address), PATIENCE), Err(Error::Io(_))));
}
