//! A list of keys from front to back, with the weight of what is in it. Every operation is O(1).

/// No key.
const NONE: u32 = u32::MAX;

/// What a list knows of a key.
#[derive(Clone, Copy, Debug)]
struct Node {
    toward_front: u32,
    toward_back: u32,
    weight: u64,
    is_in: bool,
}

const OUT: Node = Node { toward_front: NONE, toward_back: NONE, weight: 0, is_in: false };

/// The list. Keys are numbers below the count that it was made for.
#[derive(Clone, Debug)]
pub struct List {
    nodes: Vec<Node>,
    front: u32,
    back: u32,
    weight: u64,
}

impl List {
    /// An empty list for so many keys.
    pub fn new(keys: usize) -> Self {
        Self { nodes: vec![OUT; keys], front: NONE, back: NONE, weight: 0 }
    }

    /// The sum of the weights in it.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: u32) -> bool {
        self.nodes[key as usize].is_in
    }

    /// The key at the back, and its weight.
    pub fn back(&self) -> Option<(u32, u64)> {
        (self.back != NONE).then(|| (self.back, self.nodes[self.back as usize].weight))
    }

    /// Puts a key that is not in it to the front.
    pub fn push(&mut self, key: u32, weight: u64) {
        assert!(!self.contains(key), "a key is in a list once");
        let node = Node { toward_front: NONE, toward_back: self.front, weight, is_in: true };
        self.nodes[key as usize] = node;
        match self.front {
            NONE => self.back = key,
            front => self.nodes[front as usize].toward_front = key,
        }
        self.front = key;
        self.weight += weight;
    }

    /// Takes a key out; its weight, if it was in.
    pub fn remove(&mut self, key: u32) -> Option<u64> {
        let node = std::mem::replace(&mut self.nodes[key as usize], OUT);
        if !node.is_in {
            return None;
        }
        match node.toward_front {
            NONE => self.front = node.toward_back,
            front => self.nodes[front as usize].toward_back = node.toward_back,
        }
        match node.toward_back {
            NONE => self.back = node.toward_front,
            back => self.nodes[back as usize].toward_front = node.toward_front,
        }
        self.weight -= node.weight;
        Some(node.weight)
    }

    /// Takes the key at the back out.
    pub fn pop(&mut self) -> Option<(u32, u64)> {
        let (key, weight) = self.back()?;
        self.remove(key);
        Some((key, weight))
    }

    /// Moves a key to the front. False if it is not in the list.
    pub fn touch(&mut self, key: u32) -> bool {
        let weight = self.remove(key);
        if let Some(weight) = weight {
            self.push(key, weight);
        }
        weight.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_leave_in_the_order_of_their_last_touch() {
        let mut list = List::new(4);
        (0..4).for_each(|key| list.push(key, 10));
        assert!(list.touch(0) && list.touch(2));
        assert_eq!((list.remove(3), list.remove(3), list.touch(3)), (Some(10), None, false));
        assert_eq!((list.weight(), list.back()), (30, Some((1, 10))));
        let order: Vec<u32> = std::iter::from_fn(|| list.pop()).map(|(key, _)| key).collect();
        assert_eq!((order, list.weight()), (vec![1, 0, 2], 0));
    }
}
