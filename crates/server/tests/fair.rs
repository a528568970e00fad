//! A command whose time grows with its data gives way to other clients: it takes turns in
//! proportion to its work. Turns are counted, not timed.

use crate::two_clients::{TestWorker, encode, worker};

const ELEMENTS: usize = 20_000;
/// Elements that two turns may look at: each turn counted here is followed by one of the other
/// client. The smallest step of the commands below is 96 elements, the largest 1,000.
const TURN_ELEMENTS_MAX: usize = 2_000;

/// A worker, to which one client sends long commands, and another short ones.
struct World(TestWorker);

impl World {
    fn new() -> Self {
        let mut world = Self(worker());
        world.ask(&["SET", "other", "there"]);
        world
    }

    /// Sends a command and one that shows its end. Returns the reply, and in how many turns it
    /// came. Another client is answered in each of them.
    fn ask(&mut self, args: &[&str]) -> (String, usize) {
        self.ask_between(args, |_, _| {})
    }

    /// As [`World::ask`], with something that happens behind each turn.
    fn ask_between(
        &mut self,
        args: &[&str],
        mut between: impl FnMut(&mut Self, usize),
    ) -> (String, usize) {
        const END: &[u8] = b"$5\r\n-end-\r\n";
        let (mut got, mut turns) = (Vec::new(), 0);
        let request = [encode(args), encode(&["ECHO", "-end-"])].concat();
        self.0.driver().write(0, &request);
        while !got.ends_with(END) {
            assert!(turns < 1_000_000, "{} bytes and no more", got.len());
            self.0.turn();
            turns += 1;
            got.extend_from_slice(self.0.driver().received(0));
            self.0.driver().forget(0);
            assert_eq!(self.short(&["PING"]), "+PONG\r\n", "in turn {turns}");
            between(self, turns);
        }
        got.truncate(got.len() - END.len());
        (String::from_utf8(got).expect("text"), turns)
    }

    /// Sends commands whose replies come before that of the next [`World::ask`].
    fn send(&mut self, requests: &[&[&str]]) {
        let requests: Vec<u8> = requests.iter().flat_map(|args| encode(args)).collect();
        self.0.driver().write(0, &requests);
    }

    /// A command of the other client, which is answered within two turns.
    fn short(&mut self, args: &[&str]) -> String {
        self.0.driver().write(1, &encode(args));
        for _ in 0..2 {
            self.0.turn();
            let got = self.0.driver().received(1).to_vec();
            if !got.is_empty() {
                self.0.driver().forget(1);
                return String::from_utf8(got).expect("text");
            }
        }
        panic!("{args:?} is not answered");
    }

    fn fill(&mut self, command: &[&str], count: usize, element: fn(usize) -> Vec<String>) {
        for chunk in (0..count).collect::<Vec<_>>().chunks(100) {
            let parts: Vec<String> = chunk.iter().flat_map(|n| element(*n)).collect();
            let mut args = command.to_vec();
            args.extend(parts.iter().map(String::as_str));
            self.ask(&args);
        }
    }

    /// Fails unless a command over so many elements takes the turns that it should.
    fn takes_turns(&mut self, args: &[&str], elements: usize) -> String {
        let (reply, turns) = self.ask(args);
        assert!(!reply.starts_with('-'), "{args:?}: {reply}");
        assert!(turns >= elements / TURN_ELEMENTS_MAX, "{args:?} in {turns} turns");
        reply
    }
}

fn place(n: usize) -> Vec<String> {
    let (lon, lat) = ((n % 360) as f64 - 180.0, (n % 160) as f64 - 80.0);
    vec![lon.to_string(), lat.to_string(), format!("place:{n}")]
}

const EVERYWHERE: [&str; 6] = ["FROMLONLAT", "0", "0", "BYRADIUS", "30000", "km"];

