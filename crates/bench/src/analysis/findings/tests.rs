//! Every finding is made on its evidence and not just below its threshold, and none is made on a
//! healthy server. No test names a target: rules do not read it.

use super::*;
use crate::analysis::retrograde::Level;
use crate::result::Latency;

fn kinds(evidence: &Evidence) -> Vec<FindingKind> {
    judge(evidence).iter().map(|finding| finding.kind).collect()
}

/// Asserts that `evidence` gives only `kind`, with at least one sentence which contains a figure.
fn assert_finds(kind: FindingKind, evidence: &Evidence) -> Finding {
    let found = judge(evidence);
    assert_eq!(kinds(evidence), [kind], "{found:#?}");
    assert!(found[0].evidence.iter().any(|s| s.contains(|c: char| c.is_ascii_digit())));
    assert!(found[0].evidence.iter().all(|s| s.ends_with('.') && !s.contains("NaN")), "{found:#?}");
    found.into_iter().next().expect("there is one")
}

fn assert_no_finding(evidence: &Evidence) {
    assert_eq!(kinds(evidence), [FindingKind::None]);
}

/// Latency of requests of which `stalled` take 41 ms and the others 300 us.
fn latency(stalled: f64) -> Latency {
    Latency {
        mean_us: 300.0 + stalled * 41_000.0,
        p50_us: 300.0,
        cumulative: vec![
            (200.0, 0.1 * (1.0 - stalled)),
            (400.0, 0.99 * (1.0 - stalled)),
            (5_000.0, 1.0 - stalled),
            (30_000.0, 1.0 - stalled),
            (40_000.0, 1.0 - stalled),
            (42_000.0, 1.0),
        ],
        ..Latency::default()
    }
}

fn stall() -> Stall {
    Stall {
        pipeline: 16,
        in_flight: 800.0,
        throughput: 33_000.0,
        latency: Latency { mean_us: 24_200.0, ..latency(0.6) },
        client_busy: 0.1,
        server_busy: Some(0.15),
        quick_ack_throughput: Some(193_000.0),
    }
}

/// Measurements of a server which reads each write.
fn reading() -> Reading {
    Reading {
        per_write: 50,
        message_bytes: 17,
        reads: 1.0 / 54.0,
        throughput: 5.5e6,
        discarded: 10.5e6,
    }
}

fn levels(of: &[(f64, f64)]) -> Vec<Level> {
    of.iter().map(|(load, x)| Level::new(*load, &[*x, x * 1.01, x * 0.99])).collect()
}

fn admission(served: usize, served_after_close: Option<usize>) -> Admission {
    Admission { opened: 8, served, refused: 0, waited_s: 0.5, served_after_close }
}

/// Results for a short accept queue which this many connections found full.
fn connects(slow: usize, overflows: Option<u64>) -> Connects {
    Connects {
        asked: 200,
        slow,
        slowest_us: 1_030_000.0,
        overflows,
        drops: overflows,
        backlog: Some(5),
        ..Connects::default()
    }
}

fn stranding(received: usize, received_after_nudge: usize) -> Stranding {
    Stranding { asked: 37, received, waited_s: 0.5, received_after_nudge }
}

fn sends(sends: Option<u64>, segments: Option<u64>) -> Sends {
    Sends { pipeline: 30, replies: 100_000, reply_bytes: 262.0, sends, segments }
}

fn polls(in_flight: f64, polls: u64) -> Polls {
    let source = "INFO io".to_owned();
    Polls { in_flight, requests: 1_000_000, polls, events: 1_000_000, source }
}

fn client(busiest_thread: f64, server_busiest_thread: Option<f64>) -> Client {
    Client { threads: 1, busiest_thread, server_busiest_thread }
}

/// Requests in flight which grow by this many per second.
fn queue(by: f64) -> Queue {
    let samples = (0..20).map(|i| f64::from(i) / 2.0).map(|at| (at, 100.0 + by * at)).collect();
    Queue { samples, throughput: 130_000.0 }
}

fn writer(ping_throughput: Option<f64>, active_threads: Option<usize>) -> Writer {
    Writer {
        data_throughput: 71_000.0,
        ping_throughput,
        busiest_thread: Some(0.95),
        active_threads,
        idle_cpus: Some(0.5),
        wakes: None,
    }
}

