//! Every recorded answer that an action can receive has the class that the contract names, as `explain` tells it.

use super::facts_common::{Fact, expected};
use super::{explained, observation, set};
use cocoon_operator::core::wire::Verb;
use serde_json::{Value, json};

/// An action that sends a request of this verb.
fn action_of(verb: Verb) -> Option<(&'static str, Option<&'static str>)> {
    match verb {
        Verb::Create => Some(("CreatePod", Some("x-0"))),
        Verb::Patch => Some(("PatchObject", None)),
        Verb::Delete => Some(("DeletePod", Some("x-0"))),
        Verb::Get => Some(("ReadLive", Some("cocoonset/x"))),
        Verb::List => Some(("ReadLive", Some("pods"))),
        Verb::Update | Verb::Watch | Verb::RegistryHead | Verb::RegistryGet | Verb::RegistryDelete => None,
    }
}

fn outcome(fact: &Fact) -> Option<Value> {
    let (action, target) = action_of(fact.verb)?;
    let mut outcome = json!({ "object": "a/x", "action": action, "status": fact.status, "body": fact.body });
    if let Some(target) = target {
        outcome["target"] = json!(target);
    }
    if let Some(wait) = fact.retry_after {
        outcome["retryAfterSeconds"] = json!(wait.as_secs());
    }
    Some(outcome)
}

#[test]
fn every_recorded_body_is_classified_as_the_contract_says() {
    let table = expected();
    let facts: Vec<Fact> = Fact::all().into_iter().filter(|fact| action_of(fact.verb).is_some()).collect();
    assert!(facts.len() >= 100, "{} recorded answers", facts.len());
    let outcomes: Vec<Value> = facts.iter().filter_map(outcome).collect();
    let all = explained(&[set("a", "x"), observation(json!({ "outcomes": outcomes }))]);
    let told = all[0]["outcomes"].as_array().expect("outcomes");
    assert_eq!(told.len(), facts.len());
    let wrong: Vec<String> = facts
        .iter()
        .zip(told)
        .filter(|(fact, told)| told["class"] != table[fact.name.as_str()].name())
        .map(|(fact, told)| format!("{}: {} instead of {}", fact.name, told["class"], table[fact.name.as_str()]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each alone, so that no answer hides behind another: whatever comes back, explaining it works.
#[test]
fn whatever_came_back_is_explained() {
    for fact in Fact::all().iter().filter(|fact| !(200..300).contains(&fact.status)) {
        let Some(outcome) = outcome(fact) else { continue };
        let all = explained(&[set("a", "x"), observation(json!({ "outcomes": [outcome] }))]);
        assert!(!all[0]["actions"].as_array().expect("actions").is_empty(), "{}: no decision", fact.name);
    }
}

#[rstest::rstest]
#[case::lost_write("CreatePod", None, json!("timeout"), None, "Unknown")]
#[case::broken_write("PatchStatus", None, json!("connection-reset"), None, "Unknown")]
#[case::lost_read("ReadLive", Some("pod/x-0"), json!("timeout"), None, "Unavailable")]
#[case::proxy("DeletePod", None, json!(502), Some(json!("<html>bad gateway</html>")), "Unknown")]
#[case::no_body("CreatePod", None, json!(409), None, "Conflict")]
#[case::cut_short("ReadLive", Some("pods"), json!(200), Some(json!("{\"kind\":\"PodLi")), "Malformed")]
#[case::tag_there("ProbeSnapshot", Some("vk-a-x-0:hibernate"), json!(200), None, "Present")]
#[case::tag_gone("ProbeSnapshot", None, json!(404), None, "Absent")]
#[case::tag_denied("ProbeSnapshot", None, json!(403), None, "Denied")]
#[case::tag_stays("DeleteSnapshot", Some("vk-a-x-0:latest"), json!(405), None, "Unsupported")]
#[case::events("EmitEvent", None, json!(201), Some(json!({ "kind": "Event", "apiVersion": "v1", "metadata": { "name": "e" } })), "Done")]
fn what_is_no_answer_of_the_server_has_a_class_too(
    #[case] action: &str,
    #[case] target: Option<&str>,
    #[case] status: Value,
    #[case] body: Option<Value>,
    #[case] class: &str,
) {
    let mut outcome = json!({ "object": "a/x", "action": action, "status": status });
    if let Some(target) = target {
        outcome["target"] = json!(target);
    }
    if let Some(body) = body {
        outcome["body"] = body;
    }
    let all = explained(&[set("a", "x"), observation(json!({ "outcomes": [outcome] }))]);
    assert_eq!(all[0]["outcomes"], json!([{ "action": action, "class": class }]));
}

/// A success that nobody can read is an error whoever wants what comes next (decision R4).
#[test]
fn an_answer_that_cannot_be_read_needs_a_person() {
    for (action, target, status) in [
        ("DeletePod", Some("x-0"), 200),
        ("ReadLive", Some("cocoonset/x"), 200),
        ("ReadLive", Some("pods"), 200),
        ("ReadLive", Some("pod/x-1"), 200),
        ("CreatePod", Some("x-0"), 201),
        ("PatchStatus", None, 200),
    ] {
        let mut outcome = json!({ "object": "a/x", "action": action, "status": status, "body": "<html>" });
        if let Some(target) = target {
            outcome["target"] = json!(target);
        }
        let all = explained(&[set("a", "x"), observation(json!({ "outcomes": [outcome] }))]);
        assert_eq!(all[0]["outcomes"][0]["class"], "Malformed", "{action}");
        assert_eq!(all[0]["error"]["reason"], "Malformed", "{action}: {}", all[0]);
    }
}
