//! What to send, where to, how and for how long: everything that a run depends on.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;

/// Most connections of one run.
pub const CONNECTIONS_MAX: usize = 100_000;
/// Bytes of unsent requests on all connections of a thread at which even [`Driver::Unbounded`]
/// stops making more, so that the load generator does not take the machine's memory.
pub const UNBOUNDED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many requests, of all connections together.
    Requests(u64),
    /// For so many seconds, then the replies under way are waited for.
    Seconds(f64),
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// A closed loop: a reply makes the next request.
    Closed,
    /// An open loop: requests have intended send times, whatever the server does. Latency counts
    /// from there, so a server that stalls is charged for everybody who would have come meanwhile.
    Open {
        /// Requests per second, of all connections together.
        rate: f64,
        /// Distances between them.
        arrivals: Arrivals,
    },
}

/// Distances between the requests of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Exponentially distributed: independent users
    Poisson,
    /// All equal
    Constant,
}

/// How a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// `pipeline` requests in one send; the next ones when all their replies are there.
    LockStep,
    /// Always `pipeline` requests under way: each reply admits a new request.
    Window,
    /// So many callers share the connections evenly; each has one request under way, and whatever
    /// the callers of a connection want to send leaves together: implicit pipelining.
    Multiplexed {
        /// Callers of all connections together.
        callers: usize,
    },
    /// Requests are made as fast as the client can, whether replies come or not.
    Unbounded,
    /// No network and no server: a table in this process, one thread per connection.
    InProcess,
}

/// Which keys come how often. Keys are numbered; the patterns draw numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Every key as often.
    Uniform,
    /// The key of rank k as often as 1/k^exponent; key number 0 has rank 1.
    Zipf {
        /// Positive; 0.99 is customary for caches.
        exponent: f64,
    },
    /// A share of the keys, those with the lowest numbers, takes a share of the requests.
    HotSet {
        /// Share of the keys, above 0 and at most 1.
        keys: f64,
        /// Share of the requests, 0 to 1.
        requests: f64,
    },
    /// A bell around the middle of the range whose standard deviation is a sixth of the range.
    Gaussian,
    /// One after the other; each thread begins at its share of the range.
    Sequential,
    /// One after the other; each connection walks its own share of the range.
    Parallel,
}

/// The numbered keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Text before the twelve digits.
    pub prefix: String,
    /// Lowest number.
    pub minimum: u64,
    /// Highest number.
    pub maximum: u64,
}

impl Keys {
    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.maximum - self.minimum + 1
    }
}

/// One kind of request and how often it comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Its arguments. `__key__` stands for a key, `__rand_int__` for the twelve digits of a number
    /// of the key range, `__int__` for such a number in as many digits as it needs, `__data__` for
    /// a value; each occurrence is drawn anew. `__int+N__` is the last number of the request and
    /// `N` more.
    pub args: Vec<Vec<u8>>,
    /// Its share, relative to the weights of the others.
    pub weight: u32,
    /// Which keys it takes.
    pub pattern: Pattern,
    /// Sent as words on one line, the protocol's form for people; nothing is drawn in it.
    pub inline: bool,
}

impl Command {
    /// A command of weight 1 from words, with evenly drawn keys.
    pub fn new(words: &[&str]) -> Self {
        let args = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Self { args, weight: 1, pattern: Pattern::Uniform, inline: false }
    }
}

/// May a reply be nil?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nil {
    /// Commands that read keys must find them (GET, MGET, STRLEN ...); others may answer nil.
    ByCommand,
    /// Never.
    Fails,
    /// Always.
    Allowed,
}

/// Are the keys written before they are read?
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Populate {
    /// If a command of the load must find its keys, such as GET
    Auto,
    /// Write all keys of the range
    Yes,
    /// Do not write keys
    No,
}

/// A load. What one option of the command line says is that option. [`Spec::default`] is 50
/// connections that SET one key, as known benchmarks do.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub struct Spec {
    /// What a table calls this load; empty: made from the commands.
    #[arg(skip)]
    pub name: String,
    /// What a table calls the server; empty: its address.
    #[arg(skip)]
    pub target: String,
    /// Where the server listens.
    #[arg(skip = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 6379))))]
    pub address: Address,
    /// Connections of all threads together
    #[arg(
        short = 'c',
        long = "clients",
        visible_alias = "connections",
        value_name = "CLIENTS",
        default_value_t = 50
    )]
    pub connections: usize,
    /// Requests per batch (lock-step) or outstanding (window) on each connection
    #[arg(short = 'P', long, default_value_t = 1)]
    pub pipeline: usize,
    /// Threads of the load generator
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// How much to send.
    #[arg(skip = Amount::Requests(100_000))]
    pub amount: Amount,
    /// Seconds of load before the measurement starts
    #[arg(long = "warm-up", value_name = "SECONDS", default_value_t = 0.0)]
    pub warm_up_s: f64,
    /// The commands; a connection takes them in turn according to their weights.
    #[arg(skip = vec![Command::new(&["SET", "__key__", "__data__"])])]
    pub commands: Vec<Command>,
    /// The keys.
    #[arg(skip = Keys { prefix: "key:".to_owned(), minimum: 0, maximum: 0 })]
    pub keys: Keys,
    /// Smallest and largest value, bytes; sizes between them are equally likely.
    #[arg(skip = (3, 3))]
    pub data: (usize, usize),
    /// When requests are sent.
    #[arg(skip = Pacing::Closed)]
    pub pacing: Pacing,
    /// How a connection is used.
    #[arg(skip = Driver::LockStep)]
    pub driver: Driver,
    /// Check every reply against the value that was written
    // Each connection then works on keys of its own (number modulo connections), so what a read
    // must bring is known when it is sent.
    #[arg(long)]
    pub verify: bool,
    /// Whether to write the keys before the measurement
    #[arg(long, value_enum, default_value_t = Populate::Auto)]
    pub populate: Populate,
    /// Share of the reads which use keys that do not exist, 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub misses: f64,
    /// May a reply be nil?
    #[arg(skip = Nil::ByCommand)]
    pub nil: Nil,
    /// Use RESP3
    #[arg(short = '3', long)]
    pub resp3: bool,
    /// User for AUTH
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for AUTH
    #[arg(short = 'a', long, visible_alias = "pass")]
    pub password: Option<String>,
    /// Database for SELECT
    #[arg(long = "dbnum", visible_alias = "select-db", value_name = "DBNUM", default_value_t = 0)]
    pub db: u32,
    /// Process ID of the server, to measure its CPU and memory [default: found if it is local]
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Use a separate random sequence for each connection
    #[arg(long)]
    pub distinct_client_seed: bool,
    /// Seconds without any reply after which requests count as lost; also for connecting
    #[arg(long = "timeout", default_value_t = 5.0, value_name = "SECONDS")]
    pub timeout_s: f64,
    /// TCP_NODELAY on the client's side.
    #[arg(skip = true)]
    pub no_delay: bool,
    /// Send TCP acknowledgements at once (TCP_QUICKACK)
    // A system call per receive: shows what the server's small sends wait for.
    #[arg(long)]
    pub quick_ack: bool,
    /// Poll without sleeping; uses a whole CPU per thread
    #[arg(long)]
    pub spin: bool,
    /// Seconds per sample of the series.
    #[arg(skip = 0.25)]
    pub sample_s: f64,
}

impl Default for Spec {
    fn default() -> Self {
        crate::cli::defaults::defaults()
    }
}
