//! `docs/metrics.md` matches the tables of metrics.

use server::web::metrics::metrics_md;

/// `UPDATE_DOCS=1` rewrites the document.
#[test]
fn the_metrics_document_matches_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let fresh = metrics_md();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &fresh).expect("the document can be written");
    }
    let written = std::fs::read_to_string(path).expect("docs/metrics.md is there");
    assert!(written == fresh, "docs/metrics.md is old: run this test with UPDATE_DOCS=1");
}
