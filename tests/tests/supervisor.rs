//! Loading and saving take longer than a supervisor waits: it is told in time, and kills nothing.

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::http;
use sheafdb_tests::in_time::{LIMIT, in_time, until};
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::Wire;

/// How long the supervisor waits for a start or a stop when it hears nothing. If the machine stands
/// still for so long, the trial is repeated with all times doubled.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Keys of the file; each comes in a chunk of its own or with one other.
const KEYS: usize = 40;
/// How long each takes, microseconds: all of them far longer than [`TIMEOUT`].
const DELAY_US: u32 = 200_000;

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).expect("the connection is open"))
}

/// Does what systemd does with `Type=notify`: whoever neither is through nor asks for more time
/// before his time is over is killed.
struct Supervisor {
    socket: UnixDatagram,
    child: Child,
    timeout: Duration,
    /// Its time is over then.
    deadline: Instant,
    /// When its time first began.
    since: Instant,
    /// What it has said, line by line.
    heard: Vec<String>,
}

impl Supervisor {
    /// Starts a server. Its time begins when it listens: how long a program takes to begin is the
    /// machine's matter.
    fn start(folder: &Folder, timeout: Duration, extra: &[&str]) -> (Self, SocketAddr) {
        let path = folder.at("notify");
        let _ = std::fs::remove_file(&path); // of the trial before
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a limit");
        let addr = free_addr().expect("a port");
        let mut command = Command::new(Binary::under_test().path);
        command.args(["--port", &addr.port().to_string(), "--dir", folder.path()]);
        command.args(["--supervised", "systemd", "--threads", "1"]).args(extra);
        command.env("NOTIFY_SOCKET", &path).stdout(Stdio::null());
        let child = command.spawn().expect("it starts");
        until("it listens", || Wire::connect(addr).is_ok());
        let since = Instant::now();
        let deadline = since + timeout;
        (Self { socket, child, timeout, deadline, since, heard: Vec::new() }, addr)
    }

    /// Hears what there is to hear; false if the time of the server is over.
    fn listen(&mut self) -> bool {
        let mut text = [0; 512];
        while let Ok(len) = self.socket.recv(&mut text) {
            for line in String::from_utf8_lossy(&text[..len]).lines() {
                if let Some(micros) = line.strip_prefix("EXTEND_TIMEOUT_USEC=") {
                    let micros = micros.parse().expect("a number");
                    self.deadline = Instant::now() + Duration::from_micros(micros);
                }
                self.heard.push(line.to_owned());
            }
        }
        let is_in_time = Instant::now() < self.deadline;
        if !is_in_time {
            println!("its time is over; it said {:?}", self.heard);
        }
        is_in_time
    }

    fn count(&self, line: &str) -> usize {
        self.heard.iter().filter(|heard| heard.starts_with(line)).count()
    }

    fn goes_on_for_less_than(&self, limit: Duration) {
        assert!(self.since.elapsed() < limit, "{:?}", self.heard);
    }

    /// Otherwise nothing is tested.
    fn needed_more_than(&self, time: Duration) -> bool {
        let needed = self.since.elapsed();
        println!("it needed {needed:?} and said {:?}", self.heard);
        needed > time
    }

