//! Definitions with several versions, with names that others have, and with fields to select by.

use super::{cluster, delete, get, merge, names, pass, post, put, refusal, sure};
use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::sim::store::Store;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ONE: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.test";

fn path(version: &str) -> String {
    format!("/apis/example.test/{version}/namespaces/default/things")
}

fn version(name: &str, served: bool, storage: bool, fields: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!({
        "name": name, "served": served, "storage": storage,
        "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
        }},
    })
}

fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {
            "group": "example.test", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    })
}

fn two() -> Store {
    let mut store = cluster();
    let versions = [version("v1", true, false, &["color"]), version("v2", true, true, &["color", "size"])];
    sure(&post(&mut store, DEFINITIONS, definition(&versions)));
    store
}

fn thing(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("example.test/{version}"), "kind": "Thing", "metadata": {"name": name}, "spec": spec,
    })
}

#[test]
fn only_versions_that_are_served_are_served() {
    let mut store = cluster();
    let versions = [
        version("v1", false, true, &["color"]),
        version("v2", true, false, &["color"]),
        version("v3", false, false, &["color"]),
    ];
    sure(&post(&mut store, DEFINITIONS, definition(&versions)));
    let answers = ["v1", "v2", "v3"].map(|version| get(&mut store, &path(version)).status);
    assert_eq!(answers, [404, 200, 404]);
    let made = sure(&post(&mut store, &path("v2"), thing("v2", "a", &json!({"color": "red"}))));
    assert_eq!(made["apiVersion"], "example.test/v2");
    let stored = store.get("things.example.test", "default", "a").expect("it is stored");
    assert_eq!(stored["apiVersion"], "example.test/v1", "in the version for that");
    let patched = sure(&merge(&mut store, &format!("{}/a", path("v2")), json!({"spec": {"color": "blue"}})));
    assert_eq!((&patched["apiVersion"], &patched["spec"]["color"]), (&json!("example.test/v2"), &json!("blue")));
    // The namespace's end reaches what no served version is stored in.
    sure(&post(&mut store, "/api/v1/namespaces", json!({"metadata": {"name": "n"}})));
    sure(&post(&mut store, "/apis/example.test/v2/namespaces/n/things", thing("v2", "b", &json!({}))));
    delete(&mut store, "/api/v1/namespaces/n", Value::Null);
    pass(&mut store, 30);
    assert_eq!(get(&mut store, "/api/v1/namespaces/n").status, 404);
}

#[test]
fn one_object_is_seen_in_each_version() {
    let mut store = two();
    sure(&post(&mut store, &path("v2"), thing("v2", "a", &json!({"color": "red", "size": "big"}))));
    let seen = sure(&get(&mut store, &format!("{}/a", path("v1"))));
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!("example.test/v1"), &json!({"color": "red"})));
    let list = sure(&get(&mut store, &path("v1")));
    assert_eq!((&list["apiVersion"], &list["items"][0]["apiVersion"]), (&seen["apiVersion"], &seen["apiVersion"]));
    let wrong = post(&mut store, &path("v1"), thing("v2", "b", &json!({})));
    assert_eq!(wrong.status, 400, "{}", wrong.value());
    let mut next = seen;
    next["spec"]["color"] = json!("blue");
    let put = sure(&put(&mut store, &format!("{}/a", path("v1")), next));
    assert_eq!((&put["apiVersion"], &put["metadata"]["generation"]), (&json!("example.test/v1"), &json!(2)));
    assert_eq!(store.get("things.example.test", "default", "a").expect("stored")["apiVersion"], "example.test/v2");
    let mut watch = Request::new(Method::Get, path("v1"));
    watch.query.push(("watch".to_owned(), "true".to_owned()));
    let mut watch = store.open_watch(&watch).expect("it is watched");
    let events = store.poll_watch(&mut watch);
    assert_eq!(events[0].object["apiVersion"], "example.test/v1");
    assert_eq!(store.bookmark(&watch).object["apiVersion"], "example.test/v1");
}

#[test]
fn what_was_ever_stored_is_remembered() {
    let mut store = two();
    let mut next = sure(&get(&mut store, ONE));
    next["spec"]["versions"][0]["storage"] = json!(true);
    next["spec"]["versions"][1]["storage"] = json!(false);
    let next = sure(&put(&mut store, ONE, next));
    assert_eq!(next["status"]["storedVersions"], json!(["v2", "v1"]));
}

fn named(plural: &str, kind: &str, short: &[&str]) -> Value {
    let mut definition = definition(&[version("v1", true, true, &[])]);
    definition["metadata"]["name"] = json!(format!("{plural}.example.test"));
    definition["spec"]["names"] = json!({
        "plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind, "listKind": format!("{kind}List"),
        "shortNames": short,
    });
    definition
}

#[test]
fn names_that_another_definition_has_are_not_accepted() {
    let mut store = cluster();
    sure(&post(&mut store, DEFINITIONS, named("things", "Thing", &["th"])));
    for (second, reason, message) in [
        (named("others", "Thing", &[]), "ListKindConflict", "\"ThingList\" is already in use"),
        (named("others", "Other", &["th"]), "ShortNamesConflict", "\"th\" is already in use"),
        (named("others", "Other", &["thing", "th"]), "ShortNamesConflict", "[\"thing\" is already in use, \"th\""),
    ] {
        let made = sure(&post(&mut store, DEFINITIONS, second));
        let conditions = &made["status"]["conditions"];
        assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("NamesAccepted"), &json!("False")));
        assert_eq!(conditions[0]["reason"], reason);
        assert!(conditions[0]["message"].as_str().expect("text").starts_with(message), "{conditions}");
        assert_eq!((&conditions[1]["status"], &conditions[1]["reason"]), (&json!("False"), &json!("NotAccepted")));
        let others = "/apis/example.test/v1/namespaces/default/others";
        assert_eq!(get(&mut store, others).status, 404, "it is not served");
        delete(&mut store, &format!("{DEFINITIONS}/others.example.test"), Value::Null);
        pass(&mut store, 10);
    }
    assert_eq!(get(&mut store, &path("v1")).status, 200, "the first still is");
}

#[test]
fn names_that_become_free_are_given_to_who_waits() {
    let mut store = cluster();
    sure(&post(&mut store, DEFINITIONS, named("things", "Thing", &[])));
    sure(&post(&mut store, DEFINITIONS, named("others", "Thing", &[])));
    delete(&mut store, ONE, Value::Null);
    pass(&mut store, 10);
    let second = sure(&get(&mut store, &format!("{DEFINITIONS}/others.example.test")));
    assert_eq!(second["status"]["conditions"][0]["status"], "True", "{second}");
    assert_eq!(get(&mut store, "/apis/example.test/v1/namespaces/default/others").status, 200);
}

#[test]
fn selectable_fields_select() {
    let mut store = cluster();
    let mut one = version("v1", true, true, &["color"]);
    one["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    sure(&post(&mut store, DEFINITIONS, definition(&[one])));
    for (name, color) in [("a", "red"), ("b", "blue")] {
        sure(&post(&mut store, &path("v1"), thing("v1", name, &json!({"color": color}))));
    }
    let mut by = |field: &str| {
        let mut request = Request::new(Method::Get, path("v1"));
        request.query.push(("fieldSelector".to_owned(), field.to_owned()));
        store.handle(&request)
    };
    assert_eq!(names(&sure(&by("spec.color=red"))), ["a"]);
    assert_eq!(names(&sure(&by("spec.color!=red"))), ["b"]);
    assert_eq!(refusal(&by("spec.size=1")).2, "field label not supported: spec.size");
}
