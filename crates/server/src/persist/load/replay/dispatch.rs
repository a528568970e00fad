//! Which thread runs a command: one thread at a time reads a block of the file and sorts its
//! commands.
//!
//! ```text
//! one slot                             chunk of thread SLOT % THREADS
//! several slots of one thread          the same
//! several threads, or the keyspace     alone: a chunk that runs while no other does
//! a transaction                        as its commands together
//! ```

use crate::ingest::kept::Unread;
use crate::ingest::producers::Name;
use crate::persist::load::fault::LoadError;
use crate::persist::load::functions::{self, Functions};
use crate::persist::load::replay::chunk::{Chunk, Known, Needs};
use base::sync::Arc;
use base::{DbIndex, SlotId};
use command::spec::LockClass;
use command::{CommandId, First, Handler, SessionOp};
use config::table::QUERY_BUFFER_MAX;
use journal::producer::{self, BlockLine};
use journal::reader::COMMAND_MAX;
use journal::{Damage, DamageKind, Follow, Item, Numbering, Position, Reader, Words};
use keyspace::Keyspace;
use resp::{Args, Span};

/// Behind a command that runs alone, so many that could run beside each other run alone, too:
/// whoever sends MSET sends more of them, and each change between the two costs a wait.
const ALONE_RUN: usize = 64;
/// Bytes after which a chunk that runs alone ends, so that `Lanes` counts it.
const ALONE_BYTES: usize = 1 << 20;
/// The places of its arguments fit into spans.
const _: () = assert!(COMMAND_MAX < Span::BLOB as u64);
/// What a server has acknowledged can be loaded: a record has little more bytes than its request.
const _: () = assert!(QUERY_BUFFER_MAX + (32 << 20) < COMMAND_MAX);
/// Memory of a chunk that is kept for the next one.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// Chunks that are kept to be filled.
const SPARE_MAX: usize = 256;

/// Chunks in the order in which they run.
pub(crate) enum Batch {
    /// One for each thread, beside each other.
    Beside(Vec<Chunk>),
    /// By itself.
    Alone(Chunk),
}

impl Batch {
    /// Bytes of the file.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Beside(chunks) => chunks.iter().map(Chunk::len).sum(),
            Self::Alone(chunk) => chunk.len(),
        }
    }
}

/// How a file of commands ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    /// The file is whole up to here.
    pub(crate) valid_up_to: u64,
    /// It ends within a command or a transaction.
    pub(crate) truncated: Option<Damage>,
    /// The numbers of its records.
    pub(crate) numbering: Numbering,
    /// Where the stream of replication is behind them, if the files say it.
    pub(crate) position: Option<Position>,
}

/// The reader of a file, and what it sorts into.
pub(crate) struct Dispatcher {
    reader: Reader,
    sorter: Sorter,
    stream: Follow,
    /// Where the file begins.
    from: u64,
}

/// Where commands go.
struct Sorter {
    keyspace: Arc<Keyspace>,
    databases: u16,
    db: DbIndex,
    numbering: Numbering,
    /// What is filled for each thread.
    lanes: Vec<Chunk>,
    /// What is filled to run alone; the lanes are empty meanwhile.
    alone: Option<Chunk>,
    /// Commands in it behind the last one that needs it.
    behind: usize,
    transaction: Option<Transaction>,
    batches: Vec<Batch>,
    /// Chunks whose memory is used again.
    spare: Vec<Chunk>,
    spans: Vec<Span>,
    /// Changes of the libraries of functions, in order.
    functions: Vec<functions::Op>,
    /// Numbers of producers, in order.
    producers: Vec<(Name, u64)>,
    /// Those which cannot be read.
    unread: Unread,
}

/// The transaction whose EXEC has not come.
struct Transaction {
    chunk: Chunk,
    needs: Option<(Lane, Needs)>,
    functions: Vec<functions::Op>,
    producers: Vec<(Name, u64)>,
}

/// Which thread runs something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    One(usize),
    /// Any, alone.
    Alone,
}

