//! Moving elements within one list: LMOVE and LMOVEM of a key to itself.

use value::list::Item;
use value::packed::Elem;

use super::Edit;
use crate::list::element::{OwnedElement, text_len};
use crate::list::end::End;
use crate::list::packed::{append, last};
use crate::list::view::{View, of_big_mut, offset};

impl Edit<'_, '_> {
    /// Moves an element from one end to the other; `moved` sees it.
    pub fn rotate(&mut self, from: End, to: End, moved: impl FnOnce(Item<'_>)) {
        if let View::Small(packed) = View::of(self.entry.entry()) {
            let bytes = packed.as_bytes();
            let start = if from == End::Front { 0 } else { last(bytes) };
            let (elem, len) = Elem::first(&bytes[start..]).expect("one at least");
            moved(Item::Near(elem));
            let (element, rest) = match from {
                End::Front => bytes.split_at(len),
                End::Back => (&bytes[start..], &bytes[..start]),
            };
            let (first, second) = if to == End::Front { (element, rest) } else { (rest, element) };
            self.scratch.clear();
            self.scratch.extend_from_slice(first);
            self.scratch.extend_from_slice(second);
            let coming = || (1, elem.len() as u64);
            let called = self.limit.turned_packed(rest, self.scratch, self.called(), coming);
            return self.entry.set_packed(called, self.scratch);
        }
        let (limit, was) = (self.limit, self.called());
        let called = self.entry.edit(|big, log| {
            let list = of_big_mut(big);
            let at = |end, len| if end == End::Front { 0 } else { len };
            let from = at(from, list.len() - 1);
            let kept = list.get(from).map(|item| {
                moved(item);
                OwnedElement::of(item)
            });
            let kept = kept.expect("one at least");
            list.remove(from, log, |_| ());
            let grown = limit.growing_big(list, was, || (1, text_len(&kept.as_new())));
            list.insert_new(at(to, list.len()), kept.as_new(), log);
            limit.big(list, grown, false)
        });
        if called != was {
            self.entry.set_encoding(called);
        }
    }

    /// Moves elements from one end to the same or the other; `items` are they, in the order in
    /// which they stand then.
    pub fn turn(&mut self, from: End, to: End, items: &[OwnedElement]) {
        let count = items.len() as u64;
        let coming = || (count, items.iter().map(|kept| text_len(&kept.as_new())).sum());
        if let View::Small(packed) = View::of(self.entry.entry()) {
            let bytes = packed.as_bytes();
            let rest = match from {
                End::Front => &bytes[offset(packed, count)..],
                End::Back => &bytes[..offset(packed, packed.count() as u64 - count)],
            };
            self.scratch.clear();
            if to == End::Back {
                self.scratch.extend_from_slice(rest);
            }
            let fits = items.iter().all(|kept| append(self.scratch, &kept.as_new()));
            assert!(fits, "what was packed is as long again");
            if to == End::Front {
                self.scratch.extend_from_slice(rest);
            }
            let called = self.limit.turned_packed(rest, self.scratch, self.called(), coming);
            return self.entry.set_packed(called, self.scratch);
        }
        let (limit, was) = (self.limit, self.called());
        let called = self.entry.edit(|big, log| {
            log.capture(big);
            let list = of_big_mut(big);
            list.remove_range(if from == End::Front { 0 } else { list.len() - count }, count);
            let grown = limit.growing_big(list, was, coming);
            let at = if to == End::Front { 0 } else { list.len() };
            for (i, kept) in (at..).zip(items) {
                list.insert_new(i, kept.as_new(), log);
            }
            limit.big(list, grown, false)
        });
        if called != was {
            self.entry.set_encoding(called);
        }
    }
}
