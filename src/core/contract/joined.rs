//! Two wishes about one annotation of the set, as one value. Each of them was written on the same version of the set,
//! and neither may undo the other's (R8, R12).

use super::names::VmName;
use super::{delete_names, keys};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What the annotation says when both wishes come true. Lists of VM names are united and rebuild histories laid over
/// one another; of anything else the later wish stands.
pub fn joined(key: &str, earlier: Option<String>, later: Option<String>) -> Option<String> {
    let (Some(one), Some(other)) = (&earlier, &later) else { return later };
    if one == other {
        return later;
    }
    match key {
        keys::DELETE_VM_NAMES => {
            let names = one.split(',').chain(other.split(',')).map(str::trim).filter(|name| !name.is_empty());
            Some(delete_names::write(&names.map(VmName::from).collect::<BTreeSet<_>>()))
        }
        keys::REBUILD_HISTORY | keys::REBUILD_HISTORY_ROLES => Some(histories(one, other).unwrap_or(other.clone())),
        _ => later,
    }
}

/// Per seat the entry that was charged last: the other is the one that both wishes started from.
fn histories(one: &str, other: &str) -> Option<String> {
    let mut all: Map<String, Value> = serde_json::from_str(one).ok()?;
    for (seat, entry) in serde_json::from_str::<Map<String, Value>>(other).ok()? {
        let older = all.get(&seat).is_some_and(|known| charged_at(&entry) < charged_at(known));
        if !older {
            all.insert(seat, entry);
        }
    }
    Some(Value::Object(all).to_string())
}

fn charged_at(entry: &Value) -> Option<jiff::Timestamp> {
    entry.get("lastDeleted").and_then(Value::as_str).and_then(|text| text.parse().ok())
}
