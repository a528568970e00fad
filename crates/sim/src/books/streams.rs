//! What became of each entry that was added to a stream: it is there once, in an order that the
//! adds allow; each reader has read without gaps; a group has delivered it to one consumer, where
//! it is pending until it is acknowledged.

use crate::session::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A stream: its number and the incarnation of the server.
pub type Stream = (u32, u32);
/// The ID of an entry.
pub type Id = (u64, u64);

/// An entry that somebody adds, by its element.
#[derive(Debug)]
struct Add {
    stream: Stream,
    /// Its ID and when it was answered.
    done: Option<(Id, Span)>,
}

/// A reply to XREAD about one stream.
#[derive(Debug)]
pub struct Read {
    /// Entries after this ID were asked for.
    pub after: Id,
    /// At most so many.
    pub count: usize,
    /// The entries of the reply.
    pub seen: Vec<(Id, u64)>,
    /// When.
    pub span: Span,
}

/// A reply to XREADGROUP.
#[derive(Debug)]
pub struct Delivery {
    /// Who asked.
    pub consumer: String,
    /// The entries of the reply.
    pub entries: Vec<(Id, u64)>,
    /// When.
    pub span: Span,
}

/// What was read from one stream.
#[derive(Debug, Default)]
struct Reads {
    alone: Vec<Read>,
    deliveries: Vec<Delivery>,
    /// Consumers of which a reply to XREADGROUP was lost.
    lost: BTreeSet<String>,
    acknowledged: BTreeSet<Id>,
    /// XACK whose reply was lost.
    perhaps_acknowledged: BTreeSet<Id>,
}

/// All entries of all streams.
#[derive(Debug, Default)]
pub struct Streams {
    adds: BTreeMap<u64, Add>,
    streams: BTreeMap<Stream, Reads>,
}

impl Streams {
    /// An entry with this element will be added.
    pub fn adding(&mut self, stream: Stream, element: u64) {
        self.adds.insert(element, Add { stream, done: None });
    }

    /// The entry was added.
    pub fn added(&mut self, element: u64, id: Id, span: Span) {
        if let Some(add) = self.adds.get_mut(&element) {
            add.done = Some((id, span));
        }
    }

    /// When the addition of this element was answered, nanoseconds.
    pub fn added_ns(&self, element: u64) -> Option<u64> {
        Some(self.adds.get(&element)?.done?.1.ret_ns)
    }

    /// XREAD was answered.
    pub fn read(&mut self, stream: Stream, read: Read) {
        self.streams.entry(stream).or_default().alone.push(read);
    }

    /// XREADGROUP was answered.
    pub fn delivered(&mut self, stream: Stream, delivery: Delivery) {
        self.streams.entry(stream).or_default().deliveries.push(delivery);
    }

    /// XREADGROUP of this consumer had no reply.
    pub fn delivery_lost(&mut self, stream: Stream, consumer: String) {
        self.streams.entry(stream).or_default().lost.insert(consumer);
    }

    /// XACK was answered.
    pub fn acknowledged(&mut self, stream: Stream, id: Id) {
        self.streams.entry(stream).or_default().acknowledged.insert(id);
    }

    /// XACK had no reply.
    pub fn ack_lost(&mut self, stream: Stream, id: Id) {
        self.streams.entry(stream).or_default().perhaps_acknowledged.insert(id);
    }

    /// Replies that were read.
    pub fn len(&self) -> usize {
        self.streams.values().map(|stream| stream.alone.len() + stream.deliveries.len()).sum()
    }

    /// True if nothing was read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all that was answered can be true of a stream which has these entries, of which
    /// these are pending, each for a consumer.
    pub fn check(
        &self,
        stream: Stream,
        entries: &[(Id, u64)],
        pending: &BTreeMap<Id, String>,
    ) -> Result<(), String> {
        let about = |what: String| format!("stream {stream:?}: {what}");
        self.check_adds(stream, entries).map_err(about)?;
        let Some(reads) = self.streams.get(&stream) else { return Ok(()) };
        for read in &reads.alone {
            self.check_read(read, entries).map_err(about)?;
        }
        self.check_group(reads, entries, pending).map_err(about)
    }

