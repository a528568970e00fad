//! Rows in runs. Each run is sorted by itself, and runs are merged while rows are read: no step
//! takes long, and a caller which reads only some rows merges no more than those.

use super::order::{Order, Row, Texts};

/// Rows in the order of insertion, and once they are sorted in that of their weights.
#[derive(Default)]
pub(crate) struct Runs {
    all: Vec<Run>,
    /// How many runs are sorted, from the first on.
    sorted: usize,
    /// Sorted runs that are not used up, as a heap: that of the first row on top.
    heap: Vec<u32>,
}

struct Run {
    rows: Vec<Row>,
    /// The next one.
    at: usize,
}

impl Runs {
    /// Adds rows behind those that came before.
    pub fn push(&mut self, rows: Vec<Row>) {
        if !rows.is_empty() {
            self.all.push(Run { rows, at: 0 });
        }
    }

    /// Bytes of all rows.
    pub fn memory(&self) -> usize {
        self.all.iter().map(|run| run.rows.capacity() * size_of::<Row>()).sum()
    }

    /// All rows, to be given their weights before they are sorted.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.all.iter_mut().flat_map(|run| &mut run.rows)
    }

    /// Sorts one more run; true if there was none. O(r log r) in its rows and O(log n) in runs.
    pub fn sort_next(&mut self, order: Order, texts: &Texts) -> bool {
        let Some(run) = self.all.get_mut(self.sorted) else { return true };
        order.sort(texts, &mut run.rows);
        self.heap.push(u32::try_from(self.sorted).expect("few runs"));
        self.sorted += 1;
        let mut at = self.heap.len() - 1;
        while at > 0 && self.is_before(order, texts, at, (at - 1) / 2) {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        false
    }

    /// Takes the next row; all runs are sorted. O(log n) in runs.
    pub fn next(&mut self, order: Order, texts: &Texts) -> Option<Row> {
        let top = *self.heap.first()? as usize;
        let run = &mut self.all[top];
        let row = run.rows[run.at];
        run.at += 1;
        if run.at == run.rows.len() {
            run.rows = Vec::new();
            self.heap.swap_remove(0);
        }
        self.sink(order, texts);
        Some(row)
    }

    /// Puts the run on top where it belongs.
    fn sink(&mut self, order: Order, texts: &Texts) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let is_right = right < self.heap.len() && self.is_before(order, texts, right, left);
            let child = if is_right { right } else { left };
            if !self.is_before(order, texts, child, at) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Whether the run at one place of the heap goes before that at another. What is equal stays in
    /// the order in which it came.
    #[inline]
    fn is_before(&self, order: Order, texts: &Texts, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        let row = |run: u32| {
            let run = &self.all[run as usize];
            &run.rows[run.at]
        };
        order.compare(texts, row(a), row(b)).then(a.cmp(&b)).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Weight;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Merged runs of any size equal a stable sort of all rows.
        #[test]
        fn merged_runs_equal_a_stable_sort(
            numbers in prop::collection::vec(0..40_u8, 0..200),
            size in 1..50_usize,
            flags in any::<[bool; 4]>(),
        ) {
            let [kept, alpha, by, desc] = flags;
            let order = Order { kept, alpha, by, desc };
            let mut texts = Texts::default();
            let rows: Vec<Row> = numbers
                .iter()
                .enumerate()
                .map(|(n, number)| {
                    // With weights, elements differ even where their weights are equal.
                    let element = texts.push(format!("{}", if by { n as u8 } else { *number }).as_bytes());
                    let weight = match (alpha, by) {
                        (true, false) => Weight::None,
                        (true, true) if *number == 0 => Weight::None,
                        (true, true) => Weight::Text(texts.push(&[*number])),
                        (false, _) => Weight::Number(f64::from(*number)),
                    };
                    Row { element, weight }
                })
                .collect();
            let mut runs = Runs::default();
            rows.chunks(size).for_each(|chunk| runs.push(chunk.to_vec()));
            while !runs.sort_next(order, &texts) {}
            let merged: Vec<&[u8]> = std::iter::from_fn(|| runs.next(order, &texts))
                .map(|row| texts.bytes(row.element))
                .collect();
            let mut sorted = rows;
            order.sort(&texts, &mut sorted);
            let sorted: Vec<&[u8]> = sorted.iter().map(|row| texts.bytes(row.element)).collect();
            prop_assert_eq!(merged, sorted);
        }
    }
}
