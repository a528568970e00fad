//! What `COMMAND DOCS` says, as data.

/// What `COMMAND DOCS` says about a command.
#[derive(Debug)]
pub struct Docs {
    /// One line.
    pub summary: &'static str,
    /// How its time grows.
    pub complexity: &'static str,
    /// Since when it should not be used, and what replaces it.
    pub deprecated: Option<Deprecated>,
    /// Whether it speaks to the server's internals.
    pub syscmd: bool,
    /// Changes by version.
    pub history: &'static [(&'static str, &'static str)],
    /// The syntax.
    pub args: &'static [Arg],
}

impl Docs {
    /// Nothing said: what the others are built from.
    pub const NONE: Docs = Docs {
        summary: "",
        complexity: "",
        deprecated: None,
        syscmd: false,
        history: &[],
        args: &[],
    };
}

/// Since when a command should not be used, and what to use.
#[derive(Clone, Copy, Debug)]
pub struct Deprecated {
    /// The version.
    pub since: &'static str,
    /// In words, with the command's name in back quotes.
    pub replaced_by: &'static str,
}

/// One argument of a command's syntax.
#[derive(Debug)]
pub struct Arg {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: ArgKind,
    /// What a syntax line shows for it; its name if empty.
    pub shown: &'static str,
    /// The word in front of it, or empty.
    pub token: &'static str,
    /// The version that added it, or empty for the command's own.
    pub since: &'static str,
    /// The version that deprecated it, or empty.
    pub deprecated_since: &'static str,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated with it.
    pub multiple_token: bool,
    /// For keys, and for patterns of keys: the number of the key spec that finds it.
    pub key_spec: Option<u8>,
    /// What a `oneof` or a `block` consists of.
    pub args: &'static [Arg],
}

impl Arg {
    const fn new(name: &'static str, kind: ArgKind) -> Arg {
        Arg {
            name,
            kind,
            shown: "",
            token: "",
            since: "",
            deprecated_since: "",
            optional: false,
            multiple: false,
            multiple_token: false,
            key_spec: None,
            args: &[],
        }
    }

    /// A key, found by the key spec of this number.
    pub const fn key(name: &'static str, key_spec: u8) -> Arg {
        Arg { key_spec: Some(key_spec), ..Arg::new(name, ArgKind::Key) }
    }

    /// Names keys by the key spec of this number, without being one.
    #[must_use]
    pub const fn spec(mut self, key_spec: u8) -> Arg {
        self.key_spec = Some(key_spec);
        self
    }

    /// Any bytes.
    pub const fn string(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::String)
    }

    /// An integer.
    pub const fn integer(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Integer)
    }

    /// A double.
    pub const fn double(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Double)
    }

    /// A glob pattern.
    pub const fn pattern(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Pattern)
    }

    /// Seconds or milliseconds since 1970.
    pub const fn unix_time(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::UnixTime)
    }

    /// A word that stands for itself.
    pub const fn token(name: &'static str, word: &'static str) -> Arg {
        Arg::new(name, ArgKind::PureToken).after(word)
    }

    /// One of `args`.
    pub const fn one_of(name: &'static str, args: &'static [Arg]) -> Arg {
        Arg { args, ..Arg::new(name, ArgKind::OneOf) }
    }

    /// All of `args`.
    pub const fn block(name: &'static str, args: &'static [Arg]) -> Arg {
        Arg { args, ..Arg::new(name, ArgKind::Block) }
    }

    /// Shown by another word than its name.
    #[must_use]
    pub const fn shown(mut self, text: &'static str) -> Arg {
        self.shown = text;
        self
    }

    /// What a syntax line shows for it.
    pub const fn display_text(&self) -> &'static str {
        if self.shown.is_empty() { self.name } else { self.shown }
    }

    /// Behind a word.
    #[must_use]
    pub const fn after(mut self, word: &'static str) -> Arg {
        self.token = word;
        self
    }

    /// May be left out.
    #[must_use]
    pub const fn optional(mut self) -> Arg {
        self.optional = true;
        self
    }

    /// May be repeated.
    #[must_use]
    pub const fn multiple(mut self) -> Arg {
        self.multiple = true;
        self
    }

    /// May be repeated together with its word.
    #[must_use]
    pub const fn multiple_token(mut self) -> Arg {
        self.multiple_token = true;
        self
    }

    /// Younger than the command.
    #[must_use]
    pub const fn since(mut self, version: &'static str) -> Arg {
        self.since = version;
        self
    }

    /// Not to be used any more.
    #[must_use]
    pub const fn deprecated(mut self, version: &'static str) -> Arg {
        self.deprecated_since = version;
        self
    }
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A double.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// Seconds or milliseconds since 1970.
    UnixTime,
    /// The word itself.
    PureToken,
    /// One of its parts.
    OneOf,
    /// All of its parts.
    Block,
}

impl ArgKind {
    /// The name that `COMMAND DOCS` shows.
    pub const fn name(self) -> &'static str {
        match self {
            ArgKind::String => "string",
            ArgKind::Integer => "integer",
            ArgKind::Double => "double",
            ArgKind::Key => "key",
            ArgKind::Pattern => "pattern",
            ArgKind::UnixTime => "unix-time",
            ArgKind::PureToken => "pure-token",
            ArgKind::OneOf => "oneof",
            ArgKind::Block => "block",
        }
    }
}