fn wakeups(wake_us: Option<f64>, awake: Option<f64>) -> Wakeups {
    Wakeups {
        latency_us: 70.0,
        client_cpu_us: 28.0,
        server_cpu_us: Some(29.0),
        wake_us,
        idle_cpus: 1.1,
        awake: awake.map(|us| ("neither sleeps", us)),
    }
}

/// An event loop with one thread, measured on a quiet machine: saturated at 50 connections, flat
/// beyond, slightly lower at the end, PING hardly faster than SET.
fn healthy() -> Evidence {
    let quick = Stall { latency: Latency { mean_us: 890.0, ..latency(0.0) }, ..stall() };
    let wakeups = Wakeups { latency_us: 24.0, ..wakeups(Some(3.0), Some(21.0)) };
    Evidence {
        experiment: "all".to_owned(),
        target: "127.0.0.1:7000".to_owned(),
        trust: Trust { repetitions: 3, ..Trust::default() },
        admission: Some(Admission { opened: 300, ..admission(300, None) }),
        connects: Some(Connects {
            asked: 1000,
            slowest_us: 30_000.0,
            backlog: Some(511),
            ..connects(0, Some(0))
        }),
        stall: Some(Stall {
            throughput: 900_000.0,
            client_busy: 0.6,
            server_busy: Some(1.0),
            quick_ack_throughput: Some(890_000.0),
            ..quick
        }),
        sends: Some(Sends { replies: 300_000, ..sends(Some(10_500), Some(11_000)) }),
        polls: Some(Polls { source: "strace".to_owned(), ..polls(50.0, 140_000) }),
        reading: Some(Reading { reads: 1.0 / 2200.0, ..reading() }),
        stranding: Some(stranding(37, 37)),
        levels: levels(&[
            (1.0, 14_000.0),
            (5.0, 60_000.0),
            (50.0, 130_000.0),
            (500.0, 128_000.0),
            (1000.0, 115_000.0),
        ]),
        writer: Some(Writer {
            data_throughput: 115_000.0,
            busiest_thread: Some(1.0),
            idle_cpus: Some(0.4),
            ..writer(Some(124_000.0), Some(1))
        }),
        wakeups: Some(Wakeups { client_cpu_us: 7.0, server_cpu_us: Some(9.0), ..wakeups }),
        client: Some(Client { threads: 2, ..client(0.7, Some(1.0)) }),
        queue: Some(Queue {
            samples: (0..20).map(|i| (f64::from(i), 50.0)).collect(),
            ..queue(0.0)
        }),
        caching: None,
    }
}

/// A trace that a server answers as well as exact caches do.
fn caching() -> Caching {
    Caching {
        trace: "scan".to_owned(),
        hits: 0.5,
        exact: Some(("exact LRU", 0.5)),
        resistant: Some(("S3-FIFO", 0.5)),
        read_once: 0.3,
        age_s: Some(cache::AGE_S),
        over_limit: Some(0.001),
    }
}

/// The healthy server with one part of the evidence replaced.
fn healthy_except(change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut evidence = healthy();
    change(&mut evidence);
    evidence
}

#[test]
fn a_healthy_server_has_no_finding() {
    let found = judge(&healthy());
    assert_eq!(kinds(&healthy()), [FindingKind::None], "{found:#?}");
    assert!(found[0].evidence[0].contains("sends per reply"), "{found:?}");
    assert!(found[0].caveats.is_empty(), "{found:?}");
    assert_no_finding(&Evidence::default());
}

#[test]
fn the_name_of_a_target_does_not_affect_findings() {
    let by_name = |name: &str| {
        let mut found = judge(&healthy_except(|e| {
            e.target = name.to_owned();
            e.stall = Some(stall());
        }));
        for finding in &mut found {
            finding.target.clear();
        }
        found
    };
    assert_eq!(by_name("redis-server"), by_name("10.0.0.1:7001"));
}

