//! Ports of loopback for programs that have to be told theirs.

use super::certs::Fault;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what systems give to whoever asks for any port, so that nobody gets one of these before its program starts.
const FIRST: u16 = 15_000;
const COUNT: u16 = 15_000;

/// The next to try. Two runs at once begin elsewhere.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// So many ports that are free now, no two the same, and none given before.
pub fn free(count: usize) -> Result<Vec<u16>, Fault> {
    let begin = u16::try_from(std::process::id().wrapping_mul(41) % u32::from(COUNT)).unwrap_or_default();
    let mut ports = Vec::new();
    for _ in 0..COUNT {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(begin) % COUNT;
        let port = FIRST + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.push(port);
        }
        if ports.len() == count {
            return Ok(ports);
        }
    }
    Err(format!("no {count} ports of loopback are free from {FIRST} on").into())
}
