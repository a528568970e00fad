//! What the rows of the table of errors are made of.

use std::borrow::Cow;

/// Makes [`Error`](super::Error) with a variant for every row. A variant whose row has fields holds
/// them in a box, so that an error stays two words.
macro_rules! errors {
    ($(
        $(#[$doc:meta])*
        $name:ident $({ $($field:ident: $kind:ty),+ })? => $text:literal,
    )+) => {
        /// An error reply.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Error {
            $(
                $(#[$doc])*
                #[doc = ""]
                #[doc = concat!("``", $text, "``")]
                $name $( (Box<first!($name $($field)+)>) )?,
            )+
        }

        $($(
            #[doc = concat!("The fields of [`Error::", stringify!($name), "`].")]
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $(
                    #[doc = concat!("What stands for `{", stringify!($field), "}` in the text.")]
                    pub $field: $kind,
                )+
            }

            impl From<$name> for Error {
                #[cold]
                fn from(fields: $name) -> Self {
                    Error::$name(Box::new(fields))
                }
            }
        )?)+

        impl Error {
            /// The text of the row, filled in.
            fn filled(&self) -> std::borrow::Cow<'static, [u8]> {
                match self {
                    $(
                        Error::$name $( (first!(fields $($field)+)) )? => $crate::error::row::fill(
                            $text,
                            &[$( $( (stringify!($field), &fields.$field) ),+ )?],
                        ),
                    )+
                }
            }
        }

        /// Name, fields and text of every row.
        #[cfg(test)]
        const ROWS: &[(&str, &[&str], &str)] = &[
            $( (stringify!($name), &[$( $( stringify!($field) ),+ )?], $text), )+
        ];
    };
}

/// The first of some names. (An optional part of a macro must contain a variable of that part: the
/// names behind the first are there for nothing else.)
macro_rules! first {
    ($first:ident $($more:ident)+) => {
        $first
    };
}

/// Bytes that a client sent, which an error repeats up to their first NUL: texts were C strings
/// when clients learnt them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo(Box<[u8]>);

impl Echo {
    /// At most `max` of the bytes.
    pub fn cut(bytes: &[u8], max: usize) -> Self {
        let bytes = &bytes[..bytes.len().min(max)];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Self(bytes[..end].into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Echo {
    fn from(bytes: &[u8]) -> Self {
        Self::cut(bytes, bytes.len())
    }
}

/// What can stand in a text.
pub(super) trait Field {
    /// Appends it.
    fn append_to(&self, text: &mut Vec<u8>);
}

impl Field for Echo {
    fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(&self.0);
    }
}

impl Field for Box<[u8]> {
    fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self);
    }
}

impl Field for Box<str> {
    fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.as_bytes());
    }
}

impl Field for &'static str {
    fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.as_bytes());
    }
}

impl Field for u32 {
    fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.to_string().as_bytes());
    }
}

/// The text of a row with its fields in place of their names in braces.
pub(super) fn fill(text: &'static str, fields: &[(&str, &dyn Field)]) -> Cow<'static, [u8]> {
    if fields.is_empty() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut filled = Vec::new();
    let mut parts = text.split(['{', '}']);
    filled.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    while let (Some(name), Some(behind)) = (parts.next(), parts.next()) {
        let field = fields.iter().find(|(field, _)| *field == name);
        field.expect("a test looks at every row").1.append_to(&mut filled);
        filled.extend_from_slice(behind.as_bytes());
    }
    Cow::Owned(filled)
}