#[test]
fn a_server_of_one_connection_at_a_time_is_sequential() {
    assert_finds(
        FindingKind::Sequential,
        &healthy_except(|e| e.admission = Some(admission(1, Some(1)))),
    );
    assert_finds(
        FindingKind::Sequential,
        &healthy_except(|e| e.admission = Some(admission(1, None))),
    );
    assert_finds(
        FindingKind::PoolExhausted,
        &healthy_except(|e| e.admission = Some(admission(4, Some(1)))),
    );
    assert_no_finding(&healthy_except(|e| e.admission = Some(admission(8, Some(0)))));
    // A reported connection limit is no hang.
    assert_no_finding(&healthy_except(|e| {
        e.admission = Some(Admission { refused: 7, ..admission(1, Some(1)) });
    }));
    assert_no_finding(&healthy_except(|e| {
        e.admission = Some(Admission { refused: 4, ..admission(4, Some(1)) });
    }));
}

#[test]
fn consequences_of_a_finding_are_suppressed() {
    let falling = levels(&[(1.0, 14_900.0), (2.0, 146.0), (5.0, 140.0), (50.0, 100.0)]);
    assert_finds(
        FindingKind::Sequential,
        &healthy_except(|e| {
            e.levels = falling;
            e.admission =
                Some(Admission { opened: 2, served: 1, waited_s: 1.0, ..Admission::default() });
        }),
    );
}

#[test]
fn an_overflowing_accept_queue_is_found() {
    let found = assert_finds(
        FindingKind::BacklogOverflow,
        &healthy_except(|e| e.connects = Some(connects(190, Some(195)))),
    );
    assert!(found.caveats.is_empty(), "{found:?}");
    // A client sees it only by the time of the SYN's retransmission.
    let found = assert_finds(
        FindingKind::BacklogOverflow,
        &healthy_except(|e| e.connects = Some(connects(1, None))),
    );
    assert_eq!(found.caveats.len(), 1, "{found:?}");
    assert_no_finding(&healthy_except(|e| e.connects = Some(connects(0, Some(0)))));
    assert_no_finding(&healthy_except(|e| e.connects = Some(connects(0, None))));
}

#[test]
fn a_stranded_reply_is_distinguished_from_a_lost_one() {
    assert_finds(
        FindingKind::StrandedReply,
        &healthy_except(|e| e.stranding = Some(stranding(32, 37))),
    );
    assert_no_finding(&healthy_except(|e| e.stranding = Some(stranding(37, 37))));
    assert_no_finding(&healthy_except(|e| e.stranding = Some(stranding(32, 32))));
}

#[test]
fn a_stall_is_found_with_and_without_a_run_of_the_remedy() {
    let found = assert_finds(FindingKind::NagleStall, &healthy_except(|e| e.stall = Some(stall())));
    assert!(found.evidence.iter().any(|s| s.contains("5.8 times")), "{found:?}");
    let unproven = Stall { quick_ack_throughput: None, ..stall() };
    let found =
        assert_finds(FindingKind::NagleStall, &healthy_except(|e| e.stall = Some(unproven)));
    assert!(found.caveats[0].contains("TCP_QUICKACK"), "{found:?}");
    // Visible only by Little's law: the client records the first reply of a batch.
    let hidden = Stall { latency: Latency { mean_us: 4_145.0, ..latency(0.0) }, ..stall() };
    assert_finds(FindingKind::NagleStall, &healthy_except(|e| e.stall = Some(hidden)));
}

#[test]
fn a_saturated_server_does_not_stall() {
    // 40 ms of queueing in a server which is always busy.
    let full = Stall { quick_ack_throughput: None, server_busy: Some(1.0), ..stall() };
    assert_no_finding(&healthy_except(|e| e.stall = Some(full)));
    // Immediate acknowledgements change nothing: the cause is a timer or a queue.
    assert_no_finding(&healthy_except(|e| {
        e.stall = Some(Stall { quick_ack_throughput: Some(34_000.0), ..stall() });
    }));
    // A server without an account, and no run of the remedy: no finding.
    assert_no_finding(&healthy_except(|e| {
        e.stall = Some(Stall { quick_ack_throughput: None, server_busy: None, ..stall() });
    }));
    // A broad tail is no second mode.
    let tail = Latency {
        mean_us: 24_200.0,
        cumulative: vec![(5_000.0, 0.5), (35_000.0, 0.9), (100_000.0, 1.0)],
        ..Latency::default()
    };
    assert_no_finding(&healthy_except(|e| {
        e.stall = Some(Stall { latency: tail, quick_ack_throughput: None, ..stall() });
    }));
}

