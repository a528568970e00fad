//! The value of `db-limit`: budgets of databases, each written as `DATABASE MEMORY POLICY`, or as
//! `DATABASE 0` to remove one.

use super::Config;
use super::field::MaxmemoryPolicy;
use super::memory::MemoryShare;
use super::value::{Kind, Value, one_of};
use base::num::parse_u64;

/// The policies of `maxmemory-policy` and of `db-limit`.
pub const POLICIES: [&str; 8] = [
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];
/// The most databases that have a limit.
pub const DB_LIMITS_MAX: usize = 1024;
/// Databases beyond this one cannot be configured.
const DB_MAX: u64 = 65_534;

/// What one database may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbLimit {
    /// The database.
    pub db: u16,
    /// Its limit; a percentage is one of `maxmemory`, or of what the process may use if that is
    /// not set.
    pub memory: MemoryShare,
    /// Which of its keys go at its limit.
    pub policy: MaxmemoryPolicy,
    /// The policy's name.
    pub policy_name: &'static str,
}

/// One group of words: a database and its limit, or no limit.
type Group = (u16, Option<DbLimit>);

impl DbLimit {
    /// Reads groups of words, in their order.
    pub fn parse_all(words: &[Vec<u8>]) -> Result<Vec<Group>, String> {
        let mut words = words.iter().filter(|w| !w.is_empty()).peekable();
        let mut all = Vec::new();
        while let Some(number) = words.next() {
            let db = parse_u64(number).filter(|db| *db <= DB_MAX).ok_or_else(|| {
                let number = String::from_utf8_lossy(number);
                format!("'{number}' is not a database: must be between 0 and {DB_MAX} inclusive")
            })? as u16;
            let memory =
                words.next().ok_or_else(|| format!("the limit of database {db} is missing"))?;
            let memory = parse_limit(memory).map_err(|why| format!("database {db}: {why}"))?;
            if memory == MemoryShare::Bytes(0) {
                words.next_if(|word| policy_of(word).is_some());
                all.push((db, None));
                continue;
            }
            let policy =
                words.next().ok_or_else(|| format!("the policy of database {db} is missing"))?;
            let policy_name =
                policy_of(policy).ok_or_else(|| format!("database {db}: {}", one_of(&POLICIES)))?;
            let policy = MaxmemoryPolicy::from_word(policy_name.as_bytes());
            all.push((db, Some(Self { db, memory, policy, policy_name })));
        }
        Ok(all)
    }

    /// Changes the limits of those databases that the groups name.
    pub(crate) fn apply(groups: Vec<Group>, limits: &mut Vec<Self>) {
        for (db, limit) in groups {
            let at = limits.partition_point(|old| old.db < db);
            let has_one = limits.get(at).is_some_and(|old| old.db == db);
            match (limit, has_one) {
                (Some(limit), true) => limits[at] = limit,
                (Some(limit), false) => limits.insert(at, limit),
                (None, true) => _ = limits.remove(at),
                (None, false) => {}
            }
        }
    }

    /// The words that read back as this limit.
    pub fn show(&self, bytes: impl Fn(u64) -> String) -> String {
        let memory = match self.memory {
            MemoryShare::Bytes(count) => bytes(count),
            MemoryShare::Percent(percent) => format!("{percent}%"),
        };
        format!("{} {memory} {}", self.db, self.policy_name)
    }

    /// All limits in one line, by database.
    pub fn show_all(all: &[Self]) -> Vec<u8> {
        let each: Vec<String> = all.iter().map(|limit| limit.show(|n| n.to_string())).collect();
        each.join(" ").into_bytes()
    }
}

