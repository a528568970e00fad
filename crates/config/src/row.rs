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
    /// Tuning of something that works differently or not at all here: accepted, read back,
    /// and nothing is promised by it.
    Inert,
    /// Its absence could lose data or weaken security: only the values that ask for nothing are
    /// taken.
    Refused {
        /// The values that ask for nothing, as CONFIG GET shows them.
        off: &'static [&'static str],
        /// What anything else would need.
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
    /// Changes what the keyspace keeps of the uses of keys.
    Uses,
    /// Begins or ends import mode in the keyspace.
    Import,
    /// Raises the limit of open files. May fail.
    FileLimit,
    /// Changes the working folder. May fail.
    Folder,
    /// Would move the listeners to another port, which fails: the addresses of a running server are
    /// fixed.
    Port,
    /// Would move them to other addresses, which fails, too.
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
    /// Its value is never shown in logs, messages, MONITOR and SLOWLOG.
    pub secret: bool,
    /// One line: what it does, or why it does nothing, or what is refused.
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

    /// Under this name.
    pub(crate) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// With a typed field.
    pub(crate) const fn stored(mut self, store: fn(&mut Config, &Value)) -> Self {
        self.store = Some(store);
        self
    }

    /// Also known by these names.
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

    /// With a value that is never shown.
    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// With something for the server to do when it changes.
    pub(crate) const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Whether readers have a typed field of it.
    pub const fn has_field(&self) -> bool {
        self.store.is_some()
    }

    /// This text as it may be shown.
    pub fn shown(&self, text: &[u8]) -> String {
        if self.secret { "...".to_owned() } else { printable(text) }
    }

    /// Its name and its other names.
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

/// A setting of which only the values that ask for nothing are taken; the first is the default.
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
/// - `server`: who holds the lock of `Config`.
/// - `worker`: every worker, in its `WorkerCopy`; it takes over a changed one with the next fence.
/// - `handler`: handlers, in [`HandlerSettings`](super::HandlerSettings), of which every worker has
///   a copy as well.
///
/// The macro makes four things of the rows: the fields of `Config`, `WorkerCopy`,
/// `HandlerSettings`, and `SETTINGS`.
macro_rules! settings {
    ($(
        $name:literal
        $(server($field:ident: $type:ty))?
        $(worker($copied:ident: $copied_type:ty))?
        $(handler($handled:ident: $handled_type:ty))?
        = $row:expr;
    )*) => {
        /// The settings of a server: those that do something in typed fields, and the text of all.
        #[derive(Clone)]
        pub struct Config {
            $(
                $(#[doc = concat!("`", $name, "`.")] pub $field: $type,)?
                $(#[doc = concat!("`", $name, "`.")] pub $copied: $copied_type,)?
            )*
            /// What handlers read.
            pub command: HandlerSettings,
            /// The configuration file, for CONFIG REWRITE.
            pub file: Option<PathBuf>,
            /// The text of every setting, by [`Index`].
            pub(crate) texts: Vec<Vec<u8>>,
            /// Whether a file or the command line named it, by [`Index`].
            pub(crate) named: Vec<bool>,
        }

        impl Config {
            /// Every field at the default of its type, which is not that of its setting.
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

        /// What handlers read. The default is that of every setting.
        #[derive(Clone, Debug)]
        pub struct HandlerSettings {
            $($(#[doc = concat!("`", $name, "`.")] pub $handled: $handled_type,)?)*
        }

        /// What every worker has a copy of.
        #[derive(Clone, Debug)]
        pub struct WorkerCopy {
            $($(#[doc = concat!("`", $name, "`.")] pub $copied: $copied_type,)?)*
        }

        impl WorkerCopy {
            /// The settings as they are now.
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
