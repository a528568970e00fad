//! Strings which share pages with several others, all of which change.

use super::*;
use crate::prng::Prng;

const PART: usize = 4 << 10;
const LEN_MAX: usize = 40 * PAGE_BYTES;

fn place(random: &mut Prng, max: usize) -> usize {
    let any = random.below(max as u64 + 1) as usize;
    let unit = [1, PART, PAGE_BYTES][random.below(3) as usize];
    let near = (any / unit * unit + random.below(3) as usize).saturating_sub(1);
    near.min(max)
}

fn round(seed: u64) {
    let random = &mut Prng::new(seed);
    let mut all: Vec<(Blob, Vec<u8>)> = (0..3)
        .map(|n| {
            let blob = long(BLOCK_MAX + 1 + place(random, (8 + n) * PAGE_BYTES));
            let model = blob.to_vec();
            (blob, model)
        })
        .collect();
    for _ in 0..120 {
        let (at, other) = (random.below(3) as usize, random.below(3) as usize);
        let choice = random.below(24);
        let seed = random.below(256) as u8;
        match choice {
            0..=1 => all[at] = all[other].clone(),
            2 => {
                let (blob, model) = &all[other];
                let mut from = place(random, model.len()) / PAGE_BYTES * PAGE_BYTES;
                if random.below(2) == 0 {
                    from = 0;
                }
                let to = from + place(random, model.len() - from);
                all[at] = (blob.slice(from..to), model[from..to].to_vec());
            }
            3..=4 => {
                let (blob, model) = &mut all[at];
                let len = place(random, model.len());
                if len > BLOCK_MAX / 2 {
                    blob.truncate(len);
                    model.truncate(len);
                }
            }
            5 => {
                let (blob, model) = &mut all[at];
                let count = place(random, 6 * PAGE_BYTES);
                if model.len() + count <= LEN_MAX {
                    blob.append_zeros(count);
                    model.resize(model.len() + count, 0);
                }
            }
            6 => {
                let (blob, model) = &mut all[at];
                let more = text(place(random, 2 * PAGE_BYTES), seed);
                if model.len() + more.len() <= LEN_MAX {
                    blob.append(&more);
                    model.extend(more);
                }
            }
            7 => {
                // As a save does: from the beginning, of a clone.
                let (blob, model) = &mut all[at];
                let to = place(random, model.len());
                let mut held = blob.clone();
                held.release(0..to);
                check(&held);
                let first = if held.is_paged() { to / PAGE_BYTES * PAGE_BYTES } else { 0 };
                assert!(held.pages_from(first).flatten().eq(&model[first..]));
                if random.below(3) == 0 && held.is_paged() {
                    model[..first.min(held.len())].fill(0);
                    *blob = held;
                }
            }
            _ => {
                let (blob, model) = &mut all[at];
                let max = [20, PART, 3 * PART, PATCH_MAX + 1, 2 * PAGE_BYTES + 9]
                    [random.below(5) as usize];
                let bytes = text(place(random, max), seed);
                let at = place(random, model.len());
                if at + bytes.len() <= LEN_MAX {
                    blob.write_at(at, &bytes);
                    model.resize(model.len().max(at + bytes.len()), 0);
                    model[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
        for (blob, model) in &all {
            check(blob);
            assert!(*blob == model[..], "seed {seed}, choice {choice}");
            let from = place(random, model.len());
            assert_eq!(blob.byte(from), model.get(from).copied());
        }
        assert!(all[0].0.len() == all[0].1.len());
    }
    // Without the others, nothing stays patched.
    let (mut blob, model) = all.swap_remove(0);
    drop(all);
    if blob.is_paged() {
        let last = [model[model.len() - 1]];
        for _ in 0..2 * blob.page_count() + 8 {
            blob.write_at(model.len() - 1, &last);
        }
        assert_eq!(patched(&blob), 0, "seed {seed}");
        assert!(blob == model[..]);
        check(&blob);
    }
}

#[test]
fn strings_which_share_pages_do_not_see_each_other() {
    let rounds = if cfg!(miri) { 1 } else { 90 };
    (0..rounds).for_each(round);
}
