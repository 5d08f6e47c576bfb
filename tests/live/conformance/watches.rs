//! The watch protocol: what a watch shows of the writes made while it is open, from where it may begin, and how it ends.

use super::call::{Call, delete, delete_with, get, json_patch, merge, post};
use super::{Case, End, Step};
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonsets";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "watch-sets".to_owned(), steps: sets() },
        Case { name: "watch-pods".to_owned(), steps: pods() },
        Case { name: "watch-begins".to_owned(), steps: begins() },
    ]
}

fn set(name: &str, app: &str) -> Value {
    json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {"name": name, "labels": {"app": app}}, "spec": {"agent": {"image": "a"}}})
}

fn watch(title: &str, path: String, calls: Vec<Call>, end: End) -> Step {
    Step::Watch { title: title.to_owned(), path, calls, end }
}

/// The watch has shown everything when it shows this set.
fn seen_set(name: &str, app: &str) -> End {
    End::Seen(Box::new(post(SETS, set(name, app))))
}

/// The watch has shown everything when it shows this change.
fn seen_label(name: &str, app: &str) -> End {
    End::Seen(Box::new(label(&format!("{SETS}/{name}"), Some(app))))
}

fn label(at: &str, app: Option<&str>) -> Call {
    merge(at, json!({"metadata": {"labels": {"app": app}}}))
}

fn sets() -> Vec<Step> {
    let one = format!("{SETS}/one");
    let life = vec![
        post(SETS, set("one", "a")),
        label(&one, Some("b")),
        label(&one, Some("b")),
        merge(format!("{one}/status"), json!({"status": {"phase": "Running"}})),
        json_patch(&one, json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.test/hold"]}])),
        delete(&one),
        json_patch(&one, json!([{"op": "remove", "path": "/metadata/finalizers"}])),
    ];
    let moves = vec![
        post(SETS, set("two", "b")),
        label(&format!("{SETS}/two"), Some("a")),
        merge(format!("{SETS}/two"), json!({"spec": {"agent": {"image": "b"}}})),
        label(&format!("{SETS}/two"), None),
        merge(format!("{SETS}/two"), json!({"spec": {"agent": {"image": "c"}}})),
        label(&format!("{SETS}/two"), Some("a")),
        delete(format!("{SETS}/two")),
    ];
    vec![
        Step::Call(post(SETS, set("zero", "a")).says("one that is there before")),
        watch("a life", format!("{SETS}?watch=true&resourceVersion=$rv:zero"), life, seen_set("seen-one", "z")),
        watch(
            "in and out of a selection",
            format!("{SETS}?watch=true&labelSelector=app%3Da&resourceVersion=$rv:zero"),
            moves,
            seen_set("seen-two", "a"),
        ),
        watch(
            "one by name",
            format!("{SETS}?watch=true&fieldSelector=metadata.name%3Dzero&resourceVersion=0"),
            vec![label(&format!("{SETS}/zero"), Some("c")), post(SETS, set("three", "a"))],
            seen_label("zero", "d"),
        ),
        watch(
            "again from the first",
            format!("{SETS}?watch=true&resourceVersion=$first-rv:zero"),
            vec![],
            seen_set("seen-three", "z"),
        ),
    ]
}

fn pods() -> Vec<Step> {
    let pod = |name: &str, app: &str, node: Option<&str>| {
        let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "agent", "image": "a"}]}});
        if let Some(node) = node {
            object["spec"]["nodeName"] = json!(node);
        }
        object
    };
    let seen = |name: &str, app: &str, node: Option<&str>| End::Seen(Box::new(post(PODS, pod(name, app, node))));
    let one = format!("{PODS}/one");
    let life = vec![
        post(PODS, pod("one", "a", Some("nowhere-to-run"))),
        merge(format!("{one}/status"), json!({"status": {"phase": "Running"}})),
        delete(&one),
        delete_with(&one, json!({"gracePeriodSeconds": 0})),
    ];
    let bound = vec![
        post(PODS, pod("two", "b", None)),
        post(
            format!("{PODS}/two/binding"),
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "two"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere-to-run"}}),
        ),
        delete_with(format!("{PODS}/two"), json!({"gracePeriodSeconds": 0})),
    ];
    vec![
        Step::Call(post(PODS, pod("zero", "z", None)).says("one that is there before")),
        watch("a life", format!("{PODS}?watch=true&resourceVersion=$rv:zero"), life, seen("seen-one", "z", None)),
        watch(
            "by node",
            format!("{PODS}?watch=true&fieldSelector=spec.nodeName%3Dnowhere-to-run&resourceVersion=$rv:zero"),
            bound,
            seen("seen-two", "z", Some("nowhere-to-run")),
        ),
        watch(
            "a collection deleted",
            format!("{PODS}?watch=true&resourceVersion=$rv:zero&labelSelector=app%3Dc"),
            vec![
                post(PODS, pod("three", "c", None)),
                post(PODS, pod("four", "c", None)),
                delete(format!("{PODS}?labelSelector=app%3Dc")),
            ],
            seen("seen-three", "c", None),
        ),
    ]
}

fn begins() -> Vec<Step> {
    // Refused, or ended by the server.
    let closed = |title: &str, query: &str| watch(title, format!("{SETS}?watch=true{query}"), vec![], End::Closed);
    let change = || vec![merge(format!("{SETS}/zero"), json!({"spec": {"agent": {"image": "z"}}}))];
    vec![
        Step::Call(post(SETS, set("zero", "a")).says("a set")),
        watch("from nowhere in particular", format!("{SETS}?watch=true"), change(), seen_set("seen-one", "z")),
        watch("from the cache", format!("{SETS}?watch=true&resourceVersion=0"), vec![], seen_set("seen-two", "z")),
        closed("from a version that is none", "&resourceVersion=x"),
        closed("with a match and no version", "&resourceVersionMatch=NotOlderThan"),
        watch(
            "first the list, then the news",
            format!(
                "{SETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            ),
            vec![],
            End::Listed,
        ),
        closed("the list without a match", "&sendInitialEvents=true"),
        closed("for a second", "&resourceVersion=$rv:seen-two&timeoutSeconds=1"),
        closed("a selector that is none", "&labelSelector=a%3D%3D%3Db"),
        watch("of one object", format!("{SETS}/zero?watch=true&resourceVersion=0"), vec![], End::Closed),
        Step::Call(
            get(format!("{SETS}?resourceVersion=$rv:zero&resourceVersionMatch=NotOlderThan")).says("a list not older"),
        ),
        Step::Call(
            get(format!("{SETS}?resourceVersion=$rv:zero&resourceVersionMatch=Exact")).says("a list at a version"),
        ),
        Step::Call(
            get(format!("{SETS}?resourceVersion=$first-rv:zero&resourceVersionMatch=Exact")).says("a list of the past"),
        ),
        Step::Call(get(format!("{SETS}?continue=nonsense")).says("a page that is none")),
    ]
}
