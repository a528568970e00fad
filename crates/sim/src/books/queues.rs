//! What became of each element that was pushed: no element is lost, none comes twice, and those of
//! one producer come in its order.

use crate::session::Span;
use std::collections::BTreeMap;

/// A queue: its number and the incarnation of the server.
pub type Queue = (u32, u32);
/// Who pushes: the number of a client, and that of its connection.
pub type Pusher = (u32, u32);

/// An element.
#[derive(Debug, Default)]
struct Element {
    queue: Queue,
    by: Pusher,
    push: Push,
    pops: Vec<Span>,
    /// It was popped by a command that moves it.
    moves: bool,
    /// Found in its queue when all was over.
    left: u32,
    /// Found where it was moved to when all was over.
    moved: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Push {
    /// No reply has come, or none ever will.
    #[default]
    Unknown,
    /// It was answered.
    Done {
        /// When.
        ret_ns: u64,
    },
}

/// All elements of all queues.
#[derive(Debug, Default)]
pub struct Queues {
    elements: BTreeMap<u64, Element>,
    /// Pops without a reply: each may have taken as many elements as it may take.
    lost_pops: BTreeMap<u32, u64>,
    wrong: Option<String>,
    /// Pops that waited for what they got.
    pub served: u64,
}

impl Queues {
    /// `element` will be pushed by `by`.
    pub fn pushing(&mut self, queue: Queue, element: u64, by: Pusher) {
        self.elements.insert(element, Element { queue, by, ..Element::default() });
    }

    /// The push was answered.
    pub fn pushed(&mut self, element: u64, span: Span) {
        if let Some(known) = self.elements.get_mut(&element) {
            known.push = Push::Done { ret_ns: span.ret_ns };
        }
    }

    /// A pop got this element of this queue, perhaps by moving it. `is_late`: it comes late to
    /// somebody who waited when the push was answered.
    pub fn popped(
        &mut self,
        (queue, element): (Queue, u64),
        span: Span,
        is_late: bool,
        moves: bool,
    ) {
        let Some(known) = self.elements.get_mut(&element) else {
            self.wrong.get_or_insert(format!("{element} was popped, and nobody pushed it"));
            return;
        };
        if known.queue != queue {
            self.wrong.get_or_insert(format!("{element} was popped from another queue: {queue:?}"));
        }
        known.pops.push(span);
        known.moves |= moves;
        if let Push::Done { ret_ns } = known.push
            && ret_ns > span.call_ns
        {
            self.served += 1;
            if is_late {
                let late = span.ret_ns.saturating_sub(ret_ns) / 1_000_000;
                let text = format!("a stall: {element} came {late} ms after its push was answered");
                self.wrong.get_or_insert(text);
            }
        }
        if known.pops.len() > 1 {
            self.wrong.get_or_insert(format!("{element} was popped twice: {:?}", known.pops));
        }
    }

    /// When the push of this element was answered, nanoseconds.
    pub fn answered_ns(&self, element: u64) -> Option<u64> {
        match self.elements.get(&element)?.push {
            Push::Done { ret_ns } => Some(ret_ns),
            Push::Unknown => None,
        }
    }

    /// A pop ended without a reply; it may have taken so many elements.
    pub fn pop_lost(&mut self, epoch: u32, elements: u64) {
        *self.lost_pops.entry(epoch).or_default() += elements;
    }

    /// What is in a queue at the end.
    pub fn left(&mut self, queue: Queue, elements: &[u64]) {
        for element in elements {
            match self.elements.get_mut(element) {
                Some(known) if known.queue == queue => known.left += 1,
                _ => {
                    let text =
                        format!("{element} is in queue {queue:?}, and nobody pushed it there");
                    self.wrong.get_or_insert(text);
                }
            }
        }
    }

    /// What was moved from the queues of one incarnation of the server, in the order of the moves.
    /// The error is what is wrong with the order.
    pub fn moved(&mut self, elements: &[u64]) -> Result<(), String> {
        let mut last: BTreeMap<(Queue, Pusher), u64> = BTreeMap::new();
        for element in elements {
            let Some(known) = self.elements.get_mut(element) else {
                return Err(format!("{element} was moved, and nobody pushed it"));
            };
            known.moved += 1;
            let before = last.insert((known.queue, known.by), *element).unwrap_or(0);
            if before >= *element {
                return Err(format!("{element} was moved after {before}, which is younger"));
            }
        }
        Ok(())
    }

    /// Something that was wrong at once.
    pub fn wrong(&self) -> Option<&String> {
        self.wrong.as_ref()
    }

