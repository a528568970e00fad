//! What was saved, what a server has promised about it, and when each server died.
//!
//! The client that saves writes a number, the *mark*, before it asks for a save. So the mark which
//! a later server finds tells between which two events the moment of its file lies. Then the state
//! that this server has loaded must be one that a reader of all keys could have seen at that time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One mark and the save behind it. Times are ticks.
#[derive(Debug)]
struct Mark {
    /// Before its SET was sent.
    asked: u64,
    /// Its SET was answered.
    set: Option<u64>,
    /// When, nanoseconds.
    set_ns: u64,
    /// The moment of its save was over: SAVE or BGSAVE was answered.
    saved: Option<u64>,
    /// Its file is durable.
    is_promised: bool,
}

/// The end of a server.
#[derive(Clone, Copy, Debug)]
struct Death {
    tick: u64,
    ns: u64,
    in_order: bool,
}

/// The servers of a run and their saves.
#[derive(Debug, Default)]
pub struct Saves {
    /// By server; the first mark is 1.
    marks: BTreeMap<u32, Vec<Mark>>,
    /// Servers which were told to end without a save.
    unsaved: Vec<u32>,
    deaths: BTreeMap<u32, Death>,
    /// Saves that were acknowledged.
    pub promised: u64,
}

impl Saves {
    /// The next mark of this server.
    pub fn next(&mut self, epoch: u32, asked: u64) -> usize {
        let marks = self.marks.entry(epoch).or_default();
        marks.push(Mark { asked, set: None, set_ns: 0, saved: None, is_promised: false });
        marks.len()
    }

    /// The SET of a mark was answered.
    pub fn set(&mut self, epoch: u32, mark: usize, (tick, ns): (u64, u64)) {
        let mark = self.mark(epoch, mark);
        (mark.set, mark.set_ns) = (Some(tick), ns);
    }

    /// The moment of the save with this mark was over.
    pub fn saved(&mut self, epoch: u32, mark: usize, tick: u64) {
        self.mark(epoch, mark).saved = Some(tick);
    }

    /// The file with this mark is durable.
    pub fn promise(&mut self, epoch: u32, mark: usize) {
        self.mark(epoch, mark).is_promised = true;
        self.promised += 1;
    }

    /// The server was told to end without a save.
    pub fn end_unsaved(&mut self, epoch: u32) {
        self.unsaved.push(epoch);
    }

    /// A server has died, or has ended in order.
    pub fn died(&mut self, epoch: u32, (tick, ns): (u64, u64), in_order: bool) {
        self.deaths.insert(epoch, Death { tick, ns, in_order });
    }

    /// Whether a server has saved everything behind its last write, and when it died.
    fn end_of(&self, epoch: u32) -> (u64, bool) {
        let has_saved = |death: &Death| death.in_order && !self.unsaved.contains(&epoch);
        self.deaths.get(&epoch).map_or((u64::MAX, false), |death| (death.tick, has_saved(death)))
    }

    /// Servers that ended behind a save.
    pub fn ends_saved(&self) -> usize {
        self.deaths.keys().filter(|epoch| self.end_of(**epoch).1).count()
    }

    /// Between which ticks the moment lies at which the data of this server was saved, if its mark
    /// was found in what a later server has loaded; 0: none. `on_request`: nobody but the client
    /// with the marks has saved. The error is a broken promise.
    pub fn moment(
        &self,
        epoch: u32,
        found: usize,
        on_request: bool,
    ) -> Result<RangeInclusive<u64>, String> {
        let none = Vec::new();
        let marks = self.marks.get(&epoch).unwrap_or(&none);
        let (died, has_saved) = self.end_of(epoch);
        let last = |is: &dyn Fn(&Mark) -> bool| marks.iter().rposition(is).map_or(0, |at| at + 1);
        let (promised, set) = (last(&|m| m.is_promised), last(&|m| m.set.is_some()));
        if found > marks.len() {
            return Err(format!("the data of server {epoch} have mark {found}, which nobody set"));
        }
        if found < promised {
            return Err(format!(
                "a save is lost: that of mark {promised} of server {epoch} was acknowledged, and \
                 the data have mark {found}"
            ));
        }
        if has_saved && found < set {
            return Err(format!(
                "server {epoch} has saved before its end, and the data have mark {found} of {set}"
            ));
        }
        if has_saved {
            return Ok(died..=died);
        }
        let own = found.checked_sub(1).map(|at| &marks[at]);
        let next = marks.get(found).and_then(|next| next.set);
        let saved = own.and_then(|own| own.saved).filter(|_| on_request);
        let until = [next, saved].into_iter().flatten().fold(died, u64::min);
        Ok(own.map_or(0, |own| own.asked)..=until)
    }

