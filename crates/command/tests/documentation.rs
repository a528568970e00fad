//! `docs/commands.md` matches what the table generates.

use std::path::Path;

#[test]
fn the_commands_page_matches_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let generated = command::documentation::commands_markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &generated).expect("docs/ is writable");
    }
    let page = std::fs::read_to_string(&path).expect("docs/commands.md is there");
    assert!(page == generated, "docs/commands.md is old: run the tests with UPDATE_DOCS=1");
}