    /// Elements which were lost in the incarnation that has lived to the end.
    pub fn check_lost(&self, epoch: u32) -> Result<(), String> {
        let mut missing = Vec::new();
        for (element, known) in self.elements.iter().filter(|(_, e)| e.queue.1 == epoch) {
            let popped = known.pops.len() as u32;
            // A move may have lost its reply, but not the element.
            let seen = known.left + if known.moves { 1 } else { popped + known.moved };
            if seen > 1 || known.moved > 1 || known.moves && known.moved == 0 {
                return Err(format!("element {element} is there {seen} times: {known:?}"));
            }
            if seen == 0 && known.push != Push::Unknown {
                missing.push(*element);
            }
        }
        let lost = self.lost_pops.get(&epoch).copied().unwrap_or(0);
        if missing.len() as u64 > lost {
            return Err(format!(
                "elements were lost: {missing:?} are neither popped nor left, and only {lost} \
                 could be in replies that never came"
            ));
        }
        Ok(())
    }

    /// Whether what was seen so far can be true: the elements of each producer come in its order.
    pub fn check(&self) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let mut last: BTreeMap<(Queue, Pusher), (u64, u64)> = BTreeMap::new();
        // Elements are numbered in the order in which they are pushed.
        for (element, known) in &self.elements {
            let Some(pop) = known.pops.first() else { continue };
            let before = last.entry((known.queue, known.by)).or_insert((0, 0));
            if pop.ret < before.0 {
                return Err(format!(
                    "queue {:?}: {element} of c{} was popped before its earlier {}",
                    known.queue, known.by.0, before.1
                ));
            }
            if pop.call > before.0 {
                *before = (pop.call, *element);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: Queue = (0, 0);

    fn span(call: u64, ret: u64) -> Span {
        Span { call, ret, call_ns: call, ret_ns: ret, accepted_ns: 0 }
    }

    fn queues(pushes: &[u64]) -> Queues {
        let mut queues = Queues::default();
        for element in pushes {
            queues.pushing(Q, *element, (7, 0));
            queues.pushed(*element, span(1, 2));
        }
        queues
    }

    #[test]
    fn what_is_lost_or_doubled_is_found() {
        let mut all = queues(&[1, 2, 3]);
        all.popped((Q, 1), span(3, 4), false, false);
        all.left(Q, &[3]);
        let told = all.check_lost(0).expect_err("2 is nowhere");
        assert!(told.contains("[2]"), "{told}");
        all.pop_lost(0, 1);
        assert_eq!((all.check_lost(0), all.check()), (Ok(()), Ok(())));
        all.popped((Q, 1), span(5, 6), false, false);
        assert!(all.check().expect_err("twice").contains("twice"));
    }

    #[test]
    fn an_element_that_is_popped_and_left_is_found() {
        let mut all = queues(&[1]);
        all.popped((Q, 1), span(3, 4), false, false);
        all.left(Q, &[1]);
        assert!(all.check_lost(0).is_err());
    }

    #[test]
    fn what_is_moved_is_where_it_was_moved_to() {
        let mut all = queues(&[1, 2, 3]);
        all.left(Q, &[3]);
        all.popped((Q, 1), span(3, 4), false, true);
        assert!(all.check_lost(0).is_err(), "1 is nowhere");
        assert_eq!(all.moved(&[1, 2]), Ok(()), "the reply about 2 was lost");
        assert_eq!(all.check_lost(0), Ok(()));
        assert!(queues(&[1, 2]).moved(&[2, 1]).is_err(), "they change places");
        assert!(all.moved(&[2]).is_ok() && all.check_lost(0).is_err(), "2 is there twice");
    }

    #[test]
    fn the_order_of_one_producer_is_kept() {
        let mut all = queues(&[1, 2]);
        all.popped((Q, 2), span(3, 4), false, false);
        all.popped((Q, 1), span(4, 6), false, false);
        assert_eq!(all.check(), Ok(()), "they were under way together");
        let mut all = queues(&[1, 2]);
        all.popped((Q, 2), span(3, 4), false, false);
        all.popped((Q, 1), span(5, 6), false, false);
        assert!(all.check().is_err());
    }

    #[test]
    fn an_element_that_comes_late_is_a_stall() {
        let mut all = Queues::default();
        all.pushing(Q, 1, (7, 0));
        all.pushed(1, span(10, 20));
        all.popped((Q, 1), span(5, 90), true, false);
        assert!(all.check().expect_err("late").contains("stall"));
    }
}
