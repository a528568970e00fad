//! What DEBUG reports of tables and structures, in Redis's words: a bucket of a table or a page of
//! a value is called a slot, and its contents a chain.

use base::DbIndex;
use keyspace::{Big, Guard, TableShape};
use std::fmt::Write;

/// DEBUG HTSTATS: the tables of a database, and its keys that expire.
pub fn tables_text(guard: &mut Guard<'_>, db: DbIndex) -> String {
    let shape = guard.table_shape(db).expect("DEBUG holds everything");
    let mut text = String::from("[Dictionary HT]\n");
    table(&mut text, &shape);
    text.push_str("[Expires HT]\n");
    // Keys that expire are stored in order of time, not in a table.
    let expires = guard.keyspace().db_expires(db);
    text.push_str(HEAD);
    if expires == 0 {
        text.push_str(EMPTY);
    } else {
        let _ = writeln!(text, " number of elements: {expires}");
    }
    text
}

const HEAD: &str = "Hash table 0 stats (main hash table):\n";
const EMPTY: &str = "No stats available for empty dictionaries\n";

fn table(text: &mut String, shape: &TableShape) {
    text.push_str(HEAD);
    if shape.entries == 0 {
        text.push_str(EMPTY);
        return;
    }
    let buckets = shape.buckets();
    let filled = buckets - shape.by_fill[0];
    let average = shape.entries as f64 / filled as f64;
    let _ = writeln!(
        text,
        " table size: {buckets}\n number of elements: {}\n different slots: {filled}\n \
         max chain length: {}\n avg chain length (counted): {average:.2}\n \
         avg chain length (computed): {average:.2}\n Chain length distribution:",
        shape.entries,
        shape.by_fill.len() - 1,
    );
    for (fill, count) in shape.by_fill.iter().enumerate().filter(|(_, count)| **count > 0) {
        let percent = *count as f64 * 100.0 / buckets as f64;
        let _ = writeln!(text, "   {fill}: {count} ({percent:.2}%)");
    }
}

/// DEBUG HTSTATS-KEY: the pages of a set, a sorted set or a hash; `None` for a list or a stream.
pub fn value_text(value: &Big) -> Option<String> {
    if matches!(value, Big::List(_) | Big::Stream(_)) {
        return None;
    }
    let (nodes, elements) = (value.node_count(), value.len());
    let average = elements as f64 / nodes.max(1) as f64;
    Some(format!(
        "{HEAD} table size: {nodes}\n number of elements: {elements}\n different slots: {nodes}\n \
         avg chain length (computed): {average:.2}\n"
    ))
}

/// DEBUG STRUCTSIZE.
pub fn struct_sizes() -> String {
    format!(
        "bits:{} session:{} client:{} big:{} guard:{}",
        usize::BITS,
        size_of::<crate::sessions::session::Session>(),
        size_of::<crate::sessions::card::ClientCard>(),
        size_of::<Big>(),
        size_of::<Guard<'_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of redis-server 7.0.
    #[test]
    fn table_statistics_use_the_documented_format() {
        let mut text = String::new();
        table(&mut text, &TableShape { entries: 6, by_fill: vec![3, 4, 1] });
        assert_eq!(
            text,
            "Hash table 0 stats (main hash table):\n table size: 8\n number of elements: 6\n \
             different slots: 5\n max chain length: 2\n avg chain length (counted): 1.20\n \
             avg chain length (computed): 1.20\n Chain length distribution:\n   0: 3 (37.50%)\n   \
             1: 4 (50.00%)\n   2: 1 (12.50%)\n"
        );
        let mut text = String::new();
        table(&mut text, &TableShape::default());
        assert_eq!(text, format!("{HEAD}{EMPTY}"));
    }
}
