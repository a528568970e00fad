//! `sheafdb-bench compare`: two files of measurements side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Done;
use crate::compare::{Comparison, ERROR_RATE, Row, Verdict, compare};
use crate::result::Results;

/// Version of the files that can be read.
const FORMAT: u32 = 1;

/// The options.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Files come from `sheafdb-bench load --repeat 5 --json FILE`. Each figure is the \
    geometric mean of its repetitions, with the 95 % interval of the ratio B/A. 'better' and \
    'worse' mean a significant difference, with an error rate of 5 % for the whole comparison \
    (docs/load.md). Exit status: 0 if nothing got worse; 1 if something did, or nothing could be \
    compared."
)]
pub struct Args {
    /// JSON file A, the baseline
    a: PathBuf,
    /// JSON file B, which is compared with A
    b: PathBuf,
}

/// Compares and prints; false if something got worse.
pub fn run(args: &Args) -> Done {
    let made = compare(&read(&args.a)?, &read(&args.b)?);
    print!("{}", text(&made));
    if made.rows.is_empty() {
        return Err("the files have no load in common".to_owned());
    }
    Ok(made.rows.iter().all(|row| row.verdict != Verdict::Worse))
}

fn read(path: &Path) -> Result<Results, String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let results: Results = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if results.format != FORMAT {
        return Err(failed(&format!("its format is {}, not {FORMAT}", results.format)));
    }
    Ok(results)
}

fn text(made: &Comparison) -> String {
    let mut text = answer(&made.rows);
    let mut load = "";
    for row in &made.rows {
        if row.load != load {
            load = &row.load;
            let _ = writeln!(text, "{load}");
            let titles = ["A", "B", "B/A"];
            let _ = writeln!(
                text,
                "  {:<24}{:>14}{:>14}{:>9}  {:<17}{:>7}{:>8}  verdict",
                "", titles[0], titles[1], titles[2], "interval", "runs", "p"
            );
        }
        text += &line(row);
    }
    for warning in &made.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}

/// The answer in a sentence.
fn answer(rows: &[Row]) -> String {
    let of = |verdict: &Verdict| rows.iter().filter(|row| row.verdict == *verdict).count();
    let (all, better, worse) = (rows.len(), of(&Verdict::Better), of(&Verdict::Worse));
    let unknown = rows.iter().filter(|row| matches!(row.verdict, Verdict::Unknown(_))).count();
    let same = all - better - worse - unknown;
    format!(
        "Of {all} figures B is better in {better} and worse in {worse}; {same} are not different, {unknown} unknown.\n"
    )
}

fn line(row: &Row) -> String {
    let verdict = match &row.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Same if row.p < ERROR_RATE => "too small to matter".to_owned(),
        Verdict::Same => "may be chance".to_owned(),
        Verdict::Unknown(why) => format!("unknown: {why}"),
    };
    let known = row.interval.1.is_finite();
    let interval = if known {
        format!("{:.3} to {:.3}", row.interval.0, row.interval.1)
    } else {
        "-".to_owned()
    };
    let runs = format!("{}+{}", row.repetitions.0, row.repetitions.1);
    let p = if known { format!("{:.4}", row.p) } else { "-".to_owned() };
    format!(
        "  {:<24}{:>14.3}{:>14.3}{:>9.3}  {interval:<17}{runs:>7}{p:>8}  {verdict}\n",
        row.figure.name, row.a, row.b, row.ratio
    )
}
