//! The tree of names: what is durable, what is current, and the changes between the two.
//!
//! A change is a list of settings `(folder, name) = node or nothing` which happen together: a
//! creation is one setting, a removal is one, a rename is two. A sync of a folder makes those
//! changes durable which touch it. Changes that share a name reach the disk in order; all others in
//! any order.

use super::faults::DiskFaultCounts;
use super::survival::Survival;
use base::prng::Prng;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path};

/// A file or a folder. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(pub u64);

/// The folder at the top.
pub const ROOT: Node = Node(0);

/// The names of every folder.
type Folders = BTreeMap<Node, BTreeMap<OsString, Node>>;
/// A name in a folder.
type Key = (Node, OsString);

/// The tree of names of one disk.
#[derive(Debug)]
pub struct Names {
    durable: Folders,
    current: Folders,
    /// Permissions of the folders.
    modes: BTreeMap<Node, u32>,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Change {
    /// Its place among all changes of the disk.
    number: u64,
    settings: Vec<(Key, Option<Node>)>,
}

impl Change {
    fn shares(&self, keys: &BTreeSet<Key>) -> bool {
        self.settings.iter().any(|(key, _)| keys.contains(key))
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        self.settings.iter().map(|(key, _)| key.clone())
    }

    fn apply(&self, folders: &mut Folders) {
        for ((folder, name), node) in &self.settings {
            let names = folders.entry(*folder).or_default();
            match node {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
        }
    }
}

impl Names {
    /// An empty tree.
    pub fn new() -> Self {
        let folders = Folders::from([(ROOT, BTreeMap::new())]);
        let modes = BTreeMap::from([(ROOT, 0o755)]);
        Self { durable: folders.clone(), current: folders, modes, changes: Vec::new() }
    }

    /// What stands at a path. Relative paths begin at the root.
    pub fn find(&self, path: &Path) -> Result<Node, Errno> {
        let mut above = vec![ROOT];
        for component in path.components() {
            let at = *above.last().expect("the root is never left");
            match component {
                Component::Normal(name) => {
                    let names = self.current.get(&at).ok_or(Errno::NOTDIR)?;
                    above.push(*names.get(name).ok_or(Errno::NOENT)?);
                }
                Component::ParentDir if above.len() > 1 => drop(above.pop()),
                _ => (),
            }
        }
        Ok(*above.last().expect("the root is never left"))
    }

    /// The folder and the name of a path; the name need not exist.
    pub fn place(&self, path: &Path) -> Result<Key, Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let folder = self.find(path.parent().unwrap_or(Path::new("/")))?;
        if !self.is_folder(folder) {
            return Err(Errno::NOTDIR);
        }
        Ok((folder, name.to_owned()))
    }

    /// What has this name.
    pub fn at(&self, key: &Key) -> Option<Node> {
        self.current.get(&key.0)?.get(&key.1).copied()
    }

    /// True for a folder.
    pub fn is_folder(&self, node: Node) -> bool {
        self.current.contains_key(&node)
    }

    /// The permissions of a folder.
    pub fn folder_mode(&self, node: Node) -> Option<u32> {
        self.modes.get(&node).copied()
    }

    /// The names in a folder.
    pub fn list(&self, folder: Node) -> Result<Vec<OsString>, Errno> {
        let names = self.current.get(&folder).ok_or(Errno::NOTDIR)?;
        Ok(names.keys().cloned().collect())
    }

    /// Gives `node` a name.
    pub fn link(&mut self, number: u64, key: Key, node: Node) {
        self.change(number, vec![(key, Some(node))]);
    }

    /// Gives a name to a new folder.
    pub fn link_folder(&mut self, number: u64, key: Key, node: Node, mode: u32) {
        self.current.insert(node, BTreeMap::new());
        self.durable.insert(node, BTreeMap::new());
        self.modes.insert(node, mode);
        self.link(number, key, node);
    }

    /// Removes the name of a file.
    pub fn unlink(&mut self, number: u64, key: Key) -> Result<(), Errno> {
        let node = self.at(&key).ok_or(Errno::NOENT)?;
        if self.is_folder(node) {
            return Err(Errno::ISDIR);
        }
        self.change(number, vec![(key, None)]);
        Ok(())
    }

