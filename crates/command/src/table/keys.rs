//! Where keys stand and what happens to them, as most rows have it: the key is argument 1, unless
//! the name says otherwise.

use crate::spec::{KeyFlags as K, KeySpec};

/// Facts about the value are read.
pub const LOOK: &[KeySpec] = &[KeySpec::at(1, K::RO)];
/// As [`LOOK`], of all arguments.
pub const LOOK_ALL: &[KeySpec] = &[KeySpec::at(1, K::RO).to_end(1)];
/// As [`LOOK`], of argument 2.
pub const SECOND_LOOK: &[KeySpec] = &[KeySpec::at(2, K::RO)];

/// The value is read.
pub const READ: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RO, K::ACCESS]))];
/// As [`READ`], of all arguments.
pub const READ_ALL: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RO, K::ACCESS])).to_end(1)];
/// As [`READ`], of as many keys as argument 1 says.
pub const READ_COUNTED: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RO, K::ACCESS])).counted(1)];
/// As [`READ`], of argument 2.
pub const SECOND_READ: &[KeySpec] = &[KeySpec::at(2, K::of(&[K::RO, K::ACCESS]))];

/// The value is changed.
pub const UPDATE: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RW, K::UPDATE]))];
/// The value is read and changed.
pub const READ_UPDATE: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::UPDATE]))];
/// The value is replaced.
pub const OVERWRITE: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::OW, K::UPDATE]))];
/// Elements are added.
pub const INSERT: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RW, K::INSERT]))];

/// Elements are deleted.
pub const DELETE: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RW, K::DELETE]))];
/// Elements are returned and deleted.
pub const READ_DELETE: &[KeySpec] = &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE]))];
/// As [`READ_DELETE`], of all arguments but the last, which is a timeout.
pub const READ_DELETE_BEFORE_LAST: &[KeySpec] =
    &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])).to_last_but_one()];

/// Elements go from argument 1 to argument 2.
pub const MOVE: &[KeySpec] = &[
    KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])),
    KeySpec::at(2, K::of(&[K::RW, K::INSERT])),
];
/// What is found in as many keys as argument 2 says replaces argument 1.
pub const STORE_COUNTED: &[KeySpec] = &[
    KeySpec::at(1, K::of(&[K::OW, K::UPDATE])),
    KeySpec::at(2, K::of(&[K::RO, K::ACCESS])).counted(1),
];
