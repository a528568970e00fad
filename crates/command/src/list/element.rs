//! An element of a list: from an argument, to be stored, to be replied, apart from its list.

use keyspace::RecordWriter;
use resp::{Args, Reply};
use value::list::{FAR_MIN, Item, NewItem};
use value::packed::Elem;

use crate::record;

/// A longer element is sent by reference.
pub(super) const COPIED_MAX: usize = 4096;

/// Argument `i` as an element; a long one that came in a buffer of its own is taken by reference.
#[inline]
pub(super) fn element<'a>(args: &Args<'a>, i: usize) -> NewItem<'a> {
    match args.blob(i) {
        Some(blob) if blob.len() >= FAR_MIN => NewItem::Far(blob.clone()),
        _ => NewItem::of(args.get(i)),
    }
}

/// Replies an element, a long one by reference.
#[inline]
pub(super) fn write(reply: &mut Reply<'_>, item: Item<'_>) {
    match item {
        Item::Near(Elem::Bytes(bytes)) => reply.bulk(bytes),
        Item::Near(Elem::Int(number)) => reply.bulk_int(number),
        Item::Far(blob) => match blob.contiguous() {
            Some(bytes) if bytes.len() <= COPIED_MAX => reply.bulk(bytes),
            _ => reply.bulk_blob(blob),
        },
    }
}

/// Argument `i` as an element to compare with. One in pages is used as it is.
pub(super) fn wanted<'a>(args: &Args<'a>, i: usize) -> Item<'a> {
    match args.blob(i) {
        Some(blob) if blob.is_paged() => Item::Far(blob),
        _ => Item::Near(Elem::of(args.get(i))),
    }
}

/// Whether a stored element has the text of another.
#[inline]
pub(super) fn equals(item: Item<'_>, text: Item<'_>) -> bool {
    match (item, text) {
        (Item::Near(elem), Item::Near(text)) => elem == text,
        (Item::Far(blob), Item::Near(Elem::Bytes(text)))
        | (Item::Near(Elem::Bytes(text)), Item::Far(blob)) => *blob == *text,
        (Item::Far(blob), Item::Far(text)) => blob == text,
        (Item::Far(_), Item::Near(Elem::Int(_))) | (Item::Near(Elem::Int(_)), Item::Far(_)) => {
            false
        }
    }
}

/// Bytes of an element that comes.
pub(super) fn text_len(new: &NewItem<'_>) -> u64 {
    match new {
        NewItem::Near(elem) => elem.len() as u64,
        NewItem::Far(blob) => blob.len() as u64,
    }
}

/// A stored element as one to store; long ones are shared.
pub(super) fn owned(item: Item<'_>) -> NewItem<'_> {
    match item {
        Item::Near(Elem::Bytes(bytes)) => NewItem::of(bytes),
        Item::Near(elem) => NewItem::Near(elem),
        Item::Far(blob) => NewItem::Far(blob.clone()),
    }
}

/// An element apart from its list.
pub(super) enum OwnedElement {
    Int(i64),
    Bytes(Vec<u8>),
    Far(base::Blob),
}

impl OwnedElement {
    /// A copy of an element; a long one is shared.
    pub fn of(item: Item<'_>) -> Self {
        match item {
            Item::Near(Elem::Int(value)) => Self::Int(value),
            Item::Near(Elem::Bytes(bytes)) => Self::Bytes(bytes.to_vec()),
            Item::Far(blob) => Self::Far(blob.clone()),
        }
    }

    /// To be replied.
    pub fn as_item(&self) -> Item<'_> {
        match self {
            Self::Int(value) => Item::Near(Elem::Int(*value)),
            Self::Bytes(bytes) => Item::Near(Elem::Bytes(bytes)),
            Self::Far(blob) => Item::Far(blob),
        }
    }

    /// The next word of a record.
    pub fn record(&self, record: &mut RecordWriter<'_>) {
        match self {
            Self::Int(value) => record::number(record, *value),
            Self::Bytes(bytes) => record.word(bytes),
            Self::Far(blob) => record.blob(blob),
        }
    }

    /// To be stored.
    pub fn as_new(&self) -> NewItem<'_> {
        match self {
            Self::Int(value) => NewItem::Near(Elem::Int(*value)),
            Self::Bytes(bytes) => NewItem::of(bytes),
            Self::Far(blob) => NewItem::Far(blob.clone()),
        }
    }
}
