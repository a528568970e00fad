//! Subscribers of all speeds beside very many messages: one that never reads is closed at its
//! limit, the others lose nothing, and what the server holds stays bounded.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::server_process::ServerProcess;
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::Value;

use super::flow::{Flow, Numbered};
use super::{LEFT_BYTES_MAX, ask, ok, sized, start, used};

const CHANNEL: &str = "c";
/// `client-output-buffer-limit pubsub`.
const LIMIT_BYTES: usize = 40 << 20;
/// The publisher waits for a reader that is further behind: no busy machine makes the server close
/// one.
const BEHIND_MAX: usize = 24 << 20;
/// The slow reader reads no more than what is further behind than this, until the end.
const SLOW_BYTES: usize = 16 << 20;
/// Messages that are under way to one worker (`inbox::UNDERWAY_MAX`).
const UNDERWAY_MAX: i64 = 64 << 20;
/// So much is published at once.
const PIPELINE_BYTES: usize = 1 << 20;

/// Messages of one length, and how many of them are published and read.
struct Phase {
    len: usize,
    count: usize,
}

fn limits() -> [String; 2] {
    ["--client-output-buffer-limit".into(), format!("pubsub {LIMIT_BYTES} 0 0")]
}

/// 500 MB of large and of small messages go to a quick reader, to a slow one within its limit, and
/// to one that never reads.
#[test]
fn five_hundred_megabytes_to_readers_of_all_speeds() {
    for threads in [1, 2] {
        let limits = limits();
        let server = start(threads, &limits.each_ref().map(String::as_str));
        let phases = [
            Phase { len: 100, count: sized(500_000) },
            Phase { len: 1 << 20, count: sized(400) },
            Phase { len: 100, count: sized(500_000) },
        ];
        all_but_the_lazy_receive_everything(&server, threads, &phases);
    }
}

fn all_but_the_lazy_receive_everything(server: &ServerProcess, threads: usize, phases: &[Phase]) {
    let mut control = server.connect();
    ok(&mut control, "SET k v");
    let before = used(&mut control);
    let (lazy, quick, slow) = (
        Flow::subscribed(server, CHANNEL),
        Flow::subscribed(server, CHANNEL),
        Flow::subscribed(server, CHANNEL),
    );
    let mut publisher = Flow::connect(server);
    // Bytes which each has read, and which were published.
    let read = [const { AtomicUsize::new(0) }; 2];
    let (published, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let most = std::thread::scope(|scope| {
        for (flow, read, holds_back) in [(quick, &read[0], 0), (slow, &read[1], SLOW_BYTES)] {
            let (published, is_over) = (&published, &is_over);
            scope.spawn(move || {
                let _fails_with_it = SetAtEnd(is_over);
                let mut flow = flow;
                for (len, numbers) in portions(phases) {
                    let bytes = numbers.len() * Numbered::message(CHANNEL, len).len();
                    let from = read.load(Ordering::Relaxed);
                    until("there is something to read", || {
                        let now = published.load(Ordering::Acquire);
                        now >= from + bytes + holds_back || is_over.load(Ordering::Acquire)
                    });
                    flow.expect_all(CHANNEL, len, numbers);
                    read.fetch_add(bytes, Ordering::Release);
                }
            });
        }
        let sampled = scope.spawn(|| sample(server, before, &is_over));
        let _end = SetAtEnd(&is_over);
        let mut receivers = 3;
        for (len, numbers) in portions(phases) {
            let bytes = numbers.len() * Numbered::message(CHANNEL, len).len();
            until("readers are near", || {
                let least = read.iter().map(|read| read.load(Ordering::Acquire)).min();
                published.load(Ordering::Relaxed) - least.expect("two") <= BEHIND_MAX
            });
            let mut request = Numbered::publish(CHANNEL, len);
            let mut all = Vec::with_capacity(bytes + 4096);
            numbers.clone().for_each(|n| all.extend(request.numbered(n)));
            publisher.send(&all);
            for number in numbers {
                let count = publisher.integer();
                assert!(count == receivers || count == 2, "message {number}: {count} receivers");
                receivers = count;
            }
            published.fetch_add(bytes, Ordering::Release);
        }
        assert_eq!(receivers, 2, "who never reads is closed");
        is_over.store(true, Ordering::Release);
        sampled.join().expect("it asks")
    });
    judge(&most, threads);
    drop(publisher);
    assert!(server.log().contains("client-output-buffer-limit"), "{}", server.log());
    println!("who never read got {} bytes", lazy.drain());
    until("all is delivered", || figure(&mut control, "memory", "mem_pubsub") == 0);
    let mut left = 0;
    until("memory is back", || {
        left = used(&mut control) - before;
        left < LEFT_BYTES_MAX
    });
    println!("{left} bytes more in use than before");
}

/// The numbers of what is published at once, with the length of each message.
fn portions(phases: &[Phase]) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    phases.iter().flat_map(|phase| {
        let together = (PIPELINE_BYTES / phase.len).max(1);
        (0..phase.count)
            .step_by(together)
            .map(move |from| (phase.len, from..(from + together).min(phase.count)))
    })
}

/// The most that was seen, bytes.
#[derive(Debug, Default)]
struct Most {
    asked: usize,
    messages: i64,
    clients: i64,
    used: i64,
}

/// Another client asks all the time, and is answered.
fn sample(server: &ServerProcess, before: i64, is_over: &AtomicBool) -> Most {
    let (mut wire, mut most) = (server.connect(), Most::default());
    while !is_over.load(Ordering::Acquire) {
        assert_eq!(ask(&mut wire, "GET k"), Value::Bulk(b"v".to_vec()));
        let mut now = |name: &str| figure(&mut wire, "memory", name);
        most.messages = most.messages.max(now("mem_pubsub"));
        most.clients = most.clients.max(now("mem_clients_normal"));
        most.used = most.used.max(now("used_memory") - before);
        most.asked += 4;
    }
    most
}

/// The documented bounds: of what is under way to each worker, and of what each reader has not
/// read.
fn judge(most: &Most, threads: usize) {
    println!("on {threads} workers at most: {most:?}");
    let pipeline = PIPELINE_BYTES as i64;
    let messages = UNDERWAY_MAX + 2 * pipeline;
    assert!(most.messages <= messages * threads as i64, "{most:?}");
    // (The limit may be passed by what one turn adds.)
    let unread = (LIMIT_BYTES + 2 * BEHIND_MAX) as i64 + 4 * pipeline;
    assert!(most.clients <= unread, "{most:?}");
    assert!(most.used <= messages * threads as i64 + 2 * unread, "{most:?}");
}
