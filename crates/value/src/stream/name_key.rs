//! Names of groups and consumers as keys of a tree.

use crate::keyed::Key;

/// Bytes of a name that its key copies to the stack; a longer name's key is built on the heap.
const NAME_SHORT: usize = 64;

/// Calls `f` with the key of a name. The head of a key has four bytes; a shorter name is filled
/// with zeros. The tail begins with the number of bytes that are the name's own, which tells it
/// from a name that has the zeros itself. So keys are in the order of the names.
pub(super) fn with_key<R>(name: &[u8], f: impl FnOnce(Key<'_>) -> R) -> R {
    let own = name.len().min(4);
    let mut head = [0; 4];
    head[..own].copy_from_slice(&name[..own]);
    let head = u32::from_be_bytes(head);
    let rest = &name[own..];
    let mut short = [0; 1 + NAME_SHORT];
    if let Some(room) = short.get_mut(..=rest.len()) {
        room[0] = own as u8;
        room[1..].copy_from_slice(rest);
        return f(Key { head, tail: room });
    }
    f(Key { head, tail: &[&[own as u8], rest].concat() })
}
