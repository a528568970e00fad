//! What becomes of a command, and what its handler leaves.

use command::Done;

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Executed (or refused) and answered.
    Done,
    /// Not executed: the session waits, and the same command is tried again.
    Retry,
    /// Executed; its reply comes later, and the session executes nothing until then.
    Waiting,
}

/// What a command's handler leaves.
pub enum Called {
    /// Nothing more to do.
    Over(Outcome),
    /// What a handler of data says; the rest is done when its locks have dropped.
    Left(Done),
}

impl From<Outcome> for Called {
    fn from(outcome: Outcome) -> Self {
        Self::Over(outcome)
    }
}
