//! The objects that a file has shown so far: what need not be written again, and what a later line speaks of.

use super::{Line, Taken};
use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::core::control::mirror::Held;
use crate::core::control::wake::Key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The newest of every object in a file.
#[derive(Clone, Debug, Default)]
pub struct Shelf(BTreeMap<(Kind, Key), Arc<Value>>);

impl Shelf {
    /// The line of this pass, with those objects that the file has not shown as they are.
    pub fn shorten(&mut self, taken: Taken) -> Line {
        let Taken { mut line, held } = taken;
        for (kind, key, object) in held {
            line.seen.entry(kind.resource().to_owned()).or_default().push(key.to_string());
            let known = self.0.insert((kind, key), Arc::clone(&object));
            if !known.is_some_and(|known| Arc::ptr_eq(&known, &object) || known == object) {
                line.objects.push(object.as_ref().clone());
            }
        }
        line
    }

    /// Everything that was seen at the start of this pass. An `Err` says what the file does not hold.
    pub fn recall(&mut self, line: &Line) -> Result<Vec<Held>, String> {
        for object in &line.objects {
            let kind = kind_of(object).ok_or_else(|| format!("objects: no kind that is watched in {object}"))?;
            self.0.insert((kind, Key::of(object)), Arc::new(object.clone()));
        }
        let mut held = Vec::new();
        for (resource, names) in &line.seen {
            let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource);
            let kind = kind.ok_or_else(|| format!("seen: {resource} is no resource that is watched"))?;
            for name in names {
                let (namespace, bare) = name.split_once('/').unwrap_or(("", name));
                let key = Key::new(namespace, bare);
                let object = self.0.get(&(kind, key.clone()));
                let missing =
                    || format!("seen: {resource} {name} stands in no line so far: the file's head is missing");
                let object = Arc::clone(object.ok_or_else(missing)?);
                held.push((kind, key, object));
            }
        }
        Ok(held)
    }
}

fn kind_of(object: &Value) -> Option<Kind> {
    match object.get("kind")?.as_str()? {
        keys::SET_KIND => Some(Kind::CocoonSets),
        keys::HIBERNATION_KIND => Some(Kind::CocoonHibernations),
        "Pod" => Some(Kind::Pods),
        "Namespace" => Some(Kind::Namespaces),
        "Node" => Some(Kind::Nodes),
        _ => None,
    }
}
