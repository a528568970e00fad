//! A client of the simulated network, controlled by the test.

use super::SimNet;
use super::net::Side;
use crate::PeerAddr;

/// How a connection ended, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closed it gracefully.
    Closed,
    /// It was reset.
    Reset,
}

/// One connection's client. Dropping it closes the connection.
#[derive(Debug)]
pub struct SimClient {
    net: SimNet,
    stream: usize,
}

impl SimClient {
    pub(super) fn new(net: SimNet, stream: usize) -> Self {
        Self { net, stream }
    }

    /// Writes as much as the network accepts; returns the number of bytes.
    pub fn write(&self, bytes: &[u8]) -> usize {
        self.net.state().client_write(self.stream, bytes)
    }

    /// Reads arrived bytes into `room`; returns their number.
    pub fn read(&self, room: &mut [u8]) -> usize {
        self.net.state().client_read(self.stream, room)
    }

    /// The end of the connection, if everything before it was read.
    pub fn ending(&self) -> Option<Ending> {
        let net = self.net.state();
        if net.client_sees_reset(self.stream) {
            Some(Ending::Reset)
        } else {
            net.client_sees_end(self.stream).then_some(Ending::Closed)
        }
    }

    /// True if a fault of the network has reset the connection.
    pub fn was_broken(&self) -> bool {
        self.net.state().streams[self.stream].broken
    }

    /// This client's address.
    pub fn addr(&self) -> PeerAddr {
        self.net.state().client_addr(self.stream)
    }

    /// Shuts down writing; reading stays possible.
    pub fn shutdown_write(&self) {
        self.net.state().shutdown_client(self.stream);
    }

    /// Breaks the connection.
    pub fn reset(&self) {
        self.net.state().reset(self.stream);
    }
}

impl Drop for SimClient {
    fn drop(&mut self) {
        self.net.state().close(self.stream, Side::Client);
    }
}
