//! A stream compared with a model; undo; memory per entry.

use super::*;
use crate::big::Big;
use crate::log::Log;
use crate::string::IntText;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LIMITS: Limits = Limits { bytes: 4096, entries: 100 };

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(fields: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    fields.iter().map(|(name, value)| (&name[..], &value[..]))
}

fn read(entry: Entry<'_>) -> (StreamId, Fields) {
    let (mut a, mut b) = (IntText::default(), IntText::default());
    let text = |(name, value): (crate::packed::Elem<'_>, crate::packed::Elem<'_>)| {
        (name.bytes(&mut a).to_vec(), value.bytes(&mut b).to_vec())
    };
    (entry.id, entry.fields().map(text).collect())
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "temperature", "17", "-40000"]).prop_map(Vec::from),
        2 => (0..400usize).prop_map(|len| vec![b'x'; len]),
        1 => prop::sample::select(vec![4000, 66_000usize]).prop_map(|len| vec![b'y'; len]),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Add(u64, u64, Fields),
    Delete(usize),
    Trim(usize),
    TrimMiddle(usize, usize),
    Read(usize, usize, bool),
    Acknowledge(usize),
    Release(usize),
    Create(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fields = prop::collection::vec(
        (prop::sample::select(vec![b"f".to_vec(), b"g".to_vec()]), texts()),
        1..4,
    );
    let step = prop_oneof![
        10 => (prop_oneof![Just(0), 1..5u64, Just(1 << 40)], prop_oneof![Just(0), 1..3u64, Just(1 << 50)], fields)
            .prop_map(|(ms, seq, fields)| Step::Add(ms, seq, fields)),
        3 => any::<prop::sample::Index>().prop_map(|i| Step::Delete(i.index(1000))),
        1 => (0..30usize).prop_map(Step::Trim),
        1 => (0..300usize, 0..30usize).prop_map(|(at, count)| Step::TrimMiddle(at, count)),
        2 => (0..3usize, 1..200usize, any::<bool>()).prop_map(|(c, n, old)| Step::Read(c, n, old)),
        2 => any::<prop::sample::Index>().prop_map(|i| Step::Acknowledge(i.index(1000))),
        1 => any::<prop::sample::Index>().prop_map(|i| Step::Release(i.index(1000))),
        1 => (0..9usize).prop_map(Step::Create),
    ];
    prop::collection::vec(step, 1..400)
}

/// Everything observable of a stream.
#[allow(clippy::type_complexity)] // it holds all parts of a stream
fn snapshot(stream: &Stream) -> (Vec<(StreamId, Fields)>, Marks, Vec<String>, u64) {
    let groups = stream.groups().map(|(name, group)| {
        let pending: Vec<_> = group.pending_from(StreamId::MIN).copied().collect();
        let consumers: Vec<_> = group
            .consumers()
            .map(|(id, c)| {
                let ids: Vec<_> = c.pending_from(StreamId::MIN).copied().collect();
                assert!(ids.iter().all(|i| group.get(*i).is_some_and(|row| row.consumer == id)));
                (c.name().to_vec(), c.seen_ms, c.active_ms, ids)
            })
            .collect();
        let ahead = stream.iter().filter(|entry| entry.id > group.last).count();
        assert_eq!(stream.lag(group), ahead as u64, "what is ahead of a group");
        let total: usize = consumers.iter().map(|(.., ids)| ids.len()).sum();
        let released = pending.iter().filter(|row| row.consumer == ConsumerId::NOBODY).count();
        assert_eq!(total + released, pending.len(), "each pending entry belongs to one consumer");
        format!("{name:?} {} {:?} {pending:?} {consumers:?}", group.last, group.read)
    });
    let weight = stream.pages().map(Page::listpack).sum();
    (stream.iter().map(read).collect(), stream.marks(), groups.collect(), weight)
}

fn of(big: &mut Big) -> &mut Stream {
    if let Big::Stream(stream) = big { stream } else { unreachable!("a stream") }
}

/// Delivers `count` entries to a consumer, from the first entry or from the group's position.
fn deliver(big: &mut Big, who: usize, count: usize, old: bool, log: &mut Log) {
    let name = format!("c{who}");
    let stream = of(big);
    let at = stream.find_group(b"g").expect("it was made");
    let id = stream.group(at).find(name.as_bytes()).unwrap_or_else(|| {
        log.capture(big);
        of(big).edit_group(at, |group| group.add_consumer(name.as_bytes(), 1, -1))
    });
    let stream = of(big);
    let from =
        if old { StreamId::MIN } else { stream.group(at).last.next().expect("not the last") };
    let ids: Vec<_> = stream.iter_from_id(from).take(count).map(|entry| entry.id).collect();
    for id_of in &ids {
        let row = Pending { id: *id_of, at_ms: count as i64, count: 1, consumer: id };
        stream.deliver(at, row, log);
    }
    let last = ids.last().copied().unwrap_or(stream.group(at).last);
    stream.advance(at, last, Some(count as u64), log);
    stream.set_consumer_times(at, id, count as i64, 2, log);
}

