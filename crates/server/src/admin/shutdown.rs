//! SHUTDOWN.

use crate::worker::{Core, Outcome};
use command::Error;
use command::ops::ShutdownOp;
use driver::ConnId;
use resp::OutBuf;

impl Core {
    /// Ends the server; there is no reply on success, the connection just closes.
    pub(crate) fn shutdown_op(
        &mut self,
        _out: &mut OutBuf,
        conn: ConnId,
        op: ShutdownOp,
    ) -> Result<Outcome, Error> {
        match op {
            ShutdownOp::Abort => Err(Error::NoShutdown),
            ShutdownOp::End { save: Some(true), .. } => Err(Error::NoPersistence),
            ShutdownOp::End { .. } => {
                crate::log::notice(format_args!("User requested shutdown..."));
                self.finish(conn);
                self.shared.begin_shutdown();
                Ok(Outcome::Done)
            }
        }
    }
}
