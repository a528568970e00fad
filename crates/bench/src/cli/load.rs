//! `sheafdb-bench load`: the options that users of redis-benchmark and memtier_benchmark know, and
//! some that they do not.

mod args;
mod options;
mod output;
mod suite;
mod values;

use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};

use super::{Done, begin_results, save_results};
use crate::load::{self, Progress, Spec};
use crate::result::Measurement;

pub use args::Args;
use args::Format;
use output::Printer;
pub(crate) use values::ratio;

/// Runs the loads and prints what came of them; false if a request did not get its right reply.
pub fn run(args: &Args) -> Done {
    let specs = args.specs()?;
    let mut results = begin_results();
    let format = if args.csv { Format::Csv } else { args.format };
    let mut printer = Printer::new(format, args.quiet);
    let mut all_right = true;
    let mut round = 0;
    while args.forever || round < args.repeat {
        for spec in &specs {
            let measured = measure(spec, !args.quiet)?;
            printer.print(&measured).map_err(|error| format!("cannot write: {error}"))?;
            if !measured.failures.is_empty() {
                all_right = false;
                eprintln!("sheafdb-bench: {}", output::failed(&measured));
            }
            // A loop for ever must not keep everything for ever.
            if args.json.is_some() && !args.forever {
                results.measurements.push(measured);
            }
        }
        round += 1;
    }
    save_results(args.json.as_deref(), &results)?;
    Ok(all_right)
}

fn measure(spec: &Spec, show: bool) -> Result<Measurement, String> {
    // The bar hides itself where the standard error is no terminal.
    let bar = if show { ProgressBar::new(1000) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {msg}");
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar.set_prefix(spec.name.clone());
    let measured = load::run_until(spec, &mut |progress| {
        match progress {
            Progress::Connected(count) => bar.set_message(format!("{count} connections")),
            Progress::Populated(done, of) => {
                bar.set_position(done * 1000 / of.max(1));
                bar.set_message(format!("{done} of {of} keys written"));
            }
            Progress::Running(share, sample) => {
                bar.set_position((share * 1000.0) as u64);
                let (rate, p99) = (sample.throughput, sample.p99_us);
                bar.set_message(format!("{rate:.0} requests/s, p99 {p99:.1} us"));
            }
        }
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    measured.map_err(|error| error.to_string())
}