#[test]
fn a_send_per_reply_is_found_by_calls_or_segments() {
    assert_finds(
        FindingKind::FlushPerReply,
        &healthy_except(|e| e.sends = Some(sends(Some(100_000), None))),
    );
    let found = assert_finds(
        FindingKind::FlushPerReply,
        &healthy_except(|e| e.sends = Some(sends(None, Some(99_000)))),
    );
    assert_eq!(found.caveats.len(), 1, "{found:?}");
    assert_no_finding(&healthy_except(|e| e.sends = Some(sends(None, Some(49_000)))));
    assert_no_finding(&healthy_except(|e| e.sends = Some(sends(None, None))));
    assert_no_finding(&healthy_except(|e| {
        e.sends = Some(Sends { pipeline: 1, ..sends(Some(100_000), None) });
    }));
    assert_no_finding(&healthy_except(|e| {
        e.sends = Some(Sends { reply_bytes: 4096.0, ..sends(None, Some(300_000)) });
    }));
}

#[test]
fn a_poll_per_request_is_found_only_with_several_connections() {
    assert_finds(
        FindingKind::PollPerRequest,
        &healthy_except(|e| e.polls = Some(polls(50.0, 1_000_054))),
    );
    assert_no_finding(&healthy_except(|e| e.polls = Some(polls(1.0, 1_000_054))));
    assert_no_finding(&healthy_except(|e| e.polls = Some(polls(50.0, 444_528))));
    assert_no_finding(&healthy_except(|e| {
        e.polls = Some(Polls { polls: 0, events: 0, ..polls(50.0, 0) });
    }));
}

#[test]
fn a_saturated_client_is_found_and_suppresses_its_consequences() {
    let falling =
        levels(&[(1.0, 10_000.0), (10.0, 90_000.0), (100.0, 60_000.0), (500.0, 55_000.0)]);
    assert_finds(
        FindingKind::ClientSaturated,
        &healthy_except(|e| {
            e.client = Some(client(0.99, Some(0.5)));
            e.levels = falling;
        }),
    );
    let found = assert_finds(
        FindingKind::ClientSaturated,
        &healthy_except(|e| e.client = Some(client(0.95, None))),
    );
    assert_eq!(found.caveats.len(), 1);
    assert_no_finding(&healthy_except(|e| e.client = Some(client(0.99, Some(1.0)))));
    assert_no_finding(&healthy_except(|e| e.client = Some(client(0.8, Some(0.2)))));
}

#[test]
fn a_growing_queue_is_an_unbounded_client() {
    assert_finds(
        FindingKind::UnboundedClient,
        &healthy_except(|e| e.queue = Some(queue(40_000.0))),
    );
    assert_no_finding(&healthy_except(|e| e.queue = Some(queue(1_000.0))));
    assert_no_finding(&healthy_except(|e| {
        e.queue = Some(Queue { samples: vec![(0.0, 1.0), (1.0, 1e6)], ..queue(0.0) });
    }));
}

#[test]
fn a_single_writer_is_distinguished_from_a_single_thread() {
    let flat = || {
        levels(&[
            (1.0, 12_000.0),
            (5.0, 70_000.0),
            (15.0, 73_000.0),
            (30.0, 72_000.0),
            (60.0, 71_000.0),
        ])
    };
    let with = |writer: Writer| {
        healthy_except(|e| {
            e.levels = flat();
            e.writer = Some(writer);
        })
    };
    assert_finds(FindingKind::SingleWriterFlat, &with(writer(Some(140_000.0), None)));
    assert_finds(FindingKind::SingleWriterFlat, &with(writer(None, Some(5))));
    // One thread for everything: a saturated event loop.
    assert_no_finding(&with(writer(Some(76_000.0), Some(1))));
    assert_no_finding(&with(writer(Some(140_000.0), Some(1))));
    assert_no_finding(&with(writer(None, None)));
    // Many threads, all of them busy, and PING no faster: saturated.
    assert_no_finding(&with(writer(Some(80_000.0), Some(8))));
    // Throughput grows.
    assert_no_finding(&healthy_except(|e| {
        e.levels = levels(&[(1.0, 12_000.0), (5.0, 50_000.0), (30.0, 130_000.0)]);
        e.writer = Some(writer(Some(300_000.0), None));
    }));
}

