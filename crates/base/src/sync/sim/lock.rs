//! Mutexes, condition variables and values that are set once. In a world no thread really blocks:
//! who meets a taken mutex is blocked in the baton until its release.

use super::baton::{self, Kind, On};
use std::panic::Location;
use std::sync as real;
use std::sync::{LockResult, PoisonError, TryLockError};

/// As std's.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(real::Mutex<T>);

/// As std's.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    /// `None` only while it ends.
    inner: Option<real::MutexGuard<'a, T>>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// As std's.
    pub const fn new(value: T) -> Self {
        Self(real::Mutex::new(value))
    }

    /// As std's.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// As std's.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.lock_at(Location::caller())
    }

    /// As std's.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }

    fn lock_at(&self, at: &'static Location<'static>) -> LockResult<MutexGuard<'_, T>> {
        if !baton::is_active() {
            return self.guard(self.0.lock());
        }
        loop {
            baton::point_at(Kind::Lock, at);
            match self.0.try_lock() {
                Ok(guard) => return self.guard(Ok(guard)),
                Err(TryLockError::Poisoned(poisoned)) => return self.guard(Err(poisoned)),
                Err(TryLockError::WouldBlock) => {
                    baton::block_at(On::Mutex, self.address(), None, at);
                }
            }
        }
    }

    fn guard<'a>(
        &'a self,
        locked: LockResult<real::MutexGuard<'a, T>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let wrap = |inner| MutexGuard { inner: Some(inner), mutex: self };
        locked.map(wrap).map_err(|poisoned| PoisonError::new(wrap(poisoned.into_inner())))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }
}

impl<T: ?Sized> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("the guard has not ended")
    }
}

impl<T: ?Sized> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("the guard has not ended")
    }
}

impl<T: ?Sized + std::fmt::Display> std::fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            baton::wake(self.mutex.address(), 1);
        }
    }
}

/// As std's.
#[derive(Debug, Default)]
pub struct Condvar(real::Condvar);

impl Condvar {
    /// As std's.
    pub const fn new() -> Self {
        Self(real::Condvar::new())
    }

    /// As std's.
    #[track_caller]
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (at, mutex) = (Location::caller(), guard.mutex);
        if !baton::is_active() {
            let inner = guard.inner.take().expect("the guard has not ended");
            return mutex.guard(self.0.wait(inner));
        }
        // Releasing the mutex and queueing are one step: `drop` passes no switch point.
        drop(guard);
        baton::block_at(On::Condvar, self.address(), None, at);
        mutex.lock_at(at)
    }

    /// As std's; in a world, which waiter is drawn.
    #[track_caller]
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// As std's.
    #[track_caller]
    pub fn notify_all(&self) {
        self.notify(u32::MAX);
    }

    #[track_caller]
    fn notify(&self, count: u32) {
        if baton::is_active() {
            baton::point(Kind::Call);
            baton::wake(self.address(), count);
        } else if count == 1 {
            self.0.notify_one();
        } else {
            self.0.notify_all();
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// As std's. Its initialiser passes switch points without effect, because another thread which
/// needs the value would really block.
#[derive(Debug)]
pub struct OnceLock<T>(real::OnceLock<T>);

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> OnceLock<T> {
    /// As std's.
    pub const fn new() -> Self {
        Self(real::OnceLock::new())
    }

    /// As std's.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        baton::point(Kind::Load);
        self.0.get()
    }

    /// As std's.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        baton::point(Kind::Change);
        self.0.set(value)
    }

    /// As std's.
    #[track_caller]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        baton::point(Kind::Change);
        self.0.get_or_init(|| baton::without_switching(init))
    }

    /// As std's.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.0.get_mut()
    }
}
