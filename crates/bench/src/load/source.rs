//! Makes requests: draws the command, its keys and values, and notes what must come back.

use std::collections::VecDeque;

use base::prng::Prng;

use super::expect::Expect;
use super::meaning::Meaning;
use super::plan::{Plan, Prepared};
use super::sampler::{Walk, unit};
use super::template::{Fill, TEN_TO_TWELVE, draw_len};
use super::values;

/// The random numbers and sequences of a thread or of a connection.
#[derive(Clone, Debug)]
pub struct Source {
    prng: Prng,
    walks: Vec<Walk>,
}

impl Source {
    /// The source number `index` of `of`.
    pub fn new(plan: &Plan, seed: u64, index: usize, of: usize) -> Self {
        let mut spread = Prng::new(seed);
        let prng = Prng::new(spread.draw() ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { prng, walks: vec![Walk::share(index, of, plan.keys); plan.commands.len()] }
    }

    /// Randomness for other uses.
    pub fn prng(&mut self) -> &mut Prng {
        &mut self.prng
    }
}

/// Bit of a state: the key is known not to exist.
const ABSENT: u8 = 1 << 7;

/// The keys that one connection alone works on while replies are verified, and what is known of
/// each: 0 nothing; otherwise the number of its last write from 1 to 127 and again from 1, with
/// [`ABSENT`] if it was deleted since. One byte per key, because every request costs a cache miss
/// here.
#[derive(Debug)]
pub struct Owned {
    index: u64,
    owners: u64,
    keys: u64,
    states: Vec<u8>,
    echoes: u32,
    /// For each command, keys that were drawn and not used yet.
    ahead: Vec<Ahead>,
}

/// How many keys are drawn together.
const AHEAD: usize = 16;

/// Keys drawn in advance: a miss of the cache per state takes longer than all else that a verified
/// request costs, but sixteen of them at a time take hardly longer than one.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    drawn: [u64; AHEAD],
    used: usize,
}

impl Owned {
    /// Those of connection `index` of `owners`; `written` if all were written once.
    pub fn new(plan: &Plan, index: usize, owners: usize, written: bool) -> Self {
        let (index, owners) = (index as u64, owners as u64);
        let count = (plan.keys - index).div_ceil(owners);
        let states = vec![u8::from(written); count as usize];
        let ahead = vec![Ahead { drawn: [0; AHEAD], used: AHEAD }; plan.commands.len()];
        Self { index, owners, keys: plan.keys, states, echoes: 0, ahead }
    }

    /// The next key of command number `command`, whose state is near by now.
    #[inline]
    fn next(&mut self, command: usize, mut draw: impl FnMut() -> u64) -> u64 {
        if self.ahead[command].used == AHEAD {
            let drawn: [u64; AHEAD] = std::array::from_fn(|_| draw());
            let states = drawn.map(|number| self.states[self.nearest(number).1]);
            std::hint::black_box(states);
            self.ahead[command] = Ahead { drawn, used: 0 };
        }
        let ahead = &mut self.ahead[command];
        ahead.used += 1;
        ahead.drawn[ahead.used - 1]
    }

    /// The own key next to a drawn one, and where its state is.
    #[inline]
    fn nearest(&self, drawn: u64) -> (u64, usize) {
        let mut at = drawn / self.owners;
        if at * self.owners + self.index >= self.keys {
            at -= 1;
        }
        (at * self.owners + self.index, at as usize)
    }
}

/// A connection's part in making requests.
#[derive(Debug)]
pub struct Author {
    /// Its own draws, if they are not the thread's.
    own: Option<Source>,
    /// For patterns that every connection walks by itself.
    walks: Vec<Walk>,
    /// Where it stands in the cycle of commands.
    turn: usize,
    /// Its keys, if replies are verified.
    owned: Option<Owned>,
}

impl Author {
    /// The author of connection number `at` of `of`.
    pub fn new(
        plan: &Plan,
        own: Option<Source>,
        owned: Option<Owned>,
        at: usize,
        of: usize,
    ) -> Self {
        let walks = vec![Walk::share(at, of, plan.keys); plan.commands.len()];
        Self { own, walks, turn: at % plan.cycle.len(), owned }
    }

    /// Appends one request to `out` and what its reply must be to `expects`, if that is wanted.
    #[inline]
    pub fn write(
        &mut self,
        plan: &Plan,
        shared: &mut Source,
        out: &mut Vec<u8>,
        expects: Option<&mut VecDeque<Expect>>,
    ) {
        let at = usize::from(plan.cycle[self.turn]);
        self.turn = if self.turn + 1 == plan.cycle.len() { 0 } else { self.turn + 1 };
        let command = &plan.commands[at];
        let source = self.own.as_mut().unwrap_or(shared);
        let walk =
            if command.sampler.is_parallel() { &mut self.walks[at] } else { &mut source.walks[at] };
        let mut filler = Filler {
            plan,
            command,
            number: at,
            prng: &mut source.prng,
            walk,
            owned: self.owned.as_mut(),
            last: (0, 0),
            sum: Some(0),
            expects,
        };
        filler.begin();
        command.template.write(out, &mut filler);
        filler.finish();
    }
}

