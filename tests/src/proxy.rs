//! A proxy which damages replies, or the server's data, to prove that the tests fail then.

mod state;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::wire::parse;

/// One in this many replies or writes is damaged.
pub const EVERY: u64 = 10;

/// What happens to every [`EVERY`]-th reply or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Nothing.
    None,
    /// It is dropped.
    Drop,
    /// It is sent after the next one.
    Swap,
    /// It becomes an error.
    Error,
    /// Its last letter or digit changes.
    Letter,
    /// The write is answered and then undone.
    LostWrite,
    /// After the write one byte of its key changes.
    StateByte,
}

/// A running proxy; it ends when dropped.
pub struct Proxy {
    /// Where it listens.
    pub addr: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port and forwards to `to`.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(to: SocketAddr, damage: Damage) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let addr = listener.local_addr().expect("it listens");
        let stop = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicU64::new(0));
        let stopped = Arc::clone(&stop);
        let acceptor = std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect(to) else { continue };
                if matches!(damage, Damage::LostWrite | Damage::StateByte) {
                    std::thread::spawn(move || state::forward(client, to, damage));
                } else {
                    forward(&client, &server, damage, &count);
                }
            }
        });
        Self { addr, stop, acceptor: Some(acceptor) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then reads the flag.
        let _ = TcpStream::connect(self.addr);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Two threads, one for each direction; they end when either side closes.
fn forward(client: &TcpStream, server: &TcpStream, damage: Damage, count: &Arc<AtomicU64>) {
    for stream in [client, server] {
        // If this fails, the proxy is only slower.
        let _ = stream.set_nodelay(true);
    }
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else { return };
    let count = Arc::clone(count);
    std::thread::spawn(move || copy(from_client, &to_server));
    std::thread::spawn(move || damaged(from_server, &to_client, damage, &count));
}

fn copy(mut from: TcpStream, mut to: &TcpStream) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn damaged(mut from: TcpStream, mut to: &TcpStream, damage: Damage, count: &AtomicU64) {
    let mut unread = Vec::new();
    let mut waiting: Option<Vec<u8>> = None;
    let mut chunk = [0; 16 * 1024];
    'open: while let Ok(n @ 1..) = from.read(&mut chunk) {
        unread.extend_from_slice(&chunk[..n]);
        while let Ok(Some((_, used))) = parse(&unread) {
            let mut reply: Vec<u8> = unread.drain(..used).collect();
            let hit = count.fetch_add(1, Ordering::Relaxed) % EVERY == EVERY - 1;
            match damage {
                Damage::Drop if hit => continue,
                Damage::Swap if hit && waiting.is_none() => {
                    waiting = Some(reply);
                    continue;
                }
                Damage::Error if hit => reply = b"-ERR damaged on the way\r\n".to_vec(),
                Damage::Letter if hit => change_letter(&mut reply),
                _ => {}
            }
            reply.extend(waiting.take().unwrap_or_default());
            if to.write_all(&reply).is_err() {
                break 'open;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn change_letter(reply: &mut [u8]) {
    if let Some(byte) = reply.iter_mut().skip(1).rfind(|byte| byte.is_ascii_alphanumeric()) {
        *byte = if *byte == b'7' { b'8' } else { b'7' };
    }
}
