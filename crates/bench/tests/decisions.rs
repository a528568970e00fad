//! Each model shows the effect of its design decision: the property or defect which an experiment
//! should find.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bench::models::{Flush, Front, Model, Options, Running, Totals};
use client::Client;
use common::{
    LONG, STUCK, connect, connect_for, eventually, is_served, resp_models, start, stream,
    undisturbed,
};

/// Connections which are open, were used, and are idle.
fn held(running: &Running, count: usize) -> Vec<Client> {
    (0..count)
        .map(|_| {
            let mut client = connect(running);
            assert!(is_served(&mut client, LONG), "this many are served");
            client
        })
        .collect()
}

#[test]
fn sequential_serves_one_connection_at_a_time() {
    undisturbed(try_sequential_serves_one_connection_at_a_time);
}

fn try_sequential_serves_one_connection_at_a_time() {
    let running = start(Model::Sequential, &Options::default());
    let first = held(&running, 1);
    let mut second = connect_for(&running, STUCK);
    assert!(second.call(&[b"PING"]).is_err(), "the second waits");
    drop(first);
    second.set_timeout(Some(LONG)).expect("not zero");
    assert_eq!(second.reply().expect("its turn has come"), common::pong());
}

#[test]
fn a_pool_serves_as_many_as_it_has_threads() {
    undisturbed(try_a_pool_serves_as_many_as_it_has_threads);
}

fn try_a_pool_serves_as_many_as_it_has_threads() {
    for size in [1, 4] {
        let running = start(Model::Pool, &Options { threads: Some(size), ..Options::default() });
        let mut first = held(&running, size);
        let mut next = connect_for(&running, STUCK);
        assert!(next.call(&[b"PING"]).is_err(), "all {size} threads are taken");
        assert!(is_served(&mut first[0], LONG), "the others go on");
        first.pop();
        next.set_timeout(Some(LONG)).expect("not zero");
        assert_eq!(next.reply().expect("a thread is free"), common::pong());
    }
}

#[test]
fn the_other_models_serve_any_number_of_idle_connections() {
    let bounded = [Model::Sequential, Model::Pool];
    for (model, options) in resp_models().into_iter().filter(|(m, _)| !bounded.contains(m)) {
        let running = start(model, &options);
        let mut all = held(&running, 300);
        assert!(all.iter_mut().rev().all(|client| is_served(client, LONG)), "{model:?}");
    }
}

/// The counters of INFO model.
fn counters(client: &mut Client) -> Totals {
    let reply = client.call(&[b"INFO", b"model"]).expect("a reply");
    let text = reply.as_str().expect("text").to_owned();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    };
    Totals {
        connections: value("connections"),
        requests: value("requests"),
        reads: value("reads"),
        writes: value("writes"),
        polls: value("polls"),
        events: value("events"),
        bytes_in: value("bytes_in"),
        bytes_out: value("bytes_out"),
    }
}

/// The cost of a pipeline of PINGs in one write, and of the exchange around it.
fn cost_of_a_pipeline(model: Model, options: &Options, pings: usize) -> Totals {
    let running = start(model, options);
    let mut client = connect(&running);
    let before = counters(&mut client);
    let ping: &[&[u8]] = &[b"PING"];
    client.pipeline(std::iter::repeat_n(ping, pings)).expect("replies");
    let after = counters(&mut client);
    Totals {
        connections: after.connections,
        requests: after.requests - before.requests,
        reads: after.reads - before.reads,
        writes: after.writes - before.writes,
        polls: after.polls - before.polls,
        events: after.events - before.events,
        bytes_in: after.bytes_in - before.bytes_in,
        bytes_out: after.bytes_out - before.bytes_out,
    }
}

/// Whether this many requests were counted. If a loop counts what it has passed on, the writer may
/// have read the counter before or after.
fn counted(cost: &Totals, options: &Options, requests: usize) -> bool {
    let unsure = u64::from(options.front == Front::Loops);
    cost.requests.abs_diff(requests as u64) <= unsure
}

#[test]
fn a_flush_per_reply_is_a_system_call_per_reply() {
    undisturbed(try_a_flush_per_reply_is_a_system_call_per_reply);
}

