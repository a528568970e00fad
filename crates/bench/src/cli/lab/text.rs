//! The output of an experiment as text for a terminal.

use std::fmt::Write;

use base::calendar::{self, Date};

use crate::lab::Output;
use crate::report::{Section, Table, holds_figures};
use crate::result::Finding;

/// Everything but the plots.
pub fn render(output: &Output) -> String {
    output.sections.iter().map(section).collect()
}

fn section(section: &Section) -> String {
    let mut text = format!("\n{}\n{}\n", section.title, "=".repeat(section.title.chars().count()));
    let (models, servers): (Vec<&Finding>, Vec<&Finding>) =
        section.findings.iter().partition(|finding| section.is_appendix(&finding.target));
    for sentence in section.answer() {
        let _ = writeln!(text, "{sentence}");
    }
    if !servers.is_empty() {
        text += "\nFindings\n";
    }
    text.extend(servers.into_iter().map(finding));
    let parted = section.tables.iter().map(|all| all.parted(|target| section.is_appendix(target)));
    let (of_servers, of_models): (Vec<Table>, Vec<Table>) = parted.unzip();
    let shown = |(table, all): (&Table, &Table)| {
        if table.rows.is_empty() && !all.rows.is_empty() {
            String::new()
        } else {
            self::table(table)
        }
    };
    text.extend(of_servers.iter().zip(&section.tables).map(shown));
    let mut appendix: String = section.answers_about_models().map(|answer| answer + "\n").collect();
    appendix.extend(models.into_iter().map(finding));
    appendix.extend(of_models.iter().filter(|table| !table.rows.is_empty()).map(table));
    if !appendix.is_empty() {
        text += "\nModels and references\n";
        text += &appendix;
    }
    if !section.prose.is_empty() {
        text += "\nHow it was measured\n";
    }
    for paragraph in &section.prose {
        let _ = writeln!(text, "{paragraph}");
    }
    text
}

/// A table with columns as wide as their widest cell; what reads as a figure stands to the right.
pub fn table(table: &Table) -> String {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|at| {
            let cells = table.rows.iter().filter_map(|row| row.get(at));
            let widest = cells.chain([&table.columns[at]]).map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0)
        })
        .collect();
    let to_the_right: Vec<bool> =
        (0..widths.len()).map(|at| at > 0 && holds_figures(table, at)).collect();
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (at, width) in widths.iter().enumerate() {
            let cell = cells.get(at).map_or("", String::as_str);
            let _ = if to_the_right[at] {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("\n{}\n{}{rows}", table.title, line(&table.columns))
}

fn finding(finding: &Finding) -> String {
    let entry = crate::analysis::findings::entry(finding.kind);
    let mut text = format!("  {}: {} ({})\n", finding.target, entry.name, entry.title);
    for line in &finding.evidence {
        let _ = writeln!(text, "      {line}");
    }
    for line in &finding.caveats {
        let _ = writeln!(text, "      but: {line}");
    }
    text
}

/// A time as date and hour, UTC.
pub fn date(unix_s: u64) -> String {
    let at = i64::try_from(unix_s).unwrap_or(i64::MAX);
    let (Date { year, month, day }, [hour, minute, _]) = calendar::split(at);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_width_of_their_widest_cell() {
        let cells = |row: &[&str]| row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let shown = table(&Table {
            title: "t".to_owned(),
            columns: cells(&["target", "n"]),
            rows: vec![cells(&["a", "1,000"]), cells(&["b"])],
        });
        assert_eq!(shown, "\nt\ntarget      n\na       1,000\nb\n");
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400 + 3660), "2000-02-29 01:01 UTC");
        assert_eq!(date(1_767_225_599), "2025-12-31 23:59 UTC");
    }
}
