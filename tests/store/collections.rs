//! LIST and WATCH: selectors, pages, older states, what a watch sees.

use super::{PODS, bound, cluster, delete, merge, names, node, pod, post, refusal, sure};
use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::sim::store::{Store, StoreReply, Watch, WatchKind};
use rstest::rstest;
use serde_json::{Value, json};

fn list(store: &mut Store, path: &str, query: &[(&str, &str)]) -> StoreReply {
    let request =
        query.iter().fold(Request::new(Method::Get, path), |request, (key, value)| request.with_query(key, value));
    store.handle(&request)
}

fn watch(store: &mut Store, path: &str, query: &[(&str, &str)]) -> Watch {
    let request = Request::new(Method::Get, path).with_query("watch", "true");
    let request = query.iter().fold(request, |request, (key, value)| request.with_query(key, value));
    store.open_watch(&request).expect("a watch")
}

fn seen(store: &Store, watch: &mut Watch) -> Vec<String> {
    let events = store.poll_watch(watch);
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    events.iter().map(|event| format!("{} {}", event.kind.as_str(), name(&event.object))).collect()
}

fn three_pods() -> Store {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    for (name, labels, node) in [
        ("a", json!({"app": "x", "tier": "front"}), None),
        ("b", json!({"app": "y"}), Some("n1")),
        ("c", json!({"tier": "back"}), Some("n1")),
    ] {
        let mut object = node.map_or_else(|| pod(name), |node| bound(name, node));
        object["metadata"]["labels"] = labels;
        sure(&post(&mut store, PODS, object));
    }
    store
}

#[rstest]
#[case("app=x", "", &["a"])]
#[case("app==x", "", &["a"])]
#[case("app!=x", "", &["b", "c"])]
#[case("app in (x, y)", "", &["a", "b"])]
#[case("app in (x,y),tier", "", &["a"])]
#[case("app notin (x)", "", &["b", "c"])]
#[case("!app", "", &["c"])]
#[case("tier", "", &["a", "c"])]
#[case("", "spec.nodeName=n1", &["b", "c"])]
#[case("", "spec.nodeName!=n1", &["a"])]
#[case("", "metadata.name=b,status.phase=Pending", &["b"])]
#[case("app", "spec.nodeName=n1", &["b"])]
fn selectors_choose(#[case] labels: &str, #[case] fields: &str, #[case] expected: &[&str]) {
    let mut store = three_pods();
    let reply = list(&mut store, PODS, &[("labelSelector", labels), ("fieldSelector", fields)]);
    assert_eq!(names(&sure(&reply)), expected);
}

#[rstest]
#[case("a in x", "")]
#[case("a b", "")]
#[case("", "spec.hostname=x")]
#[case("", "nonsense")]
fn selectors_that_cannot_be_read(#[case] labels: &str, #[case] fields: &str) {
    let mut store = three_pods();
    let reply = list(&mut store, PODS, &[("labelSelector", labels), ("fieldSelector", fields)]);
    assert_eq!(refusal(&reply).0, 400);
}