struct Filler<'a> {
    plan: &'a Plan,
    command: &'a Prepared,
    /// Which of the plan's commands it is.
    number: usize,
    prng: &'a mut Prng,
    walk: &'a mut Walk,
    owned: Option<&'a mut Owned>,
    expects: Option<&'a mut VecDeque<Expect>>,
    /// The key and version that the next value belongs to.
    last: (u64, u32),
    /// What EXISTS or DEL must count, if it is known.
    sum: Option<i64>,
}

impl Filler<'_> {
    /// Notes what is known of the reply before the keys are.
    #[inline]
    fn begin(&mut self) {
        let unknown = self.unknown();
        let Some(expects) = self.expects.as_deref_mut() else { return };
        match (self.command.meaning, self.owned.as_deref_mut()) {
            (Meaning::Mget(len), _) => expects.push_back(Expect::Members(len)),
            (Meaning::Ping, Some(_)) => expects.push_back(Expect::Simple("PONG")),
            (Meaning::Set | Meaning::Mset, Some(_)) => expects.push_back(Expect::Simple("OK")),
            (Meaning::Echo, Some(owned)) => {
                owned.echoes = owned.echoes.wrapping_add(1);
                self.last = (TEN_TO_TWELVE + owned.index, owned.echoes);
                expects.push_back(Expect::Value { key: self.last.0, version: self.last.1 });
            }
            (Meaning::Get | Meaning::Strlen | Meaning::Exists, _) | (Meaning::Del, Some(_)) => {}
            _ => expects.push_back(unknown),
        }
    }

    #[inline]
    fn finish(&mut self) {
        if let Some(expects) = self.expects.as_deref_mut()
            && (self.command.meaning == Meaning::Exists
                || self.command.meaning == Meaning::Del && self.owned.is_some())
        {
            expects.push_back(self.sum.map_or(Expect::Present, Expect::Integer));
        }
    }

    /// What a reply must be of which nothing is known.
    fn unknown(&self) -> Expect {
        if self.command.nil_fails { Expect::Present } else { Expect::Any }
    }

    /// A read of a key that does not exist.
    fn miss(&mut self, drawn: u64) -> u64 {
        if let Some(expects) = self.expects.as_deref_mut() {
            match self.command.meaning {
                Meaning::Strlen => expects.push_back(Expect::Integer(0)),
                Meaning::Exists => {}
                _ => expects.push_back(Expect::Nil),
            }
        }
        TEN_TO_TWELVE - 1 - drawn
    }

    /// A key of a connection that owns it.
    fn verified(&mut self, drawn: u64) -> u64 {
        let owned = self.owned.as_deref_mut().expect("asked for only with owned keys");
        let (own, at) = owned.nearest(drawn);
        let key = self.plan.spec.keys.minimum + own;
        let state = owned.states[at];
        let (known, present) = (state != 0, state & ABSENT == 0);
        let version = u32::from(state & !ABSENT);
        let expect = match self.command.meaning {
            Meaning::Set | Meaning::Mset => {
                // Version 0 means nothing known: it is left out when the number wraps.
                let next = (((state & !ABSENT) + 1) & !ABSENT).max(1);
                owned.states[at] = next;
                self.last = (key, u32::from(next));
                return key;
            }
            Meaning::Del => {
                owned.states[at] = state | ABSENT;
                self.sum = self.sum.filter(|_| known).map(|sum| sum + i64::from(present));
                return key;
            }
            Meaning::Exists => {
                self.sum = self.sum.filter(|_| known).map(|sum| sum + i64::from(present));
                return key;
            }
            _ if !known => Expect::Any,
            Meaning::Strlen if present => {
                Expect::Integer(values::len(key, version, self.plan.spec.data) as i64)
            }
            Meaning::Strlen => Expect::Integer(0),
            _ if present => Expect::Value { key, version },
            _ => Expect::Nil,
        };
        if let Some(expects) = self.expects.as_deref_mut() {
            expects.push_back(expect);
        }
        key
    }
}

impl Fill for Filler<'_> {
    #[inline]
    fn key(&mut self) -> u64 {
        let mut draw = || self.command.sampler.draw(self.prng, self.walk);
        let drawn = match self.owned.as_deref_mut() {
            Some(owned) => owned.next(self.number, draw),
            None => draw(),
        };
        let unknown = self.unknown();
        let Some(expects) = self.expects.as_deref_mut() else {
            return self.plan.spec.keys.minimum + drawn;
        };
        let reads = self.command.meaning.reads();
        if reads && self.plan.spec.misses > 0.0 && unit(self.prng) < self.plan.spec.misses {
            return self.miss(drawn);
        }
        if self.owned.is_some() {
            return self.verified(drawn);
        }
        match self.command.meaning {
            Meaning::Exists => self.sum = None,
            Meaning::Get | Meaning::Mget(_) | Meaning::Strlen => {
                expects.push_back(unknown);
            }
            _ => {}
        }
        self.plan.spec.keys.minimum + drawn
    }

    #[inline]
    fn random(&mut self) -> u64 {
        self.plan.spec.keys.minimum + self.command.sampler.draw(self.prng, self.walk)
    }

    #[inline]
    fn data_len(&mut self) -> usize {
        if self.plan.spec.verify {
            values::len(self.last.0, self.last.1, self.plan.spec.data)
        } else {
            draw_len(self.prng, self.plan.spec.data)
        }
    }

    #[inline]
    fn data(&mut self, into: &mut [u8]) {
        if self.plan.spec.verify {
            values::fill(self.last.0, self.last.1, into);
        }
    }
}
