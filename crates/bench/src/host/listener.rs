//! Which local process listens at an address: the socket's inode from `/proc/net`, its owner from
//! the open files of all processes that we may look at.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use crate::load::spec::Address;

/// State LISTEN in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The process that listens at `address`, if it runs here and we may see it. Costs one pass over
/// the open files of all processes.
pub fn listening_pid(address: &Address) -> Option<u32> {
    let inode = match address {
        Address::Tcp(to) if is_local(to.ip()) => tcp_inode(to.port())?,
        Address::Tcp(_) => return None,
        Address::Unix(path) => unix_inode(&fs::read_to_string("/proc/net/unix").ok()?, path)?,
    };
    owner(inode)
}

/// Does `ip` belong to this machine? A datagram socket that is connected to an address of this
/// machine gets that same address as its own; nothing is sent.
pub fn is_local(ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() {
        return true;
    }
    let any: IpAddr = if ip.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0));
    let own = probe.and_then(|probe| probe.connect((ip, 9)).and_then(|()| probe.local_addr()));
    own.is_ok_and(|own| own.ip() == ip)
}

fn tcp_inode(port: u16) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|path| inode_of_port(&fs::read_to_string(path).ok()?, port))
}

/// Lines: `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode ...`.
fn inode_of_port(table: &str, port: u16) -> Option<u64> {
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        (state == LISTENING && local.ends_with(&wanted)).then_some(inode)
    })
}

/// Lines: `num refcount protocol flags type state inode path`; a listening socket has flag 0x10000.
fn unix_inode(table: &str, path: &Path) -> Option<u64> {
    let full = fs::canonicalize(path).ok();
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let bound = Path::new(*fields.get(7)?);
        let listens = fields[3] == "00010000";
        let same = bound == path || Some(bound) == full.as_deref();
        (listens && same).then(|| fields[6].parse().ok()).flatten()
    })
}

fn owner(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        for file in files.flatten() {
            if fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str()) {
                return Some(pid);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn listening_sockets_of_this_process_are_found() {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = Address::Tcp(tcp.local_addr().expect("it is bound"));
        assert_eq!(listening_pid(&address), Some(std::process::id()));
        let path = std::env::temp_dir().join(format!("bench-listener-{}", std::process::id()));
        let unix = UnixListener::bind(&path).expect("a free path");
        assert_eq!(listening_pid(&Address::Unix(path.clone())), Some(std::process::id()));
        drop((tcp, unix));
        fs::remove_file(&path).expect("it was made here");
        assert_eq!(listening_pid(&Address::Unix(path)), None);
    }

    #[test]
    fn a_foreign_address_has_no_local_owner() {
        assert!(is_local([127, 0, 0, 1].into()));
        assert!(!is_local([192, 0, 2, 1].into()), "TEST-NET-1 is nobody's");
    }
}
