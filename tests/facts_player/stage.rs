//! What a played fact needs: a store with a past, and what the recorded names stand for in it.

use cocoon_operator::core::wire::{JSON, JSON_PATCH, MERGE_PATCH, Method, Request};
use cocoon_operator::sim::store::{Match, Refusal, Rule, Store, StoreReply};
use jiff::Timestamp;
use serde_json::{Value, json};

pub const WIDGETS: &str = "/apis/example.test/v1/namespaces";

/// A store and the words to be replaced in a recorded request and its answer.
pub struct Stage {
    pub store: Store,
    pub user: String,
    /// Recorded text, and what it is here.
    pub swaps: Vec<(String, String)>,
    /// A body for requests whose recorded one was left out for its size.
    pub body: Option<Value>,
    /// Messages are compared up to this text: what follows is Go's own.
    pub message_until: Option<&'static str>,
}

pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

impl Stage {
    pub fn new() -> Self {
        let mut store = Store::new(time("2026-11-30T08:00:00Z"));
        let crd = include_str!("../facts/widget-crd.json");
        let reply = store.install_crd(&serde_json::from_str(crd).expect("the CRD is JSON"));
        assert_eq!(reply.status, 201, "{:?}", reply.body);
        for name in ["f1-main", "f1-term", "f1-quota", "f2-quota", "n1", "lns"] {
            assert_eq!(store.add_namespace(name).status, 201);
        }
        Self { store, user: "admin".to_owned(), swaps: Vec::new(), body: None, message_until: None }
    }

    fn sure(reply: StoreReply) -> Value {
        assert!(reply.is_success(), "{} {}", reply.status, reply.value());
        reply.value().clone()
    }

    pub fn post(&mut self, path: &str, object: Value) -> Value {
        Self::sure(self.store.handle(&Request::new(Method::Post, path).with_body(JSON, object)))
    }
    pub fn merge(&mut self, path: &str, patch: Value) -> Value {
        Self::sure(self.store.handle(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, patch)))
    }
    pub fn json_patch(&mut self, path: &str, patch: Value) -> Value {
        Self::sure(self.store.handle(&Request::new(Method::Patch, path).with_body(JSON_PATCH, patch)))
    }
    pub fn delete(&mut self, path: &str) -> Value {
        Self::sure(self.store.handle(&Request::new(Method::Delete, path)))
    }
    pub fn delete_with(&mut self, path: &str, options: Value) -> Value {
        Self::sure(self.store.handle(&Request::new(Method::Delete, path).with_body(JSON, options)))
    }

    pub fn widget_in(&mut self, namespace: &str, name: &str, spec: Value, finalizers: &[&str]) -> Value {
        let object = json!({
            "apiVersion": "example.test/v1", "kind": "Widget",
            "metadata": {"name": name, "finalizers": finalizers}, "spec": spec,
        });
        self.post(&format!("{WIDGETS}/{namespace}/widgets"), object)
    }
    pub fn widget(&mut self, name: &str, size: i64) -> Value {
        self.widget_in("f1-main", name, json!({"size": size}), &[])
    }
    pub fn held_widget(&mut self, name: &str) -> Value {
        self.widget_in("f1-main", name, json!({"size": 3}), &["example.test/hold"])
    }
    pub fn pod_in(&mut self, namespace: &str, name: &str, spec: Value) -> Value {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        self.post(&format!("/api/v1/namespaces/{namespace}/pods"), object)
    }
    pub fn pod(&mut self, name: &str) -> Value {
        self.pod_in("f1-main", name, plain())
    }

    /// Says that a recorded text is another one here.
    pub fn swap(&mut self, recorded: &str, here: &str) {
        self.swaps.push((recorded.to_owned(), here.to_owned()));
    }
    /// The same for the uid of an object.
    pub fn uid(&mut self, recorded: &str, object: &Value) {
        let here = object["metadata"]["uid"].as_str().expect("a uid").to_owned();
        self.swap(recorded, &here);
    }
    /// The same for a quoted resourceVersion of an object.
    pub fn version(&mut self, recorded: &str, object: &Value) {
        let here = object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        self.swap(&format!("\"{recorded}\""), &format!("\"{here}\""));
    }
    /// Lets the controllers work for so many seconds.
    pub fn pass(&mut self, seconds: i64) {
        let then = self.store.now() + jiff::SignedDuration::from_secs(seconds);
        self.store.advance_to(then);
    }
    pub fn rule(&mut self, resource: &str, refuse: Refusal) {
        let when = Match { resource: Some(resource.to_owned()), ..Match::default() };
        self.store.add_rule(Rule::new(when, refuse));
    }
}

/// The pod spec that most facts use.
pub fn plain() -> Value {
    json!({"containers": [{"name": "c", "image": "img"}]})
}

/// The pod spec of the quota facts.
pub fn asking(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]})
}
