//! Tables of the page, and the table behind a plot.

use std::fmt::Write as _;

use super::document::{Plot, Table};
use super::escape::escape;
use super::plot::tick_label;
use crate::analysis::figure;

/// A table with more rows is folded; a plot with more different x has none: its CSV holds them.
const ROWS_MAX: usize = 40;

/// A table as HTML; a long one is folded.
pub fn html(table: &Table) -> String {
    let title = escape(&table.title);
    let mut text = String::from("<div class=\"scroll\"><table>");
    text.push_str("<thead><tr>");
    let classes: Vec<&str> = (0..table.columns.len()).map(|at| class(table, at)).collect();
    for (class, column) in classes.iter().zip(&table.columns) {
        let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", escape(column));
    }
    text.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (at, class) in classes.iter().enumerate() {
            let cell = row.get(at).map(String::as_str).unwrap_or_default();
            let _ = write!(text, "<td{class}>{}</td>", escape(cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    match table.rows.len() {
        _ if title.is_empty() => text,
        rows if rows > ROWS_MAX => {
            format!("<details><summary>{title} ({rows} rows)</summary>\n{text}</details>\n")
        }
        _ => format!("<h3>{title}</h3>\n{text}"),
    }
}

/// How the cells of a column are set: figures to the right, single words without a break.
fn class(table: &Table, column: usize) -> &'static str {
    let mut cells = table.rows.iter().filter_map(|row| row.get(column));
    if holds_figures(table, column) {
        " class=\"figure\""
    } else if cells.all(|cell| !cell.contains(' ')) {
        " class=\"word\""
    } else {
        ""
    }
}

/// True if all cells of a column that are not empty are figures, and there is one.
pub fn holds_figures(table: &Table, column: usize) -> bool {
    let cells = table.rows.iter().filter_map(|row| row.get(column));
    let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
    filled.peek().is_some() && filled.all(|cell| is_figure(cell))
}

/// A number, perhaps with a unit or with something in brackets after it.
fn is_figure(cell: &str) -> bool {
    let (number, rest) = cell.split_once(' ').unwrap_or((cell, ""));
    let is_number = number.trim_end_matches('%').replace(',', "").parse::<f64>().is_ok();
    cell == "-" || is_number && (!rest.contains(' ') || rest.starts_with('('))
}

/// The figures of a plot as a table, a row per x and a column per series; computed curves are left
/// out.
pub fn behind(plot: &Plot) -> Option<Table> {
    let measured: Vec<_> = plot.series.iter().filter(|s| s.curve_of.is_none()).collect();
    let mut all: Vec<f64> = measured.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    if all.is_empty() || all.len() > ROWS_MAX {
        return None;
    }
    let mut columns = vec![plot.x_label.clone()];
    columns.extend(measured.iter().map(|series| series.name.clone()));
    let row = |x: &f64| {
        let name = plot.categories.get(*x as usize).cloned();
        let mut cells = vec![name.unwrap_or_else(|| tick_label(*x))];
        for series in &measured {
            let at = series.points.iter().position(|p| p.0.total_cmp(x).is_eq());
            cells.push(
                at.map_or_else(String::new, |at| cell(series.points[at].1, series.spread.get(at))),
            );
        }
        cells
    };
    Some(Table { title: plot.y_label.clone(), columns, rows: all.iter().map(row).collect() })
}

fn cell(value: f64, spread: Option<&(f64, f64)>) -> String {
    let shown = |value: f64| {
        if value.abs() < 10.0 {
            format!("{}", (value * 1000.0).round() / 1000.0)
        } else {
            figure::count(value)
        }
    };
    match spread {
        Some((low, high)) if low < high => {
            format!("{} ({} to {})", shown(value), shown(*low), shown(*high))
        }
        _ => shown(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Kind, Series};

    #[test]
    fn figures_are_right_aligned_and_text_is_escaped() {
        let table = Table {
            title: "a<b".to_owned(),
            columns: vec!["who".to_owned(), "rate".to_owned()],
            rows: vec![vec!["<x>".to_owned(), "1,000".to_owned()], vec!["y".to_owned()]],
        };
        let text = html(&table);
        assert!(text.starts_with("<h3>a&lt;b</h3>"), "{text}");
        let row = "<td class=\"word\">&lt;x&gt;</td><td class=\"figure\">1,000</td>";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("<td class=\"word\">y</td><td class=\"figure\"></td>"), "{text}");
        let long = Table { rows: vec![Vec::new(); ROWS_MAX + 1], ..table };
        assert!(html(&long).contains("<summary>a&lt;b (41 rows)</summary>"));
    }

    #[test]
    fn numbers_with_a_unit_are_recognised_as_figures() {
        for cell in ["-", "1,000", "12 %", "1.5 ms", "2,000 (1,000 to 3,000)", "6.51e-4"] {
            assert!(is_figure(cell), "{cell}");
        }
        for cell in ["", "hangs", "1 x 17 bytes, 50 per write", "no good fit"] {
            assert!(!is_figure(cell), "{cell}");
        }
    }

    #[test]
    fn the_table_of_a_plot_joins_its_series() {
        let plot = Plot::new(Kind::Line, "t", "n", "rate")
            .with(Series::new("a", vec![(1.0, 10.0), (2.0, 0.123_456)]))
            .with(Series::repeated("b", &[(2.0, vec![3_000.0, 1_000.0, 2_000.0])]))
            .with(Series::curve("fit", "a", vec![(1.5, 1.0)]));
        let table = behind(&plot).expect("it is short");
        assert_eq!(table.columns, ["n", "a", "b"]);
        assert_eq!(table.rows, [["1", "10", ""], ["2", "0.123", "2,000 (1,000 to 3,000)"]]);
        let long = (0..100).map(|i| (f64::from(i), 1.0)).collect();
        assert_eq!(behind(&Plot::default().with(Series::new("a", long))), None);
    }
}