    /// Each entry is there once, and in the order of adds which followed one another.
    fn check_adds(&self, stream: Stream, entries: &[(Id, u64)]) -> Result<(), String> {
        let found: BTreeMap<u64, Id> =
            entries.iter().map(|(id, element)| (*element, *id)).collect();
        if found.len() < entries.len() || !entries.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(format!("an entry is there twice, or out of order: {entries:?}"));
        }
        for (element, add) in self.adds.iter().filter(|(_, add)| add.stream == stream) {
            if let Some((id, _)) = add.done
                && found.get(element) != Some(&id)
            {
                let found = found.get(element);
                return Err(format!("entry {element} was added as {id:?} and is {found:?}"));
            }
        }
        let mut sent_last = (0, 0);
        for (_, element) in entries {
            let Some(add) = self.adds.get(element).filter(|add| add.stream == stream) else {
                return Err(format!("nobody added entry {element}"));
            };
            let Some((_, span)) = add.done else { continue };
            if span.ret < sent_last.0 {
                return Err(format!("entry {element} is behind {}, which came later", sent_last.1));
            }
            sent_last = sent_last.max((span.call, *element));
        }
        Ok(())
    }

    /// A read returns the entries which follow, and is not stale.
    fn check_read(&self, read: &Read, entries: &[(Id, u64)]) -> Result<(), String> {
        let from = entries.partition_point(|(id, _)| *id <= read.after);
        let follow = &entries[from..];
        if follow.get(..read.seen.len()) != Some(&read.seen[..]) {
            return Err(format!("{read:?} has a gap: {follow:?} follow"));
        }
        let next = follow.get(read.seen.len()).filter(|_| read.seen.len() < read.count);
        match next {
            Some((_, element)) if self.was_there(*element, read.span) => {
                Err(format!("{read:?} is stale: entry {element} was there before"))
            }
            _ => Ok(()),
        }
    }

    /// True if this element was added before a request was sent.
    fn was_there(&self, element: u64, request: Span) -> bool {
        let done = self.adds.get(&element).and_then(|add| add.done);
        done.is_some_and(|(_, span)| span.ret < request.call)
    }

    fn check_group(
        &self,
        reads: &Reads,
        entries: &[(Id, u64)],
        pending: &BTreeMap<Id, String>,
    ) -> Result<(), String> {
        let mut owners: BTreeMap<Id, &Delivery> = BTreeMap::new();
        for delivery in &reads.deliveries {
            for entry in &delivery.entries {
                if entries.binary_search(entry).is_err() {
                    return Err(format!("{entry:?} was delivered and is not there"));
                }
                if let Some(other) = owners.insert(entry.0, delivery) {
                    return Err(format!("{entry:?} was delivered twice: {other:?}, {delivery:?}"));
                }
            }
        }
        check_order(&reads.deliveries)?;
        let last = owners.keys().chain(pending.keys()).max().copied().unwrap_or_default();
        for (id, element) in entries {
            match (owners.get(id), pending.get(id)) {
                (Some(_), None) if reads.acknowledged.contains(id) => {}
                (Some(_), _) if reads.perhaps_acknowledged.contains(id) => {}
                (Some(delivery), Some(consumer))
                    if delivery.consumer == *consumer && !reads.acknowledged.contains(id) => {}
                (None, Some(consumer)) if reads.lost.contains(consumer) => {}
                (None, None) if *id > last => self.check_in_vain(reads, *element, None)?,
                (delivery, pending) => {
                    return Err(format!(
                        "entry {element}: delivered by {delivery:?}, pending for {pending:?}, \
                         {last:?} is the last that was delivered"
                    ));
                }
            }
            if let Some(delivery) = owners.get(id) {
                self.check_in_vain(reads, *element, Some(delivery.span))?;
            }
        }
        Ok(())
    }

    /// Nobody got nothing while this element was there, and before it was delivered.
    fn check_in_vain(
        &self,
        reads: &Reads,
        element: u64,
        delivered: Option<Span>,
    ) -> Result<(), String> {
        let in_vain = |d: &&Delivery| {
            let is_before = delivered.is_none_or(|span| d.span.ret < span.call);
            d.entries.is_empty() && is_before && self.was_there(element, d.span)
        };
        match reads.deliveries.iter().find(in_vain) {
            Some(delivery) => Err(format!("entry {element} was there, and not in {delivery:?}")),
            None => Ok(()),
        }
    }
}

