//! Atomics as std's, of the same size; each operation first passes a switch point. One thread of a
//! world runs at a time, so all operations are sequentially consistent: a too weak ordering is not
//! found here.

use super::baton::{Kind, point};
use std::sync::atomic as real;

pub use std::sync::atomic::Ordering;

/// As std's.
#[track_caller]
pub fn fence(order: Ordering) {
    point(Kind::Fence);
    real::fence(order);
}

/// One type with the operations which all have, and those in the brackets.
macro_rules! atomic {
    ($name:ident $(<$t:ident>)?, $value:ty, [$($op:ident),*]) => {
        /// As std's.
        #[repr(transparent)]
        pub struct $name $(<$t>)? (real::$name $(<$t>)?);

        impl $(<$t>)? $name $(<$t>)? {
            /// As std's.
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            /// As std's.
            #[inline]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                point(Kind::Load);
                self.0.load(order)
            }

            /// As std's.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                point(Kind::Store);
                self.0.store(value, order);
            }

            /// As std's.
            #[inline]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                point(Kind::Change);
                self.0.swap(value, order)
            }

            /// As std's.
            #[inline]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                point(Kind::Change);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As std's; it never fails without a reason.
            #[inline]
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            $(
                /// As std's.
                #[inline]
                #[track_caller]
                pub fn $op(&self, value: $value, order: Ordering) -> $value {
                    point(Kind::Change);
                    self.0.$op(value, order)
                }
            )*

            /// As std's.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// As std's.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }

        impl $(<$t>)? std::fmt::Debug for $name $(<$t>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// A number: all operations, and the conversions which std has.
macro_rules! number {
    ($name:ident, $value:ty) => {
        atomic!(
            $name,
            $value,
            [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor, fetch_max, fetch_min]
        );

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

number!(AtomicU8, u8);
number!(AtomicU16, u16);
number!(AtomicU32, u32);
number!(AtomicU64, u64);
number!(AtomicUsize, usize);
number!(AtomicI64, i64);
atomic!(AtomicBool, bool, [fetch_and, fetch_or, fetch_xor]);
atomic!(AtomicPtr<T>, *mut T, []);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

impl AtomicU32 {
    /// std's atomic, for the system's futex calls.
    pub(super) fn real(&self) -> &real::AtomicU32 {
        &self.0
    }
}