    /// Removes an empty folder.
    pub fn remove_folder(&mut self, number: u64, key: Key) -> Result<(), Errno> {
        let node = self.at(&key).ok_or(Errno::NOENT)?;
        match self.current.get(&node) {
            None => Err(Errno::NOTDIR),
            Some(names) if !names.is_empty() => Err(Errno::NOTEMPTY),
            Some(_) => {
                self.change(number, vec![(key, None)]);
                Ok(())
            }
        }
    }

    /// Renames a file or a folder; what `to` named is replaced.
    pub fn rename(&mut self, number: u64, from: Key, to: Key) -> Result<(), Errno> {
        let node = self.at(&from).ok_or(Errno::NOENT)?;
        if reachable([node], &self.current).contains(&to.0) {
            return Err(Errno::INVAL);
        }
        if let Some(replaced) = self.at(&to) {
            match (self.is_folder(node), self.current.get(&replaced)) {
                _ if replaced == node => return Ok(()),
                _ if reachable([replaced], &self.current).contains(&from.0) => {
                    return Err(Errno::NOTEMPTY);
                }
                (true, None) => return Err(Errno::NOTDIR),
                (false, Some(_)) => return Err(Errno::ISDIR),
                (true, Some(names)) if !names.is_empty() => return Err(Errno::NOTEMPTY),
                _ => (),
            }
        }
        self.change(number, vec![(from, None), (to, Some(node))]);
        Ok(())
    }

    fn change(&mut self, number: u64, settings: Vec<(Key, Option<Node>)>) {
        let change = Change { number, settings };
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    /// Makes durable the changes below `until` which touch this folder, and those on which they
    /// depend.
    pub fn sync(&mut self, folder: Node, until: u64) {
        let mut keys = BTreeSet::new();
        let mut synced = vec![false; self.changes.len()];
        for (i, change) in self.changes.iter().enumerate().rev() {
            let touches = change.settings.iter().any(|((at, _), _)| *at == folder);
            if change.number < until && (touches || change.shares(&keys)) {
                synced[i] = true;
                keys.extend(change.keys());
            }
        }
        let mut synced = synced.into_iter();
        let durable = &mut self.durable;
        self.changes.retain(|change| {
            let is_synced = synced.next().expect("one for each change");
            if is_synced {
                change.apply(durable);
            }
            !is_synced
        });
    }

    /// Makes everything durable: how a machine is set up.
    pub fn sync_all(&mut self) {
        self.durable.clone_from(&self.current);
        self.changes.clear();
    }

    /// The machine loses its memory: each change survives or not, but none without those before it
    /// that share a name with it.
    pub fn crash(
        &mut self,
        survival: Option<Survival>,
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) {
        let survival = survival.unwrap_or_else(|| Survival::draw(prng));
        let mut dropped = BTreeSet::new();
        for change in self.changes.drain(..) {
            if !change.shares(&dropped) && survival.keeps(prng) {
                change.apply(&mut self.durable);
                counts.names_kept += 1;
            } else {
                dropped.extend(change.keys());
                counts.names_dropped += 1;
            }
        }
        self.current.clone_from(&self.durable);
    }

    /// What the current names reach.
    pub fn live(&self) -> BTreeSet<Node> {
        reachable([ROOT], &self.current)
    }

    /// Forgets the folders that no name reaches, not even after a crash, and returns what is still
    /// reached.
    pub fn collect(&mut self) -> BTreeSet<Node> {
        let changed = self.changes.iter().flat_map(|change| &change.settings);
        let mut roots: Vec<Node> =
            changed.flat_map(|((folder, _), node)| [Some(*folder), *node]).flatten().collect();
        roots.push(ROOT);
        let mut kept = reachable(roots.iter().copied(), &self.current);
        kept.extend(reachable(roots, &self.durable));
        self.current.retain(|node, _| kept.contains(node));
        self.durable.retain(|node, _| kept.contains(node));
        self.modes.retain(|node, _| kept.contains(node));
        kept
    }
}

fn reachable(roots: impl IntoIterator<Item = Node>, folders: &Folders) -> BTreeSet<Node> {
    let mut pending: Vec<Node> = roots.into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some(node) = pending.pop() {
        if found.insert(node)
            && let Some(names) = folders.get(&node)
        {
            pending.extend(names.values());
        }
    }
    found
}
