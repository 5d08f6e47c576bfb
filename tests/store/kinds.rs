//! The platform's own kinds: defaults, pruning, validation, rules, status.

use super::{cluster, get, merge, post, put, refusal, sure};
use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::sim::store::Store;
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets";
const HIBERNATIONS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonhibernations";

fn set(spec: Value) -> Value {
    json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "demo"}, "spec": spec})
}

fn with_set(spec: Value) -> Store {
    let mut store = cluster();
    sure(&post(&mut store, SETS, set(spec)));
    store
}

fn demo() -> String {
    format!("{SETS}/demo")
}

#[test]
fn a_new_set_is_completed_by_its_definition() {
    let mut store = with_set(json!({"agent": {"image": "a"}, "toolboxes": [{"name": "t", "image": "b"}]}));
    let spec = sure(&get(&mut store, &demo()))["spec"].clone();
    assert_eq!(spec["snapshotPolicy"], "always");
    assert_eq!(spec["nodePool"], "default");
    assert_eq!(spec["agent"]["mode"], "clone");
    assert_eq!(spec["agent"]["os"], "linux");
    assert_eq!(spec["toolboxes"][0]["mode"], "run");
    assert_eq!(spec["toolboxes"][0]["backend"], "cloud-hypervisor");
}

#[test]
fn status_is_written_on_its_own_endpoint_only() {
    let mut store = cluster();
    let mut object = set(json!({"agent": {"image": "a"}}));
    object["status"] = json!({"phase": "Running"});
    assert_eq!(sure(&post(&mut store, SETS, object)).get("status"), None);
    let ignored = sure(&merge(&mut store, &demo(), json!({"status": {"phase": "Running"}})));
    assert_eq!(ignored.get("status"), None);
    let status = format!("{}/status", demo());
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"suspend": true}, "status": {"phase": "Running"}});
    let written = sure(&merge(&mut store, &status, patch));
    assert_eq!(written["status"]["phase"], "Running");
    assert_eq!(written["spec"].get("suspend"), None);
    assert_eq!(written["metadata"].get("labels"), None);
    assert_eq!(written["metadata"]["generation"], 1);
}

#[test]
fn generation_counts_spec_changes_and_the_deletion() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let generation = |object: &Value| object["metadata"]["generation"].as_i64().expect("a generation");
    let labelled =
        sure(&merge(&mut store, &demo(), json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}})));
    assert_eq!(generation(&labelled), 1);
    assert_eq!(generation(&sure(&merge(&mut store, &demo(), json!({"spec": {"suspend": true}})))), 2);
    assert_eq!(generation(&sure(&super::delete(&mut store, &demo(), Value::Null))), 3);
}

#[test]
fn a_set_that_its_definition_refuses() {
    let cases = [
        (json!({}), "spec.agent: Required value"),
        (json!({"agent": {"image": ""}}), "spec.agent.image in body should be at least 1 chars long"),
        (json!({"agent": {"image": "a", "replicas": -1}}), "should be greater than or equal to 0"),
        (json!({"agent": {"image": "a", "replicas": "2"}}), "spec.agent.replicas in body must be of type integer"),
        (json!({"agent": {"image": "a", "os": "plan9"}}), "Unsupported value: \"plan9\": supported values: \"linux\""),
        (json!({"agent": {"image": "a", "storage": "much"}}), "spec.agent.storage in body should match"),
        (json!({"agent": {"image": "a"}, "toolboxes": [{"name": "Bad"}]}), "spec.toolboxes[0].name"),
        (
            json!({"agent": {"image": "a", "replicas": 1}, "hibernatePolicy": "release"}),
            "hibernatePolicy=release requires agent.replicas=0 and no toolboxes",
        ),
        (
            json!({"agent": {"image": "a"}, "snapshotCompatibilityClass": "c".repeat(64)}),
            "spec.snapshotCompatibilityClass: Too long: may not be more than 63 bytes",
        ),
        (json!({"agent": {"image": "a", "probePort": 70000}}), "should be less than or equal to 65535"),
    ];
    for (spec, text) in cases {
        let mut store = cluster();
        let reply = post(&mut store, SETS, set(spec.clone()));
        let (status, reason, message) = refusal(&reply);
        assert_eq!((status, reason), (422, "Invalid"), "{spec}");
        assert!(message.contains(text), "{spec}: {message}");
    }
}

