//! Amounts of memory that may be given as a percentage: of what the process may use, or of
//! `maxmemory`.

use super::value::Value;

/// Bytes, or a percentage of something that is known later; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths.
    Percent(u64),
}

impl Default for MemoryShare {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl MemoryShare {
    pub(crate) fn new(value: &Value) -> Self {
        match value {
            Value::Percent(percent) => Self::Percent(*percent),
            value => Self::Bytes(value.number().try_into().unwrap_or(0)),
        }
    }

    /// The bytes, if the whole has so many.
    pub fn of(self, whole: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                (u128::from(whole()) * u128::from(percent) / 100).try_into().unwrap_or(u64::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_overflow() {
        assert_eq!(MemoryShare::Percent(100).of(|| u64::MAX), u64::MAX);
        assert_eq!(MemoryShare::Percent(50).of(|| 1001), 500);
        assert_eq!(MemoryShare::Bytes(7).of(|| unreachable!("not asked")), 7);
    }
}
