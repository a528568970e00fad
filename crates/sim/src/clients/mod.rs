//! The families of clients.

pub mod admin;
pub mod big;
pub mod expirer;
pub mod ingest;
pub mod ledger;
pub mod model;
pub mod monitor;
pub mod queues;
pub mod registers;
pub mod saver;
pub mod scanner;
pub mod streams;
pub mod transactions;

use crate::session::{Actor, Session};
use crate::world::World;
use client::Value;

/// All clients of a plan.
pub fn all(world: &mut World) -> Vec<Box<dyn Actor>> {
    let counts = world.plan.counts;
    let mut all: Vec<Box<dyn Actor>> = Vec::new();
    let mut who = 0;
    let mut add = |count: u64, make: &mut dyn FnMut(u32) -> Box<dyn Actor>| {
        for _ in 0..count {
            all.push(make(who));
            who += 1;
        }
    };
    add(counts.registers, &mut |who| {
        Box::new(Session::new(world, who, registers::Registers::new(who)))
    });
    add(counts.transactions, &mut |who| {
        Box::new(Session::new(world, who, transactions::Transactions::default()))
    });
    add(counts.pushers, &mut |who| Box::new(Session::new(world, who, queues::Pusher::new(who))));
    add(counts.poppers, &mut |who| Box::new(Session::new(world, who, queues::Popper)));
    add(counts.models, &mut |who| Box::new(Session::new(world, who, model::Model::new(who))));
    add(counts.expirers, &mut |who| Box::new(Session::new(world, who, expirer::Expirer::new(who))));
    add(counts.scanners, &mut |who| Box::new(Session::new(world, who, scanner::Scanner::new(who))));
    add(counts.admins, &mut |who| Box::new(Session::new(world, who, admin::Admin::default())));
    add(counts.adders, &mut |who| Box::new(Session::new(world, who, streams::Adder)));
    add(counts.readers, &mut |who| Box::new(Session::new(world, who, streams::Reader::new(who))));
    add(counts.ledgers, &mut |who| Box::new(Session::new(world, who, ledger::Ledger)));
    add(counts.savers, &mut |who| Box::new(Session::new(world, who, saver::Saver::default())));
    add(counts.bigs, &mut |who| Box::new(Session::new(world, who, big::Big::new(who))));
    add(counts.monitors, &mut |who| Box::new(monitor::Monitor::new(who)));
    add(counts.producers, &mut |who| Box::new(ingest::Producer::new(who)));
    all
}

/// The number in a reply, however it is written: an integer, a string or a double.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Bulk(text) | Value::Double(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// The words of a command.
pub fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}
