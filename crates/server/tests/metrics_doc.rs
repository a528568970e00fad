//! `docs/metrics.md` is what the tables of metrics say.

use server::web::metrics::metrics_md;

/// `UPDATE_DOCS=1` writes the document anew.
#[test]
fn the_document_of_metrics_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let fresh = metrics_md();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &fresh).expect("the document can be written");
    }
    let written = std::fs::read_to_string(path).expect("docs/metrics.md is there");
    assert!(written == fresh, "docs/metrics.md is old: run this test with UPDATE_DOCS=1");
}
