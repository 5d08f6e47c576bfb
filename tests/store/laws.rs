//! What holds whatever is asked: no panic, versions that only grow, watches that tell the whole story, forks that are
//! independent.

use super::{cluster, pass};
use cocoon_operator::core::wire::{JSON, JSON_PATCH, MERGE_PATCH, Method, Request, STRATEGIC_MERGE_PATCH};
use cocoon_operator::sim::store::{Store, WatchKind};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z/.-]{0,6}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        "metadata|spec|status|labels|annotations|finalizers|ownerReferences|deletionTimestamp|uid|resourceVersion|name",
        "containers|tolerations|resources|requests|limits|cpu|agent|image|toolboxes|replicas|conditions|hard|used",
        "op|path|value|\\$patch|\\$deleteFromPrimitiveList/finalizers",
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let collection = prop_oneof![
        Just("/api/v1/namespaces/default/pods"),
        Just("/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets"),
        Just("/api/v1/namespaces"),
        Just("/api/v1/namespaces/default/resourcequotas"),
        Just("/api/v1/namespaces/default/configmaps"),
        Just("/api/v1/nodes"),
        Just("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ];
    (collection, prop_oneof!["", "/a", "/b", "/a/status", "/b/status", "/a/binding", "/a/nonsense", "/default"])
        .prop_map(|(collection, rest)| format!("{collection}{rest}"))
}

fn request() -> impl Strategy<Value = Request> {
    let method = prop_oneof![
        Just(Method::Get),
        Just(Method::Post),
        Just(Method::Put),
        Just(Method::Patch),
        Just(Method::Patch),
        Just(Method::Delete),
    ];
    let content =
        prop_oneof![Just(JSON), Just(JSON_PATCH), Just(MERGE_PATCH), Just(STRATEGIC_MERGE_PATCH), Just("text/plain")];
    let query = prop::collection::vec(
        ("limit|continue|dryRun|labelSelector|fieldSelector|resourceVersion", "[a-z0-9=,()!A ]{0,5}"),
        0..2,
    );
    let named = (json_value(), "a|b").prop_map(|(mut body, name)| {
        if let Some(map) = body.as_object_mut() {
            map.insert("metadata".to_owned(), json!({"name": name, "finalizers": map.get("finalizers")}));
        }
        body
    });
    (method, path(), query, content, prop_oneof![json_value(), named, plausible()]).prop_map(
        |(method, path, query, content, body)| {
            let mut request = Request::new(method, path).with_body(content, body);
            request.query = query;
            request
        },
    )
}

/// Bodies that often pass.
fn plausible() -> impl Strategy<Value = Value> {
    let finalizers = prop_oneof![Just(json!([])), Just(json!(["x/y"])), Just(Value::Null)];
    let node = prop_oneof![Just(Value::Null), Just(json!("a")), Just(json!("gone"))];
    (prop_oneof!["a", "b"], finalizers, node, 0..3_i64).prop_map(|(name, finalizers, node, n)| {
        json!({
            "metadata": {"name": name, "finalizers": finalizers, "labels": {"n": n.to_string()}},
            "spec": {
                "nodeName": node, "containers": [{"name": "c", "image": "i"}], "agent": {"image": "i", "replicas": n},
                "hard": {"pods": n.to_string()},
            },
            "propagationPolicy": if n == 1 { "Foreground" } else { "Background" }, "gracePeriodSeconds": n,
        })
    })
}

fn collections(store: &Store) -> Vec<String> {
    store.resources().map(|resource| resource.qualified()).collect()
}

/// What a client that lists once and then watches believes.
struct Follower {
    known: BTreeMap<(String, String), Value>,
    watch: cocoon_operator::sim::store::Watch,
}

impl Follower {
    fn new(store: &mut Store, path: &str) -> Self {
        let request = Request::new(Method::Get, path).with_query("watch", "1");
        Self { known: BTreeMap::new(), watch: store.open_watch(&request).expect("a watch") }
    }
    fn follow(&mut self, store: &Store) {
        for event in store.poll_watch(&mut self.watch) {
            let name = |field: &str| event.object["metadata"][field].as_str().unwrap_or("").to_owned();
            let key = (name("namespace"), name("name"));
            let fresh = match event.kind {
                WatchKind::Added => self.known.insert(key, event.object.as_ref().clone()).is_none(),
                WatchKind::Modified => self.known.insert(key, event.object.as_ref().clone()).is_some(),
                WatchKind::Deleted => self.known.remove(&key).is_some(),
                WatchKind::Bookmark | WatchKind::Error => false,
            };
            assert!(fresh, "an event that does not follow from the one before: {}", event.frame());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_the_store_answers_and_its_watches_are_true(
        steps in prop::collection::vec((request(), 0..30_i64), 1..40)
    ) {
        let mut store = cluster();
        let mut pods = Follower::new(&mut store, "/api/v1/pods");
        let mut configs = Follower::new(&mut store, "/api/v1/configmaps");
        for (request, seconds) in steps {
            let before = store.version();
            let reply = store.handle(&request);
            prop_assert!((200..600).contains(&reply.status));
            prop_assert!(store.version() >= before);
            if request.method == Method::Get {
                prop_assert_eq!(store.version(), before);
            }
            if !reply.is_success() {
                prop_assert_eq!(store.version(), before, "a refusal changed something: {} {}", request.path, reply.value());
            }
            if seconds > 20 {
                pass(&mut store, seconds);
            }
            pods.follow(&store);
            configs.follow(&store);
        }
        for (resource, follower) in [("pods", &pods), ("configmaps", &configs)] {
            let real: Vec<&Value> = store.objects(resource, None).collect();
            prop_assert_eq!(real, follower.known.values().collect::<Vec<_>>());
        }
        for resource in collections(&store) {
            for object in store.objects(&resource, None) {
                let uid = object["metadata"]["uid"].as_str().expect("a uid");
                prop_assert_eq!(store.by_uid(uid), Some(object));
            }
        }
    }
}

#[test]
fn forks_do_not_know_of_each_other() {
    let mut store = cluster();
    let mut fork = store.clone();
    fork.add_namespace("only-here");
    assert!(store.get("namespaces", "", "only-here").is_none());
    store.add_namespace("only-there");
    assert!(fork.get("namespaces", "", "only-there").is_none());
}

#[test]
fn the_same_requests_make_the_same_cluster() {
    let run = || {
        let mut store = cluster();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}});
        for _ in 0..5 {
            super::sure(&super::post(&mut store, "/api/v1/namespaces/default/configmaps", object.clone()));
        }
        store.objects("configmaps", None).cloned().collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_store_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Store>();
}
