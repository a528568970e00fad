//! A sequence of commands and how they are sent.

use std::fmt;

use crate::quote;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection that sends it.
    pub conn: u8,
    /// The command and its arguments.
    pub args: Vec<Vec<u8>>,
    /// Wait afterwards until the short expiry it sets has passed on both servers.
    pub settle: bool,
    /// Belongs to the step before: neither is determined alone.
    pub tied: bool,
}

/// How the commands are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Each after the reply to the one before.
    OneByOne,
    /// All in one write.
    Pipelined,
    /// All without waiting, in pieces of this many bytes.
    Pieces(usize),
    /// One by one, and after each all connections are asked for what they have received.
    Gathered,
}

/// The commands which run on both servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// 2 or 3.
    pub proto: u8,
    /// How the commands are sent; pipelines use one connection.
    pub delivery: Delivery,
    /// The commands.
    pub steps: Vec<Step>,
}

impl Sequence {
    /// The same with other steps.
    #[must_use]
    pub fn with(&self, steps: Vec<Step>) -> Self {
        Self { steps, ..self.clone() }
    }
}

/// The golden format.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# RESP{}, {:?}", self.proto, self.delivery)?;
        writeln!(f, "@reset")?;
        let mut conn = 1;
        for step in &self.steps {
            if step.conn != conn {
                conn = step.conn;
                writeln!(f, "@conn {conn}")?;
            }
            let args: Vec<String> = step.args.iter().map(|arg| readable(arg)).collect();
            writeln!(f, "> {}", args.join(" "))?;
            if step.settle {
                writeln!(f, "@sleep {}", super::execute::SETTLE.as_millis())?;
            }
        }
        Ok(())
    }
}

/// Long arguments are abbreviated; the seed regenerates them.
fn readable(arg: &[u8]) -> String {
    const LONG: usize = 400;
    if arg.len() <= LONG {
        return quote::line(std::slice::from_ref(&arg.to_vec()));
    }
    format!("<{} bytes from {}>", arg.len(), quote::quoted(&arg[..8]))
}