impl Dispatcher {
    /// The reader of a file from an offset on, for so many threads.
    pub(crate) fn new(at: u64, keyspace: Arc<Keyspace>, databases: u16, threads: usize) -> Self {
        let sorter = Sorter {
            keyspace,
            databases,
            db: DbIndex(0),
            numbering: Numbering::default(),
            lanes: (0..threads).map(|_| Chunk::default()).collect(),
            alone: None,
            behind: 0,
            transaction: None,
            batches: Vec::new(),
            spare: Vec::new(),
            spans: Vec::new(),
            functions: Vec::new(),
            producers: Vec::new(),
            unread: Unread::default(),
        };
        Self { reader: Reader::new(at), sorter, stream: Follow::begin(None, at), from: at }
    }

    /// Records stand before this file, with these numbers, up to this position.
    pub(crate) fn behind(mut self, numbering: Numbering, position: Option<Position>) -> Self {
        self.sorter.numbering = numbering.next_file();
        self.stream = Follow::begin(position, self.from);
        self
    }

    /// Reads a block. `spare` are empty chunks. Ends at the next command once `is_cancelled`.
    ///
    /// # Errors
    /// A command which is no command of an append-only file. Those before it are in
    /// [`Dispatcher::take`].
    pub(crate) fn block(
        &mut self,
        block: &[u8],
        spare: Vec<Chunk>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<(), LoadError> {
        self.sorter.spare.extend(spare);
        self.sorter.spare.truncate(SPARE_MAX);
        self.reader.feed(block);
        let read = loop {
            if is_cancelled() {
                break Ok(());
            }
            match self.reader.next() {
                Ok(Some(Item::Command(words))) => {
                    if let Err(error) = self.sorter.command(&words) {
                        break Err(error);
                    }
                }
                Ok(Some(Item::Annotation { at, text, end, multi })) => {
                    self.stream.annotation(text, (at, end), multi);
                    self.sorter.annotation(at, text);
                }
                Ok(None) => break Ok(()),
                Err(damage) => break Err(LoadError::damaged(&damage)),
            }
        };
        self.sorter.flush();
        read
    }

    /// No more bytes come.
    ///
    /// # Errors
    /// What follows the last good command is none.
    pub(crate) fn finish(&self) -> Result<Replayed, LoadError> {
        let (valid_up_to, numbering) = (self.reader.valid_up_to(), self.sorter.numbering);
        let position = self.stream.end(valid_up_to, self.reader.multi());
        let truncated = match self.reader.finish() {
            Ok(()) => None,
            Err(damage) if damage.kind == DamageKind::Truncated => Some(damage),
            Err(damage) => return Err(LoadError::damaged(&damage)),
        };
        Ok(Replayed { valid_up_to, truncated, numbering, position })
    }

    /// What was read since the last call.
    pub(crate) fn take(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.sorter.batches)
    }

    /// Applies what was read of libraries since the last call.
    pub(crate) fn apply_functions(&mut self, to: &mut Functions) {
        self.sorter.functions.drain(..).for_each(|op| to.apply(op));
    }

    /// The numbers of producers which were read since the last call.
    pub(crate) fn take_producers(&mut self) -> Vec<(Name, u64)> {
        std::mem::take(&mut self.sorter.producers)
    }

    /// Those which could not be read since the last call.
    pub(crate) fn take_unread(&mut self) -> Unread {
        std::mem::take(&mut self.sorter.unread)
    }

    pub(crate) fn has_functions(&self) -> bool {
        !self.sorter.functions.is_empty()
    }
}

impl Sorter {
    fn command(&mut self, words: &Words<'_>) -> Result<(), LoadError> {
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        spans.extend(words.spans.iter().map(|&(start, len)| Span { start, len }));
        let sorted = self.sort(words, &spans);
        self.spans = spans;
        sorted
    }

