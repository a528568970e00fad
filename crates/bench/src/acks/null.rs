//! What the strategies are compared with: one thread that receives and looks at nothing. For request-reply it
//! answers every read of one message with its first 8 bytes. It sleeps in its poll like any simple epoll server.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes received at once.
const ROOM: usize = 64 << 10;
/// Ready connections taken per poll.
const EVENTS_MAX: usize = 256;
/// The listener among the ready.
const LISTENER: u64 = u64::MAX;

/// A running null reader; ends with its value.
pub struct NullReader {
    /// Where it listens.
    pub address: SocketAddr,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl NullReader {
    /// Starts one on a free port of the loopback interface; `replies` makes it answer each read.
    pub fn start(replies: bool) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let end = Arc::new(AtomicBool::new(false));
        let ends = end.clone();
        let thread = std::thread::spawn(move || serve(&listener, replies, &ends));
        Ok(Self { address, end, thread: Some(thread) })
    }
}

impl Drop for NullReader {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        // A connection wakes it; if none is possible it has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, replies: bool, end: &AtomicBool) -> io::Result<()> {
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&set, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut room = vec![0; ROOM];
    while !end.load(Ordering::Acquire) {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let ready = match epoll::wait(&set, &mut events, None) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        };
        for event in ready.iter() {
            let n = event.data.u64();
            if n == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let data = EventData::new_u64(streams.len() as u64);
                    epoll::add(&set, &stream, data, EventFlags::IN)?;
                    streams.push(Some(stream));
                }
                continue;
            }
            let Some(stream) = &streams[n as usize] else { continue };
            match recv(stream, &mut *room, RecvFlags::DONTWAIT) {
                Ok((n @ 8.., _)) if replies => {
                    debug_assert!(n >= 8, "a whole message");
                    send(stream, &room[..8], SendFlags::NOSIGNAL)?;
                }
                Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Ok((0, _)) | Err(_) => streams[n as usize] = None,
            }
        }
    }
    Ok(())
}
