//! Strings which share pages with several others, all of which change.

use super::*;
use crate::prng::Prng;

const PART: usize = 4 << 10;
const LEN_MAX: usize = 40 * PAGE_BYTES;

/// A string, and what it has to be.
type Modelled = (Blob, Vec<u8>);

fn below(random: &mut Prng, end: usize) -> usize {
    random.below(end as u64) as usize
}

/// A place up to `max`, often around a border of a part or a page.
fn place(random: &mut Prng, max: usize) -> usize {
    let unit = [1, PART, PAGE_BYTES][below(random, 3)];
    let near = below(random, max + 1) / unit * unit + below(random, 3);
    near.saturating_sub(1).min(max)
}

/// Changes one string in any way but through another one.
fn change((blob, model): &mut Modelled, random: &mut Prng) {
    let seed = below(random, 256) as u8;
    match below(random, 20) {
        0 | 1 => {
            let len = place(random, model.len());
            if len > BLOCK_MAX / 2 {
                blob.truncate(len);
                model.truncate(len);
            }
        }
        2 => {
            let count = place(random, 6 * PAGE_BYTES).min(LEN_MAX - model.len());
            blob.append_zeros(count);
            model.resize(model.len() + count, 0);
        }
        3 => {
            let count = place(random, 2 * PAGE_BYTES).min(LEN_MAX - model.len());
            blob.append(&text(count, seed));
            model.extend(text(count, seed));
        }
        _ => {
            let max = [20, PART, 3 * PART, PATCH_MAX + 1, 2 * PAGE_BYTES + 9][below(random, 5)];
            let at = place(random, model.len());
            let bytes = text(place(random, max).min(LEN_MAX - at), seed);
            blob.write_at(at, &bytes);
            model.resize(model.len().max(at + bytes.len()), 0);
            model[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

/// Gives up the beginning of a clone, as a save does. Now and then the clone takes the place of the
/// string.
fn release((blob, model): &mut Modelled, random: &mut Prng) {
    let to = place(random, model.len());
    let mut held = blob.clone();
    held.release(0..to);
    check(&held);
    let first = if held.is_paged() { to / PAGE_BYTES * PAGE_BYTES } else { 0 };
    assert!(held.pages_from(first).flatten().eq(&model[first..]));
    if random.chance(1, 3) {
        model[..first].fill(0);
        *blob = held;
    }
}

fn round(seed: u64) {
    let random = &mut Prng::new(seed);
    let begin = |n| long(BLOCK_MAX + 1 + place(random, n * PAGE_BYTES));
    let mut all: Vec<Modelled> =
        [8, 9, 10].map(begin).into_iter().map(|blob| (blob.clone(), blob.to_vec())).collect();
    for _ in 0..120 {
        let (at, other) = (below(random, 3), below(random, 3));
        match below(random, 24) {
            0 | 1 => all[at] = all[other].clone(),
            2 => {
                let (blob, model) = &all[other];
                let from = place(random, model.len()) / PAGE_BYTES * PAGE_BYTES;
                let from = if random.chance(1, 2) { 0 } else { from };
                let to = from + place(random, model.len() - from);
                all[at] = (blob.slice(from..to), model[from..to].to_vec());
            }
            3 => release(&mut all[at], random),
            _ => change(&mut all[at], random),
        }
        for (blob, model) in &all {
            check(blob);
            assert!(*blob == model[..], "seed {seed}");
            let at = place(random, model.len());
            assert_eq!(blob.byte(at), model.get(at).copied());
        }
    }
    // Without the others, nothing stays patched.
    let (mut blob, model) = all.swap_remove(0);
    drop(all);
    let writes = if blob.is_paged() { 2 * blob.page_count() } else { 0 };
    for _ in 0..writes {
        blob.write_at(17, &model[17..18]);
    }
    assert_eq!(patched(&blob), 0, "seed {seed}");
    assert!(blob == model[..]);
    check(&blob);
}

#[test]
fn strings_which_share_pages_do_not_see_each_other() {
    let rounds = if cfg!(miri) { 1 } else { 90 };
    (0..rounds).for_each(round);
}
