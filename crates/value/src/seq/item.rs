//! An element of a sequence: as it is stored, and as it is to be stored.

use crate::packed::Elem;
use crate::string::IntText;
use base::Blob;
use std::borrow::Cow;

/// A text of this many bytes has an allocation of its own: it is far.
pub const FAR_MIN: usize = 1024;

/// An element of a list as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// In its page.
    Near(Elem<'a>),
    /// In an allocation of its own: a reference to it can be sent without a copy.
    Far(&'a Blob),
}

impl<'a> Item<'a> {
    /// The text; a number is written into `scratch` first. One of pages is copied, O(n).
    #[inline]
    pub fn bytes<'b>(self, scratch: &'b mut IntText) -> Cow<'b, [u8]>
    where
        'a: 'b,
    {
        match self {
            Self::Near(elem) => Cow::Borrowed(elem.bytes(scratch)),
            Self::Far(blob) => blob.to_slice(),
        }
    }

    /// The text as a vector of its own.
    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut IntText::default()).into_owned()
    }

    /// Length of the text.
    pub fn len(self) -> usize {
        match self {
            Self::Near(elem) => elem.len(),
            Self::Far(blob) => blob.len(),
        }
    }

    /// True if the text is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// An element to store.
#[derive(Clone, Debug)]
pub enum NewItem<'a> {
    /// In a page: a text shorter than [`FAR_MIN`].
    Near(Elem<'a>),
    /// In an allocation of its own.
    Far(Blob),
}

impl<'a> NewItem<'a> {
    /// How a text is stored; a long one is copied.
    #[inline]
    pub fn of(text: &'a [u8]) -> Self {
        if text.len() >= FAR_MIN { Self::Far(Blob::from(text)) } else { Self::Near(Elem::of(text)) }
    }

    /// What is stored, as a reader sees it.
    pub fn item(&self) -> Item<'_> {
        match self {
            Self::Near(elem) => Item::Near(*elem),
            Self::Far(blob) => Item::Far(blob),
        }
    }
}