fn try_a_flush_per_reply_is_a_system_call_per_reply() {
    const PINGS: usize = 500;
    for (model, options) in resp_models() {
        let each = Options { flush: Flush::Reply, ..options.clone() };
        let cost = cost_of_a_pipeline(model, &each, PINGS);
        // One of the two INFO requests lies between the two readings: the reply to the first.
        assert!(counted(&cost, &options, PINGS + 1), "{model:?}: {cost:?}");
        assert_eq!(cost.writes, PINGS as u64 + 1, "{model:?}");
        for flush in [Flush::Idle, Flush::Size] {
            let cost = cost_of_a_pipeline(model, &Options { flush, ..options.clone() }, PINGS);
            assert!(counted(&cost, &options, PINGS + 1), "{model:?}: {cost:?}");
            // A loop which asks a writer sends whatever the writer has completed, so the number of
            // sends varies.
            if options.front == Front::Threads {
                assert!(cost.writes <= 10, "{model:?}: {cost:?}");
            }
            assert!(cost.reads <= 20, "{model:?}: {cost:?}");
        }
    }
}

#[test]
fn counters_distinguish_blocking_threads_from_polling_loops() {
    undisturbed(try_counters_distinguish_blocking_threads_from_polling_loops);
}

fn try_counters_distinguish_blocking_threads_from_polling_loops() {
    for (model, options) in resp_models() {
        let cost = cost_of_a_pipeline(model, &options, 1);
        let polls =
            matches!(model, Model::EventLoop | Model::EventLoops) || options.front == Front::Loops;
        assert_eq!(cost.polls > 0, polls, "{model:?}: {cost:?}");
        assert_eq!(cost.bytes_in, 14 + 25, "PING and INFO model: {model:?}");
        assert!(cost.reads >= 2 && cost.writes == 2, "{model:?}: {cost:?}");
    }
}

#[test]
fn no_reply_is_stranded_while_the_next_request_is_incomplete() {
    for flush in [Flush::Reply, Flush::Idle, Flush::Size] {
        for (model, options) in resp_models() {
            let running = start(model, &Options { flush, ..options });
            let mut stream = stream(&running);
            stream.write_all(b"PING\r\nPI").expect("it reads");
            let mut reply = [0; 7];
            stream.read_exact(&mut reply).expect("the reply to what was whole");
            assert_eq!(&reply, b"+PONG\r\n", "{model:?} {flush:?}");
        }
    }
}

#[test]
fn strand_holds_replies_until_further_requests() {
    undisturbed(try_strand_holds_replies_until_further_requests);
}

fn try_strand_holds_replies_until_further_requests() {
    for (model, options) in resp_models() {
        let strand = Options { flush: Flush::Strand, flush_bytes: 700, ..options };
        let running = start(model, &strand);
        let mut stream = stream(&running);
        stream.write_all(&b"PING\r\n".repeat(99)).expect("it reads");
        stream.set_read_timeout(Some(STUCK)).expect("not zero");
        assert!(stream.read(&mut [0]).is_err(), "{model:?}: 693 bytes stay there");
        stream.write_all(&b"PING\r\n".repeat(2)).expect("it reads");
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        stream.read_exact(&mut [0; 700]).expect("now they come");
        stream.set_read_timeout(Some(STUCK)).expect("not zero");
        assert!(stream.read(&mut [0]).is_err(), "{model:?}: the last one stays");
        stream.shutdown(Shutdown::Write).expect("it is connected");
        let mut rest = Vec::new();
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        stream.read_to_end(&mut rest).expect("the end brings the rest");
        assert_eq!(rest, b"+PONG\r\n", "{model:?}");
    }
}

/// Of this many exchanges of two requests in one write, how many took the time of a delayed
/// acknowledgement (40 ms).
fn stalls(model: Model, options: &Options, exchanges: usize) -> usize {
    let running = start(model, options);
    let mut stream = stream(&running);
    let slow = |_: &usize| {
        let since = Instant::now();
        stream.write_all(b"PING\r\nPING\r\n").expect("it reads");
        stream.read_exact(&mut [0; 14]).expect("both replies");
        since.elapsed() > Duration::from_millis(30)
    };
    (0..exchanges).filter(slow).count()
}

#[test]
fn a_flush_per_reply_without_nodelay_waits_for_delayed_acknowledgements() {
    undisturbed(try_a_flush_per_reply_without_nodelay_waits_for_delayed_acknowledgements);
}