    /// As [`Saves::moment`], for the end of an append-only file: what was answered longer than
    /// `window_ns` before the server died is there, and everything if it ended in order.
    pub fn appended(
        &self,
        epoch: u32,
        found: usize,
        window_ns: Option<u64>,
    ) -> Result<RangeInclusive<u64>, String> {
        let none = Vec::new();
        let marks = self.marks.get(&epoch).unwrap_or(&none);
        let whole = Death { tick: u64::MAX, ns: u64::MAX, in_order: false };
        let death = self.deaths.get(&epoch).copied().unwrap_or(whole);
        if found > marks.len() {
            return Err(format!("the data of server {epoch} have mark {found}, which nobody set"));
        }
        let until_ns = match window_ns {
            Some(_) if death.in_order => u64::MAX,
            Some(window_ns) => death.ns.saturating_sub(window_ns),
            None => 0,
        };
        let is_old = |m: &Mark| m.set.is_some() && m.set_ns < until_ns;
        let owed = marks.iter().rposition(is_old).map_or(0, |at| at + 1);
        if found < owed {
            return Err(format!(
                "server {epoch} has died at {} ns, and what is found has mark {found}; mark {owed} \
                 was answered at {} ns",
                death.ns,
                marks[owed - 1].set_ns
            ));
        }
        let own = found.checked_sub(1).map(|at| &marks[at]);
        let next = marks.get(found).and_then(|next| next.set);
        Ok(own.map_or(0, |own| own.asked)..=next.unwrap_or(death.tick).min(death.tick))
    }

    fn mark(&mut self, epoch: u32, mark: usize) -> &mut Mark {
        let marks = self.marks.get_mut(&epoch).expect("it has been set");
        &mut marks[mark - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks 1 and 2, asked for at 10 and 20, set at 11 and 21, saved by 12 and 22.
    fn two() -> Saves {
        let mut saves = Saves::default();
        for tick in [10, 20] {
            let mark = saves.next(0, tick);
            saves.set(0, mark, (tick + 1, tick));
            saves.saved(0, mark, tick + 2);
        }
        saves
    }

    #[test]
    fn a_mark_tells_the_moment() {
        let mut saves = two();
        saves.died(0, (30, 30), false);
        assert_eq!(saves.moment(0, 0, true), Ok(0..=11));
        assert_eq!(saves.moment(0, 1, true), Ok(10..=12));
        assert_eq!(saves.moment(0, 1, false), Ok(10..=21), "a save point may have saved later");
        assert_eq!(saves.moment(0, 2, true), Ok(20..=22));
        assert_eq!(saves.moment(0, 2, false), Ok(20..=30));
        assert_eq!(saves.moment(1, 0, true), Ok(0..=u64::MAX), "this server had no client");
        assert!(saves.moment(0, 3, true).expect_err("no such mark").contains("nobody set"));
    }

    #[test]
    fn a_broken_promise_is_told() {
        let mut saves = two();
        saves.promise(0, 1);
        assert!(saves.moment(0, 0, true).expect_err("1 was promised").contains("is lost"));
        assert_eq!(saves.moment(0, 1, true), Ok(10..=12));
        let mut saves = two();
        saves.died(0, (30, 30), true);
        assert!(saves.moment(0, 1, true).expect_err("2 was set").contains("before its end"));
        assert_eq!(saves.moment(0, 2, true), Ok(30..=30));
        saves.end_unsaved(0);
        saves.died(0, (30, 30), true);
        assert_eq!(saves.moment(0, 1, true), Ok(10..=12), "it ended without a save");
    }
}
