//! The whole path of a command through a worker, to be counted under callgrind: `command_path
//! COMMAND ROUNDS`, where a round is a pipeline of 64 on one connection, in windows of 32. The
//! difference between two numbers of rounds is the cost. The network costs a copy in and a copy
//! out.

use base::sync::Arc;
use driver::loopback::Loopback;
use server::config::Config;
use server::worker::Worker;
use server::worker::message::Message;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Requests per round.
const PIPELINE: usize = 64;
/// Pipelines with keys of their own, taken in turn.
const PIPELINES: usize = 16;
/// Keys that exist but are not requested.
const OTHERS: usize = 10_000;
/// Members of a small collection, and of a big one.
const SMALL: usize = 4;
const BIG: usize = 1000;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let rounds: usize = words.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let value = "v".repeat(64);
    let request = |key: &str| match command.as_str() {
        "ping" => encode(&["PING"]),
        "get" => encode(&["GET", key]),
        "miss" => encode(&["GET", &key.replace("key", "not")]),
        "set" => encode(&["SET", key, &value]),
        "get-set" => [encode(&["GET", key]), encode(&["SET", key, &value])].concat(),
        "incr" => encode(&["INCR", &key.replace("key", "num")]),
        "lpush" => encode(&["LPUSH", "list", &value]),
        // A list that comes and goes.
        "lpush1" => {
            let list = key.replace("key", "lst");
            [encode(&["LPUSH", &list, "v"]), encode(&["RPOP", &list])].concat()
        }
        "hset" => encode(&["HSET", "hash", key, &value]),
        "sadd" => encode(&["SADD", "set", key]),
        "zadd" => {
            // Another score in every pipeline of a member.
            let number = number_of(key);
            let score = number.wrapping_mul(7919) % 100_003;
            encode(&["ZADD", "zset", &score.to_string(), &self::key(number / 2)])
        }
        "xadd" => entry("stream", key),
        // An entry comes and is delivered.
        "xadd-xreadgroup" => {
            let group = ["XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "NOACK"];
            let streams = ["STREAMS", "stream", ">"];
            [entry("stream", key), encode(&[&group[..], &streams].concat())].concat()
        }
        "exists" => encode(&["EXISTS", key]),
        "mget10" => encode(&ten("MGET", key, None)),
        "mset10" => encode(&ten("MSET", key, Some(&value))),
        other => collection(other).map_or(Vec::new(), |c| c.request(number_of(key), &value)),
    };
    if request("key:").is_empty() {
        eprintln!(
            "command_path ping|get|miss|set|get-set|incr|lpush|lpush1|hset|sadd|zadd|xadd|xadd-xreadgroup|exists|mget10|mset10 ROUNDS\n\
             command_path lpush-lpop|hset|sadd|zadd-small|1000 ROUNDS"
        );
        return ExitCode::FAILURE;
    }
    let pipelines: Vec<Vec<u8>> = (0..PIPELINES)
        .map(|p| (0..PIPELINE).flat_map(|i| request(&key(p * PIPELINE + i))).collect())
        .collect();
    let Some(mut worker) = worker() else { return ExitCode::FAILURE };
    match collection(&command) {
        None => fill(&mut worker, &value),
        Some(collection) => collection.fill(&mut worker, &value),
    }
    // The first passes let buffers grow to their size and numbers to one length.
    for pipeline in pipelines.iter().cycle().take(2 * PIPELINES) {
        round(&mut worker, pipeline);
    }
    for pipeline in pipelines.iter().cycle().take(rounds) {
        round(&mut worker, pipeline);
    }
    ExitCode::SUCCESS
}

/// An entry of three fields comes to a stream that stays as long as it is.
fn entry(stream: &str, text: &str) -> Vec<u8> {
    let head = ["XADD", stream, "MAXLEN", "~", "1000", "*"];
    encode(&[&head[..], &["sensor", text, "temperature", "21.50", "humidity", "47"]].concat())
}

/// 16 bytes.
fn key(number: usize) -> String {
    format!("key:{number:012}")
}

