//! Where the state of each VM lives: the durable record on the set (R13).

use super::keys;
use super::names::Role;
use crate::core::oddity::{Oddity, excerpt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most that the annotation may hold; the API server bears 256 KiB over all of an object's annotations.
pub const LIMIT: usize = 128 * 1024;

/// Where the state of one VM is between two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordState {
    /// On its way into the registry.
    Saving,
    /// In the registry.
    Saved,
    /// On its way back into a VM.
    Restoring,
}

/// One VM's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Counts hibernations (R14).
    pub round: u64,
    /// The generation that the round was asked under.
    pub generation: i64,
    /// Where it is.
    pub state: RecordState,
    /// Manifest digest of the snapshot; empty until known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The image that the snapshot was taken over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_image: String,
    /// Where the VM ran last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Since when the state holds, RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
}

/// All records of one set, by slot in decimal or toolbox name: the two never meet, an integer is no toolbox name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    vms: BTreeMap<String, Record>,
    unreadable: bool,
}

/// The records do not fit the annotation (R13: refused beforehand, `RecordTooLarge`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes they would take.
    pub bytes: usize,
}

impl Records {
    /// Reads the annotation of the set with this uid. Another uid is an exported manifest's: ignored without a word.
    pub fn read(annotation: Option<&str>, uid: &str) -> (Self, Vec<Oddity>) {
        let Some(text) = annotation.filter(|text| !text.is_empty()) else { return Self::default().alone() };
        let whole: Value = serde_json::from_str(text).unwrap_or_default();
        let (Some(owner), Some(vms)) = (text_of(&whole, "uid"), whole.get("vms").and_then(Value::as_object)) else {
            let said = format!("{} is no record of VMs", excerpt(text, 60));
            let corrupt = Oddity::corrupt(keys::VM_RECORDS, said);
            return (Self { unreadable: true, ..Self::default() }, vec![corrupt]);
        };
        if owner != uid {
            return Self::default().alone();
        }
        let mut read = Self::default();
        let mut oddities = Vec::new();
        for (key, value) in vms {
            match Record::deserialize(value) {
                Ok(record) => drop(read.vms.insert(key.clone(), record)),
                Err(why) => {
                    read.unreadable = true;
                    let said = format!("the record of \"{}\" cannot be read: {why}", excerpt(key, 80));
                    oddities.push(Oddity::corrupt(keys::VM_RECORDS, excerpt(&said, 300)));
                }
            }
        }
        (read, oddities)
    }
    /// The record of a role's VM.
    pub fn of(&self, role: &Role) -> Option<&Record> {
        self.vms.get(&role.slot_label())
    }
    /// All of them, by slot or toolbox name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.vms.iter().map(|(key, record)| (key.as_str(), record))
    }
    /// True where something stands there that cannot be read: then nobody knows that no VM is saved.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }
    /// True where no VM of the set is known or feared to live in the registry.
    pub fn is_empty(&self) -> bool {
        self.vms.is_empty() && !self.unreadable
    }
    /// Sets the record of a role's VM; an unknown role has none.
    pub fn put(&mut self, role: &Role, record: Record) {
        if *role != Role::Unknown {
            self.vms.insert(role.slot_label(), record);
        }
    }
    /// Takes the record of a role's VM away.
    pub fn forget(&mut self, role: &Role) {
        self.vms.remove(&role.slot_label());
    }
    /// The annotation's value.
    pub fn write(&self, uid: &str) -> Result<String, TooLarge> {
        let text = json!({ "uid": uid, "vms": self.vms }).to_string();
        if text.len() > LIMIT { Err(TooLarge { bytes: text.len() }) } else { Ok(text) }
    }
    fn alone(self) -> (Self, Vec<Oddity>) {
        (self, Vec::new())
    }
}

fn text_of<'a>(at: &'a Value, key: &str) -> Option<&'a str> {
    at.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}