    fn sort(&mut self, words: &Words<'_>, spans: &[Span]) -> Result<(), LoadError> {
        let args = Args::new(words.raw, spans, &[]);
        let Some(id) = self.find(words.at, args)? else {
            self.count_record();
            return Ok(());
        };
        let spec = id.spec();
        match spec.handler {
            Handler::Session(parse) => match parse(args) {
                Ok(SessionOp::Select(db)) => return self.select(words.at, db),
                Ok(SessionOp::Multi) => {
                    let chunk = self.spare.pop().unwrap_or_default();
                    self.transaction = Some(Transaction {
                        chunk,
                        needs: None,
                        functions: Vec::new(),
                        producers: Vec::new(),
                    });
                }
                Ok(SessionOp::Exec) => self.end_transaction(),
                _ => {} // nothing to a file, which has no session
            },
            // A command which only reads changes nothing. (PFCOUNT does.)
            _ if !spec.may_change() => {}
            Handler::Data(_) | Handler::Blocking(..) | Handler::Server(_) => {
                let (lane, needs, first) = self.place(id, args);
                let known = Known { id, db: self.db, at: words.at, needs, first };
                match &mut self.transaction {
                    Some(transaction) => transaction.push(lane, &known, words.raw, spans),
                    None => self.push(lane, |chunk| chunk.push(&known, words.raw, spans)),
                }
            }
            Handler::Container => return Err(LoadError::unknown(words.at, args)),
        }
        self.count_record();
        Ok(())
    }

    /// A command was read which is a record, unless it stands in a transaction or begins one.
    #[inline]
    fn count_record(&mut self) {
        if self.transaction.is_none() {
            self.numbering.record();
        }
    }

    /// A line beside the commands: a number and a time, or the number of a producer. That belongs
    /// to the command before it, and counts with its transaction.
    fn annotation(&mut self, at: u64, text: &[u8]) {
        self.numbering.annotation(text);
        let Some(line) = producer::read_line(text) else { return };
        let transaction = self.transaction.as_mut();
        let told = line.ok().zip(transaction).is_some_and(|(line, t)| t.add_producer(&line));
        if !told {
            self.unread.add(|| format!("at byte {at}: '{}'", text.escape_ascii()));
        }
    }

    /// The command; `None` if it was about functions, which are not in the table.
    fn find(&mut self, at: u64, args: Args<'_>) -> Result<Option<CommandId>, LoadError> {
        let Some(id) = command::lookup(args.get(0)) else {
            if let Some(op) = functions::Op::read(args) {
                let op = op.map_err(|why| LoadError::at(at, &why))?;
                match &mut self.transaction {
                    Some(transaction) => transaction.functions.push(op),
                    None => self.functions.push(op),
                }
                return Ok(None);
            }
            return Err(LoadError::unknown(at, args));
        };
        let id = command::resolve(id, args).map_err(|_| LoadError::unknown(at, args))?;
        if !id.spec().accepts(args.len()) {
            return Err(LoadError::arity(at, id.spec().full_name, args.len()));
        }
        Ok(Some(id))
    }

    fn select(&mut self, at: u64, db: i32) -> Result<(), LoadError> {
        let index = u16::try_from(db).ok().filter(|db| *db < self.databases);
        let why = || format!("database {db}: there are only {} databases", self.databases);
        self.db = DbIndex::new(index.ok_or_else(|| LoadError::at(at, &why()))?);
        Ok(())
    }

    /// Where a command belongs, and what it locks.
    #[inline]
    fn place(&self, id: CommandId, args: Args<'_>) -> (Lane, Needs, First) {
        let spec = id.spec();
        if spec.touched.is_none()
            && spec.lock == LockClass::Keys
            && matches!(spec.handler, Handler::Data(_))
            && let Some(arg) = spec.single_key()
        {
            let key = self.keyspace.key(args.get(arg));
            let first = First { arg: arg as u32, slot: key.slot, hash: key.hash };
            return (self.lane_of(key.slot), Needs::One(key.slot), first);
        }
        self.place_by_keys(id, args)
    }

