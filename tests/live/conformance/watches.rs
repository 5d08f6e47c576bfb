//! The watch protocol: what a watch shows of the writes made while it is open, from where it may begin, and how it ends.

use super::Case;
use super::Step;
use super::call::{Call, delete, delete_with, get, json_patch, merge, post};
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

fn watch(title: &str, path: String, calls: Vec<Call>) -> Step {
    Step::Watch { title: title.to_owned(), path, calls }
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
        watch("a life", format!("{SETS}?watch=true&resourceVersion=$rv:zero"), life),
        watch(
            "in and out of a selection",
            format!("{SETS}?watch=true&labelSelector=app%3Da&resourceVersion=$rv:zero"),
            moves,
        ),
        watch(
            "one by name",
            format!("{SETS}?watch=true&fieldSelector=metadata.name%3Dzero&resourceVersion=0"),
            vec![label(&format!("{SETS}/zero"), Some("c")), post(SETS, set("three", "a"))],
        ),
        watch("again from the first", format!("{SETS}?watch=true&resourceVersion=$first-rv:zero"), vec![]),
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
        watch("a life", format!("{PODS}?watch=true&resourceVersion=$rv:zero"), life),
        watch(
            "by node",
            format!("{PODS}?watch=true&fieldSelector=spec.nodeName%3Dnowhere-to-run&resourceVersion=$rv:zero"),
            bound,
        ),
        watch(
            "a collection deleted",
            format!("{PODS}?watch=true&resourceVersion=$rv:zero&labelSelector=app%3Dc"),
            vec![
                post(PODS, pod("three", "c", None)),
                post(PODS, pod("four", "c", None)),
                delete(format!("{PODS}?labelSelector=app%3Dc")),
            ],
        ),
    ]
}

fn begins() -> Vec<Step> {
    let change = || vec![merge(format!("{SETS}/zero"), json!({"spec": {"agent": {"image": "z"}}}))];
    vec![
        Step::Call(post(SETS, set("zero", "a")).says("a set")),
        watch("from nowhere in particular", format!("{SETS}?watch=true"), change()),
        watch("from the cache", format!("{SETS}?watch=true&resourceVersion=0"), vec![]),
        watch("from a version that is none", format!("{SETS}?watch=true&resourceVersion=x"), vec![]),
        watch("with a match and no version", format!("{SETS}?watch=true&resourceVersionMatch=NotOlderThan"), vec![]),
        watch(
            "first the list, then the news",
            format!(
                "{SETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            ),
            vec![],
        ),
        watch("the list without a match", format!("{SETS}?watch=true&sendInitialEvents=true"), vec![]),
        watch("for a second", format!("{SETS}?watch=true&resourceVersion=$rv:zero&timeoutSeconds=1"), vec![]),
        watch("a selector that is none", format!("{SETS}?watch=true&labelSelector=a%3D%3D%3Db"), vec![]),
        watch("of one object", format!("{SETS}/zero?watch=true&resourceVersion=0"), vec![]),
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
