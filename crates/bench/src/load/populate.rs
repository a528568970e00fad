//! Writes the keys that are to be read, before the load begins.

use std::io::{Read, Write};

use base::prng::Prng;

use super::connect::Stream;
use super::error::Error;
use super::expect::{Count, Judge, Tally};
use super::plan::Plan;
use super::scan::Scanner;
use super::template::{Data, Fill, Template, Token, draw_len};
use super::values;

/// Most requests that are sent before their replies are read.
const BATCH_MAX: u64 = 512;
/// Bytes at which a batch ends. The replies to it are five bytes each, so a server that does not
/// read while it writes is never stuck.
const BATCH_BYTES: usize = 256 * 1024;
/// Bytes of replies that are received at a time.
const RECEIVE_BYTES: usize = 16 * 1024;

/// Writes every key of the range once, in its first version. One connection, pipelined; `written`
/// is called with the number of keys written so far.
pub fn populate(plan: &Plan, mut written: impl FnMut(u64)) -> Result<(), Error> {
    let failed = |what: String| Error::Populate(what);
    let mut stream = Stream::open(&plan.spec, 0)?;
    let (mut judge, mut tally) = (Judge::default(), Tally::default());
    let (mut scanner, mut input, mut sent) = (Scanner::default(), Vec::new(), 0);
    let mut room = vec![0; RECEIVE_BYTES];
    for (batch, count) in batches(plan) {
        stream.write_all(&batch).map_err(|error| failed(error.to_string()))?;
        sent += count;
        while tally.replies < sent {
            let received = (&mut stream).read(&mut room).map_err(|e| failed(e.to_string()))?;
            if received == 0 {
                return Err(failed("the server closed the connection".to_owned()));
            }
            input.extend_from_slice(&room[..received]);
            let mut sink = Count { judge: &mut judge, tally: &mut tally, nil_fails: true };
            let used = scanner.scan(&input, &mut sink);
            input.drain(..used.map_err(|error| failed(error.0))?);
            if !tally.failures.is_empty() {
                return Err(failed(tally.failures.first_error));
            }
        }
        written(tally.replies);
    }
    Ok(())
}

/// The requests that write every key once, some at a time, and how many those are.
pub fn batches(plan: &Plan) -> impl Iterator<Item = (Vec<u8>, u64)> {
    let spec = &plan.spec;
    let data = match spec.data {
        (len, high) if len == high && !spec.verify => Data::Constant(len),
        _ => Data::Drawn,
    };
    let args = [vec![Token::Text(b"SET".to_vec())], vec![Token::Key], vec![Token::Data]];
    let template = Template::new(&args, &spec.keys.prefix, data);
    let mut first = First { plan, prng: Prng::new(spec.seed), next: spec.keys.minimum };
    let end = spec.keys.minimum + plan.keys;
    std::iter::from_fn(move || {
        let (mut out, before) = (Vec::new(), first.next);
        while first.next < end && first.next - before < BATCH_MAX && out.len() < BATCH_BYTES {
            template.write(&mut out, &mut first);
        }
        (first.next > before).then(|| (out, first.next - before))
    })
}

/// Every key in its first version.
struct First<'a> {
    plan: &'a Plan,
    prng: Prng,
    next: u64,
}

impl Fill for First<'_> {
    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn random(&mut self) -> u64 {
        0
    }

    fn data_len(&mut self) -> usize {
        if self.plan.spec.verify {
            values::len(self.next - 1, 1, self.plan.spec.data)
        } else {
            draw_len(&mut self.prng, self.plan.spec.data)
        }
    }

    fn data(&mut self, into: &mut [u8]) {
        if self.plan.spec.verify {
            values::fill(self.next - 1, 1, into);
        }
    }
}