    fn place_by_keys(&self, id: CommandId, args: Args<'_>) -> (Lane, Needs, First) {
        let spec = id.spec();
        let class = command::keys::lock_class(spec, args);
        if class != LockClass::Keys {
            let lane = if self.lanes.len() == 1 { Lane::One(0) } else { Lane::Alone };
            return (lane, Needs::World, First::NONE);
        }
        let mut found: Option<(Lane, Needs)> = None;
        // A command whose keys cannot be found fails when it runs.
        let _ = command::keys::for_each(spec, args, |key| {
            let slot = self.keyspace.key(args.get(key.arg)).slot;
            found = Some(both(found, (self.lane_of(slot), Needs::One(slot))));
        });
        let (lane, needs) = found.unwrap_or((Lane::One(0), Needs::Many));
        (lane, needs, First::NONE)
    }

    #[inline]
    fn lane_of(&self, slot: SlotId) -> Lane {
        Lane::One(slot.index() % self.lanes.len())
    }

    /// Adds to what is filled for a lane.
    #[inline]
    fn push(&mut self, lane: Lane, add: impl FnOnce(&mut Chunk)) {
        match (&mut self.alone, lane) {
            (None, Lane::One(lane)) => add(&mut self.lanes[lane]),
            _ => self.push_alone(lane, add),
        }
    }

    fn push_alone(&mut self, lane: Lane, add: impl FnOnce(&mut Chunk)) {
        if self.alone.is_none() {
            self.flush();
        }
        let spare = &mut self.spare;
        let chunk = self.alone.get_or_insert_with(|| spare.pop().unwrap_or_default());
        add(chunk);
        self.behind = if lane == Lane::Alone { 0 } else { self.behind + 1 };
        if self.behind >= ALONE_RUN || chunk.len() >= ALONE_BYTES {
            self.flush();
        }
    }

    fn end_transaction(&mut self) {
        let Some(mut transaction) = self.transaction.take() else { return };
        self.functions.append(&mut transaction.functions);
        self.producers.append(&mut transaction.producers);
        if let Some((lane, needs)) = transaction.needs {
            self.push(lane, |chunk| chunk.push_transaction(&transaction.chunk, needs));
        }
        transaction.chunk.clear(KEPT_BYTES);
        self.spare.push(transaction.chunk);
    }

    /// Ends the chunks that are being filled.
    fn flush(&mut self) {
        if let Some(chunk) = self.alone.take() {
            self.behind = 0;
            return self.batches.push(Batch::Alone(chunk));
        }
        if self.lanes.iter().all(Chunk::is_empty) {
            return;
        }
        let spare = &mut self.spare;
        let next = || spare.pop().unwrap_or_default();
        let fresh = std::iter::repeat_with(next).take(self.lanes.len()).collect();
        self.batches.push(Batch::Beside(std::mem::replace(&mut self.lanes, fresh)));
    }
}

impl Transaction {
    /// The command before has written the messages up to this number; false if there is none.
    fn add_producer(&mut self, line: &BlockLine) -> bool {
        let Some(last) = self.chunk.commands().len().checked_sub(1) else { return false };
        let Some(key) = self.chunk.args(last).try_get(1) else { return false };
        let db = self.chunk.commands()[last].db.0;
        self.producers.push((Name::of_block(line, db, key), line.number));
        true
    }

    fn push(&mut self, lane: Lane, known: &Known, raw: &[u8], spans: &[Span]) {
        self.needs = Some(both(self.needs, (lane, known.needs)));
        self.chunk.push(known, raw, spans);
    }
}

/// Where two belong which run as one.
fn both(one: Option<(Lane, Needs)>, other: (Lane, Needs)) -> (Lane, Needs) {
    let Some(one) = one else { return other };
    let lane = if one.0 == other.0 { one.0 } else { Lane::Alone };
    let needs = match (one.1, other.1) {
        (Needs::World, _) | (_, Needs::World) => Needs::World,
        (one, other) if one == other => one,
        _ => Needs::Many,
    };
    (lane, needs)
}

#[cfg(test)]
mod tests;
