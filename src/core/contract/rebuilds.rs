//! How often something was rebuilt, kept on the set (contract 2.3, D-18, R21).

use super::keys;
use crate::core::oddity::{Oddity, excerpt};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Rebuilds of one slot or role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// How many so far.
    pub count: u32,
    /// When the last was charged; none where that cannot be read.
    pub last_deleted: Option<Timestamp>,
    /// Uid of the pod that it was charged for: charged twice, it counts once (D-11). Empty in an older operator's entry.
    pub uid: String,
    /// Generation it was charged under: an edit grants a fresh budget (D-47). None in an older operator's entry.
    pub generation: Option<i64>,
    /// The VM id that the status listed for the seat when it was charged. Whoever did not see the pod go knows by it that
    /// its disappearance is paid for (D-46). Empty where none was listed.
    pub vm: String,
    /// Its pod was given up: whoever deletes that pod grants a fresh budget (D-47).
    pub given_up: bool,
}

/// What the history says of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged<'a> {
    /// Never rebuilt.
    Never,
    /// So often.
    Times(&'a Rebuild),
    /// Unreadable: counts as exhausted until somebody repairs it or the generation moves (R21).
    Unreadable,
}

/// One of the two histories. Keys are slots in decimal (`rebuild-history`), or what [`role_key`] gives
/// (`rebuild-history-roles`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilds {
    entries: BTreeMap<String, Entry>,
    unreadable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Read(Rebuild),
    /// Kept as it came: a writer that drops what it cannot read grants a fresh budget.
    Unreadable(Value),
}

impl Rebuilds {
    /// Reads the annotation under `key`; absent is empty, everything else that is no JSON object is unreadable.
    pub fn read(key: &str, annotation: Option<&str>) -> (Self, Option<Oddity>) {
        let Some(text) = annotation else { return (Self::default(), None) };
        let Ok(Value::Object(map)) = serde_json::from_str(text) else {
            let said = format!("{} is no rebuild history", excerpt(text, 60));
            return (Self { unreadable: true, ..Self::default() }, Some(Oddity::corrupt(key, said)));
        };
        let mut oddity = None;
        let mut entries = BTreeMap::new();
        for (name, value) in map {
            let entry = Entry::read(value);
            if let Entry::Unreadable(value) = &entry {
                let said = format!("\"{}\": {} is no count", excerpt(&name, 80), excerpt(&value.to_string(), 60));
                oddity = oddity.or(Some(Oddity::corrupt(key, said)));
            }
            entries.insert(name, entry);
        }
        (Self { entries, unreadable: false }, oddity)
    }
    /// What it says of a slot or role.
    pub fn of(&self, key: &str) -> Charged<'_> {
        match self.entries.get(key) {
            _ if self.unreadable => Charged::Unreadable,
            Some(Entry::Read(rebuild)) => Charged::Times(rebuild),
            Some(Entry::Unreadable(_)) => Charged::Unreadable,
            None => Charged::Never,
        }
    }
    /// When anything was last charged.
    pub fn stamps(&self) -> impl Iterator<Item = Timestamp> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Read(rebuild) => rebuild.last_deleted,
            Entry::Unreadable(_) => None,
        })
    }
    /// True where nothing of it can be read.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }
    /// True where no entry is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.unreadable
    }
    /// Sets the entry of a slot or role. An unreadable entry stays: repairing it is a person's.
    pub fn put(&mut self, key: &str, rebuild: Rebuild) {
        if self.of(key) != Charged::Unreadable {
            self.entries.insert(key.to_owned(), Entry::Read(rebuild));
        }
    }
    /// Grants a fresh budget: after a drift reset, after long health, after a new generation.
    pub fn forget(&mut self, key: &str) {
        self.entries.remove(key);
    }
    /// Starts over: what cannot be read is given up, as a new generation allows (R21).
    pub fn start_over(&mut self) {
        *self = Self::default();
    }
    /// Drops slots beyond the replicas; keys that are no slots stay (CS-A10).
    pub fn prune_slots(&mut self, replicas: i64) {
        self.entries.retain(|key, _| !key.parse::<i64>().is_ok_and(|slot| slot > replicas));
    }
    /// Drops keys that no longer name anything.
    pub fn prune(&mut self, keep: impl Fn(&str) -> bool) {
        self.entries.retain(|key, _| keep(key));
    }
    /// The annotation's value; none where unreadable, for then nothing may be written over it.
    pub fn write(&self) -> Option<String> {
        let entries = self.entries.iter().map(|(key, entry)| (key.clone(), entry.write()));
        (!self.unreadable).then(|| Value::Object(entries.collect::<Map<_, _>>()).to_string())
    }
}

