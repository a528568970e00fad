//! The figures: a command each, on which data, and what its reply must look like.

use client::Value;

use super::data::{Data, FIELDS, Sizes};
use crate::load::Command;

/// What a reply must be, besides the same on all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many members in an order.
    Ordered(u64),
    /// So many members in any order.
    Unordered(u64),
    /// So many pairs in any order.
    Pairs(u64),
    /// A number.
    Integer,
    /// Members in an order, mostly some.
    Some,
    /// Members in any order, mostly some.
    SomeUnordered,
}

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it reads.
    pub data: Data,
    /// Its command, with the placeholders of `load`; words are separated by blanks.
    pub words: &'static str,
    /// Connections and requests under way on each.
    pub load: (usize, usize),
    /// Requests whose replies are compared beforehand.
    pub compared: usize,
}

const fn figure(
    name: &'static str,
    data: Data,
    words: &'static str,
    load: (usize, usize),
    compared: usize,
) -> Figure {
    Figure { name, data, words, load, compared }
}

/// Many connections with a pipeline, as `make perf` has it, for small replies.
const SMALL: (usize, usize) = (50, 16);
/// Few connections, one request at a time, where a request takes a millisecond.
const LARGE: (usize, usize) = (4, 1);

const NEAR: &str =
    "GEOSEARCH bench:geo FROMLONLAT LON.__rand_int__ LAT.__rand_int__ BYRADIUS 15 km";
const NEAREST: &str = "GEOSEARCH bench:geo FROMLONLAT LON.__rand_int__ LAT.__rand_int__ \
     BYRADIUS 15 km ASC COUNT 10 WITHDIST";

/// All of them.
pub const FIGURES: &[Figure] = &[
    figure("zrange", Data::Zset, "ZRANGE bench:zset __int__ __int+9__", SMALL, 500),
    figure("zrank", Data::Zset, "ZRANK bench:zset m__int__", SMALL, 500),
    figure("lrange_100", Data::List, "LRANGE bench:list 0 99", SMALL, 1),
    figure("hgetall_100", Data::Hashes, "HGETALL bench:hash:__int__", SMALL, 100),
    figure("sinter_100k", Data::Sets, "SINTER bench:set:a bench:set:b", LARGE, 1),
    figure("pfadd", Data::Sketch, "PFADD bench:hll new:__rand_int__", SMALL, 500),
    figure("geosearch", Data::Places, NEAR, SMALL, 200),
    figure("geosearch_nearest", Data::Places, NEAREST, SMALL, 200),
    figure("bitcount_1mb", Data::Bits, "BITCOUNT bench:bits", LARGE, 1),
];

impl Figure {
    /// Lowest and highest number that is drawn.
    pub fn numbers(&self, sizes: Sizes) -> (u64, u64) {
        match (self.data, self.name) {
            (Data::Zset, "zrange") => (0, sizes.zset() - 10),
            (Data::Zset, _) => (0, sizes.zset() - 1),
            (Data::Hashes, _) => (0, sizes.hashes() - 1),
            (Data::Places, _) => (0, 499_999_999_999),
            (Data::Sketch, _) => (0, 99_999_999),
            _ => (0, 0),
        }
    }

    /// Its commands: one, or places all over the map in turn.
    pub fn commands(&self) -> Vec<Command> {
        let regions = if self.data == Data::Places { 1..10 } else { 0..1 };
        let command = |region: u32| {
            let (lon, lat) = (format!("{region}."), format!("{}.", 45 + region));
            let words = self.words.replace("LON.", &lon).replace("LAT.", &lat);
            Command::new(&words.split(' ').collect::<Vec<_>>())
        };
        regions.map(command).collect()
    }

    /// What its replies look like.
    pub fn shape(&self, sizes: Sizes) -> Shape {
        match self.name {
            "zrange" => Shape::Ordered(10),
            "lrange_100" => Shape::Ordered(100.min(sizes.list())),
            "hgetall_100" => Shape::Pairs(FIELDS),
            "sinter_100k" => Shape::Unordered(sizes.set() / 2),
            "geosearch" => Shape::SomeUnordered,
            "geosearch_nearest" => Shape::Some,
            _ => Shape::Integer,
        }
    }
}

impl Shape {
    /// A reply in a form that is the same for the same answer; `None` if it is no such reply.
    pub fn plain(self, reply: Value) -> Option<Value> {
        let (members, right) = match (self, reply) {
            (Self::Integer, reply @ Value::Integer(_)) => return Some(reply),
            (Self::Ordered(count) | Self::Unordered(count), Value::Array(all)) => {
                let right = all.len() as u64 == count && all.iter().all(is_text);
                (all, right)
            }
            (Self::Pairs(count), Value::Array(all)) => {
                let right = all.len() as u64 == 2 * count && all.iter().all(is_text);
                let pairs = all.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect();
                (pairs, right)
            }
            (Self::Some | Self::SomeUnordered, Value::Array(all)) => (all, true),
            _ => return None,
        };
        let mut members = members;
        if matches!(self, Self::Unordered(_) | Self::Pairs(_) | Self::SomeUnordered) {
            members.sort_by_key(|member| format!("{member:?}"));
        }
        right.then_some(Value::Array(members))
    }
}

fn is_text(value: &Value) -> bool {
    matches!(value, Value::Bulk(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(of: &[&str]) -> Value {
        Value::Array(of.iter().map(Value::bulk).collect())
    }

    #[test]
    fn replies_are_compared_in_order_only_where_it_is_defined() {
        let (ab, ba) = (array(&["a", "b"]), array(&["b", "a"]));
        assert_ne!(Shape::Ordered(2).plain(ab.clone()), Shape::Ordered(2).plain(ba.clone()));
        assert_eq!(Shape::Unordered(2).plain(ab.clone()), Shape::Unordered(2).plain(ba.clone()));
        assert_eq!(Shape::Unordered(3).plain(ab.clone()), None);
        let (one, two) = (array(&["a", "1", "b", "2"]), array(&["b", "2", "a", "1"]));
        assert_eq!(Shape::Pairs(2).plain(one.clone()), Shape::Pairs(2).plain(two));
        let swapped = array(&["a", "2", "b", "1"]);
        assert_ne!(Shape::Pairs(2).plain(one), Shape::Pairs(2).plain(swapped));
        assert_eq!(Shape::Integer.plain(Value::Null), None);
        assert_eq!(Shape::Ordered(1).plain(Value::Array(vec![Value::Null])), None);
        assert_ne!(Shape::Some.plain(ab), Shape::Some.plain(ba));
    }
}
