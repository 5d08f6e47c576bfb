//! The recorded deletions: the same actions at the same moments, and per object the same events at about the same
//! time. Events of different objects within half a second came in random order and are not compared with each other.

use super::stage::{plain, time};
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::sim::store::{Settings, Store, StoreReply, Watch};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How far the moments may lie apart, in seconds.
const TOLERANCE: f64 = 0.6;

struct Replay {
    store: Store,
    start: Timestamp,
    namespace: String,
    owner: Value,
    watches: Vec<(&'static str, Watch)>,
    seen: Vec<(f64, Value)>,
}

fn seconds(at: f64) -> SignedDuration {
    SignedDuration::from_secs_f64(at)
}

impl Replay {
    /// The state before the deletion, as the recording had it.
    fn new(title: &str, start: Timestamp, namespace: &str) -> Self {
        let settings = Settings {
            ordered_namespace_deletion: !title.starts_with("OrderedNamespaceDeletion=false"),
            ..Settings::default()
        };
        // The pod collector's round in the recording was 13.76 s after the deletion.
        let mut store = Store::with_settings(start - seconds(6.24), settings);
        store.install_crd(&serde_json::from_str(include_str!("../facts/widget-crd.json")).expect("JSON"));
        store.add_namespace(namespace);
        let mut replay = Self {
            store,
            start,
            namespace: namespace.to_owned(),
            owner: Value::Null,
            watches: Vec::new(),
            seen: Vec::new(),
        };
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fake-node"}});
        replay.post("/api/v1/nodes", node);
        let held = if title.contains("no finalizer") { json!([]) } else { json!(["example.test/hold"]) };
        let widget = json!({
            "apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "cr", "finalizers": held},
            "spec": {"size": 3},
        });
        replay.owner = replay.post(&replay.widgets(), widget).value().clone();
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}});
        replay.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), config);
        let pod_finalizers =
            if title.contains("finalizer of its own") { json!(["example.test/pod-hold"]) } else { json!([]) };
        for (name, node) in [("bound-1", true), ("bound-2", true), ("unbound-1", false), ("unbound-2", false)] {
            assert_eq!(replay.create_pod(name, node, true, &pod_finalizers).status, 201);
        }
        replay.patch(&format!("{}/bound-1/status", replay.pods()), json!({"status": {"phase": "Running"}}));
        replay.store.set_now(start);
        replay.open_watches();
        replay
    }

    fn open_watches(&mut self) {
        let version = self.store.version().to_string();
        let namespaced = |plural: &str| format!("/api/v1/namespaces/{}/{plural}", self.namespace);
        let all = [
            ("Pod", self.pods()),
            ("Widget", self.widgets()),
            ("Namespace", format!("/api/v1/namespaces/{}", self.namespace)),
            ("ServiceAccount", namespaced("serviceaccounts")),
            ("ConfigMap", namespaced("configmaps")),
        ];
        for (kind, path) in all {
            let request =
                Request::new(Method::Get, path).with_query("watch", "1").with_query("resourceVersion", &version);
            self.watches.push((kind, self.store.open_watch(&request).expect("a watch")));
        }
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }
    fn widgets(&self) -> String {
        format!("/apis/example.test/v1/namespaces/{}/widgets", self.namespace)
    }
    fn post(&mut self, path: &str, object: Value) -> StoreReply {
        self.store.handle(&Request::new(Method::Post, path).with_body(JSON, object))
    }
    fn patch(&mut self, path: &str, patch: Value) -> StoreReply {
        self.store.handle(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, patch))
    }
    fn delete(&mut self, path: &str, options: Value) -> StoreReply {
        self.store.handle(&Request::new(Method::Delete, path).with_body(JSON, options))
    }

    fn create_pod(&mut self, name: &str, bound: bool, owned: bool, finalizers: &Value) -> StoreReply {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "finalizers": finalizers}, "spec": plain(),
        });
        if bound {
            pod["spec"]["nodeName"] = json!("fake-node");
        }
        if owned {
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "example.test/v1", "kind": "Widget", "name": "cr", "uid": self.owner["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }]);
        }
        self.post(&self.pods(), pod)
    }

    /// Lets the cluster run until this moment and notes what the watches saw. Steps are small, so that each event is
    /// noted at its own time.
    fn until(&mut self, at: f64) {
        let then = self.start + seconds(at);
        while let Some(due) = self.store.next_due().filter(|due| *due <= then) {
            self.store.advance_to(due);
            self.note();
        }
        self.store.advance_to(then);
        self.note();
    }

    fn note(&mut self) {
        let at = self.store.now().duration_since(self.start).as_secs_f64();
        for (kind, watch) in &mut self.watches {
            for event in self.store.poll_watch(watch) {
                self.seen.push((at, summary(kind, event.kind.as_str(), &event.object)));
            }
        }
    }

    /// The scheduler finds no node for a new pod.
    fn not_scheduled(&mut self, name: &str) {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        self.patch(&format!("{}/{name}/status", self.pods()), json!({"status": {"conditions": [condition]}}));
    }

    fn act(&mut self, what: &str) -> Option<StoreReply> {
        let (cr, pods) = (format!("{}/cr", self.widgets()), self.pods());
        let words: Vec<&str> = what.split(' ').collect();
        Some(match words.as_slice() {
            ["DELETE", "namespace"] => self.delete(&format!("/api/v1/namespaces/{}", self.namespace), Value::Null),
            ["DELETE", "CR", policy] => self.delete(&cr, json!({"propagationPolicy": policy})),
            ["status", "patch", ..] => self.patch(&format!("{cr}/status"), json!({"status": {"phase": "Deleting"}})),
            ["create", "pod"] => {
                let reply = self.create_pod("late", false, false, &json!([]));
                if reply.status == 201 {
                    self.not_scheduled("late");
                    self.delete(&format!("{pods}/late"), Value::Null);
                }
                reply
            }
            ["create", "pod", "owned", ..] => {
                let reply = self.create_pod("late-owned", false, true, &json!([]));
                self.not_scheduled("late-owned");
                reply
            }
            ["fake", "kubelet:", "DELETE", name, _] => {
                self.delete(&format!("{pods}/{name}"), json!({"gracePeriodSeconds": 0}))
            }
            ["operator:", "remove", ..] => self.patch(&cr, json!({"metadata": {"finalizers": null}})),
            ["remove", "finalizer", "of", name] => {
                self.patch(&format!("{pods}/{name}"), json!({"metadata": {"finalizers": null}}))
            }
            ["namespace", "gone"] => return None,
            other => panic!("no such action: {other:?}"),
        })
    }
}

