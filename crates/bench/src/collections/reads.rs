//! Server CPU per request of commands that read big collections.

use super::connect;
use super::data::Sizes;
use super::figures::{FIGURES, Figure};
use crate::analysis::spread::median;
use crate::lab::subject;
use crate::lab::target::Started;
use crate::load::{self, Amount, Keys, Nil, Populate, Spec};
use crate::result::Measurement;

/// What to measure and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Figures to measure, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pub figures: Vec<String>,
    /// Seconds of load per repetition
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Repetitions; the servers take turns, and the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
    /// Divide the sizes of the collections by this number, for a shorter run
    #[arg(long = "divide", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub divisor: u64,
    /// Only load the data, into servers that are already running; a later run reuses the data
    #[arg(long)]
    pub load_only: bool,
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the figure.
    pub figure: &'static str,
    /// CPU microseconds per request of each target, medians.
    pub cpu_us: Vec<f64>,
    /// The most that other programs used in any repetition, CPUs.
    pub other_cpus: f64,
}

/// All lines and all measurements behind them.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// A line per figure.
    pub rows: Vec<Row>,
    /// Every repetition.
    pub measurements: Vec<Measurement>,
}

/// Loads, compares and measures; fails on the first reply that is wrong.
pub fn run(
    targets: &[Started],
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Compared, String> {
    let figures = chosen(&options.figures)?;
    let sizes = Sizes { divisor: options.divisor };
    load_all(targets, &figures, sizes, progress)?;
    let mut result = Compared::default();
    if options.load_only {
        return Ok(result);
    }
    for figure in &figures {
        compare(targets, figure, sizes)?;
    }
    progress("the replies are the same");
    for figure in figures {
        progress(figure.name);
        let mut runs = vec![Vec::new(); targets.len()];
        let mut other_cpus: f64 = 0.0;
        for _ in 0..options.repetitions {
            for (target, runs) in targets.iter().zip(&mut runs) {
                let measured = measure(target, figure, sizes, options.seconds)?;
                let server = measured.server.ok_or_else(|| {
                    format!("{}: its CPU time cannot be seen from here", target.name)
                })?;
                runs.push(server.cpu_us_per_request);
                other_cpus = other_cpus.max(measured.other_cpus);
                result.measurements.push(measured);
            }
        }
        let cpu_us = runs.iter().map(|us| median(us)).collect();
        result.rows.push(Row { figure: figure.name, cpu_us, other_cpus });
    }
    Ok(result)
}

/// Names of all figures.
pub fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|figure| figure.name).collect()
}

fn chosen(names: &[String]) -> Result<Vec<&'static Figure>, String> {
    if names.is_empty() {
        return Ok(FIGURES.iter().collect());
    }
    let find = |name: &String| {
        let found = FIGURES.iter().find(|figure| figure.name == name);
        found.ok_or_else(|| format!("no figure '{name}'; there are: {}", self::names().join(" ")))
    };
    names.iter().map(find).collect()
}

/// All targets at the same time: nothing is measured yet.
fn load_all(
    targets: &[Started],
    figures: &[&Figure],
    sizes: Sizes,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut data: Vec<_> = figures.iter().map(|figure| figure.data).collect();
    data.dedup();
    for data in data {
        progress(&format!("loading {data:?}"));
        let loaded: Vec<Result<bool, String>> = std::thread::scope(|scope| {
            let load = |target| scope.spawn(move || data.load(target, sizes));
            let threads: Vec<_> = targets.iter().map(load).collect();
            threads.into_iter().map(|one| one.join().expect("a load ends")).collect()
        });
        loaded.into_iter().collect::<Result<Vec<bool>, String>>()?;
    }
    Ok(())
}

fn spec(target: &Started, figure: &Figure, sizes: Sizes, seconds: f64) -> Spec {
    let (minimum, maximum) = figure.numbers(sizes);
    Spec {
        name: figure.name.to_owned(),
        target: target.name.clone(),
        address: subject::address(target),
        connections: figure.load.0,
        pipeline: figure.load.1,
        amount: Amount::Seconds(seconds),
        warm_up_s: seconds / 10.0,
        commands: figure.commands(),
        keys: Keys { prefix: "key:".to_owned(), minimum, maximum },
        populate: Populate::No,
        nil: Nil::Fails,
        server_pid: subject::process(target),
        timeout_s: 30.0,
        ..Spec::default()
    }
}

/// The replies of all targets to the first requests of the load: of the right form, and the same.
fn compare(targets: &[Started], figure: &Figure, sizes: Sizes) -> Result<(), String> {
    let mut first: Option<(&Started, Vec<client::Value>)> = None;
    for target in targets {
        let spec = spec(target, figure, sizes, 1.0);
        let requests = load::requests(&spec, figure.compared).map_err(|error| error.to_string())?;
        let mut client = connect(target)?;
        let mut replies = Vec::new();
        for request in requests {
            let reply = client.send_raw(&request).and_then(|()| client.reply());
            let reply = reply.map_err(|error| format!("{}: {error}", target.name))?;
            let plain = figure.shape(sizes).plain(reply.clone()).ok_or_else(|| {
                format!(
                    "{}: {}: a wrong reply to {}: {reply:?}",
                    target.name,
                    figure.name,
                    request.escape_ascii()
                )
            })?;
            replies.push(plain);
        }
        match &first {
            None => first = Some((target, replies)),
            Some((other, theirs)) => {
                if let Some(at) = theirs.iter().zip(&replies).position(|(a, b)| a != b) {
                    return Err(format!(
                        "{}: {} and {} differ in reply {at}: {:?}, {:?}",
                        figure.name, other.name, target.name, theirs[at], replies[at]
                    ));
                }
            }
        }
    }
    Ok(())
}

fn measure(
    target: &Started,
    figure: &Figure,
    sizes: Sizes,
    seconds: f64,
) -> Result<Measurement, String> {
    let spec = spec(target, figure, sizes, seconds);
    let measured =
        load::run(&spec).map_err(|error| format!("{}: {}: {error}", target.name, figure.name))?;
    if measured.failures.is_empty() {
        return Ok(measured);
    }
    Err(format!("{}: {}: {:?}", target.name, figure.name, measured.failures))
}