fn policy_of(word: &[u8]) -> Option<&'static str> {
    POLICIES.into_iter().find(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

fn parse_limit(text: &[u8]) -> Result<MemoryShare, String> {
    if text.ends_with(b"%") {
        return Kind::Share.parse(text).map(|value| MemoryShare::new(&value));
    }
    let value = Kind::Memory(0, i64::MAX as u64).parse(text);
    value.map(|value| MemoryShare::new(&value)).map_err(|why| {
        if why.contains("memory value") {
            "argument must be a memory or percent value".to_owned()
        } else {
            why
        }
    })
}

/// Checks the words; one empty word means "none".
pub(crate) fn parse_db_limits(words: &[Vec<u8>]) -> Result<Value, String> {
    if DbLimit::parse_all(words)?.is_empty() {
        return Ok(Value::Words(Vec::new()));
    }
    Ok(Value::Words(words.to_vec()))
}

impl Config {
    /// What a percentage of `db-limit` is a part of: `maxmemory`, or what the process may use.
    pub fn db_limits_whole(&self, allowed: impl Fn() -> u64) -> u64 {
        match self.maxmemory.of(&allowed) {
            0 => allowed(),
            max => max,
        }
    }

    /// Checks `db-limit` against the settings that it depends on.
    pub(crate) fn check_db_limits(&self) -> Result<(), String> {
        let limits = &self.db_limits;
        if limits.len() > DB_LIMITS_MAX {
            return Err(format!("more than {DB_LIMITS_MAX} databases have a limit"));
        }
        let databases = self.command.databases;
        if let Some(last) = limits.last().filter(|last| last.db >= databases) {
            let (db, most) = (last.db, databases - 1);
            return Err(format!("DB index {db} is out of range: it must be between 0 and {most}"));
        }
        let named = limits.iter().map(|limit| (format!("db-limit {}", limit.db), limit.policy));
        let mut all = named.chain([("maxmemory-policy".to_owned(), self.maxmemory_policy)]);
        let counting = all.clone().find(|(_, policy)| policy.counts_uses);
        let timing = all.find(|(_, policy)| policy.times_uses());
        if let (Some((counting, _)), Some((timing, _))) = (counting, timing) {
            return Err(format!(
                "keys record how often or when they were used, not both: {counting} has an LFU \
                 policy and {timing} an LRU policy"
            ));
        }
        Ok(())
    }

    /// Whether keys may be evicted, for `maxmemory-policy` or for a `db-limit`.
    pub fn evicts(&self) -> bool {
        self.maxmemory_policy.evicts || self.db_limits.iter().any(|limit| limit.policy.evicts)
    }

    /// Whether keys record how often they are used, for `maxmemory-policy` or for a `db-limit`.
    pub fn counts_uses(&self) -> bool {
        let of_limits = || self.db_limits.iter().any(|limit| limit.policy.counts_uses);
        self.maxmemory_policy.counts_uses || of_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get_set::SetError;

    fn set(config: &Config, pairs: &[(&str, &str)]) -> Result<Config, SetError> {
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(name, text)| (name.as_bytes(), text.as_bytes())).collect();
        config.set(&pairs, true).map(|(config, _)| config)
    }

    fn shown(config: &Config) -> String {
        let mut got = config.get([&b"db-limit"[..]].into_iter());
        String::from_utf8_lossy(got.pop().expect("a setting").1).into_owned()
    }

    #[test]
    fn limits_are_merged_by_database_and_shown_in_one_line() {
        let one = set(&Config::default(), &[("db-limit", "2 10% noeviction 1 500mb ALLKEYS-LRU")]);
        let one = one.expect("valid");
        assert_eq!(shown(&one), "1 524288000 allkeys-lru 2 10% noeviction");
        let two =
            set(&one, &[("db-limit", "1 1k volatile-ttl 0 5 allkeys-random")]).expect("valid");
        assert_eq!(shown(&two), "0 5 allkeys-random 1 1000 volatile-ttl 2 10% noeviction");
        let same = set(&two, &[("db-limit", &shown(&two))]).expect("what is shown is valid");
        assert_eq!(shown(&same), shown(&two));
        let less = set(&two, &[("db-limit", "0 0 1 0% noeviction 7 0")]).expect("valid");
        assert_eq!(shown(&less), "2 10% noeviction");
        assert_eq!(shown(&set(&less, &[("db-limit", "")]).expect("valid")), "");
    }

    #[test]
    fn errors_name_the_database_and_the_reason() {
        let range = "keys record how often or when they were used, not both: db-limit 1 has an LFU \
                     policy and maxmemory-policy an LRU policy";
        let one_of = format!(
            "database 1: argument(s) must be one of the following: {}",
            POLICIES.join(", ")
        );
        let lfu = [("maxmemory-policy", "allkeys-lru"), ("db-limit", "1 5 allkeys-lfu")];
        for (pairs, why) in [
            (
                &[("db-limit", "16 5mb noeviction")][..],
                "DB index 16 is out of range: it must be between 0 and 15",
            ),
            (
                &[("db-limit", "x 5mb noeviction")],
                "'x' is not a database: must be between 0 and 65534 inclusive",
            ),
            (
                &[("db-limit", "-1 5mb noeviction")],
                "'-1' is not a database: must be between 0 and 65534 inclusive",
            ),
            (&[("db-limit", "1")], "the limit of database 1 is missing"),
            (&[("db-limit", "1 5mb")], "the policy of database 1 is missing"),
            (&[("db-limit", "1 5mb lru")], &one_of),
            (
                &[("db-limit", "1 5mx noeviction")],
                "database 1: argument must be a memory or percent value",
            ),
            (
                &[("db-limit", "1 -5 noeviction")],
                "database 1: argument must be a memory or percent value",
            ),
            (
                &[("db-limit", "1 101% noeviction")],
                "database 1: percentage argument must be less or equal to 100",
            ),
            (
                &[("db-limit", "1 -1% noeviction")],
                "database 1: argument must be a memory or percent value",
            ),
            (
                &[("db-limit", "1 99999999999gb noeviction")],
                "database 1: argument must be between 0 and 9223372036854775807 inclusive",
            ),
            (&lfu, range),
        ] {
            let error = set(&Config::default(), pairs).expect_err(why).to_string();
            assert!(error.ends_with(&format!("- {why}")), "{error}");
        }
        let ttl = set(&Config::default(), &[("db-limit", "1 5 allkeys-lfu 2 5 volatile-ttl")]);
        assert!(ttl.expect("valid").counts_uses());
    }

    #[test]
    fn the_number_of_limits_is_bounded() {
        let text = |count: usize| -> String {
            (0..count).map(|db| format!("{db} 5mb noeviction ")).collect::<Vec<_>>().concat()
        };
        let mut config = Config::default();
        config.command.databases = 2000;
        assert!(set(&config, &[("db-limit", &text(DB_LIMITS_MAX))]).is_ok());
        let error = set(&config, &[("db-limit", &text(DB_LIMITS_MAX + 1))]).expect_err("too many");
        assert!(error.to_string().ends_with("more than 1024 databases have a limit"));
    }

    #[test]
    fn a_percentage_is_one_of_maxmemory_or_of_what_is_allowed() {
        let whole = |config: &Config| config.db_limits_whole(|| 1000);
        assert_eq!(whole(&Config::default()), 1000);
        let half = set(&Config::default(), &[("maxmemory", "50%")]).expect("valid");
        assert_eq!(whole(&half), 500);
        let limit = set(&half, &[("db-limit", "3 10% noeviction")]).expect("valid").db_limits[0];
        assert_eq!(limit.memory.of(|| whole(&half)), 50);
    }

    #[test]
    fn rewrite_gives_each_database_a_line() {
        let config =
            set(&Config::default(), &[("db-limit", "1 500mb allkeys-lru 2 10% noeviction")]);
        let config = config.expect("valid");
        let lines = "db-limit 1 500mb allkeys-lru\ndb-limit 2 10% noeviction\n";
        let new = crate::rewrite::rewrite(&config, b"");
        assert!(
            String::from_utf8_lossy(&new).ends_with(lines),
            "{}",
            String::from_utf8_lossy(&new)
        );
        assert_eq!(crate::rewrite::rewrite(&config, &new), new, "it reads back");
        let old = b"# a\ndb-limit 1 5mb noeviction\n# b\ndb-limit 3 1mb noeviction\n";
        let new = crate::rewrite::rewrite(&config, old);
        assert_eq!(String::from_utf8_lossy(&new), format!("# a\n{lines}# b\n"));
        let none = crate::rewrite::rewrite(&Config::default(), old);
        assert_eq!(String::from_utf8_lossy(&none), "# a\ndb-limit \"\"\n# b\n");
    }
}
