//! What is no value in a scan: the magic, opcodes, the checksum.

use super::chunk::{Chunk, database};
use super::error::Fault;
use super::scanner::{Checked, Scanner, Stage, Step};
use super::walk::{Walk, Walked, module_name};
use super::{Meta, opcode};
use crate::{Dialect, Error, Reader, VERSION_FIELD_TTL, VERSION_VALKEY, load_string};

/// Magic and version.
const HEAD_BYTES: usize = 9;
/// The first version that ends with a checksum.
const VERSION_CHECKSUM: u16 = 5;
/// Bytes of the checksum.
const SUM_BYTES: usize = size_of::<u64>();
/// What Valkey says of each slot, in between the keys.
const SLOT_INFO: &[u8] = b"slot-info";

impl Scanner {
    /// Magic and version.
    pub(super) fn head(&mut self) -> Result<Step, Fault> {
        let begins = |magic: &[u8]| self.bytes.iter().zip(magic).all(|(a, b)| a == b);
        let (magic, dialect) = if begins(b"VALKEY") {
            (b"VALKEY".len(), Dialect::Valkey)
        } else if begins(b"REDIS") {
            (b"REDIS".len(), Dialect::Redis)
        } else {
            return Err(Fault::Magic);
        };
        let Some(head) = self.bytes.get(..HEAD_BYTES) else { return Ok(Step::More) };
        let text = String::from_utf8_lossy(&head[magic..]).into_owned();
        let digits = text.bytes().all(|digit| digit.is_ascii_digit());
        let version = text.parse().ok().filter(|_| digits);
        match (version, dialect) {
            (Some(version @ 1..=VERSION_FIELD_TTL), Dialect::Redis)
            | (Some(version @ VERSION_VALKEY), Dialect::Valkey) => self.summary.version = version,
            _ => return Err(Fault::Version(text)),
        }
        self.dialect = dialect;
        self.at = HEAD_BYTES;
        self.kept = self.at;
        self.stage = Stage::Item;
        Ok(Step::Moved)
    }

    /// An opcode or a type.
    pub(super) fn item(&mut self) -> Result<Step, Fault> {
        let Some(&code) = self.bytes.get(self.at) else { return Ok(Step::More) };
        if code == opcode::END {
            self.cut()?;
            self.at += 1;
            self.kept = self.at;
            self.stage = Stage::Sum;
            return Ok(Step::Moved);
        }
        if code < opcode::LEAST {
            (self.walk, self.stage) = (Walk::text(), Stage::Key);
        } else {
            let walk = Walk::behind(code, self.dialect).ok_or(Fault::Opcode(code))?;
            (self.walk, self.stage) = (walk, Stage::Behind);
        }
        self.at += 1;
        (self.item.code, self.item.start) = (code, self.at);
        Ok(Step::Moved)
    }

    /// What follows an opcode.
    pub(super) fn behind(&mut self) -> Result<Step, Fault> {
        if self.walk(usize::MAX)? != Walked::Complete {
            return Ok(Step::More);
        }
        let mut reader = Reader::new(&self.bytes[self.item.start..self.at]);
        let said = Said::read(self.item.code, &mut self.item.meta, &mut reader);
        match said.map_err(Fault::Value)? {
            Said::Meta => {}
            Said::Database(db) => {
                (self.db, self.is_selected) = (db, true);
                if let Some(databases) = self.options.databases
                    && db >= databases
                {
                    return Err(Fault::Databases(databases));
                }
                self.pass()?;
            }
            Said::OfSlot => self.pass()?,
            Said::Aux(name, text) => self.give(Chunk::Aux(name, text))?,
            Said::Function(code) => self.give(Chunk::Function(code))?,
            Said::Resize(keys, expires) => {
                self.give(Chunk::Resize { db: self.db, keys, expires })?;
                self.announce(keys);
            }
            Said::Module(id) if !self.options.skip_unknown => {
                return Err(Fault::Module(module_name(id)));
            }
            Said::Module(_) | Said::Import => {
                self.cut()?;
                self.kept = self.at;
                self.summary.skipped_aux += 1;
            }
        }
        self.stage = Stage::Item;
        Ok(Step::Moved)
    }

    /// Gives something that is no key, which ends here.
    fn give(&mut self, chunk: Chunk) -> Result<(), Fault> {
        self.cut()?;
        self.kept = self.at;
        self.ready.push_back(chunk);
        Ok(())
    }

    /// Passes what is given together with the keys around it.
    fn pass(&mut self) -> Result<(), Fault> {
        if self.item.meta != Meta::default() {
            return Err(Fault::NoKey);
        }
        self.cut_if_long();
        Ok(())
    }

    /// Gives the whole keys so far, before something that is no key.
    fn cut(&mut self) -> Result<(), Fault> {
        if self.item.meta != Meta::default() {
            return Err(Fault::NoKey);
        }
        self.give_keys();
        Ok(())
    }

    /// The checksum.
    pub(super) fn sum(&mut self) -> Result<Step, Fault> {
        self.sum_up();
        let checked = if self.summary.version < VERSION_CHECKSUM {
            Checked::Absent
        } else {
            let Some(sum) = self.bytes[self.at..].first_chunk::<SUM_BYTES>() else {
                return Ok(Step::More);
            };
            let (written, counted) = (u64::from_le_bytes(*sum), self.sum);
            if written != 0 && self.options.verify && written != counted {
                return Err(Fault::Checksum { written, counted });
            }
            self.at += SUM_BYTES;
            match written {
                0 => Checked::Absent,
                _ if self.options.verify => Checked::Right,
                _ => Checked::Not,
            }
        };
        self.stage = Stage::Complete;
        self.kept = self.at;
        self.summary.bytes = self.at();
        self.summary.checked = checked;
        Ok(Step::Moved)
    }
}

/// What an opcode says.
enum Said {
    /// Something about the next key.
    Meta,
    Database(u32),
    Aux(Vec<u8>, Vec<u8>),
    Function(Vec<u8>),
    /// Counts of keys, and of those that expire.
    Resize(u64, u64),
    /// How much there is in a slot, which is of no use here.
    OfSlot,
    /// Data of this module.
    Module(u64),
    /// Slots that were being imported.
    Import,
}

impl Said {
    /// Reads what stands behind an opcode that a walk knows.
    fn read(code: u8, meta: &mut Meta, reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match code {
            opcode::DATABASE => Self::Database(database(reader)?),
            opcode::AUX => {
                let name = load_string(reader)?;
                if *name == *SLOT_INFO {
                    return Ok(Self::OfSlot);
                }
                Self::Aux(name.into_owned(), load_string(reader)?.into_owned())
            }
            opcode::FUNCTION => Self::Function(load_string(reader)?.into_owned()),
            opcode::RESIZE => Self::Resize(reader.length()?, reader.length()?),
            opcode::SLOT_INFO => Self::OfSlot,
            opcode::MODULE_AUX => Self::Module(reader.length()?),
            opcode::SLOT_IMPORT => Self::Import,
            code => {
                let is_meta = meta.read(code, reader)?;
                debug_assert!(is_meta, "a walk knows no other opcodes");
                Self::Meta
            }
        })
    }
}
