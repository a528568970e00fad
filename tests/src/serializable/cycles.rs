//! The graph of transactions and its cycles, the strongest first.

use super::versions::Versions;
use super::{Anomaly, Key, Outcome, Txn};
use std::collections::{BTreeMap, VecDeque};

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// ww: the other one appended the next element.
    Ww,
    /// wr: the other one read its element.
    Wr,
    /// rw: it read the list before the other one appended.
    Rw,
    /// rt: the other one was sent after its reply.
    Rt,
}

/// Which edges a cycle has besides those of real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Only writes.
    G0,
    /// Writes, and reads of what was written.
    G1c,
    /// One read that did not see a write.
    GSingle,
    /// Several reads which did not see a write.
    G2,
}

/// Number of cycles of which the shortest is reported.
const CYCLES_COMPARED: usize = 50;

/// Transactions, and after them one node for each moment at which one had its reply: the edges of
/// real time pass through these, so there are not more than three for each transaction.
struct Graph {
    txns: usize,
    next: Vec<Vec<(usize, Edge)>>,
}

/// The strongest cycle, if there is any: one without real time before one with it.
pub fn strongest(history: &[Txn], versions: &BTreeMap<Key, Versions>) -> Option<Anomaly> {
    let graph = Graph::new(history, versions);
    for realtime in [false, true] {
        let clock = |edge: Edge| edge != Edge::Rt || realtime;
        let writes = |edge: Edge| matches!(edge, Edge::Ww | Edge::Rt) && clock(edge);
        let no_rw = |edge: Edge| edge != Edge::Rw && clock(edge);
        let cycle = |class, path: Vec<(usize, Edge)>| {
            let path = path.into_iter().filter(|(node, _)| *node < graph.txns).collect();
            Some(Anomaly::Cycle { class, realtime, path })
        };
        if let Some(path) = graph.any_cycle(writes) {
            return cycle(Class::G0, path);
        }
        if let Some(path) = graph.any_cycle(no_rw) {
            return cycle(Class::G1c, path);
        }
        let Some(path) = graph.any_cycle(clock) else { continue };
        if let Some(path) = graph.cycle_with_one_rw(no_rw, clock) {
            return cycle(Class::GSingle, path);
        }
        return cycle(Class::G2, path);
    }
    None
}

impl Graph {
    fn new(history: &[Txn], versions: &BTreeMap<Key, Versions>) -> Self {
        let txns = history.len();
        let mut graph = Self { txns, next: vec![Vec::new(); txns] };
        for list in versions.values() {
            graph.add_list(list);
        }
        graph.add_real_time(history);
        graph
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to && !self.next[from].contains(&(to, edge)) {
            self.next[from].push((to, edge));
        }
    }

    fn add_list(&mut self, list: &Versions) {
        let writer = |at: usize| list.writers.get(at).copied().flatten();
        for at in 1..list.writers.len() {
            if let (Some(one), Some(next)) = (writer(at - 1), writer(at)) {
                self.add(one, next, Edge::Ww);
            }
        }
        for read in &list.reads {
            if let Some(writer) = read.others.checked_sub(1).and_then(writer) {
                self.add(writer, read.reader, Edge::Wr);
            }
            if let Some(writer) = writer(read.others) {
                self.add(read.reader, writer, Edge::Rw);
            }
        }
        let end = list.writers.len();
        for &txn in &list.unseen {
            if let Some(last) = end.checked_sub(1).and_then(writer) {
                self.add(last, txn, Edge::Ww);
            }
            for read in list.reads.iter().filter(|read| read.others == end) {
                self.add(read.reader, txn, Edge::Rw);
            }
        }
    }

    fn add_real_time(&mut self, history: &[Txn]) {
        let committed = |txn: &Txn| txn.outcome == Outcome::Committed;
        let mut ends: Vec<(u64, usize)> = (0..self.txns)
            .filter(|i| committed(&history[*i]))
            .map(|i| (history[i].ret, i))
            .collect();
        ends.sort_unstable();
        let first = self.txns;
        self.next.resize(first + ends.len(), Vec::new());
        for (at, (_, txn)) in ends.iter().enumerate() {
            self.next[*txn].push((first + at, Edge::Rt));
            if at > 0 {
                self.next[first + at - 1].push((first + at, Edge::Rt));
            }
        }
        for (i, txn) in history.iter().enumerate() {
            let before = ends.partition_point(|(ret, _)| *ret < txn.call);
            if before > 0 {
                self.next[first + before - 1].push((i, Edge::Rt));
            }
        }
    }

