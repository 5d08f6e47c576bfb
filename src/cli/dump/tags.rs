//! What the registry says of the tags of a set's VMs, as an observation document has it.

use crate::cli::note;
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::Verb;
use crate::shell::registry::Registry;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// What the registry says of the tags of its VMs.
pub(super) async fn tags(registry: &Registry, seen: &Observed, now: Timestamp) -> Map<String, Value> {
    let mut vms: BTreeSet<String> = seen.set.vm_names();
    vms.extend(seen.set.status.vm_names().map(str::to_owned));
    vms.extend(seen.names_owed());
    let mut all = Map::new();
    let mut unknown: Vec<(String, Outcome)> = Vec::new();
    for vm in vms {
        let mut tags = Map::new();
        for tag in [keys::TAG_HIBERNATE, keys::TAG_LATEST] {
            let outcome = registry.carry_out(Verb::RegistryHead, &vm, tag, None, &|_| Some(Duration::MAX)).await;
            let said = said(&outcome, now);
            if said == json!(NOT_KNOWN) {
                unknown.push((format!("{vm}:{tag}"), outcome));
            }
            tags.insert(tag.to_owned(), said);
        }
        all.insert(vm, Value::Object(tags));
    }
    not_told(&unknown).iter().for_each(|words| note(words));
    all
}

/// In the stream: the registry did not say whether there is such a tag.
const NOT_KNOWN: &str = "error";

/// What to say of tags that the registry did not tell of: one is named, with what came instead.
fn not_told(unknown: &[(String, Outcome)]) -> Option<String> {
    let ((tag, outcome), others) = unknown.split_first()?;
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    let because = if outcome.message.is_empty() { outcome.class.name() } else { &outcome.message };
    Some(format!("the registry did not say whether {tag}{more} is there: {because}"))
}

fn said(outcome: &Outcome, now: Timestamp) -> Value {
    match (&outcome.class, &outcome.answer) {
        (Class::Absent, _) => json!("absent"),
        (Class::Present, Answer::Snapshot { digest, base_image }) => {
            let mut said = json!({ "checkedAt": now });
            for (key, value) in [("digest", digest), ("baseImage", base_image)] {
                if let Some(value) = value {
                    said[key] = json!(value);
                }
            }
            said
        }
        (Class::Present, _) => json!("present"),
        _ => json!(NOT_KNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_the_registry_does_not_tell_of_are_said_with_the_cause() {
        assert_eq!(not_told(&[]), None);
        let hangs = Outcome::of(Class::Unavailable).saying("connection refused".to_owned());
        let one = ("vk-a:hibernate".to_owned(), hangs);
        let told = not_told(std::slice::from_ref(&one)).expect("said");
        assert_eq!(told, "the registry did not say whether vk-a:hibernate is there: connection refused");
        let mute = ("vk-a:latest".to_owned(), Outcome::of(Class::Denied));
        assert!(not_told(&[one.clone(), mute.clone()]).expect("said").contains("vk-a:hibernate (and 1 more) is there"));
        assert!(not_told(&[mute]).expect("said").ends_with("Denied"));
    }
}