/// An event as the recording tells it.
fn summary(kind: &str, event: &str, object: &Value) -> Value {
    let mut line = json!({"kind": kind, "type": event, "name": object["metadata"]["name"]});
    let mut put = |field: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            line[field] = value.clone();
        }
    };
    put("deletionTimestamp", object.pointer("/metadata/deletionTimestamp"));
    put("grace", object.pointer("/metadata/deletionGracePeriodSeconds"));
    put("finalizers", object.pointer("/metadata/finalizers"));
    put("node", object.pointer("/spec/nodeName"));
    put("phase", object.pointer("/status/phase"));
    put("specFinalizers", object.pointer("/spec/finalizers"));
    if let Some(conditions) =
        object.pointer("/status/conditions").and_then(Value::as_array).filter(|_| kind == "Namespace")
    {
        let short = |c: &Value| json!([c["type"], c["status"], c["reason"], c["message"]]);
        line["conditions"] = conditions.iter().map(short).collect();
    }
    line
}

type Story = BTreeMap<(String, String), Vec<(f64, Value)>>;

fn per_object(events: impl Iterator<Item = (f64, Value)>) -> Story {
    let mut story = Story::new();
    for (at, event) in events {
        let key = |field: &str| event[field].as_str().unwrap_or("").to_owned();
        story.entry((key("kind"), key("name"))).or_default().push((at, event));
    }
    story
}

/// When the deletion was, to the second: the first deletionTimestamp without its grace.
fn start_of(lines: &[Value]) -> Timestamp {
    let first = lines.iter().find(|line| line.get("deletionTimestamp").is_some()).expect("a deletion");
    let at = time(first["deletionTimestamp"].as_str().expect("a time"));
    let grace = first["grace"].as_i64().unwrap_or(0);
    at - SignedDuration::from_secs(grace) + SignedDuration::from_millis(300)
}

fn reproduce(log: &str) {
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let title = lines[0]["title"].as_str().expect("a title");
    let of_namespace = lines.iter().find(|line| line["kind"] == "Namespace").and_then(|line| line["name"].as_str());
    let mut replay = Replay::new(title, start_of(&lines), of_namespace.unwrap_or("f1-del"));
    for line in lines.iter().filter(|line| line["what"] != "event" && line.get("what").is_some()) {
        let at = line["t"].as_f64().expect("a time");
        let (what, status) = (line["what"].as_str().expect("an action"), &line["status"]);
        replay.until(if what.starts_with("DELETE") { 0.0 } else { at });
        if let Some(reply) = replay.act(what) {
            assert_eq!(&json!(reply.status), status, "{title}: {what}");
        }
        replay.note();
    }
    replay.until(60.0);
    let recorded = lines.iter().filter(|line| line["what"] == "event").map(|line| {
        let mut event = line.clone();
        for field in ["t", "what", "rv"] {
            event.as_object_mut().expect("an object").remove(field);
        }
        (line["t"].as_f64().expect("a time"), event)
    });
    let (recorded, seen) = (per_object(recorded), per_object(std::mem::take(&mut replay.seen).into_iter()));
    assert_eq!(recorded.keys().collect::<Vec<_>>(), seen.keys().collect::<Vec<_>>(), "{title}: objects");
    for (object, wanted) in &recorded {
        let got = &seen[object];
        let bare = |events: &[(f64, Value)]| events.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>();
        assert_eq!(bare(wanted), bare(got), "{title}: events of {object:?}\n{got:#?}");
        for ((expected, _), (at, event)) in wanted.iter().zip(got) {
            assert!((expected - at).abs() < TOLERANCE, "{title}: recorded at {expected}, here at {at}: {event}");
        }
    }
}

macro_rules! logs {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            reproduce(include_str!(concat!("../facts/", $file)));
        })*
    };
}

logs! {
    background_without_finalizer: "events-cr-bg-nofin.jsonl",
    background_with_finalizer: "events-cr-bg.jsonl",
    foreground: "events-cr-fg.jsonl",
    orphan: "events-cr-orphan.jsonl",
    namespace_all_at_once: "events-ns-legacy-order.jsonl",
    namespace_in_order: "events-ns-ordered.jsonl",
    namespace_with_held_pods: "events-ns-podfin.jsonl",
}
