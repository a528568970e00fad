//! `sheafdb-bench collections reads|memory`: tables in Markdown, for people and for `docs/performance.md`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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
    /// Server CPU per request of ZRANGE, ZRANK, LRANGE, HGETALL, SINTER, PFADD, GEOSEARCH and BITCOUNT
    Reads(Reads),
    /// Bytes per element of lists, hashes, sets, sorted sets and streams
    Memory(Memory),
}

#[derive(clap::Args, Debug)]
struct Reads {
    /// Whom to measure, as in `lab`; several times. Ratios are to the first
    #[arg(long, value_name = "TARGET", default_values = ["redis", "sheafdb"])]
    target: Vec<String>,
    /// Only these figures, separated by commas
    #[arg(long, value_delimiter = ',')]
    figures: Vec<String>,
    /// Seconds of load for each repetition
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Repetitions, the targets in turn; medians are told
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Divide the sizes of the collections by this, for a quick look
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    divide: u64,
    /// Only load the data into servers that run already; a later run finds them there
    #[arg(long)]
    load_only: bool,
    /// Also write all measurements to this file, for `compare`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Memory {
    /// Whom to measure, as in `lab`; each is started afresh for every line. Ratios are to the first
    #[arg(long, value_name = "TARGET", default_values = ["redis", "sheafdb"])]
    target: Vec<String>,
    /// Only these kinds, separated by commas
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Elements of a collection, and how many collections
    #[arg(long, value_delimiter = ',', value_name = "SIZExCOUNT", value_parser = size,
        default_values = ["10x500000", "100x100000", "1000000x5"])]
    sizes: Vec<(u64, u64)>,
    /// Bytes of a value of a stream's entry
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
pub fn run(args: &Args) -> ExitCode {
    let started = Instant::now();
    let mut say =
        |what: &str| eprintln!("collections {:6.1} s  {what}", started.elapsed().as_secs_f64());
    let done = match &args.what {
        What::Reads(args) => run_reads(args, &mut say),
        What::Memory(args) => run_memory(args, &mut say),
    };
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("sheafdb-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn targets(texts: &[String]) -> Result<Vec<Target>, String> {
    texts.iter().map(|text| Target::parse(text).map_err(|error| error.to_string())).collect()
}

fn run_reads(args: &Reads, say: &mut dyn FnMut(&str)) -> Result<String, String> {
    if !(0.01..=3600.0).contains(&args.seconds) {
        return Err("seconds are 0.01 to 3600".to_owned());
    }
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let targets = targets(&args.target)?;
    if args.load_only && targets.iter().any(Target::is_started_here) {
        return Err("what is only loaded must run already: HOST:PORT or a socket".to_owned());
    }
    let targets = subject::start(&targets, &[], say).map_err(|error| error.to_string())?;
    let options = reads::Options {
        figures: args.figures.clone(),
        seconds: args.seconds,
        repetitions: args.repetitions as usize,
        divisor: args.divide,
        load_only: args.load_only,
    };
    let told = reads::run(&targets, &options, say)?;
    if let Some(path) = &args.json {
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let (machine, measurements) = (host::machine(), told.measurements);
        let results = Results {
            format: 1,
            started_unix_s,
            command,
            machine,
            measurements,
            findings: Vec::new(),
        };
        let text = serde_json::to_string(&results).expect("results have no maps with odd keys");
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if args.load_only {
        return Ok(String::new());
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let mut text = header("CPU us per request", &names, &["us"]);
    for row in &told.rows {
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

fn run_memory(args: &Memory, say: &mut dyn FnMut(&str)) -> Result<String, String> {
    let targets = targets(&args.target)?;
    let kind = |name: &String| {
        let found =
            memory::KINDS.iter().find(|kind| format!("{kind:?}").eq_ignore_ascii_case(name));
        found
            .copied()
            .ok_or_else(|| format!("no kind '{name}'; there are: list hash set zset stream"))
    };
    let mut kinds: Vec<_> = args.kinds.iter().map(kind).collect::<Result<_, _>>()?;
    if kinds.is_empty() {
        kinds = memory::KINDS.to_vec();
    }
    let rows = memory::run(&targets, &kinds, &args.sizes, args.value_bytes.into(), say)?;
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
    fn sizes_and_tables() {
        assert_eq!(size("10x20000"), Ok((10, 20_000)));
        assert!(size("10").is_err() && size("0x1").is_err() && size("1xx").is_err());
        assert_eq!(
            header("w", &["a", "b"], &["us"]),
            "| w | a us | b us | b of a |\n| --- | --- | --- | --- |\n"
        );
        assert_eq!(ratios(&[2.0, 1.0]), " **0.50** |");
    }
}
