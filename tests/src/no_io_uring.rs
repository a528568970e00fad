//! Forbids io_uring as container runtimes do: a seccomp filter makes its three system calls fail.
#![allow(unsafe_code)]

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `io_uring_setup`, `io_uring_enter`, `io_uring_register`: the same numbers on every architecture.
const CALLS: std::ops::RangeInclusive<u32> = 425..=427;

/// Makes every io_uring call of the command's process fail with `errno`.
pub fn forbid(command: &mut Command, errno: i32) {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, at_least, above, answer) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K,
        libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut program = [
        step(load, 0, 0, 0), // the call's number is the first word of what a filter sees
        step(at_least, 0, 2, *CALLS.start()),
        step(above, 1, 0, *CALLS.end()),
        step(answer, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the first call takes plain numbers; the second reads `filter` and the program it
        // points to, both alive here. Neither allocates nor locks, as is asked of what runs between
        // fork and exec.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                    != 0
        };
        if failed { Err(Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: `install` makes two system calls and touches only what it owns.
    unsafe { command.pre_exec(install) };
}

/// Whether this system forbids io_uring. Where it is allowed, a call with invalid arguments fails
/// with another error.
pub fn is_forbidden() -> bool {
    // SAFETY: the null pointer is not written to: the kernel answers EFAULT.
    let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null::<u8>()) };
    assert_eq!(made, -1, "invalid arguments must fail");
    matches!(Error::last_os_error().raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EACCES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask ci` reads what this prints, to know which suites to run twice. The test runs
    /// itself again under the filter, where it must be forbidden.
    #[test]
    fn reports_whether_io_uring_is_allowed() {
        if std::env::var_os("UNDER_THE_FILTER").is_some() {
            assert!(is_forbidden());
            return;
        }
        println!("io_uring is {}", if is_forbidden() { "forbidden" } else { "allowed" });
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.arg("reports_whether_io_uring_is_allowed").env("UNDER_THE_FILTER", "1");
        forbid(&mut command, libc::EPERM);
        let again = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
    }
}