fn encode<S: AsRef<str>>(args: &[S]) -> Vec<u8> {
    let args = args.iter().map(AsRef::as_ref).map(|arg| format!("${}\r\n{arg}\r\n", arg.len()));
    let args: Vec<String> = args.collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

fn number_of(key: &str) -> usize {
    key["key:".len()..].parse().unwrap_or(0)
}

/// A change of a collection that leaves it as large as it is: small ones, each under its own key,
/// or one big one.
#[derive(Clone, Copy)]
struct Collection<'a> {
    command: &'a str,
    members: usize,
}

/// The collection that a word such as `hset-1000` names.
fn collection(word: &str) -> Option<Collection<'_>> {
    let (command, size) = word.rsplit_once('-')?;
    let members = match size {
        "small" => SMALL,
        "1000" => BIG,
        _ => return None,
    };
    let known = ["lpush-lpop", "hset", "sadd", "zadd"].contains(&command);
    known.then_some(Collection { command, members })
}

impl Collection<'_> {
    fn key(self, number: usize) -> String {
        if self.members == SMALL { key(number) } else { "collection".into() }
    }

    /// The `number`th request of 1024, of a pipeline that is sent again and again.
    fn request(self, number: usize, value: &str) -> Vec<u8> {
        // By sevens, so that neighbours in a pipeline are none in the collection.
        let member = |number: usize| key(number * 7 % self.members);
        match self.command {
            // Two neighbours make a pair on one key.
            "lpush-lpop" if number.is_multiple_of(2) => {
                encode(&["LPUSH", &self.key(number), value])
            }
            "lpush-lpop" => encode(&["LPOP", &self.key(number - 1)]),
            "hset" => encode(&["HSET", &self.key(number), &member(number), value]),
            "sadd" => encode(&["SADD", &self.key(number), &member(number)]),
            // Two requests, half of all apart, take a score there and back.
            _ => {
                let (score, at) = (number * 7919 % 1009, number % (PIPELINES * PIPELINE / 2));
                encode(&["ZADD", &self.key(at), &score.to_string(), &member(at)])
            }
        }
    }

    fn fill(self, worker: &mut TestWorker, value: &str) {
        let keys = if self.members == SMALL { PIPELINES * PIPELINE } else { 1 };
        for number in 0..keys {
            let collection = self.key(number);
            for at in 0..self.members {
                let (score, member) = (at.to_string(), key(at));
                round(
                    worker,
                    &match self.command {
                        "lpush-lpop" => encode(&["LPUSH", &collection, value]),
                        "hset" => encode(&["HSET", &collection, &member, value]),
                        "sadd" => encode(&["SADD", &collection, &member]),
                        _ => encode(&["ZADD", &collection, &score, &member]),
                    },
                );
            }
        }
    }
}

/// A command on ten keys, this one and those that follow it.
fn ten(command: &str, key: &str, value: Option<&str>) -> Vec<String> {
    let first: usize = key.trim_start_matches("key:").parse().unwrap_or(0);
    let mut args = vec![command.to_owned()];
    for i in 0..10 {
        args.push(self::key(first + i));
        args.extend(value.map(str::to_owned));
    }
    args
}

type TestWorker = Worker<Loopback<Message>>;

/// A worker with one connection.
fn worker() -> Option<TestWorker> {
    let mut driver = Loopback::new(7);
    driver.connect().ok()?;
    let shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let mut worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
    worker.turn();
    Some(worker)
}

fn fill(worker: &mut TestWorker, value: &str) {
    for number in 0..OTHERS {
        let name = key(number);
        let text = if number < PIPELINES * PIPELINE + 10 { "1000000" } else { value };
        let both =
            [encode(&["SET", &name, value]), encode(&["SET", &name.replace("key", "num"), text])];
        round(worker, &both.concat());
    }
    round(worker, &encode(&["XGROUP", "CREATE", "stream", "group", "$", "MKSTREAM"]));
}

/// One pipeline goes in, its replies come out.
#[inline(never)]
fn round(worker: &mut TestWorker, pipeline: &[u8]) {
    worker.driver().forget(0);
    worker.driver().write(0, pipeline);
    worker.turn();
    let replies = worker.driver().received(0);
    assert!(!replies.is_empty() && replies[0] != b'-', "{}", replies.escape_ascii());
}
