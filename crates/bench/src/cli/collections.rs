//! `sheafdb-bench collections reads|memory`: tables in Markdown, for people and for
//! `docs/performance.md`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Done, begin_results, progress, save_results};
use crate::collections::{memory, reads};
use crate::host;
use crate::lab::subject;
use crate::lab::target::Target;
use crate::result::Results;

/// The options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Measure the server CPU per request of ZRANGE, ZRANK, LRANGE, HGETALL, SINTER, PFADD,
    /// GEOSEARCH and BITCOUNT
    Reads(Reads),
    /// Measure the bytes per element of lists, hashes, sets, sorted sets and streams
    Memory(Memory),
}

#[derive(clap::Args, Debug)]
struct Reads {
    /// Server to measure, as in `lab`; repeat the option for more. Ratios are relative to the
    /// first one
    #[arg(long, value_name = "TARGET", default_values = ["redis", "sheafdb"],
        value_parser = Target::parse)]
    target: Vec<Target>,
    #[command(flatten)]
    options: reads::Options,
    /// Also write all measurements to this JSON file, for `compare`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Memory {
    /// Server to measure, as in `lab`; repeat the option for more. Each is restarted for every
    /// line of the table. Ratios are relative to the first one
    #[arg(long, value_name = "TARGET", default_values = ["redis", "sheafdb"],
        value_parser = Target::parse)]
    target: Vec<Target>,
    /// Kinds of collections to measure, separated by commas
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = memory::KINDS)]
    kinds: Vec<memory::Kind>,
    /// Elements per collection, and number of collections; several separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SIZExCOUNT", value_parser = size,
        default_values = ["10x500000", "100x100000", "1000000x5"])]
    sizes: Vec<(u64, u64)>,
    /// Bytes of each value in a stream entry
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    value_bytes: u16,
}

/// `SIZExCOUNT`.
fn size(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('x').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed
        .filter(|(size, count)| *size > 0 && (1..=1_000_000).contains(count))
        .ok_or_else(|| format!("'{text}' is no SIZExCOUNT, as in 100x20000"))
}

/// Measures and prints.
pub fn run(args: &Args) -> Done {
    let mut report = progress("collections");
    let text = match &args.what {
        What::Reads(args) => run_reads(args, &mut report),
        What::Memory(args) => run_memory(args, &mut report),
    }?;
    print!("{text}");
    Ok(true)
}

fn run_reads(args: &Reads, progress: &mut dyn FnMut(&str)) -> Result<String, String> {
    let options = &args.options;
    if !(0.01..=3600.0).contains(&options.seconds) {
        return Err("seconds are 0.01 to 3600".to_owned());
    }
    if options.load_only && args.target.iter().any(Target::is_started_here) {
        return Err("what is only loaded must run already: HOST:PORT or a socket".to_owned());
    }
    let results = begin_results();
    let targets = subject::start(&args.target, &[], progress).map_err(|error| error.to_string())?;
    let result = reads::run(&targets, options, progress)?;
    let results = Results { measurements: result.measurements, ..results };
    save_results(args.json.as_deref(), &results)?;
    if options.load_only {
        return Ok(String::new());
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let mut text = header("CPU us per request", &names, &["us"]);
    for row in &result.rows {
        let _ = write!(text, "| {} |", row.figure);
        for us in &row.cpu_us {
            let _ = write!(text, " {us:.3} |");
        }
        text += &ratios(&row.cpu_us);
        if row.other_cpus > host::OTHER_CPUS_MAX {
            let _ = write!(text, " others used {:.2} CPUs", row.other_cpus);
        }
        text.push('\n');
    }
    Ok(text)
}

fn run_memory(args: &Memory, progress: &mut dyn FnMut(&str)) -> Result<String, String> {
    let (targets, value_bytes) = (&args.target, args.value_bytes.into());
    let rows = memory::run(targets, &args.kinds, &args.sizes, value_bytes, progress)?;
    let names: Vec<&str> = targets.iter().map(Target::name).collect();
    let mut text = header("bytes per element", &names, &["resident", "used"]);
    for row in &rows {
        let kind = format!("{:?}", row.kind).to_lowercase();
        let _ = write!(text, "| {kind}, {} of {} |", row.count, row.size);
        for bytes in &row.bytes {
            let _ = write!(text, " {:.2} | {:.2} |", bytes.resident, bytes.used);
        }
        text += &ratios(&row.bytes.iter().map(|bytes| bytes.resident).collect::<Vec<_>>());
        text.push('\n');
    }
    Ok(text)
}

/// The head of a table: columns of each target, and its ratios to the first.
fn header(what: &str, names: &[&str], columns: &[&str]) -> String {
    let mut titles = vec![what.to_owned()];
    for name in names {
        titles.extend(columns.iter().map(|column| format!("{name} {column}")));
    }
    titles.extend(names[1..].iter().map(|name| format!("{name} of {}", names[0])));
    let lines = vec!["---"; titles.len()];
    format!("| {} |\n| {} |\n", titles.join(" | "), lines.join(" | "))
}

/// What the others take of the first.
fn ratios(of: &[f64]) -> String {
    let ratio = |one: &f64| format!(" **{:.2}** |", one / of[0]);
    of[1..].iter().map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_tables_formatted() {
        assert_eq!(size("10x20000"), Ok((10, 20_000)));
        assert!(size("10").is_err() && size("0x1").is_err() && size("1xx").is_err());
        assert_eq!(
            header("w", &["a", "b"], &["us"]),
            "| w | a us | b us | b of a |\n| --- | --- | --- | --- |\n"
        );
        assert_eq!(ratios(&[2.0, 1.0]), " **0.50** |");
    }
}
