//! Options with their defaults.

/// Options as they are when none is given.
pub fn defaults<O: clap::Args>() -> O {
    let command = O::augment_args(clap::Command::new("defaults")).no_binary_name(true);
    let matches = command.get_matches_from([""; 0]);
    O::from_arg_matches(&matches).expect("no option must be given")
}