#[test]
fn pages_show_one_state_over_all_namespaces() {
    let mut store = three_pods();
    store.add_namespace("other");
    sure(&post(&mut store, "/api/v1/namespaces/other/pods", pod("a")));
    let first = sure(&list(&mut store, "/api/v1/pods", &[("limit", "3")]));
    assert_eq!(names(&first), ["a", "b", "c"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    sure(&post(&mut store, "/api/v1/namespaces/other/pods", pod("later")));
    sure(&delete(&mut store, "/api/v1/namespaces/other/pods/a", Value::Null));
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let second = sure(&list(&mut store, "/api/v1/pods", &[("limit", "3"), ("continue", token)]));
    assert_eq!(names(&second), ["a"], "as it was when the first page was read");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(second["metadata"].get("continue"), None);
    let chosen = [("limit", "1"), ("labelSelector", "tier")];
    assert_eq!(sure(&list(&mut store, PODS, &chosen))["metadata"].get("remainingItemCount"), None);
    store.compact(store.version());
    let expired = list(&mut store, "/api/v1/pods", &[("limit", "3"), ("continue", token)]);
    assert_eq!(refusal(&expired).1, "Expired");
    let again = expired.value()["metadata"]["continue"].as_str().expect("a token").to_owned();
    let rest = sure(&list(&mut store, "/api/v1/pods", &[("continue", &again)]));
    assert_eq!(names(&rest), ["later"]);
}

#[test]
fn a_watch_sees_objects_enter_and_leave_its_selection() {
    let mut store = three_pods();
    let version = store.version().to_string();
    let mut watch = watch(&mut store, PODS, &[("resourceVersion", &version), ("labelSelector", "app=x")]);
    let label = |value: Value| json!({"metadata": {"labels": {"app": value}}});
    sure(&merge(&mut store, &format!("{PODS}/b"), label(json!("x"))));
    sure(&merge(&mut store, &format!("{PODS}/a"), json!({"metadata": {"annotations": {"k": "v"}}})));
    sure(&merge(&mut store, &format!("{PODS}/a"), label(Value::Null)));
    sure(&merge(&mut store, &format!("{PODS}/c"), json!({"metadata": {"annotations": {"k": "v"}}})));
    assert_eq!(seen(&store, &mut watch), ["ADDED b", "MODIFIED a", "DELETED a"]);
    assert_eq!(seen(&store, &mut watch), Vec::<String>::new());
}

#[test]
fn an_object_that_left_carries_a_new_version() {
    let mut store = three_pods();
    let version = store.version().to_string();
    let mut watch = watch(&mut store, PODS, &[("resourceVersion", &version)]);
    sure(&delete(&mut store, &format!("{PODS}/a"), Value::Null));
    let events = store.poll_watch(&mut watch);
    let last = events.last().expect("an event");
    assert_eq!(last.kind, WatchKind::Deleted);
    assert_eq!(last.object["metadata"]["resourceVersion"], json!(store.version().to_string()));
}

#[test]
fn a_watch_without_a_version_begins_with_what_is_there() {
    let mut store = three_pods();
    let mut all = watch(&mut store, PODS, &[]);
    assert_eq!(seen(&store, &mut all), ["ADDED a", "ADDED b", "ADDED c"]);
    let mut one = watch(&mut store, PODS, &[("resourceVersion", "0"), ("fieldSelector", "metadata.name=b")]);
    assert_eq!(seen(&store, &mut one), ["ADDED b"]);
}

#[test]
fn a_watch_that_falls_behind_is_told_so_in_the_stream() {
    let mut store = three_pods();
    let version = store.version().to_string();
    let mut slow = watch(&mut store, PODS, &[("resourceVersion", &version)]);
    store.settings_mut().log_capacity = 3;
    for at in 0..6 {
        sure(&merge(&mut store, &format!("{PODS}/a"), json!({"metadata": {"annotations": {"k": at.to_string()}}})));
    }
    let events = store.poll_watch(&mut slow);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, WatchKind::Error);
    assert_eq!((&events[0].object["code"], &events[0].object["reason"]), (&json!(410), &json!("Expired")));
}

#[test]
fn a_bookmark_moves_a_quiet_watch_on() {
    let mut store = three_pods();
    let version = store.version().to_string();
    let mut quiet = watch(&mut store, PODS, &[("resourceVersion", &version), ("labelSelector", "app=none")]);
    sure(&merge(&mut store, &format!("{PODS}/a"), json!({"metadata": {"annotations": {"k": "v"}}})));
    assert!(store.poll_watch(&mut quiet).is_empty());
    let bookmark = store.bookmark(&quiet);
    assert_eq!(bookmark.frame()["type"], "BOOKMARK");
    assert_eq!(bookmark.object["metadata"]["resourceVersion"], json!(store.version().to_string()));
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let mut store = three_pods();
    let request = Request::new(Method::Delete, PODS).with_query("labelSelector", "app");
    sure(&store.handle(&request));
    let left: Vec<&str> =
        store.objects("pods", Some("default")).map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(left, ["b", "c"], "a is gone, b waits for its node");
    assert!(store.get("pods", "default", "b").expect("b")["metadata"].get("deletionTimestamp").is_some());
    assert!(store.get("pods", "default", "c").expect("c")["metadata"].get("deletionTimestamp").is_none());
}

#[test]
fn an_exact_list_of_a_forgotten_state_is_expired() {
    let mut store = three_pods();
    let version = store.version().to_string();
    sure(&delete(&mut store, &format!("{PODS}/a"), Value::Null));
    let exact = [("resourceVersion", version.as_str()), ("resourceVersionMatch", "Exact")];
    assert_eq!(names(&sure(&list(&mut store, PODS, &exact))), ["a", "b", "c"]);
    store.compact(store.version());
    assert_eq!(refusal(&list(&mut store, PODS, &exact)).1, "Expired");
    let newer = [("resourceVersion", version.as_str())];
    assert_eq!(names(&sure(&list(&mut store, PODS, &newer))), ["b", "c"], "not older than is met by what is");
}