impl Entry {
    fn read(value: Value) -> Self {
        let count = value.get("count").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
        let Some(count) = count else { return Self::Unreadable(value) };
        let last_deleted = value.get("lastDeleted").and_then(Value::as_str).and_then(|text| text.parse().ok());
        let uid = value.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let generation = value.get("generation").and_then(Value::as_i64);
        let vm = value.get("vmID").and_then(Value::as_str).unwrap_or_default().to_owned();
        let given_up = value.get("givenUp").and_then(Value::as_bool).unwrap_or_default();
        Self::Read(Rebuild { count, last_deleted, uid, generation, vm, given_up })
    }
    fn write(&self) -> Value {
        let rebuild = match self {
            Self::Read(rebuild) => rebuild,
            Self::Unreadable(value) => return value.clone(),
        };
        let mut entry = Map::new();
        entry.insert("count".to_owned(), json!(rebuild.count));
        if let Some(last) = rebuild.last_deleted {
            entry.insert("lastDeleted".to_owned(), json!(last.to_string()));
        }
        if !rebuild.uid.is_empty() {
            entry.insert("uid".to_owned(), json!(rebuild.uid));
        }
        if let Some(generation) = rebuild.generation {
            entry.insert("generation".to_owned(), json!(generation));
        }
        if !rebuild.vm.is_empty() {
            entry.insert("vmID".to_owned(), json!(rebuild.vm));
        }
        if rebuild.given_up {
            entry.insert("givenUp".to_owned(), json!(true));
        }
        Value::Object(entry)
    }
}

/// Both histories of a set, read once for each version of it: every seat of a decision asks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histories {
    slots: Rebuilds,
    roles: Rebuilds,
    /// What of them did not read, by annotation.
    pub oddities: BTreeMap<&'static str, Oddity>,
}

impl Histories {
    /// Reads both from the annotations of the set.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let mut read = Self::default();
        for (key, history) in [(keys::REBUILD_HISTORY, &mut read.slots), (keys::REBUILD_HISTORY_ROLES, &mut read.roles)]
        {
            let (rebuilds, oddity) = Rebuilds::read(key, annotations.get(key).map(String::as_str));
            *history = rebuilds;
            read.oddities.extend(oddity.map(|oddity| (key, oddity)));
        }
        read
    }
    /// The one under this annotation.
    pub fn of(&self, annotation: &str) -> &Rebuilds {
        if annotation == keys::REBUILD_HISTORY { &self.slots } else { &self.roles }
    }
    /// Both of them.
    pub fn both(&self) -> [&Rebuilds; 2] {
        [&self.slots, &self.roles]
    }
}

/// The annotation and key under which a role's rebuilds are counted; none for unknown roles.
pub fn role_key(role: &super::names::Role) -> Option<(&'static str, String)> {
    use super::names::Role;
    match role {
        Role::Main => Some((keys::REBUILD_HISTORY_ROLES, "main".to_owned())),
        Role::SubAgent(slot) => Some((keys::REBUILD_HISTORY, slot.to_string())),
        Role::Toolbox(name) => Some((keys::REBUILD_HISTORY_ROLES, format!("toolbox/{name}"))),
        Role::Unknown => None,
    }
}
