//! Configuration: a file of any bytes is parsed or refused, and parsed values survive quoting.

use server::config::parse::{file, quoted, split};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "config",
    feed,
    dictionary: &[
        b"port 6379\n",
        b"\"",
        b"'",
        b"\\",
        b"\\x41",
        b"\\x",
        b"#",
        b"\n",
        b"\r\n",
        b"save \"\"\n",
        b"bind ",
        b"maxmemory 1gb\n",
        b"client-output-buffer-limit normal 0 0 0\n",
        b" ",
        b"\t",
        b"\0",
        b"\xff",
    ],
};

fn feed(bytes: &[u8]) {
    let Ok(directives) = file(bytes) else { return };
    for directive in directives {
        let known = server::config::find(&directive.name).is_some();
        assert!(!known || !directive.name.is_empty(), "a directive without a name is unknown");
        let line: Vec<String> = directive.words.iter().map(|word| quoted(word)).collect();
        let again = split(line.join(" ").as_bytes()).expect("what is quoted is well formed");
        assert_eq!(again, directive.words, "quoted words parse to the same words");
    }
}
