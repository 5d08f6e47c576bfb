//! What others do to a set while it is recorded becomes steps of a story, and the same is done in it.

use crate::stage::{Dir, admin, cluster, create_set, operator, passes, set_path, until};
use cocoon_operator::core::wire::Method;
use cocoon_operator::scenario::from_recording::{self, Passed, Verdict, Written};
use cocoon_operator::shell::recorder::RecordTo;
use cocoon_operator::sim::server::Cluster;
use serde_json::{Value, json};
use std::time::Duration;

const PAUSED: &str = "cocoonset.cocoonstack.io/paused";

fn ready(cluster: &Cluster, count: i64) -> bool {
    let set = cluster.with(|world| world.store.get("cocoonsets.cocoonset.cocoonstack.io", "team", "demo").cloned());
    set.is_some_and(|set| set.pointer("/status/readyAgents").and_then(Value::as_i64) == Some(count))
}

fn patch(cluster: &Cluster, patch: Value) {
    assert_eq!(admin(cluster, Method::Patch, &set_path("team", "demo"), patch), 200);
}

fn pause(cluster: &Cluster, word: Option<&str>) {
    patch(cluster, json!({"metadata": {"annotations": {PAUSED: word}}}));
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

fn spec() -> Value {
    json!({"agent": {"image": "img:1", "mode": "clone", "replicas": 0}, "snapshotPolicy": "never"})
}

fn story(dir: &Dir, from: usize) -> Written {
    let all = passes(dir.text()).into_iter().map(|pass| (pass.line, pass.held)).skip(from);
    from_recording::scenario(&all.collect::<Vec<Passed>>()).expect("a scenario")
}

fn steps(story: &Written) -> Vec<&str> {
    story.text.lines().filter(|line| line.starts_with("  - ")).collect()
}

/// A pause, an edit under it, a mark of somebody's, and the end of the pause; our own annotations are no steps.
#[tokio::test(start_paused = true)]
async fn a_pause_is_a_step_and_what_we_write_is_none() {
    let dir = Dir::new("pause");
    let cluster = cluster(&["team"], &["node-a"]);
    let operator = operator(&cluster, RecordTo::dir(dir.path()));
    assert_eq!(create_set(&cluster, "team", "demo", spec()), 201);
    until("it is ready", || ready(&cluster, 1)).await;
    pause(&cluster, Some("true"));
    a_while().await;
    patch(&cluster, json!({"spec": {"agent": {"replicas": 1}}, "metadata": {"labels": {"tier": "gold"}}}));
    a_while().await;
    let paused_at = passes(dir.text()).len();
    pause(&cluster, None);
    until("both are ready", || ready(&cluster, 2)).await;
    assert_eq!(admin(&cluster, Method::Delete, &set_path("team", "demo"), json!({})), 200);
    a_while().await;
    operator.stop().await;
    let whole = story(&dir, 0);
    let told = steps(&whole).join("\n");
    for step in [
        r#"{"annotate":{"annotations":{"cocoonset.cocoonstack.io/paused":"true"},"set":"demo"}}"#,
        r#"{"annotate":{"labels":{"tier":"gold"},"set":"demo"}}"#,
        r#"{"annotate":{"annotations":{"cocoonset.cocoonstack.io/paused":null},"set":"demo"}}"#,
    ] {
        assert_eq!(told.matches(step).count(), 1, "{step} in\n{told}");
    }
    assert!(!told.contains("delete-vm-names"), "{told}");
    assert_eq!(whole.played, Verdict::Same, "{}", whole.text);
    // It begins in the middle of the pause.
    let rest = story(&dir, paused_at.saturating_sub(1));
    assert!(rest.text.contains(r#""annotations":{"cocoonset.cocoonstack.io/paused":"true"}"#), "{}", rest.text);
    assert!(!rest.text.contains("settled"), "{}", rest.text);
}

/// A namespace that goes, and a pod of somebody else that stands in a seat from the start, or comes later.
#[tokio::test(start_paused = true)]
async fn pods_of_others_and_the_end_of_the_namespace_are_told() {
    let dir = Dir::new("others");
    let cluster = cluster(&["team"], &["node-a"]);
    let theirs = |name: &str| {
        let labels = json!({"cocoonset.cocoonstack.io/name": "demo"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(admin(&cluster, Method::Post, "/api/v1/namespaces/team/pods", pod), 201);
    };
    theirs("demo-1");
    theirs("demo-x");
    let operator = operator(&cluster, RecordTo::dir(dir.path()));
    assert_eq!(create_set(&cluster, "team", "demo", spec()), 201);
    until("it is ready", || ready(&cluster, 1)).await;
    patch(&cluster, json!({"spec": {"agent": {"replicas": 1}}}));
    theirs("demo-7");
    a_while().await;
    assert_eq!(admin(&cluster, Method::Delete, "/api/v1/namespaces/team", json!({})), 200);
    a_while().await;
    operator.stop().await;
    let story = story(&dir, 0);
    for told in [r#"pods: {"demo-1":{"node":"","of":"demo","owner":"none""#, r#"{"create-pod":{"demo-7":{"#] {
        assert_eq!(story.text.matches(told).count(), 1, "{told} in\n{}", story.text);
    }
    // No seat of the set has that name, so that a story cannot make the pod.
    assert!(!story.text.contains("demo-x"), "{}", story.text);
    assert_eq!(story.text.matches(r#"{"delete":{"namespace":true}}"#).count(), 1, "{}", story.text);
    assert_ne!(story.played, Verdict::Fails, "{}", story.text);
}
