//! What a played fact needs: a server with a past, and what the recorded names stand for in it.

use super::server::{Answer, Server, read};
use cocoon_operator::core::wire::{JSON, JSON_PATCH, MERGE_PATCH, Method, Request};
use cocoon_operator::sim::store::{Match, Refusal, Rule, Store};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

pub const WIDGETS: &str = "/apis/example.test/v1/namespaces";

/// What controllers do in their time, they do within this.
const PATIENCE: Duration = Duration::from_secs(90);
/// What they do at once, within this.
const SOON: Duration = Duration::from_secs(3);
/// They know of a new kind after half a minute.
const TRIES: u32 = 20;
/// From one look at it to the next.
const LOOK: Duration = Duration::from_millis(50);

/// A server and the words to be replaced in a recorded request and its answer.
pub struct Stage {
    pub server: Box<dyn Server>,
    pub user: String,
    /// Recorded text, and what it is here.
    pub swaps: Vec<(String, String)>,
    /// A body for requests whose recorded one was left out for its size.
    pub body: Option<Value>,
    /// Messages are compared up to this text: what follows is Go's own, or that of a server that others use too.
    pub message_until: Option<&'static str>,
    /// The server finds several things wrong, in an order that is another one each time.
    pub any_order: bool,
    /// A real server has been told to refuse or to warn, and does so once its admission has been shown that.
    pub refuses: bool,
}

pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

impl Stage {
    /// A stage with this server, where the kind and the namespaces of the facts are.
    pub fn on(server: Box<dyn Server>) -> Self {
        let (user, swaps) = ("admin".to_owned(), Vec::new());
        Self { server, user, swaps, body: None, message_until: None, any_order: false, refuses: false }
    }

    /// The simulated server, for what can be had from no other.
    pub fn store(&mut self) -> &mut Store {
        self.server.store().expect("this fact is played to the simulated server alone")
    }
    /// A namespace that the simulated server does not have from the beginning.
    pub fn namespace(&mut self, name: &str) {
        if let Some(store) = self.server.store() {
            store.add_namespace(name);
        }
    }

    fn sure(&mut self, request: &Request) -> Value {
        let answer = self.server.ask("admin", request);
        assert!(answer.is_success(), "{request:?}: {} {}", answer.status, answer.body);
        answer.body
    }
    pub fn ask(&mut self, request: &Request) -> Answer {
        let user = self.user.clone();
        self.server.ask(&user, request)
    }
    pub fn get(&mut self, path: &str) -> Answer {
        self.server.ask("admin", &read(path))
    }
    pub fn post(&mut self, path: &str, object: Value) -> Value {
        self.sure(&Request::new(Method::Post, path).with_body(JSON, object))
    }
    pub fn merge(&mut self, path: &str, patch: Value) -> Value {
        self.sure(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, patch))
    }
    pub fn json_patch(&mut self, path: &str, patch: Value) -> Value {
        self.sure(&Request::new(Method::Patch, path).with_body(JSON_PATCH, patch))
    }
    pub fn delete(&mut self, path: &str) -> Value {
        self.sure(&Request::new(Method::Delete, path))
    }
    pub fn delete_with(&mut self, path: &str, options: Value) -> Value {
        self.sure(&Request::new(Method::Delete, path).with_body(JSON, options))
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
        let here = version_of(object);
        self.swap(&format!("\"{recorded}\""), &format!("\"{here}\""));
    }

    /// Lets controllers work until this value stands there.
    pub fn until(&mut self, path: &str, pointer: &str, value: impl Into<Value>) {
        let stands = self.within(PATIENCE, path, pointer, &value.into());
        stands.unwrap_or_else(|instead| panic!("{path} never has what is waited for at {pointer}: {instead}"));
    }
    /// The same of an object that is there, and is made anew until it is so: what a controller looked at before it knew of
    /// a kind, it looks at again minutes later.
    pub fn made_anew(&mut self, all: &str, name: &str, object: &Value, pointer: &str, value: impl Into<Value>) {
        let (at, value) = (format!("{all}/{name}"), value.into());
        for _ in 0..TRIES {
            if self.within(SOON, &at, pointer, &value).is_ok() {
                return;
            }
            self.delete(&at);
            self.post(all, object.clone());
        }
        self.until(&at, pointer, value);
    }
    /// What stands there instead, where it never does within this time.
    fn within(&mut self, longest: Duration, path: &str, pointer: &str, value: &Value) -> Result<(), Value> {
        let mut waited = Duration::ZERO;
        loop {
            let answer = self.get(path);
            if answer.body.pointer(pointer) == Some(value) {
                return Ok(());
            }
            if waited >= longest {
                return Err(answer.body);
            }
            self.pass();
            waited += LOOK;
        }
    }
    fn pass(&mut self) {
        self.server.pass(LOOK);
    }

    /// Has requests like these refused: the simulated server by a rule, a real one by what `objects` says to it.
    pub fn refuse(&mut self, when: Match, refuse: Refusal, objects: &[(&str, Value)]) {
        if let Some(store) = self.server.store() {
            store.add_rule(Rule::new(when, refuse));
            return;
        }
        for (path, object) in objects {
            self.post(path, object.clone());
            self.refuses = true;
        }
    }
    /// The same for all requests of a resource.
    pub fn refuse_resource(&mut self, resource: &str, refuse: Refusal, objects: &[(&str, Value)]) {
        let when = Match { resource: Some(resource.to_owned()), ..Match::default() };
        self.refuse(when, refuse, objects);
    }
    /// Waits until a real server does what it was told to: a dry run is answered with this status, with or without
    /// warnings.
    pub fn settle(&mut self, request: &Request, status: u16, warns: bool) {
        let dry = request.clone().with_query("dryRun", "All");
        let mut waited = Duration::ZERO;
        while self.refuses {
            let answer = self.ask(&dry);
            self.refuses = answer.status != status || answer.warnings.is_empty() == warns;
            assert!(waited < PATIENCE, "{}: {} {}", request.path, answer.status, answer.body);
            self.pass();
            waited += LOOK;
        }
    }
}

/// The resourceVersion of an object.
pub fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

/// The pod spec that most facts use.
pub fn plain() -> Value {
    json!({"containers": [{"name": "c", "image": "img"}]})
}

/// The pod spec of the quota facts.
pub fn asking(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]})
}
