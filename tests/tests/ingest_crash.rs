//! Producers of ingest protocol 2 send while the server is killed at random moments and starts
//! again: in the end each message is in its key once and in order, and nothing that was
//! acknowledged as fsynced is missing.
//!
//! `CRASH_SEED` and `CRASH_KILLS` choose the worlds, as in `crash.rs`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

mod files;
mod source;
mod world;

use world::{Terms, Totals, World};

/// Kills of a run.
const KILLS: usize = 60;
/// Kills of a folder.
const KILLS_OF_FOLDER: usize = 10;
/// Worlds at the same time: most of the time is spent waiting.
const WORLDS: usize = 3;

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn each_message_is_there_once_whenever_the_server_is_killed() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("behind 1970");
    let seed = env_number("CRASH_SEED").unwrap_or(now.as_millis() as u64);
    let kills = env_number("CRASH_KILLS").map_or(KILLS, |kills| kills as usize);
    println!("CRASH_SEED={seed} CRASH_KILLS={kills}");
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new((Totals::default(), None));
    thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let before = n * KILLS_OF_FOLDER;
                    if before >= kills {
                        return;
                    }
                    let terms = Terms::of(seed, n as u64);
                    let found = World::new(terms).run(KILLS_OF_FOLDER.min(kills - before));
                    let mut outcome = outcome.lock().expect("no panic with it");
                    match found {
                        Ok(totals) => outcome.0.add(totals),
                        Err(why) => {
                            next.store(kills, Ordering::Relaxed);
                            outcome.1.get_or_insert(why);
                        }
                    }
                }
            });
        }
    });
    let (totals, failure) = outcome.into_inner().expect("no panic with it");
    println!("{totals:?}");
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    assert!(totals.fsynced > 0 && totals.messages > totals.fsynced, "{totals:?}");
}
