//! The elements with what they are sorted by.

use std::cmp::Ordering;

/// Texts one after the other, in one buffer.
#[derive(Default)]
pub(super) struct Texts(Vec<u8>);

/// Where a text stands.
#[derive(Clone, Copy)]
pub(super) struct Text {
    at: usize,
    len: usize,
}

impl Texts {
    pub fn push(&mut self, text: &[u8]) -> Text {
        let at = self.0.len();
        self.0.extend_from_slice(text);
        Text { at, len: text.len() }
    }

    pub fn get(&self, text: Text) -> &[u8] {
        &self.0[text.at..text.at + text.len]
    }
}

/// What an element is sorted by.
#[derive(Clone, Copy)]
pub(super) enum Weight {
    /// Itself, or a key that is not there.
    None,
    Number(f64),
    Text(Text),
}

/// An element.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub element: Text,
    pub weight: Weight,
}

/// How it is sorted.
pub(super) struct Order {
    pub alpha: bool,
    pub by: bool,
    pub desc: bool,
}

impl Order {
    /// Sorts. Numbers that are equal are in the order of the elements; what BY finds equal as texts
    /// stays as it was.
    pub fn sort(&self, texts: &Texts, rows: &mut [Row]) {
        rows.sort_by(|a, b| {
            let order = self.compare(texts, a, b);
            if self.desc { order.reverse() } else { order }
        });
    }

    fn compare(&self, texts: &Texts, a: &Row, b: &Row) -> Ordering {
        let elements = || texts.get(a.element).cmp(texts.get(b.element));
        if self.alpha && !self.by {
            return elements();
        }
        match (a.weight, b.weight) {
            (Weight::Number(a), Weight::Number(b)) => {
                a.partial_cmp(&b).expect("weights are numbers").then_with(elements)
            }
            (Weight::Text(a), Weight::Text(b)) => texts.get(a).cmp(texts.get(b)),
            (Weight::None, Weight::None) => Ordering::Equal,
            (Weight::None, _) => Ordering::Less,
            (_, Weight::None) => Ordering::Greater,
            (Weight::Number(_), Weight::Text(_)) => Ordering::Less,
            (Weight::Text(_), Weight::Number(_)) => Ordering::Greater,
        }
    }
}
