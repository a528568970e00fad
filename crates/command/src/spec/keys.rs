//! Where the keys of a command stand, as data.

/// Where some keys of a command stand, and what it does to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// A remark for readers, or empty.
    pub notes: &'static str,
    /// What is done to the keys.
    pub flags: KeyFlags,
    /// Where they begin.
    pub begin: BeginSearch,
    /// How they go on from there.
    pub find: FindKeys,
}

impl KeySpec {
    /// One key, argument `at`.
    pub const fn at(at: u8, flags: KeyFlags) -> KeySpec {
        KeySpec {
            notes: "",
            flags,
            begin: BeginSearch::Index(at),
            find: FindKeys::Range { last: 0, step: 1, limit: 0 },
        }
    }

    /// One key behind a word, looked for from argument `from` on.
    pub const fn behind(word: &'static str, from: i8, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: BeginSearch::Keyword { word, from }, ..KeySpec::at(0, flags) }
    }

    /// Keys that the specs cannot tell: their names come from data, or stand anywhere.
    pub const fn unknown(flags: KeyFlags) -> KeySpec {
        KeySpec { notes: "", flags, begin: BeginSearch::Unknown, find: FindKeys::Unknown }
    }

    /// From there `more` further arguments.
    #[must_use]
    pub const fn and_next(mut self, more: i8) -> KeySpec {
        self.find = FindKeys::Range { last: more, step: 1, limit: 0 };
        self
    }

    /// From there every `step`-th argument up to the last.
    #[must_use]
    pub const fn to_end(mut self, step: u8) -> KeySpec {
        self.find = FindKeys::Range { last: -1, step, limit: 0 };
        self
    }

    /// From there the first half of all arguments that are left; the second half is something else.
    #[must_use]
    pub const fn halved(mut self) -> KeySpec {
        self.find = FindKeys::Range { last: -1, step: 1, limit: 2 };
        self
    }

    /// From there every argument but the last.
    #[must_use]
    pub const fn to_last_but_one(mut self) -> KeySpec {
        self.find = FindKeys::Range { last: -2, step: 1, limit: 0 };
        self
    }

    /// There stands how many keys follow, and they are `step` arguments apart.
    #[must_use]
    pub const fn counted(mut self, step: u8) -> KeySpec {
        self.find = FindKeys::KeyNum { at: 0, first: 1, step };
        self
    }

    /// With a remark.
    #[must_use]
    pub const fn note(mut self, notes: &'static str) -> KeySpec {
        self.notes = notes;
        self
    }
}

/// Where the keys of a [`KeySpec`] begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this argument.
    Index(u8),
    /// Behind this word, looked for from argument `from` on; backwards from the end if negative.
    Keyword {
        /// The word, in any case.
        word: &'static str,
        /// Where the search starts.
        from: i8,
    },
    /// It cannot be said.
    Unknown,
}

/// How the keys of a [`KeySpec`] go on from where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// Up to an argument.
    Range {
        /// The last key counted from the first; if negative, counted from the last argument.
        last: i8,
        /// Arguments from one key to the next.
        step: u8,
        /// With `last` -1: a divisor of the arguments left over; 0 and 1 mean all of them.
        limit: u8,
    },
    /// As many as an argument says.
    KeyNum {
        /// Where the number stands, counted from the beginning.
        at: u8,
        /// Where the first key stands, counted from the beginning.
        first: u8,
        /// Arguments from one key to the next.
        step: u8,
    },
    /// It cannot be said.
    Unknown,
}

/// What a command does to the keys of a [`KeySpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    /// Reads the value or facts about it.
    pub const RO: KeyFlags = KeyFlags(1);
    /// Changes data that may depend on what was there.
    pub const RW: KeyFlags = KeyFlags(1 << 1);
    /// Overwrites.
    pub const OW: KeyFlags = KeyFlags(1 << 2);
    /// Removes.
    pub const RM: KeyFlags = KeyFlags(1 << 3);
    /// Returns, copies or uses the user's data.
    pub const ACCESS: KeyFlags = KeyFlags(1 << 4);
    /// Changes the user's data.
    pub const UPDATE: KeyFlags = KeyFlags(1 << 5);
    /// Adds data and changes none.
    pub const INSERT: KeyFlags = KeyFlags(1 << 6);
    /// Deletes the user's data.
    pub const DELETE: KeyFlags = KeyFlags(1 << 7);
    /// It is no key, but belongs to a slot as a key does.
    pub const NOT_KEY: KeyFlags = KeyFlags(1 << 8);
    /// The spec may miss keys.
    pub const INCOMPLETE: KeyFlags = KeyFlags(1 << 9);
    /// The flags depend on the arguments.
    pub const VARIABLE_FLAGS: KeyFlags = KeyFlags(1 << 10);

    /// Names in the order in which they are shown.
    pub const NAMES: [(KeyFlags, &'static str); 11] = [
        (KeyFlags::RO, "RO"),
        (KeyFlags::RW, "RW"),
        (KeyFlags::OW, "OW"),
        (KeyFlags::RM, "RM"),
        (KeyFlags::ACCESS, "access"),
        (KeyFlags::UPDATE, "update"),
        (KeyFlags::INSERT, "insert"),
        (KeyFlags::DELETE, "delete"),
        (KeyFlags::NOT_KEY, "not_key"),
        (KeyFlags::INCOMPLETE, "incomplete"),
        (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
    ];

    /// The union of a list, for tables.
    pub const fn of(list: &[KeyFlags]) -> KeyFlags {
        let mut all = 0;
        let mut i = 0;
        while i < list.len() {
            all |= list[i].0;
            i += 1;
        }
        KeyFlags(all)
    }

    /// Whether all of `other` is set.
    pub const fn contains(self, other: KeyFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of what is set, in the order of [`KeyFlags::NAMES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        KeyFlags::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, n)| n)
    }
}
