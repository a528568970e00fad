//! The threads of saves which have not ended.

use crate::boot::vital::run_or_exit;
use crate::persist::save::pipe::{Order, Pipe};
use base::sync::thread::JoinHandle;
use base::sync::{Arc, Mutex, MutexGuard};

/// The threads that walk.
#[derive(Default)]
pub struct Walkers(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    last: u64,
    running: Vec<(u64, Arc<Pipe>, JoinHandle<()>)>,
}

impl Walkers {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().expect("no panic while the threads are held")
    }

    /// Starts a thread, which is given its number. Returns the number.
    pub(crate) fn start(
        &self,
        pipe: &Arc<Pipe>,
        run: impl FnOnce(u64) + Send + 'static,
    ) -> std::io::Result<u64> {
        let mut threads = self.threads();
        let number = threads.last + 1;
        let thread = driver::spawn_helper("saver", move || {
            driver::give_way();
            run_or_exit(format_args!("the thread that saves"), || run(number));
        })?;
        threads.last = number;
        threads.running.push((number, Arc::clone(pipe), thread));
        Ok(number)
    }

    /// A thread has said that it ends.
    pub(crate) fn join(&self, number: u64) {
        let mut threads = self.threads();
        if let Some(at) = threads.running.iter().position(|(n, ..)| *n == number) {
            let (.., thread) = threads.running.swap_remove(at);
            thread.join().expect("a panic of this thread ends the process");
        }
    }

    /// The server ends: so do they, wherever they are.
    pub(crate) fn end(&self) {
        let mut threads = self.threads();
        for (_, pipe, thread) in threads.running.drain(..) {
            pipe.give_order(Order::Quit);
            thread.join().expect("a panic of this thread ends the process");
        }
    }
}