#[test]
fn quantities_may_be_numbers_or_texts() {
    for storage in [json!(10), json!("10Gi"), json!("1e3")] {
        with_set(
            json!({"agent": {"image": "a", "storage": storage, "resources": {"limits": {"cpu": 2, "memory": "4Gi"}}}}),
        );
    }
}

#[test]
fn rules_about_changes_hold() {
    let mut store = with_set(json!({"agent": {"image": "a"}, "snapshotCompatibilityClass": "c1"}));
    let reply = merge(&mut store, &demo(), json!({"spec": {"snapshotCompatibilityClass": "c2"}}));
    assert_eq!(refusal(&reply).0, 422);
    assert!(refusal(&reply).2.contains("snapshotCompatibilityClass is immutable once set"), "{}", refusal(&reply).2);
    let hibernation = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonHibernation", "metadata": {"name": "h"},
        "spec": {"podRef": {"name": "p"}, "desire": "Hibernate"},
    });
    sure(&post(&mut store, HIBERNATIONS, hibernation));
    sure(&merge(&mut store, &format!("{HIBERNATIONS}/h"), json!({"spec": {"desire": "Wake"}})));
    let reply = merge(&mut store, &format!("{HIBERNATIONS}/h"), json!({"spec": {"podRef": {"name": "q"}}}));
    assert!(refusal(&reply).2.contains("spec.podRef is immutable"), "{}", refusal(&reply).2);
}

#[test]
fn what_was_wrong_before_does_not_stop_a_finalizer() {
    let mut store = with_set(json!({"agent": {"image": "a", "mode": "clone"}}));
    let mut definition = store
        .get("customresourcedefinitions.apiextensions.k8s.io", "", "cocoonsets.cocoonset.cocoonstack.io")
        .expect("the definition")
        .clone();
    let mode = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/agent/properties/mode/enum";
    *definition.pointer_mut(mode).expect("the enumeration") = json!(["run"]);
    let default = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/agent/properties/mode/default";
    *definition.pointer_mut(default).expect("the default") = json!("run");
    sure(&store.install_crd(&definition));
    sure(&merge(&mut store, &demo(), json!({"metadata": {"finalizers": ["x/y"]}})));
    let reply = merge(&mut store, &demo(), json!({"spec": {"agent": {"mode": "sideways"}}}));
    assert_eq!(refusal(&reply).0, 422);
}

#[test]
fn duplicate_entries_of_a_map_list_are_refused() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let agents = json!([{"slot": 0, "role": "main"}, {"slot": 0, "role": "sub-agent"}]);
    let reply = merge(&mut store, &format!("{}/status", demo()), json!({"status": {"agents": agents}}));
    assert!(refusal(&reply).2.contains("agents[1]: Duplicate value"), "{}", refusal(&reply).2);
}

#[test]
fn a_definition_that_goes_takes_its_objects_along() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cocoonsets.cocoonset.cocoonstack.io";
    sure(&super::delete(&mut store, definition, Value::Null));
    super::pass(&mut store, 1);
    assert_eq!(get(&mut store, &demo()).status, 404);
    assert_eq!(store.objects("cocoonsets.cocoonset.cocoonstack.io", None).count(), 0);
}

