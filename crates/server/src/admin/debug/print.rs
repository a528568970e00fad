//! What commands print on standard output: a thread of its own writes it. Nobody waits for whoever
//! reads there, and may have stopped.

use base::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use command::Error;
use command::error::NoPrinter;
use std::collections::VecDeque;

/// Bytes that wait to be written, above which no more are taken.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Texts on their way.
#[derive(Default)]
struct Pending {
    texts: VecDeque<String>,
    /// Bytes of them, and of the one that is being written.
    bytes: usize,
    /// There is a thread that writes them.
    has_writer: bool,
}

static PENDING: OnceLock<Mutex<Pending>> = OnceLock::new();

fn pending() -> MutexGuard<'static, Pending> {
    PENDING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a text written, after those before it.
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

/// Writes until nothing is left.
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

/// Writes without the lock of `std::io::stdout`, which lines of the log take: they would wait for
/// whoever reads, too.
fn write(mut text: &[u8]) {
    while !text.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), text) {
            Ok(written) => text = &text[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return, // nobody can read it
        }
    }
}
