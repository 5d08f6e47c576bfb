//! /debug/passes and /debug/memory: what this process did about an object last, and what only it knows. Read-only, on
//! loopback unless somebody names another host.

use super::Shell;
use super::http::{plain, typed};
use super::options::Address;
use super::telling::Witness;
use crate::core::control::wake::Key;
use crate::core::memory_json;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::json;

/// Where it is served where nobody says otherwise.
pub const DEFAULT: (&str, u16) = ("127.0.0.1", 8082);

/// Keeps the last passes of each object, told.
pub trait Desk: Witness {
    /// The last passes of this object, oldest first; nothing where none is kept.
    fn told(&self, key: &Key) -> Option<String>;
    /// The objects that passes are kept of.
    fn keys(&self) -> Vec<Key>;
}

/// Without a host, this machine alone.
pub fn at_home(address: Address) -> Address {
    if address.host.is_empty() { Address { host: DEFAULT.0.to_owned(), ..address } } else { address }
}

/// True where nobody but this machine reaches the address.
pub fn is_local(address: &Address) -> bool {
    address.host == "localhost" || address.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The answer to a request for this path, query included.
pub fn answer(shell: &Shell, target: &str) -> Response<Full<Bytes>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (what, in_path) = match path.strip_prefix("/debug/").map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        Some((what @ ("passes" | "memory"), object)) => (what, object),
        _ => return plain(StatusCode::NOT_FOUND, "not found; there are /debug/passes and /debug/memory\n".to_owned()),
    };
    let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "object");
    let object = named.map_or_else(|| in_path.to_owned(), |(_, object)| object.into_owned());
    let key = if object.is_empty() { None } else { key_of(&object) };
    match (what, key) {
        (_, None) if !object.is_empty() => {
            plain(StatusCode::BAD_REQUEST, format!("object={object:?}: expected NAMESPACE/NAME\n"))
        }
        ("passes", None) => plain(StatusCode::OK, listed(shell)),
        ("passes", Some(key)) => passes(shell, &key),
        (_, None) => plain(StatusCode::BAD_REQUEST, "expected ?object=NAMESPACE/NAME\n".to_owned()),
        (_, Some(key)) => memory(shell, &key),
    }
}

fn key_of(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then(|| Key::new(namespace, name))
}

fn listed(shell: &Shell) -> String {
    let keys = shell.desk.as_ref().map(|desk| desk.keys()).unwrap_or_default();
    keys.iter().map(|key| format!("/debug/passes?object={key}\n")).collect()
}

fn passes(shell: &Shell, key: &Key) -> Response<Full<Bytes>> {
    match shell.desk.as_ref().and_then(|desk| desk.told(key)) {
        Some(told) => plain(StatusCode::OK, told),
        None => plain(StatusCode::NOT_FOUND, format!("no pass over {key} is kept\n")),
    }
}

/// As an observation stream takes it. What came back in earlier passes is in the memory already: there are no outcomes
/// beside it.
fn memory(shell: &Shell, key: &Key) -> Response<Full<Bytes>> {
    match shell.state.observe(key, shell.leader.lease()) {
        Some((seen, _)) => {
            let name = key.to_string();
            let body = json!({ "memory": { name: memory_json::entry(&seen) }, "outcomes": [] });
            typed(StatusCode::OK, "application/json", format!("{body}\n"))
        }
        None => plain(StatusCode::NOT_FOUND, format!("no CocoonSet {key} is known here\n")),
    }
}