#[test]
fn a_put_keeps_what_only_the_server_sets() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let mut object = sure(&get(&mut store, &demo()));
    object["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    object["metadata"]["generation"] = json!(77);
    object["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
    object["spec"]["suspend"] = json!(true);
    let written = sure(&put(&mut store, &demo(), object));
    assert_eq!(written["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(written["metadata"]["generation"], 2);
    assert_eq!(written["metadata"].get("deletionTimestamp"), None);
}

#[test]
fn events_have_two_faces() {
    let mut store = cluster();
    let (old, new) = ("/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events");
    let version = store.version().to_string();
    let watch = Request::new(Method::Get, new).with_query("watch", "1").with_query("resourceVersion", &version);
    let mut watch = store.open_watch(&watch).expect("a watch");
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "Created pod demo-0",
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "action": "Create", "reason": "Created",
        "regarding": {"kind": "CocoonSet", "name": "demo", "namespace": "default"},
        "reportingController": "cocoon", "reportingInstance": "one", "series": {"count": 1},
    });
    assert_eq!(sure(&post(&mut store, new, event))["note"], "Created pod demo-0");
    let patched = sure(&merge(&mut store, &format!("{new}/e"), json!({"series": {"count": 2}})));
    assert_eq!((&patched["note"], &patched["series"]["count"]), (&json!("Created pod demo-0"), &json!(2)));
    let seen = sure(&get(&mut store, &format!("{old}/e")));
    assert_eq!((&seen["apiVersion"], &seen["message"]), (&json!("v1"), &json!("Created pod demo-0")));
    assert_eq!((&seen["involvedObject"]["name"], seen.get("note")), (&json!("demo"), None));
    let told = store.poll_watch(&mut watch);
    assert_eq!(
        told.iter().map(|event| event.object["series"]["count"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    for (path, field) in [(old, "involvedObject.name=demo"), (new, "regarding.name=demo")] {
        let list = store.handle(&Request::new(Method::Get, path).with_query("fieldSelector", field));
        assert_eq!(super::names(&sure(&list)), ["e"], "{path}");
    }
}

/// Changes the definition of sets at this place of its schema.
fn redefine(store: &mut Store, pointer: &str, value: Value) {
    let name = "cocoonsets.cocoonset.cocoonstack.io";
    let mut definition =
        store.get("customresourcedefinitions.apiextensions.k8s.io", "", name).expect("the definition").clone();
    let place = format!("/spec/versions/0/schema/openAPIV3Schema{pointer}");
    *definition.pointer_mut(&place).expect("the place") = value;
    sure(&store.install_crd(&definition));
}

#[test]
fn a_rule_that_was_broken_before_does_not_stop_a_finalizer() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let rules = json!([{"rule": "self.agent.image != 'a'", "message": "not a"}]);
    redefine(&mut store, "/properties/spec/x-kubernetes-validations", rules);
    sure(&merge(&mut store, &demo(), json!({"metadata": {"finalizers": ["x/y"]}})));
    sure(&merge(&mut store, &format!("{}/status", demo()), json!({"status": {"phase": "Running"}})));
    let reply = merge(&mut store, &demo(), json!({"spec": {"suspend": true}}));
    assert!(refusal(&reply).2.contains("not a"), "{}", refusal(&reply).2);
}

#[test]
fn null_means_the_default_where_null_is_no_value() {
    let mut store = with_set(json!({"agent": {"image": "a", "os": null}, "nodePool": null}));
    let spec = sure(&get(&mut store, &demo()))["spec"].clone();
    assert_eq!((&spec["agent"]["os"], &spec["nodePool"]), (&json!("linux"), &json!("default")));
    let store = with_set(json!({"agent": {"image": "a", "network": null}}));
    let stored = store.objects("cocoonsets.cocoonset.cocoonstack.io", None).next().expect("the set");
    assert_eq!(stored["spec"]["agent"].get("network"), None, "and absence where there is no default");
}

#[test]
fn a_status_entry_that_was_wrong_before_does_not_stop_the_next_status() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let status = format!("{}/status", demo());
    let toolbox = |name: &str, kind: &str| json!({"name": name, "connType": kind});
    let written = json!({"status": {"toolboxes": [toolbox("a", "ssh"), toolbox("b", "ssh")]}});
    sure(&merge(&mut store, &status, written));
    let place = "/properties/status/properties/toolboxes/items/properties/connType/enum";
    redefine(&mut store, place, json!(["vnc"]));
    let kept = json!({"status": {"toolboxes": [toolbox("c", "vnc"), toolbox("a", "ssh")]}});
    sure(&merge(&mut store, &status, kept));
    let reply = merge(&mut store, &status, json!({"status": {"toolboxes": [toolbox("d", "ssh")]}}));
    assert_eq!(refusal(&reply).0, 422);
}

#[test]
fn a_changed_definition_does_not_break_watches() {
    let mut store = with_set(json!({"agent": {"image": "a"}}));
    let version = store.version().to_string();
    redefine(&mut store, "/properties/spec/description", json!("another"));
    sure(&merge(&mut store, &demo(), json!({"spec": {"suspend": true}})));
    let watch = Request::new(Method::Get, SETS).with_query("watch", "1").with_query("resourceVersion", &version);
    let mut watch = store.open_watch(&watch).expect("a watch");
    assert_eq!(store.poll_watch(&mut watch).iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["MODIFIED"]);
}
