//! The open files of one driver: a dense table whose places are reused under new generations.

use crate::files::{FILES_MAX, FileId, OpenHow};
use rustix::io::Errno;

/// An open file.
struct OpenFile<F> {
    /// Absent once it is being closed: the call that closes it has the last handle.
    file: Option<F>,
    how: OpenHow,
    generation: u32,
    /// Operations on it in flight.
    busy: u32,
    /// The number of the operation which closes it when it is no longer busy.
    closing: Option<u32>,
}

/// The table.
pub struct OpenFiles<F> {
    places: Vec<Option<OpenFile<F>>>,
    free: Vec<u32>,
    generation: u32,
}

impl<F: Clone> OpenFiles<F> {
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), generation: 0 }
    }

    /// Fails if no further file fits.
    pub fn check_room(&self) -> Result<(), Errno> {
        let is_full = self.free.is_empty() && self.places.len() >= FILES_MAX;
        if is_full { Err(Errno::MFILE) } else { Ok(()) }
    }

    /// Inserts a file.
    pub fn insert(&mut self, file: F, how: OpenHow) -> Result<FileId, Errno> {
        self.check_room()?;
        self.generation = self.generation.wrapping_add(1);
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        let generation = self.generation;
        self.places[index as usize] =
            Some(OpenFile { file: Some(file), how, generation, busy: 0, closing: None });
        Ok(FileId { index, generation })
    }

    /// A file that is open and whose close was not requested, and how it was opened.
    pub fn find(&self, id: FileId) -> Result<(F, OpenHow), Errno> {
        let place = self.places.get(id.index as usize).and_then(Option::as_ref);
        let open = place.filter(|open| open.generation == id.generation && open.closing.is_none());
        let open = open.ok_or(Errno::BADF)?;
        let file = open.file.clone().expect("only a closing file has no handle");
        Ok((file, open.how))
    }

    /// An operation on it begins.
    pub fn begin(&mut self, id: FileId) {
        self.place(id).busy += 1;
    }

    /// An operation on it has ended. If it was the last one before a close: the number of the
    /// close, and the file.
    pub fn end(&mut self, id: FileId) -> Option<(u32, F)> {
        let open = self.place(id);
        open.busy -= 1;
        let closing = open.closing.filter(|_| open.busy == 0)?;
        open.file.take().map(|file| (closing, file))
    }

    /// Refuses further operations on it. The file, if the operation `closing` can close it now.
    pub fn close(&mut self, id: FileId, closing: u32) -> Option<F> {
        let open = self.place(id);
        open.closing = Some(closing);
        if open.busy == 0 { open.file.take() } else { None }
    }

    /// It is closed: frees its place.
    pub fn remove(&mut self, id: FileId) {
        debug_assert_eq!(self.place(id).busy, 0, "it is closed last");
        self.places[id.index as usize] = None;
        self.free.push(id.index);
    }

    fn place(&mut self, id: FileId) -> &mut OpenFile<F> {
        let open = self.places[id.index as usize].as_mut().expect("busy or closing: it stays");
        assert_eq!(open.generation, id.generation, "busy or closing: it stays");
        open
    }
}
