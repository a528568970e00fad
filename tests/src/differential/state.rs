//! The final state of a server, independent of its storage: type, elements, encoding and expiry of
//! every key.

use std::collections::BTreeMap;
use std::io;

use super::dice::Args;
use super::execute::DATABASES;
use crate::wire::{Value, Wire, encode};

/// Questions and their answers. The encoding is asked for as `STATE type ENCODING key`, so that
/// `known_differences.txt` can tell types apart.
pub type Facts = Vec<(Args, Value)>;

/// Reads all databases.
pub fn read(judge: &mut Wire, state: &mut BTreeMap<(u8, Vec<u8>), Facts>) -> io::Result<()> {
    let mut questions = Vec::new();
    for database in 0..DATABASES {
        questions.push(words(&["SELECT", &database.to_string()]));
        questions.push(words(&["KEYS", "*"]));
    }
    let answers = ask(judge, &questions)?;
    for (database, keys) in (0..DATABASES).zip(answers.iter().skip(1).step_by(2)) {
        let Value::Array(keys) = keys else {
            return Err(io::Error::other(format!("KEYS answered {keys:?}")));
        };
        if keys.is_empty() {
            continue;
        }
        let keys: Vec<&Vec<u8>> = keys
            .iter()
            .map(|key| match key {
                Value::Bulk(key) => Ok(key),
                other => Err(io::Error::other(format!("a key is {other:?}"))),
            })
            .collect::<io::Result<_>>()?;
        let mut questions = vec![words(&["SELECT", &database.to_string()])];
        questions.extend(keys.iter().map(|key| with(&["TYPE"], key, &[])));
        let types = ask(judge, &questions)?.split_off(1);
        for (key, kind) in keys.iter().zip(types) {
            state.insert((database, (*key).clone()), facts(judge, key, kind)?);
        }
    }
    Ok(())
}

fn facts(judge: &mut Wire, key: &[u8], kind: Value) -> io::Result<Facts> {
    let name = match &kind {
        Value::Simple(name) => String::from_utf8_lossy(name).into_owned(),
        other => format!("{other:?}"),
    };
    let content = match name.as_str() {
        "list" => with(&["LRANGE"], key, &["0", "-1"]),
        "set" => with(&["SMEMBERS"], key, &[]),
        "hash" => with(&["HGETALL"], key, &[]),
        "zset" => with(&["ZRANGE"], key, &["0", "-1", "WITHSCORES"]),
        "stream" => with(&["XRANGE"], key, &["-", "+"]),
        _ => with(&["GET"], key, &[]),
    };
    let encoding = with(&["OBJECT", "ENCODING"], key, &[]);
    let labelled = with(&["STATE", &name, "ENCODING"], key, &[]);
    let expiry = with(&["PTTL"], key, &[]);
    let mut answers = ask(judge, &[content.clone(), encoding, expiry.clone()])?.into_iter();
    let questions = [content, labelled, expiry];
    let mut facts = vec![(with(&["TYPE"], key, &[]), kind)];
    facts.extend(questions.into_iter().zip(&mut answers));
    if name == "stream" {
        let more =
            [with(&["XINFO", "STREAM"], key, &["FULL"]), with(&["XINFO", "STREAM"], key, &[])];
        let answers = ask(judge, &more)?;
        facts.extend(more.into_iter().zip(answers));
    }
    Ok(facts)
}

/// Sends all questions in one pipeline.
fn ask(judge: &mut Wire, questions: &[Args]) -> io::Result<Vec<Value>> {
    let bytes: Vec<u8> = questions.iter().flat_map(|question| encode(question)).collect();
    judge.send(&bytes)?;
    questions.iter().map(|_| judge.receive()).collect()
}

fn words(words: &[&str]) -> Args {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn with(before: &[&str], key: &[u8], after: &[&str]) -> Args {
    let mut args = words(before);
    args.push(key.to_vec());
    args.extend(words(after));
    args
}
