//! The executor of all models but one: the thread that read a request executes it.

use std::sync::Arc;

use resp::{Args, OutBuf, Proto};

use super::commands::execute;
use super::context::Context;
use super::session::{Executor, Step};
use super::table::Table;

/// Executes where it stands.
#[derive(Clone)]
pub struct Local {
    context: Arc<Context>,
    table: Arc<Table>,
}

impl Local {
    /// On this table.
    pub fn new(context: &Arc<Context>, table: &Arc<Table>) -> Self {
        Self { context: Arc::clone(context), table: Arc::clone(table) }
    }
}

impl Executor for Local {
    fn execute(&mut self, args: Args<'_>, proto: Proto, out: &mut OutBuf) -> Step {
        execute(args, proto, &self.table, &self.context, out);
        Step::Replied
    }
}
