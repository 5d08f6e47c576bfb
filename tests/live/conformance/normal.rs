//! Answers without what no two servers share: uids and versions become ordinals, times become marks. Whether a version
//! moved stays visible.

use super::player::Answer;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What one server has called things in one case.
#[derive(Debug, Default)]
pub struct Names {
    uids: BTreeMap<String, usize>,
    /// The last version seen of each uid, and the highest of all.
    versions: BTreeMap<String, u64>,
    highest: u64,
    /// What may stand in messages, and what it is called.
    texts: Vec<(String, String)>,
    generated: BTreeMap<String, usize>,
}

const TIMES: [&str; 11] = [
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "lastProbeTime",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "startTime",
    "lastUpdateTime",
    "timeAdded",
];

impl Names {
    /// The answer as it is compared.
    pub fn answer(&mut self, answer: &Answer) -> Value {
        let mut body = answer.body.clone();
        self.name_all(&body);
        self.mask(&mut body);
        let mut warnings = Vec::new();
        for warning in &answer.warnings {
            warnings.push(self.plain(warning));
        }
        json!({
            "status": answer.status, "contentType": answer.content_type, "retryAfter": answer.retry_after,
            "warnings": warnings, "body": body,
        })
    }

    /// One line of a watch.
    pub fn event(&mut self, event: &Value) -> Value {
        let mut event = event.clone();
        self.name_all(&event);
        self.mask(&mut event);
        event
    }

    /// Gives names to uids before anything is replaced, in the order in which they appear.
    fn name_all(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(uid) =
                    map.get("uid").and_then(Value::as_str).filter(|_| map.contains_key("resourceVersion"))
                {
                    let next = self.uids.len() + 1;
                    if !self.uids.contains_key(uid) {
                        self.uids.insert(uid.to_owned(), next);
                        self.texts.push((uid.to_owned(), format!("uid-{next}")));
                    }
                }
                let made = map.get("generateName").and_then(Value::as_str).filter(|_| map.contains_key("uid"));
                if let (Some(prefix), Some(name)) = (made, map.get("name").and_then(Value::as_str))
                    && !self.generated.contains_key(name)
                {
                    let next = self.generated.len() + 1;
                    self.generated.insert(name.to_owned(), next);
                    self.texts.push((name.to_owned(), format!("{prefix}generated-{next}")));
                }
                map.values().for_each(|child| self.name_all(child));
            }
            Value::Array(list) => list.iter().for_each(|child| self.name_all(child)),
            _ => {}
        }
    }

    fn mask(&mut self, value: &mut Value) {
        match value {
            Value::Object(map) => self.mask_map(map),
            Value::Array(list) => list.iter_mut().for_each(|child| self.mask(child)),
            Value::String(text) => *text = self.plain(text),
            _ => {}
        }
    }

    fn mask_map(&mut self, map: &mut Map<String, Value>) {
        map.remove("managedFields");
        // Go writes some empty values as null; null and absent say the same.
        map.retain(|_, child| !child.is_null());
        let uid = map.get("uid").and_then(Value::as_str).map(str::to_owned);
        if let Some(version) = map.get("resourceVersion").and_then(Value::as_str).map(str::to_owned) {
            let told = self.version(uid.as_deref(), &version);
            map.insert("resourceVersion".to_owned(), Value::String(told));
        }
        if map.get("continue").is_some_and(|value| value != "") {
            map.insert("continue".to_owned(), json!("more"));
        }
        for (key, child) in map.iter_mut() {
            if key == "uid" && child.as_str().is_some_and(|uid| !uid.is_empty() && !self.uids.contains_key(uid)) {
                // That of a dry run, or of nothing there is.
                *child = json!("another uid");
            } else if key == "cells" {
                mask_ages(child);
            } else if TIMES.contains(&key.as_str()) && child.is_string() {
                *child = json!("time");
            } else if key != "resourceVersion" {
                self.mask(child);
            }
        }
        drop_token_volume(map);
        // Definitions are told of in the order in which a controller came upon them.
        if let Some(list) = map.get_mut("resources").and_then(Value::as_array_mut) {
            list.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        }
    }

    /// What a version says beside those seen before: of an object, whether it moved; of a list, that it does not go back.
    fn version(&mut self, uid: Option<&str>, text: &str) -> String {
        let Ok(number) = text.parse::<u64>() else { return text.to_owned() };
        let Some(uid) = uid else {
            let told = if text.is_empty() || number == 0 {
                text
            } else if number >= self.highest {
                "up to date"
            } else {
                "behind"
            };
            return told.to_owned();
        };
        let last = self.versions.insert(uid.to_owned(), number);
        let told = match last {
            None if number > self.highest => "new",
            None => "older than what was seen",
            Some(last) if last == number => "as it was",
            Some(last) if number > last => "moved on",
            Some(_) => "WENT BACK",
        };
        self.highest = self.highest.max(number);
        told.to_owned()
    }

    fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for before in ["ResourceVersion in record (", "ResourceVersion in object meta: "] {
            text = without_number(&text, before);
        }
        for (from, to) in &self.texts {
            if text.contains(from.as_str()) {
                text = text.replace(from.as_str(), to);
            }
        }
        text
    }
}

/// Ages in the rows of a table.
fn mask_ages(cells: &mut Value) {
    for cell in cells.as_array_mut().into_iter().flatten() {
        let seconds = cell.as_str().and_then(|text| text.strip_suffix('s'));
        if seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok()) {
            *cell = json!("age");
        }
    }
}

/// The text with `N` for the number that follows these words.
fn without_number(text: &str, words: &str) -> String {
    let Some((head, tail)) = text.split_once(words) else { return text.to_owned() };
    format!("{head}{words}N{}", tail.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The token volume that the ServiceAccount plugin adds has a random name, and the simulated nodes have no use for it.
fn drop_token_volume(map: &mut Map<String, Value>) {
    for list in ["volumes", "volumeMounts"] {
        if let Some(entries) = map.get_mut(list).and_then(Value::as_array_mut) {
            entries.retain(|entry| !entry["name"].as_str().unwrap_or("").starts_with("kube-api-access"));
        }
        if map.get(list) == Some(&json!([])) {
            map.remove(list);
        }
    }
}