#[test]
fn falling_throughput_is_retrograde() {
    let steep: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1000.0]
        .map(|n: f64| (n, 15_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 5e-4 * n * (n - 1.0))))
        .to_vec();
    let found =
        assert_finds(FindingKind::Retrograde, &healthy_except(|e| e.levels = levels(&steep)));
    assert!(found.evidence.iter().any(|s| s.contains("Universal Scalability Law")), "{found:?}");
    let once = steep.iter().map(|(n, x)| Level::new(*n, &[*x])).collect();
    let found = assert_finds(FindingKind::Retrograde, &healthy_except(|e| e.levels = once));
    assert_eq!(found.caveats.len(), 1, "{found:?}");
}

#[test]
fn wake_cost_is_found_by_spinning_or_by_the_measured_wake() {
    let found = assert_finds(
        FindingKind::WakeupBound,
        &healthy_except(|e| e.wakeups = Some(wakeups(Some(25.0), Some(18.0)))),
    );
    assert!(found.evidence.iter().any(|s| s.contains("neither sleeps")), "{found:?}");
    let found = assert_finds(
        FindingKind::WakeupBound,
        &healthy_except(|e| e.wakeups = Some(wakeups(Some(25.0), None))),
    );
    assert_eq!(found.caveats.len(), 1, "{found:?}");
    // Spinning does not help: the time is spent elsewhere.
    assert_no_finding(&healthy_except(|e| e.wakeups = Some(wakeups(Some(25.0), Some(66.0)))));
    // Spinning helps by less than the cost of wakes.
    assert_no_finding(&healthy_except(|e| e.wakeups = Some(wakeups(Some(100.0), Some(50.0)))));
    // No core was idle, so no wake was needed.
    assert_no_finding(&healthy_except(|e| {
        e.wakeups = Some(Wakeups { idle_cpus: 0.1, ..wakeups(Some(25.0), Some(18.0)) });
    }));
    assert_no_finding(&healthy_except(|e| e.wakeups = Some(wakeups(Some(2.0), None))));
    assert_no_finding(&healthy_except(|e| e.wakeups = Some(wakeups(Some(40.0), None))));
    assert_no_finding(&healthy_except(|e| e.wakeups = Some(wakeups(None, None))));
    // The stall explains the sleep.
    assert_finds(
        FindingKind::NagleStall,
        &healthy_except(|e| {
            e.stall = Some(stall());
            e.wakeups = Some(wakeups(Some(25.0), Some(18.0)));
        }),
    );
}

#[test]
fn every_finding_lists_the_limits_of_its_run() {
    let found = judge(&healthy_except(|e| {
        e.trust = Trust {
            other_cpus: 0.4,
            client_busy: Some(0.97),
            relative_spread: Some(0.22),
            repetitions: 1,
        };
        e.stranding =
            Some(Stranding { asked: 2, received: 1, waited_s: 1.0, received_after_nudge: 2 });
    }));
    assert_eq!(found[0].kind, FindingKind::StrandedReply);
    assert_eq!(found[0].caveats.len(), 4, "{found:#?}");
}

#[test]
fn findings_are_attributed_to_server_client_or_nobody() {
    let blames = |blame| LIST.iter().filter(move |e| e.blame == blame).map(|e| e.name);
    assert_eq!(blames(Blame::Client).collect::<Vec<_>>(), ["client_saturated", "unbounded_client"]);
    let explanations = ["retrograde", "wakeup_bound", "scan_pollution", "none"];
    assert_eq!(blames(Blame::Nobody).collect::<Vec<_>>(), explanations);
}

#[test]
fn a_single_writer_is_found_by_its_wakes_at_any_clock_speed() {
    let slept = |threads: &[(u32, u64)]| threads.to_vec();
    let wakes = |first, second| Wakes { requests: 100, first: slept(first), second: slept(second) };
    // A front thread per connection and one owner of the data.
    let hop = wakes(&[(1, 199), (9, 97), (5, 3)], &[(2, 200), (9, 99)]);
    assert_eq!(hop.owner(0.6), Some((9, 2)));
    assert_eq!(wakes(&[(1, 100)], &[(1, 100)]).owner(0.6), None, "one event loop");
    assert_eq!(wakes(&[(1, 100)], &[(2, 100)]).owner(0.6), None, "a thread per connection");
    let parts = wakes(&[(1, 100), (8, 50), (9, 50)], &[(1, 100), (8, 50), (9, 50)]);
    assert_eq!(parts.owner(0.6), None, "owners of parts of the data");
    let evidence = |growth: f64, wakes| Evidence {
        levels: vec![
            Level::new(5.0, &[50_000.0; 3]),
            Level::new(20.0, &[50_000.0 * growth; 3]),
            Level::new(60.0, &[50_000.0 * growth; 3]),
        ],
        writer: Some(Writer {
            data_throughput: 50_000.0 * growth,
            ping_throughput: Some(50_000.0 * growth),
            wakes: Some(wakes),
            ..Writer::default()
        }),
        ..Evidence::default()
    };
    assert_finds(FindingKind::SingleWriterFlat, &evidence(1.4, hop.clone()));
    assert_no_finding(&evidence(4.0, hop));
    assert_no_finding(&evidence(1.4, wakes(&[(1, 100)], &[(1, 100)])));
}

