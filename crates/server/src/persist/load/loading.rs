//! What worker 0 keeps while a file is loaded.

use crate::persist::load::pipe::Pipe;
use crate::persist::load::reading::Reading;
use base::MonoNs;
use base::sync::Arc;

/// Loading under way.
pub(crate) struct Loading {
    pub(crate) reading: Reading,
    pub(crate) pipe: Arc<Pipe>,
    /// The threads know that no more blocks come.
    pub(crate) is_read: bool,
    pub(crate) began: MonoNs,
    /// When the log and a supervisor are told of progress next.
    pub(crate) report_at: MonoNs,
}
