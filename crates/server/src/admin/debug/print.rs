//! What commands print on standard output. A separate thread writes it, so that no worker blocks
//! when the reader of the pipe has stopped reading.

use base::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use command::Error;
use command::error::NoPrinter;
use std::collections::VecDeque;

/// Most bytes that may wait to be written; beyond them a text is refused.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Texts that wait to be written.
#[derive(Default)]
struct Pending {
    texts: VecDeque<String>,
    /// Bytes of them, and of the one that is being written.
    bytes: usize,
    /// A thread that writes them is running.
    has_writer: bool,
}

static PENDING: OnceLock<Mutex<Pending>> = OnceLock::new();

fn pending() -> MutexGuard<'static, Pending> {
    PENDING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues a text to be written after those queued before it.
///
/// # Errors
/// If too much waits to be written, or no thread can be started.
pub fn print(text: String) -> Result<(), Error> {
    let mut all = pending();
    if all.bytes > 0 && all.bytes + text.len() > PENDING_BYTES_MAX {
        return Err(Error::NobodyReads);
    }
    if !all.has_writer {
        driver::spawn_helper("printer", write_all)
            .map_err(|e| NoPrinter { why: e.to_string().into() })?;
        all.has_writer = true;
    }
    all.bytes += text.len();
    all.texts.push_back(text);
    Ok(())
}

/// Writes until the queue is empty.
fn write_all() {
    loop {
        let mut all = pending();
        let Some(text) = all.texts.pop_front() else {
            all.has_writer = false;
            return;
        };
        drop(all);
        write(text.as_bytes());
        pending().bytes -= text.len();
    }
}

/// Writes without the lock of `std::io::stdout`. Lines of the log take that lock: they would wait
/// for the reader, too.
fn write(mut text: &[u8]) {
    while !text.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), text) {
            Ok(written) => text = &text[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return, // the pipe is closed
        }
    }
}
