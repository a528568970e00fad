//! The named tests of redis-benchmark.

use crate::load::{Command, Pattern, Spec};

/// A name, what a table calls the test, and its command, words separated by blanks.
type Test = (&'static str, &'static str, &'static str);

const MSET: &str = "MSET __key__ __data__ __key__ __data__ __key__ __data__ __key__ __data__ \
    __key__ __data__ __key__ __data__ __key__ __data__ __key__ __data__ __key__ __data__ \
    __key__ __data__";

const TESTS: &[Test] = &[
    ("ping_inline", "ping_inline", "PING"),
    ("ping_mbulk", "ping", "PING"),
    ("set", "set", "SET __key__ __data__"),
    ("get", "get", "GET __key__"),
    ("incr", "incr", "INCR counter:__rand_int__"),
    ("lpush", "lpush", "LPUSH mylist __data__"),
    ("rpush", "rpush", "RPUSH mylist __data__"),
    ("lpop", "lpop", "LPOP mylist"),
    ("rpop", "rpop", "RPOP mylist"),
    ("sadd", "sadd", "SADD myset element:__rand_int__"),
    ("hset", "hset", "HSET myhash element:__rand_int__ __data__"),
    ("spop", "spop", "SPOP myset"),
    ("zadd", "zadd", "ZADD myzset __rand_int__ element:__rand_int__"),
    ("zpopmin", "zpopmin", "ZPOPMIN myzset"),
    ("lrange", "lpush for lrange", "LPUSH mylist __data__"),
    ("lrange_100", "lrange_100", "LRANGE mylist 0 99"),
    ("lrange_300", "lrange_300", "LRANGE mylist 0 299"),
    ("lrange_500", "lrange_500", "LRANGE mylist 0 449"),
    ("lrange_600", "lrange_600", "LRANGE mylist 0 599"),
    ("mset", "mset", MSET),
    ("xadd", "xadd", "XADD mystream * myfield __data__"),
];

/// The loads of the named tests, in the order of the list above. `ping` is both forms of it; any
/// `lrange` fills the list first.
pub fn specs(names: &[&str], base: &Spec, pattern: Pattern) -> Result<Vec<Spec>, String> {
    let known = |name: &str| name == "ping" || TESTS.iter().any(|(test, ..)| *test == name);
    if let Some(name) = names.iter().find(|name| !known(&name.to_ascii_lowercase())) {
        let all: Vec<&str> = TESTS.iter().map(|(test, ..)| *test).collect();
        return Err(format!("no test '{name}'; there are: ping {}", all.join(" ")));
    }
    let wanted = |test: &str| {
        names.iter().map(|name| name.to_ascii_lowercase()).any(|name| match name.as_str() {
            "ping" => test.starts_with("ping_"),
            "lrange" => test.starts_with("lrange"),
            name => name == test || test == "lrange" && name.starts_with("lrange"),
        })
    };
    let tests = TESTS.iter().filter(|(test, ..)| wanted(test));
    let made = tests.map(|(test, title, words)| Spec {
        name: (*title).to_owned(),
        commands: vec![Command {
            pattern,
            inline: *test == "ping_inline",
            ..Command::new(&words.split(' ').collect::<Vec<_>>())
        }],
        ..base.clone()
    });
    Ok(made.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_expand_to_their_loads() {
        let names = |of: &[&str]| -> Vec<String> {
            let specs = specs(of, &Spec::default(), Pattern::Uniform).expect("these are known");
            specs.into_iter().map(|spec| spec.name).collect()
        };
        assert_eq!(names(&["GET", "set"]), ["set", "get"]);
        assert_eq!(names(&["ping"]), ["ping_inline", "ping"]);
        assert_eq!(names(&["lrange_300"]), ["lpush for lrange", "lrange_300"]);
        assert_eq!(names(&["lrange"]).len(), 5);
        assert_eq!(MSET.split(' ').count(), 21);
        let error = specs(&["bget"], &Spec::default(), Pattern::Uniform).expect_err("unknown");
        assert!(error.contains("'bget'") && error.contains("zpopmin"), "{error}");
    }
}