fn search<'a>(head: &[&'a str], tail: &[&'a str]) -> Vec<&'a str> {
    [head, &EVERYWHERE, tail].concat()
}

#[test]
fn searches_for_places_give_way() {
    let mut world = World::new();
    world.fill(&["GEOADD", "geo"], ELEMENTS, place);
    for tail in [&[][..], &["ASC"], &["DESC", "WITHDIST"], &["COUNT", "5"]] {
        world.takes_turns(&search(&["GEOSEARCH", "geo"], tail), ELEMENTS);
    }
    let stored = world.takes_turns(&search(&["GEOSEARCHSTORE", "to", "geo"], &[]), ELEMENTS);
    assert_eq!(stored, format!(":{ELEMENTS}\r\n"));
    let radius = ["GEORADIUS", "geo", "0", "0", "30000", "km", "STORE", "to"];
    assert_eq!(world.takes_turns(&radius, ELEMENTS), stored);
    let corners = "-179 -84 179 -84 179 84 -179 84";
    let polygon = format!("GEOSEARCH geo BYPOLYGON 4 {corners}");
    let words: Vec<&str> = polygon.split(' ').collect();
    world.takes_turns(&words, ELEMENTS);
}

/// What is found in steps is what is found at once.
#[test]
fn long_searches_find_what_short_ones_do() {
    let mut world = World::new();
    world.fill(&["GEOADD", "geo"], 3_000, place);
    let tails: [&[&str]; 8] = [
        &[],
        &["ASC"],
        &["DESC", "WITHDIST", "WITHHASH"],
        &["COUNT", "7", "DESC"],
        &["COUNT", "5000", "ASC", "WITHCOORD"],
        &["COUNT", "20", "ANY"],
        &["COUNT", "20", "ANY", "DESC"],
        &["COUNT", "1"],
    ];
    let mut replies = Vec::new();
    for at_once in ["100", "1000000"] {
        world.ask(&["CONFIG", "SET", "work-at-once-elements", at_once]);
        let mut all = String::new();
        for tail in tails {
            all += &world.ask(&search(&["GEOSEARCH", "geo"], tail)).0;
        }
        for tail in [&[][..], &["STOREDIST"], &["COUNT", "900", "DESC"]] {
            all += &world.ask(&search(&["GEOSEARCHSTORE", "to", "geo"], tail)).0;
            all += &world.ask(&["ZRANGE", "to", "0", "-1", "WITHSCORES"]).0;
            all += &world.ask(&["OBJECT", "ENCODING", "to"]).0;
        }
        replies.push(all);
    }
    assert!(replies[0] == replies[1], "the replies differ");
}

/// A store sees the source at one moment, that of its end.
#[test]
fn a_store_whose_source_changes_begins_again() {
    let mut world = World::new();
    world.fill(&["GEOADD", "geo"], ELEMENTS, place);
    let store = search(&["GEOSEARCHSTORE", "to", "geo"], &[]);
    let changed = |world: &mut World, turn| {
        if turn == 5 {
            world.short(&["GEOADD", "geo", "1", "1", "late"]);
        }
    };
    assert_eq!(world.ask_between(&store, changed).0, format!(":{}\r\n", ELEMENTS + 1));
    for gone in [&["DEL", "geo"][..], &["RENAME", "geo", "other"], &["FLUSHALL"]] {
        world.ask(&["DEL", "geo"]);
        world.fill(&["GEOADD", "geo"], 3_000, place);
        let removed = |world: &mut World, turn| {
            if turn == 5 {
                world.short(gone);
            }
        };
        assert_eq!(world.ask_between(&store, removed).0, ":0\r\n", "{gone:?}");
        assert_eq!(world.short(&["EXISTS", "to"]), ":0\r\n");
    }
    world.fill(&["GEOADD", "geo"], 3_000, place);
    let replaced = |world: &mut World, turn| {
        if turn == 5 {
            world.short(&["SET", "geo", "text"]);
        }
    };
    assert!(world.ask_between(&store, replaced).0.starts_with("-WRONGTYPE"));
}

#[test]
fn the_pivot_of_linsert_is_looked_for_in_turns() {
    let mut world = World::new();
    world.fill(&["RPUSH", "list"], ELEMENTS, |n| vec![format!("e:{n}")]);
    let before = |pivot| ["LINSERT", "list", "BEFORE", pivot, "new"];
    assert_eq!(world.takes_turns(&before("none"), ELEMENTS), ":-1\r\n");
    let last = format!("e:{}", ELEMENTS - 1);
    let longer = |n: usize| format!(":{}\r\n", ELEMENTS + n);
    assert_eq!(world.takes_turns(&before(&last), ELEMENTS), longer(1));
    assert_eq!(world.ask(&["LINDEX", "list", "-2"]).0, "$3\r\nnew\r\n");
    // The list changes meanwhile: its last element is another one when the command takes effect.
    let pushed = |world: &mut World, turn| {
        if turn == 3 {
            world.short(&["LPUSH", "list", "first"]);
        }
    };
    let after = ["LINSERT", "list", "AFTER", &last, "newer"];
    assert_eq!(world.ask_between(&after, pushed).0, longer(3));
    assert_eq!(world.ask(&["LINDEX", "list", "-1"]).0, "$5\r\nnewer\r\n");
}

/// Many questions to one collection are answered in turns, with what it held at first.
#[test]
fn many_questions_are_answered_in_turns() {
    let mut world = World::new();
    world.fill(&["SADD", "set"], ELEMENTS, |n| vec![format!("m:{n}")]);
    world.fill(&["HSET", "hash"], ELEMENTS, |n| vec![format!("m:{n}"), format!("v:{n}")]);
    world.fill(&["GEOADD", "geo"], ELEMENTS, |n| {
        [place(n)[..2].to_vec(), vec![format!("m:{n}")]].concat()
    });
    world.ask(&["HEXPIRE", "hash", "100000", "FIELDS", "1", "m:7"]);
    world.fill(&["HSET", "small"], 3, |n| vec![format!("m:{n}"), format!("v:{n}")]);
    let names: Vec<String> = (0..ELEMENTS + 1_000).map(|n| format!("m:{n}")).collect();
    let count = names.len().to_string();
    let asked = |head: &[&str], some: &[String]| -> Vec<String> {
        head.iter().map(|word| (*word).to_owned()).chain(some.iter().cloned()).collect()
    };
    let heads: [&[&str]; 10] = [
        &["SMISMEMBER", "set"],
        &["HMGET", "hash"],
        &["HMGET", "small"],
        &["ZMSCORE", "geo"],
        &["GEOPOS", "geo"],
        &["GEOHASH", "geo"],
        &["HTTL", "hash", "FIELDS"],
        &["HPEXPIRETIME", "hash", "FIELDS"],
        &["HEXPIRETIME", "small", "FIELDS"],
        &["HPTTL", "hash", "FIELDS"],
    ];
    for head in heads {
        let counted = |n: &str| {
            let mut head = head.to_vec();
            if head.contains(&"FIELDS") {
                head.push(n);
            }
            head.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let words: Vec<String> = asked(&[], &[&counted(&count)[..], &names].concat());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (reply, turns) = world.ask(&words);
        assert!(turns >= names.len() / TURN_ELEMENTS_MAX, "{head:?} in {turns} turns");
        // The same in small parts. (The time of the loopback hardly moves on.)
        let mut parts = String::new();
        for some in names.chunks(500) {
            let words: Vec<String> = [&counted(&some.len().to_string())[..], some].concat();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (part, _) = world.ask(&words);
            let (_, part) = part.split_once("\r\n").expect("an array");
            parts += part;
        }
        let (len, whole) = reply.split_once("\r\n").expect("an array");
        assert_eq!(len, format!("*{count}"));
        let is_time_left = head[0] == "HPTTL";
        assert!(whole == parts || is_time_left, "{head:?} replies something else");
    }
    // The collection changes, and its key goes, meanwhile.
    let words: Vec<&str> =
        ["HMGET", "hash"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let last = format!("m:{}", ELEMENTS - 1);
    let (reply, _) = world.ask_between(&words, |world, turn| match turn {
        2 => drop(world.short(&["HSET", "hash", &last, "changed"])),
        4 => drop(world.short(&["DEL", "hash"])),
        _ => {}
    });
    assert!(reply.contains(&format!("v:{}", ELEMENTS - 1)) && !reply.contains("changed"));
    assert!(world.ask(&["SMISMEMBER", "other", "a"]).0.starts_with("-WRONGTYPE"));
    let wrong: Vec<&str> =
        ["HMGET", "other"].into_iter().chain(names.iter().map(String::as_str)).collect();
    assert!(world.ask(&wrong).0.starts_with("-WRONGTYPE"));
}

/// Inside EXEC all of it happens at once.
#[test]
fn a_transaction_does_all_steps_at_its_moment() {
    let mut world = World::new();
    world.fill(&["GEOADD", "geo"], 3_000, place);
    world.fill(&["RPUSH", "list"], 3_000, |n| vec![format!("e:{n}")]);
    let names: Vec<String> = (0..2_000).map(|n| format!("place:{n}")).collect();
    let scores: Vec<&str> =
        ["ZMSCORE", "geo"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let commands = [
        search(&["GEOSEARCH", "geo"], &["ASC"]),
        search(&["GEOSEARCHSTORE", "to", "geo"], &[]),
        vec!["LINSERT", "list", "BEFORE", "e:2999", "new"],
        scores,
        vec!["XADD", "stream", "1-1", "f", "v"],
    ];
    let mut alone = String::new();
    for command in &commands {
        alone += &world.ask(command).0;
    }
    world.ask(&["DEL", "to", "stream"]);
    world.ask(&["LREM", "list", "1", "new"]);
    let mut request = encode(&["MULTI"]);
    for command in &commands {
        request.extend(encode(command));
    }
    world.0.driver().write(0, &request);
    for _ in 0..20 {
        world.0.turn();
    }
    assert_eq!(
        world.0.driver().received(0),
        format!("+OK\r\n{}", "+QUEUED\r\n".repeat(5)).as_bytes()
    );
    world.0.driver().forget(0);
    let (reply, _) = world.ask(&["EXEC"]);
    assert!(reply == format!("*5\r\n{alone}"), "EXEC replies something else");
}

/// What others share of a collection is copied in turns, before a command changes much of it. It
/// changes all of it at one moment, and the copy alone.
#[test]
fn a_shared_collection_is_copied_in_turns_before_it_is_changed() {
    const CHANGED: usize = 4_000;
    let mut world = World::new();
    world.fill(&["SADD", "set"], ELEMENTS, |n| vec![format!("m:{n}")]);
    world.fill(&["HSET", "hash"], ELEMENTS, |n| vec![format!("m:{n}"), "v".to_owned()]);
    world.fill(&["ZADD", "zset"], ELEMENTS, |n| vec![n.to_string(), format!("m:{n}")]);
    let one = |n: usize| vec![format!("m:{}", n * 9)]; // more than half of them are new
    let with_value = |n: usize| [one(n), vec!["new".to_owned()]].concat();
    let with_score = |n: usize| [vec!["7.5".to_owned()], one(n)].concat();
    type Element<'e> = &'e dyn Fn(usize) -> Vec<String>;
    let (new, gone) = (CHANGED - ELEMENTS.div_ceil(9), ELEMENTS.div_ceil(9));
    let cases: [(&str, &str, &str, Element<'_>, usize); 6] = [
        ("SADD", "set", "SCARD", &one, new),
        ("SREM", "set", "SCARD", &one, gone),
        ("HSET", "hash", "HLEN", &with_value, new),
        ("HDEL", "hash", "HLEN", &one, gone),
        ("ZADD", "zset", "ZCARD", &with_score, new),
        ("ZREM", "zset", "ZCARD", &one, gone),
    ];
    for (command, source, count, element, changed) in cases {
        let elements: Vec<String> = (0..CHANGED).flat_map(element).collect();
        let args: Vec<&str> =
            [command, "to"].into_iter().chain(elements.iter().map(String::as_str)).collect();
        let full = format!(":{ELEMENTS}\r\n");
        world.ask(&["COPY", source, "to", "REPLACE"]);
        let (reply, turns) = world.ask_between(&args, |world, turn| {
            if turn < CHANGED / 100 {
                assert_eq!(world.short(&[count, "to"]), full, "{command}, turn {turn}");
            }
        });
        assert_eq!(reply, format!(":{changed}\r\n"), "{command}");
        assert!(turns > CHANGED / 100, "{command} in {turns} turns");
        let left = if matches!(command, "SREM" | "HDEL" | "ZREM") {
            ELEMENTS - changed
        } else {
            ELEMENTS + changed
        };
        assert_eq!(world.short(&[count, "to"]), format!(":{left}\r\n"), "{command}");
        assert_eq!(world.short(&[count, source]), full, "{command}");
        // Nobody shares it now: it is changed at once. Gone meanwhile, it is another collection.
        let turns = world.ask(&args).1;
        assert!(turns < CHANGED / 100, "{command} in {turns} turns");
        world.ask(&["COPY", source, "to", "REPLACE"]);
        let (reply, _) = world.ask_between(&args, |world, turn| {
            if turn == 3 {
                assert_eq!(world.short(&["DEL", "to"]), ":1\r\n");
            }
        });
        let is_removal = left < ELEMENTS;
        let added = if is_removal { 0 } else { CHANGED };
        assert_eq!(reply, format!(":{added}\r\n"), "{command} behind DEL");
    }
}

/// A WATCH of many keys is as good as many WATCHes: other clients are answered between its steps,
/// and a change of any of its keys, during or behind it, ends the transaction.
#[test]
fn a_long_watch_gives_way_and_notices_each_change() {
    const FIRST: &str = "key:0";
    let mut world = World::new();
    world.fill(&["MSET"], ELEMENTS, |n| vec![format!("key:{n}"), "v".to_owned()]);
    let names: Vec<String> = (0..ELEMENTS).map(|n| format!("key:{n}")).collect();
    let watch: Vec<&str> =
        std::iter::once("WATCH").chain(names.iter().map(String::as_str)).collect();
    let last = names.last().expect("many");
    let never = usize::MAX;
    // Which key is changed behind which turn of WATCH, or behind its end.
    for (changed, at) in
        [(None, never), (Some(FIRST), 30), (Some(last.as_str()), never), (Some("other"), 30)]
    {
        let (reply, turns) = world.ask_between(&watch, |world, turn| {
            if let Some(key) = changed
                && turn == at
            {
                assert_eq!(world.short(&["SET", key, "new"]), "+OK\r\n");
            }
        });
        assert_eq!(reply, "+OK\r\n");
        assert!(turns > ELEMENTS / TURN_ELEMENTS_MAX && (at == never || turns > at), "{turns}");
        if let Some(key) = changed.filter(|_| at == never) {
            assert_eq!(world.short(&["SET", key, "new"]), "+OK\r\n");
        }
        let is_spoilt = changed.is_some_and(|key| key != "other");
        let ran = format!("*1\r\n:{}\r\n", ELEMENTS + 1);
        let replies = if is_spoilt { "*-1\r\n" } else { &ran };
        world.send(&[&["MULTI"], &["DBSIZE"], &["EXEC"]]);
        let got = world.ask(&["PING"]).0;
        let expected = format!("+OK\r\n+QUEUED\r\n{replies}+PONG\r\n");
        assert_eq!(got, expected, "{changed:?} behind turn {at}");
    }
    world.send(&[&["MULTI"], &watch, &["DISCARD"]]);
    let refused = world.ask(&["PING"]).0;
    let expected = "+OK\r\n-ERR WATCH inside MULTI is not allowed\r\n+OK\r\n+PONG\r\n";
    assert_eq!(refused, expected);
}

/// The COUNT of SCAN is a hint: a call ends when it has done some work.
#[test]
fn scan_does_bounded_work() {
    let mut world = World::new();
    world.fill(&["MSET"], ELEMENTS, |n| vec![format!("key:{n}"), "v".to_owned()]);
    let long = "x".repeat(2_000);
    for n in 0..200 {
        world.ask(&["SET", &format!("{long}{n}"), "v"]);
    }
    let pattern = "*x".repeat(500) + "y";
    for (options, most) in [(&[][..], 10_000), (&["MATCH", &pattern], 200)] {
        let (mut cursor, mut calls, mut shown) = ("0".to_owned(), 0, 0);
        loop {
            let args = [&["SCAN", &cursor, "COUNT", "1000000"], options].concat();
            let (reply, _) = world.ask(&args);
            let keys = reply.matches("\r\n$").count() - 1;
            assert!(keys < most, "{keys} keys at once with {options:?}");
            (shown, calls) = (shown + keys, calls + 1);
            cursor = reply.split("\r\n").nth(2).expect("a cursor").to_owned();
            if cursor == "0" {
                break;
            }
        }
        // Half a million comparisons for each of the long keys are two for a call.
        let least = if options.is_empty() { 3 } else { 100 };
        assert!(calls >= least, "{calls} calls with {options:?}");
        assert_eq!(shown > 0, options.is_empty());
    }
}

/// So do the scans of one collection, if the pattern takes long.
#[test]
fn scans_of_collections_do_bounded_work() {
    let mut world = World::new();
    world.fill(&["SADD", "set"], 2_000, |n| vec![format!("{}{n}", "x".repeat(300))]);
    world.fill(&["HSET", "hash"], 2_000, |n| vec![format!("{}{n}", "x".repeat(300)), "v".into()]);
    world.fill(&["ZADD", "zset"], 2_000, |n| vec!["1".into(), format!("{}{n}", "x".repeat(300))]);
    let pattern = "*x".repeat(150) + "y";
    for (command, key) in [("SSCAN", "set"), ("HSCAN", "hash"), ("ZSCAN", "zset")] {
        let (mut cursor, mut calls) = ("0".to_owned(), 0);
        loop {
            let (reply, _) =
                world.ask(&[command, key, &cursor, "COUNT", "1000000", "MATCH", &pattern]);
            cursor = reply.split("\r\n").nth(2).expect("a cursor").to_owned();
            calls += 1;
            if cursor == "0" {
                break;
            }
        }
        // 300 times 301 steps for each of 2,000 elements; 8,192 times 100 for a call.
        assert!((200..300).contains(&calls), "{command} in {calls} calls");
    }
}

/// Thousands of small sets are combined in turns, and give what few of them give.
#[test]
fn many_small_sets_are_combined_in_turns() {
    let mut world = World::new();
    let names: Vec<String> = (0..8_000).map(|n| format!("set:{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        let own = n.to_string();
        world.ask(&["SADD", name, "a", "b", "7", &own]);
    }
    world.ask(&["SADD", "first", "a", "b", "c", "7", "12"]);
    let all = |head: &[&'static str]| -> Vec<String> {
        head.iter().map(|word| (*word).to_owned()).chain(names.iter().cloned()).collect()
    };
    let ask = |world: &mut World, words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.ask(&words)
    };
    let (reply, turns) = ask(&mut world, &all(&["SUNIONSTORE", "to"]));
    assert_eq!(reply, ":8002\r\n", "a, b, and the numbers, of which one is 7");
    assert!(turns > 10, "{turns} turns");
    assert_eq!(world.ask(&["SISMEMBER", "to", "7999"]).0, ":1\r\n");
    let (reply, turns) = ask(&mut world, &all(&["SUNION"]));
    assert!(reply.starts_with("*8002\r\n") && turns > 5, "{turns} turns");
    let (reply, turns) = ask(&mut world, &all(&["SINTER", "first"]));
    assert!(reply.starts_with("*3\r\n") && reply.contains("\r\na\r\n"), "{reply}");
    assert!(turns > 5, "{turns} turns");
    assert_eq!(ask(&mut world, &all(&["SDIFFSTORE", "to", "first"])).0, ":1\r\n");
    let members = world.ask(&["SMEMBERS", "to"]).0;
    assert!(members.contains("\r\nc\r\n"), "{members}");
    let mut words = all(&["SINTER", "first"]);
    words.push("missing".into());
    assert_eq!(ask(&mut world, &words).0, "*0\r\n");
}