    fn stop(&mut self) {
        self.heard.clear();
        self.since = Instant::now();
        self.deadline = self.since + self.timeout;
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of [`KEYS`] keys.
fn save_file(folder: &Folder) {
    let server = ServerProcess::start(&Binary::under_test(), &["--dir", folder.path()]);
    let wire = &mut server.connect();
    let long = "x".repeat(200_000);
    ask(wire, "CONFIG SET rdbcompression no");
    for n in 0..KEYS {
        assert_eq!(ask(wire, &format!("SET key:{n} {long}{n}")), "+OK");
    }
    assert_eq!(ask(wire, "SAVE"), "+OK");
}

#[test]
fn loading_takes_longer_than_the_timeout_of_a_start() {
    if Binary::under_test().kind != Kind::SheafDb {
        return;
    }
    let folder = Folder::new("supervised-load");
    save_file(&folder);
    in_time(|factor| loads_in_time(&folder, factor));
}

/// Loads with all times so often as long. False if the supervisor waited in vain, or if nothing was
/// seen of the load.
fn loads_in_time(folder: &Folder, factor: u32) -> bool {
    let timeout = TIMEOUT * factor;
    let admin = free_addr().expect("a port");
    let (port, delay) = (admin.port().to_string(), (DELAY_US * factor).to_string());
    let extra = ["--key-load-delay", &delay, "--admin-port", &port];
    let (mut supervisor, addr) = Supervisor::start(folder, timeout, &extra);
    let get = |path| http::await_answer(admin, path);
    // It is alive and not ready, and says how far it is.
    let mut percents = Vec::new();
    while supervisor.count("READY=1") == 0 {
        supervisor.goes_on_for_less_than(10 * timeout + LIMIT);
        let ready = get("/readyz");
        if ready.status == 503 {
            let percent = ready.body.strip_prefix("loading: ").and_then(|t| t.split(' ').next());
            let percent = percent.and_then(|text| text.parse::<f64>().ok());
            percents.push(percent.unwrap_or_else(|| panic!("no per cent: {}", ready.body)));
            let health = get("/healthz");
            if health.status != 200 {
                println!("it was not scheduled for seconds: {}", health.body);
                return false;
            }
        }
        if !supervisor.listen() {
            return false;
        }
    }
    if !supervisor.needed_more_than(timeout) {
        return false;
    }
    assert!(percents.is_sorted(), "{percents:?}");
    // At least twice: the first word alone would do for a minute and no longer.
    let extensions = supervisor.count("EXTEND_TIMEOUT_USEC=");
    assert!(extensions >= 2, "{:?}", supervisor.heard);
    assert_eq!(extensions, supervisor.count("STATUS=Loading: "));
    assert_eq!(get("/readyz").status, 200);
    // Only what is loaded is ready.
    let mut wire = Wire::connect(addr).expect("it listens");
    assert_eq!(ask(&mut wire, "DBSIZE"), format!(":{KEYS}"));
    percents.iter().any(|p| *p > 0.0 && *p < 100.0)
}

#[test]
fn saving_takes_longer_than_the_timeout_of_a_stop() {
    if Binary::under_test().kind != Kind::SheafDb {
        return;
    }
    in_time(saves_in_time);
}

/// Saves with all times so often as long; false if the supervisor waited in vain.
fn saves_in_time(factor: u32) -> bool {
    let timeout = TIMEOUT * factor;
    let (folder, delay) = (Folder::new("supervised-save"), (DELAY_US * factor).to_string());
    let extra = ["--rdb-key-save-delay", &delay, "--save", "3600 1", "--admin-port", "0"];
    let (mut supervisor, addr) = Supervisor::start(&folder, timeout, &extra);
    let mut wire = Wire::connect(addr).expect("it listens");
    for n in 0..KEYS {
        assert_eq!(ask(&mut wire, &format!("SET key:{n} {n}")), "+OK");
    }
    supervisor.stop();
    let status = loop {
        if !supervisor.listen() {
            return false;
        }
        if let Some(status) = supervisor.child.try_wait().expect("it is our child") {
            break status;
        }
        supervisor.goes_on_for_less_than(10 * timeout + LIMIT);
    };
    supervisor.listen(); // what it has said before its end
    assert!(status.success(), "{status}");
    if !supervisor.needed_more_than(timeout) {
        return false;
    }
    let extensions = supervisor.count("EXTEND_TIMEOUT_USEC=");
    assert!(extensions >= 2, "{:?}", supervisor.heard);
    let server = ServerProcess::start(&Binary::under_test(), &["--dir", folder.path()]);
    assert_eq!(ask(&mut server.connect(), "DBSIZE"), format!(":{KEYS}"));
    true
}