/// Deliveries which followed one another have their entries in order.
fn check_order(deliveries: &[Delivery]) -> Result<(), String> {
    let mut by_call: Vec<&Delivery> =
        deliveries.iter().filter(|delivery| !delivery.entries.is_empty()).collect();
    by_call.sort_by_key(|delivery| delivery.span.call);
    for (at, later) in by_call.iter().enumerate() {
        let is_earlier = |earlier: &&&Delivery| {
            earlier.span.ret < later.span.call && earlier.entries.last() > later.entries.first()
        };
        if let Some(earlier) = by_call[..at].iter().find(is_earlier) {
            return Err(format!("{later:?} came after {earlier:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Stream = (0, 0);
    const ENTRIES: [(Id, u64); 3] = [((1, 0), 1), ((2, 0), 2), ((3, 0), 3)];

    fn span(call: u64, ret: u64) -> Span {
        Span { call, ret, call_ns: call, ret_ns: ret, accepted_ns: 0 }
    }

    /// Entries 1 to 3, added at 1 to 2, 3 to 4 and 5 to 6.
    fn streams() -> Streams {
        let mut streams = Streams::default();
        for (id, element) in ENTRIES {
            streams.adding(S, element);
            streams.added(element, id, span(2 * element - 1, 2 * element));
        }
        streams
    }

    fn check(streams: &Streams, entries: &[(Id, u64)], pending: &[(Id, &str)]) -> bool {
        let pending = pending.iter().map(|(id, who)| (*id, (*who).to_owned())).collect();
        streams.check(S, entries, &pending).is_ok()
    }

    fn deliver(streams: &mut Streams, consumer: &str, entries: &[(Id, u64)], call: u64) {
        let (consumer, entries) = (consumer.to_owned(), entries.to_vec());
        streams.delivered(S, Delivery { consumer, entries, span: span(call, call + 1) });
    }

    #[test]
    fn entries_which_are_lost_or_change_places_are_found() {
        assert!(check(&streams(), &ENTRIES, &[]));
        assert!(!check(&streams(), &ENTRIES[..2], &[]), "3 is lost");
        let swapped = [((1, 0), 2), ((2, 0), 1), ((3, 0), 3)];
        assert!(!check(&streams(), &swapped, &[]));
    }

    #[test]
    fn a_read_with_a_gap_and_a_stale_one_are_found() {
        let read = |after, seen: &[(Id, u64)], count, call| {
            let mut all = streams();
            let read = Read { after, count, seen: seen.to_vec(), span: span(call, 99) };
            all.read(S, read);
            check(&all, &ENTRIES, &[])
        };
        assert!(read((0, 0), &ENTRIES, 9, 50) && read((1, 0), &ENTRIES[1..2], 1, 50));
        assert!(read((2, 0), &[], 9, 5), "3 was not there yet");
        assert!(!read((0, 0), &ENTRIES[1..], 9, 50), "1 is missing");
        assert!(!read((0, 0), &ENTRIES[..2], 9, 50), "3 was there");
    }

    #[test]
    fn a_group_delivers_each_entry_once_and_forgets_none() {
        let mut all = streams();
        deliver(&mut all, "a", &ENTRIES[..1], 10);
        assert!(check(&all, &ENTRIES, &[((1, 0), "a")]));
        assert!(!check(&all, &ENTRIES, &[]), "it is neither acknowledged nor pending");
        assert!(!check(&all, &ENTRIES, &[((1, 0), "b")]));
        assert!(!check(&all, &ENTRIES, &[((1, 0), "a"), ((2, 0), "b")]), "nobody asked for 2");
        all.delivery_lost(S, "b".to_owned());
        assert!(check(&all, &ENTRIES, &[((1, 0), "a"), ((2, 0), "b")]));
        assert!(!check(&all, &ENTRIES, &[((1, 0), "a"), ((3, 0), "b")]), "2 is left out");
        all.acknowledged(S, (1, 0));
        assert!(check(&all, &ENTRIES, &[]));
        deliver(&mut all, "b", &[], 20);
        assert!(!check(&all, &ENTRIES, &[]), "2 was there");
        let mut twice = streams();
        deliver(&mut twice, "a", &ENTRIES[..1], 10);
        deliver(&mut twice, "b", &ENTRIES[..1], 20);
        assert!(!check(&twice, &ENTRIES, &[((1, 0), "a")]));
        let mut back = streams();
        deliver(&mut back, "a", &ENTRIES[1..], 10);
        deliver(&mut back, "b", &ENTRIES[..1], 20);
        let pending = [((1, 0), "b"), ((2, 0), "a"), ((3, 0), "a")];
        assert!(!check(&back, &ENTRIES, &pending), "1 comes after 2");
    }
}
