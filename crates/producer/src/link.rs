//! Connections, one after another: the thread that connects and writes, and the one that reads.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ingest::v2::Reader;

use crate::state::{Bye, End, Shared};
use crate::{Error, Options};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// The shortest timeout of a read (0 would be an error).
const READ_MIN: Duration = Duration::from_millis(1);

/// Connects, again and again, until the producer ends. `hellos` are the frames for the first
/// connection and for later ones.
pub fn run(shared: &Arc<Shared>, options: &Options, hellos: &[Vec<u8>; 2]) {
    // Even after a panic no caller waits for ever.
    let _end = OnEnd(shared);
    let (mut tried, mut address) = (0, 0);
    loop {
        let before = {
            let state = shared.lock();
            if state.stopping || state.bye != Bye::No {
                return;
            }
            state.ledger.acknowledged()
        };
        let end = connect(options, &mut address)
            .map_err(End::from)
            .and_then(|stream| converse(shared, options, hellos, stream));
        let mut state = shared.lock();
        state.stream = None;
        match end {
            Ok(()) => {}
            Err(End::Failed(error)) => {
                state.failure = Some(error);
                return;
            }
            Err(End::Lost(why)) => state.lost = why,
        }
        tried = if state.ledger.acknowledged() > before { 0 } else { tried + 1 };
        let until = Instant::now() + pause(options, tried);
        while !state.stopping && state.bye == Bye::No {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.sleep(state, Some(left));
        }
    }
}

struct OnEnd<'a>(&'a Shared);

impl Drop for OnEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().stopping = true;
        self.0.notify_callers();
    }
}

/// The pause before the next try. It doubles with each failure, and has a random part, so that many
/// producers do not reconnect at the same time.
fn pause(options: &Options, tried: u32) -> Duration {
    let longest = options.backoff_min.saturating_mul(1 << tried.min(20)).min(options.backoff_max);
    let half = longest / 2;
    let random = RandomState::new().build_hasher().finish();
    half + Duration::from_nanos(random % (half.as_nanos() as u64 + 1))
}

/// Connects by TCP. With several addresses, each failure moves on to the next one.
fn connect(options: &Options, next: &mut usize) -> io::Result<TcpStream> {
    let all: Vec<SocketAddr> = options.address.to_socket_addrs()?.collect();
    let address = *all.get(*next % all.len().max(1)).ok_or(ErrorKind::AddrNotAvailable)?;
    let stream = TcpStream::connect_timeout(&address, options.attempt_timeout);
    if stream.is_err() {
        *next += 1;
    }
    let stream = stream?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends Hello, waits for Welcome, then reads and writes until the connection ends.
fn converse(
    shared: &Arc<Shared>,
    options: &Options,
    hellos: &[Vec<u8>; 2],
    stream: TcpStream,
) -> Result<(), End> {
    let stream = Arc::new(stream);
    let hello = {
        let mut state = shared.lock();
        state.connected(Arc::clone(&stream));
        if state.stopping {
            return Ok(());
        }
        // Once it was known, a server that does not know it any more has lost what it acknowledged.
        &hellos[usize::from(state.connections > 0)]
    };
    let until = Instant::now() + options.attempt_timeout;
    stream.set_write_timeout(Some(options.attempt_timeout))?;
    (&*stream).write_all(hello)?;
    stream.set_write_timeout(None)?; // from now on the reading thread sees to it that nothing stalls
    let mut reader = Reader::new();
    let mut buffer = vec![0; READ_BYTES];
    while !shared.lock().greeted {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(End::Lost("no Welcome in time".into()));
        }
        stream.set_read_timeout(Some(left.max(READ_MIN)))?;
        match (&*stream).read(&mut buffer) {
            Ok(0) => return Err(End::Lost("the server closed the connection".into())),
            Ok(read) => shared.on_input(&mut reader, &buffer[..read])?,
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    both(shared, options, &stream, reader, buffer)
}

/// Reads on a thread of its own and writes on this one.
fn both(
    shared: &Shared,
    options: &Options,
    stream: &TcpStream,
    mut reader: Reader,
    mut buffer: Vec<u8>,
) -> Result<(), End> {
    thread::scope(|scope| {
        let listening = thread::Builder::new().name("sheafdb-producer-reads".into());
        let listening = listening.spawn_scoped(scope, || {
            let end = listen(shared, options, stream, &mut reader, &mut buffer);
            let mut state = shared.lock();
            state.broken = true;
            state.hang_up();
            shared.wake(&mut state);
            end
        });
        let listening = listening.map_err(|error| Error::Thread(error.to_string()))?;
        speak(shared, options, stream);
        listening.join().unwrap_or_else(|_| Err(Error::Closed.into()))
    })
}

/// Writes whatever is to be sent.
fn speak(shared: &Shared, options: &Options, mut stream: &TcpStream) {
    let mut out = Vec::new();
    while shared.next_output(&mut out) {
        if stream.write_all(&out).is_err() {
            // Why, the server may have said before: it is given time to be read.
            let until = Instant::now() + options.attempt_timeout;
            let mut state = shared.lock();
            while !state.broken && !state.stopping && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                state = shared.sleep(state, Some(left));
            }
            break;
        }
        out.clear();
    }
    // Fails only if the connection has ended already. The reading thread notices the end.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads until the connection ends.
fn listen(
    shared: &Shared,
    options: &Options,
    mut stream: &TcpStream,
    reader: &mut Reader,
    buffer: &mut [u8],
) -> Result<(), End> {
    // How often it checks whether an acknowledgement is overdue.
    let check_interval = (options.stall_timeout / 4).clamp(READ_MIN, Duration::from_secs(1));
    stream.set_read_timeout(Some(check_interval))?;
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(End::Lost("the server closed the connection".into())),
            Ok(read) => shared.on_input(reader, &buffer[..read])?,
            Err(error) if is_nothing_yet(&error) => {
                let state = shared.lock();
                if state.ledger.is_owed() && state.last_progress.elapsed() > options.stall_timeout {
                    return Err(End::Lost("no acknowledgement for too long".into()));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
