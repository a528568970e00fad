//! What the kernel's error numbers mean to the driver. Only errors that are listed here are
//! retried: retrying a permanent error would be an endless loop.

use rustix::io::Errno;

/// Of entering a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enter {
    /// A signal came, or the time has passed: look what there is.
    Interrupted,
    /// No memory, or completions wait that have no room: take them, and try again a little later.
    Short,
}

impl Enter {
    /// The meaning of this error. Any other says that the ring is not what was made, or is used
    /// wrongly: that lasts.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::INTR | Errno::TIME => Enter::Interrupted,
            Errno::AGAIN | Errno::BUSY | Errno::NOMEM => Enter::Short,
            other => fatal("io_uring_enter", other),
        }
    }

    /// True for the errors that do not last.
    pub fn is_passing(error: Errno) -> bool {
        matches!(error, Errno::INTR | Errno::TIME | Errno::AGAIN | Errno::BUSY | Errno::NOMEM)
    }
}

/// Of a receive, a send or a poll of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// No bytes or no room; readiness is reported later.
    Later,
    /// The connection is over. A shortage of memory ends it, too: retrying could loop.
    Over,
}

impl Stream {
    /// The meaning of this error. A bad descriptor is fatal: bytes could go to another connection.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::AGAIN | Errno::INTR => Stream::Later,
            Errno::BADF | Errno::NOTSOCK | Errno::FAULT => fatal("a connection's socket", error),
            _ => Stream::Over,
        }
    }
}

/// Of an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    /// Nobody is there.
    Nobody,
    /// That connection is gone already, or a packet filter forbids it; the next one may be well.
    Gone,
    /// No descriptor or memory is to be had: the queue is left alone for a while.
    Short,
}

impl Accept {
    /// The meaning of this error. Any other is of the listening socket, and lasts.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::AGAIN | Errno::INTR | Errno::CANCELED => Accept::Nobody,
            Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Accept::Short,
            Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::NOTCONN
            | Errno::TIMEDOUT
            | Errno::PERM
            | Errno::ACCESS
            | Errno::PROTO
            | Errno::NOPROTOOPT
            // (The network's own, which accept passes on.)
            | Errno::NETDOWN
            | Errno::NETUNREACH
            | Errno::NONET
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP => Accept::Gone,
            other => fatal("accept", other),
        }
    }
}

/// A registration with the poll failed: true if for want of memory or of room for watches. Being
/// there already, or being gone already, is no failure.
pub(crate) fn is_register_short(error: Errno) -> bool {
    match error {
        Errno::EXIST | Errno::NOENT => false,
        Errno::NOMEM | Errno::NOSPC => true,
        other => fatal("epoll_ctl", other),
    }
}

/// An interrupted poll found nothing; any other error lasts.
pub(crate) fn is_interruption(what: &str, error: Errno) {
    if error != Errno::INTR {
        fatal(what, error);
    }
}

/// The worker cannot go on, and nothing of it can be trusted: a panic, which ends the process with
/// one line.
#[cold]
pub(crate) fn fatal(what: &str, error: Errno) -> ! {
    let error = std::io::Error::from(error);
    panic!("{what} failed for good: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    /// Every number there is: what is fatal, and what the rest means.
    fn all<T: std::fmt::Debug>(
        of: impl Fn(Errno) -> T + Copy + std::panic::RefUnwindSafe,
    ) -> Vec<(i32, Option<T>)> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let meant = (1..134).map(|n| (n, catch_unwind(|| of(Errno::from_raw_os_error(n))).ok()));
        let meant = meant.collect();
        std::panic::set_hook(hook);
        meant
    }

    fn numbers<T: PartialEq + Copy>(meant: &[(i32, Option<T>)], which: Option<T>) -> Vec<i32> {
        meant.iter().filter(|(_, meant)| *meant == which).map(|(n, _)| *n).collect()
    }

    #[test]
    fn each_error_number_has_one_meaning() {
        let enter = all(Enter::of);
        assert_eq!(numbers(&enter, Some(Enter::Interrupted)), [libc::EINTR, libc::ETIME]);
        let short = [libc::EAGAIN, libc::ENOMEM, libc::EBUSY];
        let mut got = numbers(&enter, Some(Enter::Short));
        got.sort_by_key(|n| short.iter().position(|s| s == n));
        assert_eq!(got, short);
        for lasting in [libc::EBADF, libc::EBADR, libc::ENXIO, libc::EINVAL, libc::EBADFD] {
            assert!(numbers(&enter, None).contains(&lasting), "{lasting}");
        }
        let stream = all(Stream::of);
        assert_eq!(numbers(&stream, Some(Stream::Later)), [libc::EINTR, libc::EAGAIN]);
        assert_eq!(numbers(&stream, None), [libc::EBADF, libc::EFAULT, libc::ENOTSOCK]);
        let accept = all(Accept::of);
        for lasting in [libc::EBADF, libc::EINVAL, libc::ENOTSOCK, libc::EFAULT] {
            assert!(numbers(&accept, None).contains(&lasting), "{lasting}");
        }
        let short = numbers(&accept, Some(Accept::Short));
        assert_eq!(short, [libc::ENOMEM, libc::ENFILE, libc::EMFILE, libc::ENOBUFS]);
        assert_eq!(numbers(&accept, Some(Accept::Gone)).len(), 14);
    }
}
