//! A listener with a thread per connection. It ends when it is dropped.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub struct Acceptor {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Listens on a free port.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port"), serve)
    }

    pub fn on(listener: TcpListener, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, serve) = (Arc::clone(&stop), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (serve, stream) = (Arc::clone(&serve), stream.expect("it accepts"));
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the acceptor ends");
        }
    }
}
