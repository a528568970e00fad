//! An error as it is sent, and the errors that repeat a request.

use std::borrow::Cow;
use std::fmt;

use super::{Echo, Error, SubcommandSyntax, UnknownCommand, UnknownSubcommand};

/// Bytes of a command's name that an error repeats at most.
const ECHO_NAME_MAX: usize = 128;
/// Bytes of arguments after which an error repeats no further one.
const ECHO_ARGS_MAX: usize = 128;

impl Error {
    /// A text made at run time, its code included.
    #[cold]
    pub fn made(text: impl Into<Box<str>>) -> Error {
        super::Text { text: text.into() }.into()
    }

    /// The error for a request whose first argument names no command.
    pub fn unknown_command<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> Error {
        let mut args = args.into_iter();
        let name = Echo::cut(args.next().unwrap_or_default(), ECHO_NAME_MAX);
        let mut echo = Vec::new();
        for arg in args {
            if echo.len() >= ECHO_ARGS_MAX {
                break;
            }
            let left = ECHO_ARGS_MAX - echo.len();
            echo.push(b'\'');
            echo.extend_from_slice(Echo::cut(arg, left).bytes());
            echo.extend_from_slice(b"' ");
        }
        UnknownCommand { name, args: (&*echo).into() }.into()
    }

    /// EXEC was refused as one of its commands alone would be.
    pub fn exec_refused(by: &Error) -> Error {
        let text = String::from_utf8_lossy(&by.text()).into_owned();
        let why = text.strip_prefix("ERR ").unwrap_or(&text);
        super::ExecRefused { why: why.into() }.into()
    }

    /// The error for a subcommand that its container does not have.
    pub fn unknown_subcommand(container: &str, name: &[u8]) -> Error {
        let name = Echo::cut(name, ECHO_NAME_MAX);
        UnknownSubcommand { name, container: container.to_ascii_uppercase().into() }.into()
    }

    /// The error for a known subcommand whose arguments (or whose name) do not fit.
    pub fn subcommand_syntax(container: &str, name: &[u8]) -> Error {
        let name = Echo::cut(name, ECHO_NAME_MAX);
        SubcommandSyntax { name, container: container.to_ascii_uppercase().into() }.into()
    }

    /// The text as it is sent: line breaks are spaces, or nothing at its end, and what a client
    /// sent is repeated byte by byte, UTF-8 or not.
    pub fn text(&self) -> Cow<'static, [u8]> {
        let mut text = self.filled();
        if text.ends_with(b"\r") || text.ends_with(b"\n") {
            let text = text.to_mut();
            while matches!(text.last(), Some(b'\r' | b'\n')) {
                text.pop();
            }
        }
        if text.iter().any(|b| matches!(b, b'\r' | b'\n')) {
            for byte in text.to_mut() {
                if matches!(byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::super::*;

    /// The texts which clients rely on. Changing or removing a row must be a deliberate decision. A
    /// new row is added here, too.
    #[test]
    fn texts_are_frozen() {
        let rows = ROWS.iter().map(|(name, _, text)| format!("{name}: {text}"));
        let frozen = include_str!("texts.txt");
        for (row, frozen) in rows.clone().zip(frozen.lines()) {
            assert_eq!(row, frozen);
        }
        assert_eq!(rows.len(), frozen.lines().count());
    }

    #[test]
    fn every_field_is_used_in_its_text() {
        for (name, fields, text) in ROWS {
            let named: Vec<&str> = text.split(['{', '}']).skip(1).step_by(2).collect();
            assert_eq!(named, *fields, "{name}");
            assert!(!text.contains("{}") && !text.contains("{{"), "{name}");
        }
    }

    #[test]
    fn every_text_begins_with_a_code() {
        for (name, _, text) in ROWS.iter().filter(|(_, _, text)| *text != "{text}") {
            let code = text.split(' ').next().expect("it has a word");
            assert!(code.bytes().all(|byte| byte.is_ascii_uppercase()), "{name}");
        }
    }

    #[test]
    fn fields_of_all_kinds_are_formatted() {
        let text = |error: Error| error.to_string();
        assert_eq!(
            text(InvalidExpire { command: "set" }.into()),
            "ERR invalid expire time in 'set' command"
        );
        let (key, group) = (Echo::from(&b"k\0x"[..]), Echo::from(&b"{key}"[..]));
        assert_eq!(
            text(NoKeyOrGroup { key, group }.into()),
            "NOGROUP No such key 'k' or consumer group '{key}'"
        );
        let reply = Box::from(*b"a\0b\r\n");
        assert_eq!(
            text(MigrateTarget { reply }.into()),
            "ERR Target instance replied with error: a\0b"
        );
        assert_eq!(text(Error::made("TRYAGAIN {later}")), "TRYAGAIN {later}");
    }

    #[test]
    fn names_of_commands_and_arguments_are_truncated() {
        assert_eq!(
            Error::unknown_command([&b"foo\r\n"[..], b"a", b"b\0c", b"d"]).to_string(),
            "ERR unknown command 'foo  ', with args beginning with: 'a' 'b' 'd' "
        );
        assert_eq!(
            Error::unknown_subcommand("config", &[b'x'; 200]).to_string(),
            format!("ERR unknown subcommand '{}'. Try CONFIG HELP.", "x".repeat(128))
        );
        assert_eq!(
            Error::subcommand_syntax("DEBUG", b"x\0y").to_string(),
            "ERR unknown subcommand or wrong number of arguments for 'x'. Try DEBUG HELP."
        );
    }

    #[test]
    fn line_breaks_in_client_input_are_replaced() {
        let option = |word: &[u8]| Error::from(ExpireOption { word: word.into() });
        assert_eq!(*option(b"a\r\nb\xff").text(), *b"ERR Unsupported option a  b\xff");
        assert_eq!(option(b"a\r\nb\xff").to_string(), "ERR Unsupported option a  b\u{fffd}");
        assert_eq!(*option(b"a\nb\r\n\n").text(), *b"ERR Unsupported option a b");
    }
}