    /// A short cycle of these edges.
    fn any_cycle(&self, allowed: impl Fn(Edge) -> bool + Copy) -> Option<Vec<(usize, Edge)>> {
        let left = self.nodes_between_cycles(allowed);
        let edges = (0..self.txns).filter(|from| left[*from]).flat_map(|from| {
            let next = self.next[from].iter().filter(|(to, edge)| left[*to] && allowed(*edge));
            next.map(move |(to, edge)| (from, *to, *edge))
        });
        let cycles = edges.filter_map(|(from, to, edge)| {
            let mut path = self.path(to, from, allowed)?;
            path.insert(0, (from, edge));
            Some(path)
        });
        cycles.take(CYCLES_COMPARED).min_by_key(Vec::len)
    }

    /// A cycle with one rw edge among others.
    fn cycle_with_one_rw(
        &self,
        no_rw: impl Fn(Edge) -> bool + Copy,
        all: impl Fn(Edge) -> bool + Copy,
    ) -> Option<Vec<(usize, Edge)>> {
        let left = self.nodes_between_cycles(all);
        for from in (0..self.txns).filter(|from| left[*from]) {
            for (to, edge) in self.next[from].iter().filter(|(_, edge)| *edge == Edge::Rw) {
                if let Some(mut path) = self.path(*to, from, no_rw) {
                    path.insert(0, (from, *edge));
                    return Some(path);
                }
            }
        }
        None
    }

    /// The nodes which remain after nodes without predecessors or without successors are removed
    /// repeatedly.
    fn nodes_between_cycles(&self, allowed: impl Fn(Edge) -> bool) -> Vec<bool> {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.next.len()];
        let mut before = next.clone();
        for (from, edges) in self.next.iter().enumerate() {
            for (to, _) in edges.iter().filter(|(_, edge)| allowed(*edge)) {
                next[from].push(*to);
                before[*to].push(from);
            }
        }
        let mut left = vec![true; next.len()];
        peel(&next, &before, &mut left);
        peel(&before, &next, &mut left);
        left
    }

    /// The shortest path: its nodes but the last, each with the edge that leaves it.
    fn path(
        &self,
        from: usize,
        to: usize,
        allowed: impl Fn(Edge) -> bool,
    ) -> Option<Vec<(usize, Edge)>> {
        let mut came: Vec<Option<(usize, Edge)>> = vec![None; self.next.len()];
        let mut todo = VecDeque::from([from]);
        while let Some(node) = todo.pop_front() {
            if node == to {
                break;
            }
            for (next, edge) in self.next[node].iter().filter(|(_, edge)| allowed(*edge)) {
                if came[*next].is_none() && *next != from {
                    came[*next] = Some((node, *edge));
                    todo.push_back(*next);
                }
            }
        }
        let (mut path, mut at) = (Vec::new(), to);
        while at != from {
            let (node, edge) = came[at]?;
            path.push((node, edge));
            at = node;
        }
        path.reverse();
        Some(path)
    }
}

/// Removes nodes without remaining predecessors.
fn peel(next: &[Vec<usize>], before: &[Vec<usize>], left: &mut [bool]) {
    let is_left = |left: &[bool], nodes: &[usize]| nodes.iter().filter(|node| left[**node]).count();
    let mut count: Vec<usize> = before.iter().map(|nodes| is_left(left, nodes)).collect();
    let mut free: Vec<usize> =
        (0..left.len()).filter(|node| left[*node] && count[*node] == 0).collect();
    while let Some(node) = free.pop() {
        left[node] = false;
        for &to in next[node].iter().filter(|to| left[**to]) {
            count[to] -= 1;
            if count[to] == 0 {
                free.push(to);
            }
        }
    }
}
