//! Writes commands as they stand in a file.

use base::num;

/// The line before which data of this time were written, in seconds since 1970.
pub fn write_timestamp(out: &mut Vec<u8>, unix_s: i64) {
    out.extend_from_slice(b"#TS:");
    num::write_i64(out, unix_s);
    out.extend_from_slice(b"\r\n");
}

/// Appends a command; its words are its name and arguments. O(bytes).
pub fn write_command<'w, I>(out: &mut Vec<u8>, words: I)
where
    I: IntoIterator<Item = &'w [u8], IntoIter: ExactSizeIterator>,
{
    let words = words.into_iter();
    begin_command(out, words.len());
    for word in words {
        write_word(out, word);
    }
}

/// Begins a command of so many words, which [`write_word`] appends.
pub fn begin_command(out: &mut Vec<u8>, words: usize) {
    write_length(out, b'*', words);
}

/// Appends a word of a command.
pub fn write_word(out: &mut Vec<u8>, word: &[u8]) {
    begin_word(out, word.len());
    out.extend_from_slice(word);
    end_word(out);
}

/// Begins a word of so many bytes, which the caller appends before [`end_word`].
pub fn begin_word(out: &mut Vec<u8>, length: usize) {
    write_length(out, b'$', length);
}

/// Ends a word.
pub fn end_word(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends the command which selects a database.
pub fn write_select(out: &mut Vec<u8>, db: u32) {
    let mut text = [0; num::U64_TEXT_MAX];
    write_command(out, [b"SELECT", num::format_u64(&mut text, db.into())]);
}

/// Appends the command which begins a transaction.
pub fn write_multi(out: &mut Vec<u8>) {
    out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
}

/// Appends the command which ends a transaction.
pub fn write_exec(out: &mut Vec<u8>) {
    out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
}

fn write_length(out: &mut Vec<u8>, mark: u8, length: usize) {
    out.push(mark);
    num::write_u64(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Reader};

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        write_timestamp(&mut out, 1_700_000_000);
        write_select(&mut out, 4_294_967_295);
        write_multi(&mut out);
        write_command(&mut out, [&b"SET"[..], b"", &[b'\n'; 300]]);
        write_exec(&mut out);
        let mut reader = Reader::new(0);
        reader.feed(&out);
        let mut seen = Vec::new();
        while let Some(item) = reader.next().expect("it is whole") {
            seen.push(match item {
                Item::Annotation { text, .. } => text.to_vec(),
                Item::Command(words) => words.iter().collect::<Vec<_>>().join(&b' '),
            });
        }
        let set = [&b"SET  "[..], &[b'\n'; 300]].concat();
        let expected = [&b"#TS:1700000000"[..], b"SELECT 4294967295", b"MULTI", &set, b"EXEC"];
        assert_eq!(seen, expected);
        assert_eq!(reader.finish(), Ok(()));
    }
}