#[test]
fn small_reads_are_eager_if_they_slow_the_client_down() {
    let with = |change: fn(&mut Reading)| {
        let mut seen = reading();
        change(&mut seen);
        healthy_except(|e| e.reading = Some(seen))
    };
    let found = assert_finds(FindingKind::EagerReads, &with(|_| ()));
    assert!(found.evidence[0].contains("54 messages (918 bytes)"), "{found:?}");
    assert!(found.evidence[0].contains("0.93 reads per write"), "{found:?}");
    assert_finds(FindingKind::EagerReads, &with(|r| r.reads = 17.0 / io::READ_BYTES_MAX));
    assert_no_finding(&with(|r| r.reads = 17.0 / (io::READ_BYTES_MAX + 1.0)));
    assert_finds(
        FindingKind::EagerReads,
        &with(|r| r.throughput = r.discarded * io::DISCARDED_SHARE),
    );
    assert_no_finding(&with(|r| r.throughput = r.discarded * (io::DISCARDED_SHARE + 0.001)));
    assert_finds(
        FindingKind::EagerReads,
        &with(|r| r.per_write = io::WRITE_BYTES_MAX / r.message_bytes),
    );
    assert_no_finding(&with(|r| r.per_write = io::WRITE_BYTES_MAX / r.message_bytes + 1));
    assert_no_finding(&with(|r| r.reads = 0.0));
    assert_no_finding(&with(|r| r.discarded = 0.0));
}

#[test]
fn a_cache_is_judged_beside_exact_ones_and_its_limit() {
    use cache::{AGE_S, LOST_SHARE, OVER_LIMIT_SHARE, READ_ONCE_SHARE, RESISTANT_SHARE};
    let with = |change: fn(&mut Caching)| {
        let mut seen = caching();
        change(&mut seen);
        healthy_except(|e| e.caching = Some(seen))
    };
    const JUST: f64 = 0.0001;
    assert_no_finding(&with(|_| ()));
    let lost = |c: &mut Caching| c.exact = Some(("exact LRU", 0.5 + LOST_SHARE + JUST));
    let found = assert_finds(FindingKind::SamplingLoses, &with(lost));
    assert!(found.evidence[0].contains("gives up 2.0 points"), "{found:?}");
    assert_no_finding(&with(|c| c.exact = Some(("exact LRU", 0.5 + LOST_SHARE - JUST))));
    assert_no_finding(&with(|c| {
        (c.exact, c.age_s) = (Some(("exact LRU", 0.9)), Some(AGE_S - JUST));
    }));
    let pushed = |c: &mut Caching| c.resistant = Some(("S3-FIFO", 0.5 + RESISTANT_SHARE + JUST));
    let found = assert_finds(FindingKind::ScanPollution, &with(pushed));
    assert!(found.evidence[0].contains("30 % of the reads"), "{found:?}");
    assert_no_finding(&with(|c| c.resistant = Some(("S3-FIFO", 0.5 + RESISTANT_SHARE - JUST))));
    assert_no_finding(&with(|c| {
        (c.resistant, c.read_once) = (Some(("S3-FIFO", 0.9)), READ_ONCE_SHARE - JUST);
    }));
    let over = |c: &mut Caching| c.over_limit = Some(OVER_LIMIT_SHARE);
    assert_finds(FindingKind::OverLimit, &with(over));
    assert_no_finding(&with(|c| c.over_limit = Some(OVER_LIMIT_SHARE - JUST)));
}
