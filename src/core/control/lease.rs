//! The Lease object: how it reads, and the requests that write it, each on the version that was read.

use crate::core::call::{Call, FIELD_MANAGER};
use crate::core::meta;
use crate::core::wire::{JSON, Method, Request, Verb};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Name of the lease (spec/observability.md 6).
pub const NAME: &str = "cocoon-operator.cocoonset.cocoonstack.io";
/// The resource, for metrics and faults.
pub const RESOURCE: &str = "leases";

/// A lease as one answer showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record(Value);

/// What a write says of the holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Who.
    pub holder: &'a str,
    /// For how long from each renewal, as others wait.
    pub duration: Duration,
    /// Wall clock, for people only: nobody of ours waits by it.
    pub now: Timestamp,
}

impl Record {
    /// Reads an answer; `None` where it is not the lease, or has no version to write on.
    pub fn of(object: &Value) -> Option<Self> {
        let is_ours = meta::text(object, "name") == NAME && !meta::text(object, "resourceVersion").is_empty();
        is_ours.then(|| Self(object.clone()))
    }
    /// Who holds it; nobody is the empty text.
    pub fn holder(&self) -> &str {
        self.spec().get("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }
    /// How long its holder may be silent; `None` where it does not say.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = self.spec().get("leaseDurationSeconds").and_then(Value::as_u64)?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
    /// What moves with each renewal.
    pub fn spec(&self) -> &Value {
        self.0.get("spec").unwrap_or(&Value::Null)
    }

    /// The spec under this claim. Whoever takes it over counts a transition.
    fn claimed(base: Option<&Self>, claim: &Claim<'_>) -> Value {
        let mut spec = base.and_then(|base| base.spec().as_object().cloned()).unwrap_or_default();
        let time = micro_time(claim.now);
        if base.map(Self::holder) != Some(claim.holder) {
            let before = spec.get("leaseTransitions").and_then(Value::as_i64);
            let transitions = base.map_or(0, |_| before.unwrap_or(0).saturating_add(1));
            spec.insert("acquireTime".to_owned(), json!(time));
            spec.insert("leaseTransitions".to_owned(), json!(transitions));
        }
        spec.insert("holderIdentity".to_owned(), json!(claim.holder));
        spec.insert("leaseDurationSeconds".to_owned(), json!(claim.duration.as_secs().max(1)));
        spec.insert("renewTime".to_owned(), json!(time));
        Value::Object(spec)
    }
}

/// Reads it.
pub fn read(namespace: &str) -> Call {
    api(Verb::Get, Request::new(Method::Get, one(namespace)))
}

/// Creates it.
pub fn create(namespace: &str, claim: &Claim<'_>) -> Call {
    let metadata = json!({ "name": NAME, "namespace": namespace });
    let request = Request::new(Method::Post, all(namespace));
    api(Verb::Create, written(request, metadata, Record::claimed(None, claim)))
}

/// Writes the claim over what was read, and only over that: the version is the precondition.
pub fn update(namespace: &str, base: &Record, claim: &Claim<'_>) -> Call {
    let mut metadata = meta::metadata(&base.0).as_object().cloned().unwrap_or_else(Map::new);
    metadata.remove("managedFields");
    let request = Request::new(Method::Put, one(namespace));
    api(Verb::Update, written(request, Value::Object(metadata), Record::claimed(Some(base), claim)))
}

fn written(request: Request, metadata: Value, spec: Value) -> Request {
    let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
    request.with_body(JSON, body).with_query("fieldManager", FIELD_MANAGER)
}

fn api(verb: Verb, request: Request) -> Call {
    Call::Api { verb, resource: RESOURCE, request }
}

fn all(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn one(namespace: &str) -> String {
    format!("{}/{NAME}", all(namespace))
}

/// As Kubernetes writes a MicroTime.
fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
