//! What is declared about a setting, and the macro that declares all of them.

use super::Config;
use super::parse::printable;
use super::value::{Kind, Value};

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At start and by CONFIG SET.
    Anytime,
    /// At start only.
    Start,
    /// At start, and by CONFIG SET where `enable-protected-configs` allows it.
    Protected,
}

/// What a setting does in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It does what its text says, and has a typed field.
    Wired,
    /// Tuning of a feature that works differently here or does not exist: accepted and read back,
    /// without effect.
    Inert,
    /// Ignoring it could lose data or weaken security: only values that switch it off are accepted.
    Refused {
        /// The values that switch it off, as CONFIG GET shows them.
        off: &'static [&'static str],
        /// The feature that any other value would need.
        needs: &'static str,
    },
}

/// What the running server does when a setting changes, besides showing its readers the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Changes how many entries the slow log and the logs by size keep.
    Logs,
    /// Changes what the server logs, and how.
    Log,
    /// Changes what the keyspace records about the uses of keys.
    Uses,
    /// Changes which events of keys are published.
    Events,
    /// Begins or ends import mode in the keyspace.
    Import,
    /// Begins or ends the append-only file.
    AppendOnly,
    /// Holds replies until what they show is durable, from the next command on, or does not.
    AppendFsync,
    /// Raises the limit of open files. May fail.
    FileLimit,
    /// Changes the working folder. May fail.
    Folder,
    /// Would move the listeners to another port. Fails: the addresses of a running server are
    /// fixed.
    Port,
    /// Would move the listeners to other addresses. Fails likewise.
    Bind,
}

/// One setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What its value may be.
    pub kind: Kind,
    /// Its default as CONFIG GET shows it.
    pub default: &'static str,
    /// When it may change.
    pub change: Change,
    /// What it does here.
    pub class: Class,
    /// What the server does when it changes.
    pub effect: Effect,
    /// Logs, messages, MONITOR and SLOWLOG never show its value.
    pub secret: bool,
    /// One line: what it does, why it has no effect, or what is refused.
    pub about: &'static str,
    /// Stores a value in the typed field of a wired setting.
    pub(crate) store: Option<fn(&mut Config, &Value)>,
}

/// Where a setting stands in [`SETTINGS`](super::table::SETTINGS).
pub type Index = usize;

impl Setting {
    const fn new(kind: Kind, default: &'static str, class: Class, about: &'static str) -> Self {
        Setting {
            name: "",
            aliases: &[],
            kind,
            default,
            change: Change::Anytime,
            class,
            effect: Effect::None,
            secret: false,
            about,
            store: None,
        }
    }

    /// Sets the name.
    pub(crate) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Sets the function that stores the typed field.
    pub(crate) const fn stored(mut self, store: fn(&mut Config, &Value)) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the aliases.
    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Fixed once the server runs.
    pub(crate) const fn start(mut self) -> Self {
        self.change = Change::Start;
        self
    }

    /// Changed by CONFIG SET only where `enable-protected-configs` allows it.
    pub(crate) const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    /// Marks the value as secret.
    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Sets what the server does when the value changes.
    pub(crate) const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Whether it has a typed field.
    pub const fn has_field(&self) -> bool {
        self.store.is_some()
    }

    /// A value's text for messages: hidden if it is secret.
    pub fn shown(&self, text: &[u8]) -> String {
        if self.secret { "...".to_owned() } else { printable(text) }
    }

    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// A setting that does what its text says.
pub(crate) const fn wired(kind: Kind, default: &'static str, about: &'static str) -> Setting {
    Setting::new(kind, default, Class::Wired, about)
}

/// A setting that is accepted and does nothing.
pub(crate) const fn inert(kind: Kind, default: &'static str, about: &'static str) -> Setting {
    Setting::new(kind, default, Class::Inert, about)
}

/// A setting of which only the values that switch it off are accepted; the first is the default.
pub(crate) const fn refused(
    kind: Kind,
    off: &'static [&'static str],
    needs: &'static str,
    about: &'static str,
) -> Setting {
    Setting::new(kind, off[0], Class::Refused { off, needs }, about)
}

/// Declares all settings, each in one row:
///
/// ```text
/// "name" READER(FIELD: TYPE) = wired(KIND, DEFAULT, ABOUT).FLAGS();
/// "name" = inert(KIND, DEFAULT, ABOUT).FLAGS();
/// "name" = refused(KIND, OFF, NEEDS, ABOUT).FLAGS();
/// ```
///
/// READER says who reads the typed field:
/// - `server`: any code that holds the lock of `Config`.
/// - `worker`: every worker, in its `WorkerCopy`; a worker adopts a changed copy at the next fence.
/// - `handler`: handlers, in [`HandlerSettings`](super::HandlerSettings), of which every worker has
///   a copy as well.
///
/// From the rows the macro generates the fields of `Config`, `WorkerCopy` and `HandlerSettings`,
/// and the table `SETTINGS`.
macro_rules! settings {
    ($(
        $name:literal
        $(server($field:ident: $type:ty))?
        $(worker($copied:ident: $copied_type:ty))?
        $(handler($handled:ident: $handled_type:ty))?
        = $row:expr;
    )*) => {
        /// The settings of a server: wired ones in typed fields, and the text of all.
        #[derive(Clone)]
        pub struct Config {
            $(
                $(#[doc = concat!("`", $name, "`.")] pub $field: $type,)?
                $(#[doc = concat!("`", $name, "`.")] pub $copied: $copied_type,)?
            )*
            /// The settings that handlers read.
            pub command: HandlerSettings,
            /// The configuration file, for CONFIG REWRITE.
            pub file: Option<PathBuf>,
            /// The text of every setting, by [`Index`].
            pub(crate) texts: Vec<Vec<u8>>,
            /// Whether a file or the command line named it, by [`Index`].
            pub(crate) named: Vec<bool>,
        }

        impl Config {
            /// Every field at the default of its type, not of its setting.
            pub(crate) fn blank() -> Self {
                Config {
                    $($($field: Default::default(),)? $($copied: Default::default(),)?)*
                    command: HandlerSettings { $($($handled: Default::default(),)?)* },
                    file: None,
                    texts: vec![Vec::new(); SETTINGS.len()],
                    named: vec![false; SETTINGS.len()],
                }
            }
        }

        /// The settings that handlers read. `Default` gives each setting its default.
        #[derive(Clone, Debug)]
        pub struct HandlerSettings {
            $($(#[doc = concat!("`", $name, "`.")] pub $handled: $handled_type,)?)*
        }

        /// The settings of which every worker has a copy.
        #[derive(Clone, Debug)]
        pub struct WorkerCopy {
            $($(#[doc = concat!("`", $name, "`.")] pub $copied: $copied_type,)?)*
        }

        impl WorkerCopy {
            /// Copies the current settings.
            pub fn of(config: &Config) -> Self {
                WorkerCopy { $($($copied: config.$copied.clone(),)?)* }
            }
        }

        /// Every setting, in alphabetical order.
        pub static SETTINGS: &[Setting] = &[$(
            $row.named($name)
                $(.stored(|config, value| config.$field.store(value)))?
                $(.stored(|config, value| config.$copied.store(value)))?
                $(.stored(|config, value| config.command.$handled.store(value)))?
        ),*];
    };
}

pub(crate) use settings;