/// Applies a step to the stream and to the model.
fn apply(big: &mut Big, model: &mut BTreeMap<StreamId, Fields>, step: &Step, log: &mut Log) {
    let stream = of(big);
    let nth = |at: usize| model.keys().nth(at % model.len().max(1)).copied();
    match step {
        Step::Add(ms, seq, fields) => {
            let last = stream.marks().last;
            let id = StreamId::new(last.ms + ms, if *ms == 0 { last.seq + 1 + seq } else { *seq });
            let size = fields.iter().map(|(n, v)| n.len() + v.len()).sum::<usize>() as u64;
            stream.add(id, pairs(fields), size, LIMITS, log);
            model.insert(id, fields.clone());
        }
        Step::Delete(at) => {
            if let Some(id) = nth(*at) {
                log.capture(big);
                assert!(of(big).delete(id) && !of(big).delete(id));
                model.remove(&id);
            }
        }
        Step::Trim(_) | Step::TrimMiddle(..) => {
            let (at, count) = match step {
                Step::TrimMiddle(at, count) => (*at, *count),
                Step::Trim(count) => (0, *count),
                _ => unreachable!("one of both"),
            };
            let at = at.min(model.len());
            let count = count.min(model.len() - at);
            log.capture(big);
            of(big).trim(at as u64..(at + count) as u64);
            let gone: Vec<_> = model.keys().skip(at).take(count).copied().collect();
            model.retain(|id, _| !gone.contains(id));
        }
        Step::Read(who, count, old) => deliver(big, *who, *count, *old, log),
        Step::Create(n) => {
            let name = format!("g{n}");
            let was = stream.find_group(name.as_bytes());
            let group = Group::new(StreamId::new(*n as u64, 0), None);
            assert_eq!(stream.create_group(name.as_bytes(), group, log), was.is_none());
        }
        Step::Release(at) => {
            if let Some(id) = nth(*at) {
                let at = stream.find_group(b"g").expect("it was made");
                let (count, consumer) = (7, ConsumerId::NOBODY);
                stream.deliver(at, Pending { id, at_ms: 0, count, consumer }, log);
                assert_eq!(
                    stream.group(at).owner_name(&Pending { id, at_ms: 0, count, consumer }),
                    b""
                );
            }
        }
        Step::Acknowledge(at) => {
            if let Some(id) = nth(*at) {
                let at = stream.find_group(b"g").expect("it was made");
                stream.acknowledge(at, id, log);
            }
        }
    }
}

fn with_group() -> Big {
    let mut stream = Stream::new();
    assert!(stream.add_group(b"g", Group::new(StreamId::MIN, None)));
    Big::Stream(stream)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_behaves_like_its_model(steps in steps()) {
        let (mut big, mut model, mut log) = (with_group(), BTreeMap::new(), Log::default());
        for (n, step) in steps.iter().enumerate() {
            let kept = (n % 17 == 0).then(|| (big.clone(), snapshot(of(&mut big.clone()))));
            apply(&mut big, &mut model, step, &mut log);
            if let Some((mut kept, was)) = kept {
                prop_assert_eq!(snapshot(of(&mut kept)), was, "a clone stays as it was");
            }
            log.clear();
        }
        let stream = of(&mut big);
        let all: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(stream.iter().map(read).collect::<Vec<_>>(), all.clone());
        let mut back: Vec<_> = stream.iter_back_from(stream.len()).map(read).collect();
        back.reverse();
        prop_assert_eq!(back, all);
        stream.entries.check();
        for (rank, id) in model.keys().enumerate().step_by(7) {
            prop_assert_eq!(stream.rank(*id), rank as u64);
            prop_assert!(stream.contains(*id));
            prop_assert_eq!(stream.iter_from(rank as u64).next().map(|e| e.id), Some(*id));
            prop_assert_eq!(stream.iter_from_id(*id).next().map(|e| e.id), Some(*id));
        }
        prop_assert_eq!(stream.first_id(), model.keys().next().copied().unwrap_or_default());
        snapshot(stream);
    }

    #[test]
    fn undo_restores_a_stream(before in steps(), after in steps()) {
        let (mut big, mut model, mut log) = (with_group(), BTreeMap::new(), Log::default());
        for step in &before {
            apply(&mut big, &mut model, step, &mut log);
        }
        log.clear();
        let was = snapshot(of(&mut big));
        let (mut kept, mut kept_model) = (big.clone(), model.clone());
        let mark = log.mark();
        for step in &after {
            apply(&mut big, &mut model, step, &mut log);
        }
        while log.mark() != mark {
            big.undo(&mut log);
        }
        prop_assert_eq!(snapshot(of(&mut big)), was);
        // Later steps have the same result as without the undone ones.
        let mut model = kept_model.clone();
        for step in &after {
            apply(&mut big, &mut model, step, &mut log);
        }
        for step in &after {
            apply(&mut kept, &mut kept_model, step, &mut log);
        }
        prop_assert_eq!(snapshot(of(&mut big)), snapshot(of(&mut kept)));
        prop_assert_eq!(of(&mut big).iter().map(read).collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn bytes_per_entry_are_bounded() {
    let (mut stream, mut log) = (Stream::new(), Log::default());
    let names = ["sensor", "temperature", "humidity"];
    for n in 0..100_000_u64 {
        let values = [n % 1000, 200 + n % 77, 4000 + n % 999].map(|v| v.to_string());
        let fields = names.iter().zip(&values).map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        stream.add(StreamId::new(1_700_000_000_000 + n / 3, n % 3), fields, 40, LIMITS, &mut log);
        log.clear();
    }
    let each = stream.memory() as f64 / 100_000.0;
    assert!(each < 14.0, "{each} bytes per entry");
}
