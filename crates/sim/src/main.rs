//! The program: one seed, or a range of seeds, each in a process of its own.

#[cfg(sim)]
mod cli;

#[cfg(sim)]
fn main() -> std::process::ExitCode {
    cli::run()
}

#[cfg(not(sim))]
fn main() -> std::process::ExitCode {
    eprintln!("this program is built by: cargo xtask sim");
    std::process::ExitCode::from(2)
}