fn try_a_flush_per_reply_without_nodelay_waits_for_delayed_acknowledgements() {
    for model in [Model::ThreadPerConnection, Model::EventLoop] {
        let bad = Options { flush: Flush::Reply, nodelay: false, ..Options::default() };
        let nodelay = Options { nodelay: true, ..bad.clone() };
        let together = Options { flush: Flush::Idle, ..bad.clone() };
        let (bad, nodelay, together) =
            (stalls(model, &bad, 40), stalls(model, &nodelay, 40), stalls(model, &together, 40));
        assert!(bad >= 10, "{model:?}: {bad} of 40 stalled");
        assert!(nodelay <= 3 && together <= 3, "{model:?}: {nodelay}, {together} of 40 stalled");
    }
}

#[test]
fn a_short_queue_before_a_slow_acceptor_overflows() {
    undisturbed(try_a_short_queue_before_a_slow_acceptor_overflows);
}

fn try_a_short_queue_before_a_slow_acceptor_overflows() {
    let slow = Options { accept_every: 60_000, ..Options::default() };
    let connected = |running: &Running, count: usize| -> Vec<TcpStream> {
        let try_one = |_| TcpStream::connect_timeout(&running.address, STUCK).ok();
        (0..count).filter_map(try_one).collect()
    };
    let running = start(Model::EventLoop, &Options { backlog: 1, ..slow.clone() });
    let some = connected(&running, 6);
    // One connection is accepted. A queue of one holds two more.
    assert!((2..=3).contains(&some.len()), "{}", some.len());
    assert!(running.overflows() >= 3, "{}", running.overflows());
    let running = start(Model::EventLoop, &Options { backlog: 50, ..slow });
    assert_eq!(connected(&running, 40).len(), 40, "a longer queue takes them all");
    assert_eq!(running.overflows(), 0);
    let mut first = connected(&running, 1);
    first[0].set_read_timeout(Some(STUCK)).expect("not zero");
    first[0].write_all(b"PING\r\n").expect("the kernel takes it");
    assert!(first[0].read(&mut [0]).is_err(), "but nobody serves them");
}

#[test]
fn a_slow_acceptor_accepts_one_connection_at_a_time() {
    let running = start(Model::EventLoop, &Options { accept_every: 100, ..Options::default() });
    let since = Instant::now();
    let all = held(&running, 4);
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?} for {}", all.len());
}

#[test]
fn the_null_reader_reads_everything_and_sends_only_the_end() {
    let running = start(Model::NullReader, &Options::default());
    let mut stream = stream(&running);
    let block = vec![7; 1 << 20];
    for _ in 0..10 {
        stream.write_all(&block).expect("it reads");
    }
    stream.shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    let totals = running.totals();
    assert_eq!(
        (totals.bytes_in, totals.bytes_out),
        (10 << 20, 0),
        "counted before the end is reported"
    );
}

#[test]
fn echo_ack_acknowledges_each_whole_message_with_its_id() {
    let running = start(Model::EchoAck, &Options::default());
    let mut stream = stream(&running);
    let message = |id: u64| {
        let payload = vec![b'p'; id as usize % 50];
        let size = (payload.len() as u32).to_be_bytes();
        [&id.to_le_bytes()[..], &size, &payload].concat()
    };
    // One at a time, like the published client.
    for id in 0..20 {
        stream.write_all(&message(id)).expect("it reads");
        let mut ack = [0; 8];
        stream.read_exact(&mut ack).expect("an acknowledgement");
        assert_eq!(u64::from_le_bytes(ack), id);
    }
    assert!(eventually(|| running.totals().writes == 20), "each by itself");
    // All at once, in irregular pieces.
    let all: Vec<u8> = (20..1_000).flat_map(message).collect();
    for piece in all.chunks(997) {
        stream.write_all(piece).expect("it reads");
    }
    for id in 20..1_000u64 {
        let mut ack = [0; 8];
        stream.read_exact(&mut ack).expect("an acknowledgement");
        assert_eq!(u64::from_le_bytes(ack), id);
    }
    // An incomplete message is not acknowledged.
    stream.write_all(&message(49)[..30]).expect("it reads");
    stream.set_read_timeout(Some(STUCK)).expect("not zero");
    assert!(stream.read(&mut [0]).is_err());
    assert!(eventually(|| running.totals().requests == 1_000));
}
