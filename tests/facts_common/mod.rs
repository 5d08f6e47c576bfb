//! The recorded answers of a real API server, and the class of each.
// Each test that includes this uses a part of it.
#![allow(dead_code)]

use cocoon_operator::core::classify::classify;
use cocoon_operator::core::outcome::{Class, Outcome};
use cocoon_operator::core::wire::{Reply, Verb, retry_after};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Every recorded call and what it means, by class.
const EXPECTED: &[(Class, &str)] = &[
    (
        Class::Done,
        "a0-delete-namespace a4-status-patch-in-terminating-ns a7-delete-terminating-ns-again \
         a8-terminating-ns-conditions b8-noop-patch c11-generatename-create c3-delete-with-finalizer \
         c4c-spec-patch-on-terminating-cr c4d-delete-terminating-again c5-delete-bound-pod c7-force-delete-pod \
         c8-delete-unbound-pod c9-delete-no-finalizer-cr d0-quota-not-computed f2-podsecurity-warn \
         j6-ssa-deleted-creates j7-status-patch-recreated-old-uid j8-status-ssa-recreated-old-uid \
         k7-unknown-field-warn l12-watch-current-after-restart l13-watch-invalid-sendinitial l3-watch-pods-rv1 \
         l4-list-continue-expired l5-list-exact-compacted l6-watch-compacted l8-watch-future \
         l9-watch-labels-timeout n2b-keep-same-finalizers n3-remove-last-finalizer n6-finalizer-bad-name \
         o1-dryrun-create-cr o6-dryrun-pod p2-ssa-force q8-list-missing-ns x01-pod-in-fresh-ns",
    ),
    (
        Class::Conflict,
        "b1-put-stale-rv b2-put-status-stale-rv b4-put-wrong-uid b7-put-pod-stale-rv c4b-ssa-on-terminating-cr \
         g6-jsonpatch-set-rv h1-merge-stale-rv h3-merge-status-stale-rv h4-merge-pod-stale-rv j4-ssa-deleted-uid \
         p1-ssa-conflict p3-ssa-stale-rv p5-ssa-status-conflict s4-binding-conflict",
    ),
    (
        Class::PreconditionFailed,
        "g1-jsonpatch-test-cr g2-jsonpatch-test-pod g3-jsonpatch-test-rv g4-jsonpatch-test-missing \
         g5-jsonpatch-remove-missing h2-merge-wrong-uid h5-merge-pod-wrong-uid i1-delete-wrong-uid \
         i2-delete-wrong-uid-cr i3-delete-wrong-rv",
    ),
    (Class::AlreadyExists, "c1-already-exists-cr c2-already-exists-pod o3-dryrun-exists"),
    (Class::AlreadyExistsTerminating, "c4-create-while-terminating-cr c6-create-while-terminating-pod"),
    (
        Class::NotFound,
        "b5-put-missing c10-delete-missing g9-patch-missing i4-delete-missing-uid j1-status-patch-deleted \
         j2-status-put-deleted j3-status-ssa-deleted j5-finalizer-patch-deleted n4-get-after \
         o2-dryrun-not-stored q5-get-missing",
    ),
    (Class::NamespaceNotFound, "q1-pod-no-namespace q2-cr-no-namespace"),
    (Class::NotServed, "q3-unknown-resource q4-unknown-group"),
    (
        Class::NamespaceTerminating,
        "a1-pod-terminating-dryrun a2-pod-in-terminating-ns a3-cr-in-terminating-ns \
         a5-ssa-create-in-terminating-ns a6-generatename-terminating x03-pod-in-terminating-ns-quota-and-sa",
    ),
    (
        Class::QuotaExceeded,
        "d1-pod-over-quota d1b-pod-over-quota-two d2-pod-must-specify d3-cr-over-quota d3c-exists-and-over-quota \
         d5-quota-status-unknown-cr o4-dryrun-pod-over-quota",
    ),
    (Class::PodSecurityDenied, "f1-podsecurity"),
    (Class::AdmissionDenied, "m1-vap-default m2-vap-forbidden m3-vap-cr"),
    (Class::RbacDenied, "e1-rbac-pod e2-rbac-cr-status e3-rbac-list-cluster e4-anonymous"),
    (Class::ForbiddenOther, "d4-limitrange q6-pod-missing-sa q7-pod-missing-priorityclass x02-pod-no-default-sa"),
    (Class::Unauthorized, "e5-bad-token"),
    (
        Class::FinalizerOnDeleting,
        "n1-add-finalizer-terminating n2-add-finalizer-terminating-json n5-add-finalizer-terminating-pod",
    ),
    (Class::Immutable, "k11-pod-spec-immutable"),
    (
        Class::Invalid,
        "b3-put-no-rv k1-schema-max k10-pod-invalid k2-schema-required k3-schema-type k4-cel k5-cel-immutable \
         k8-bad-name k9-status-schema o5-dryrun-bad-value p4-ssa-no-manager s3-annotations-too-long",
    ),
    (Class::TooLarge, "s1-too-large s2-etcd-too-large"),
    (
        Class::BadRequest,
        "b6-put-name-mismatch g7-jsonpatch-malformed g8-patch-bad-ct k12-malformed-json k13-wrong-kind \
         k6-unknown-field-strict",
    ),
    (Class::Throttled, "r-apf-GET r-inflight-GET r-inflight-POST r4-evict-pdb r5-evict-pdb-unsynced"),
    (Class::Unavailable, "l1-watch-future-rv l7-watch-bad-rv m4-webhook-unreachable"),
    (
        Class::Expired,
        "l10-watch-events-compacted l11-watch-old-after-restart l2-watch-rv1 l4b-list-continue-expired-events",
    ),
];

/// One recorded call.
pub struct Fact {
    pub name: String,
    pub verb: Verb,
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Value,
}

impl Fact {
    pub fn all() -> Vec<Self> {
        let mut facts = Vec::new();
        for entry in std::fs::read_dir("tests/facts").expect("tests/facts").flatten() {
            let path = entry.path();
            let name = path.file_stem().expect("stem").to_string_lossy().into_owned();
            if path.extension().is_some_and(|e| e == "json") {
                let text = std::fs::read_to_string(&path).expect("readable");
                let fact: Value = serde_json::from_str(&text).expect("JSON");
                facts.extend(Self::read(name, &fact));
            }
        }
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        facts
    }
    fn read(name: String, fact: &Value) -> Option<Self> {
        let request = fact.get("request")?;
        let verb = verb_of(request["method"].as_str()?, request["path"].as_str()?);
        Some(Self {
            name,
            verb,
            status: fact["status"].as_u64()?.try_into().ok()?,
            retry_after: fact["headers"]["Retry-After"].as_str().and_then(retry_after),
            body: fact["body"].clone(),
        })
    }
    /// The bytes as they came over the wire: text as text, a watch's events one after another.
    pub fn wire(&self) -> Vec<u8> {
        match &self.body {
            Value::String(text) => text.clone().into_bytes(),
            Value::Array(events) => events.iter().map(|e| format!("{e}\n")).collect::<String>().into_bytes(),
            other => other.to_string().into_bytes(),
        }
    }
    pub fn judge(&self, body: Vec<u8>) -> Outcome {
        classify(self.verb, &Reply::Http { status: self.status, retry_after: self.retry_after, body, digest: None })
    }
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

fn verb_of(method: &str, path: &str) -> Verb {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let below = if parts.first() == Some(&"api") { parts.get(2..) } else { parts.get(3..) }.unwrap_or(&[]);
    // namespaces/NS/RESOURCE and RESOURCE are collections; namespaces/NS is itself an object.
    let collection = matches!(below, [_] | ["namespaces", _, _]);
    match method {
        "GET" if query.split('&').any(|q| q == "watch=1") => Verb::Watch,
        "GET" if collection => Verb::List,
        "GET" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        other => panic!("unknown method {other}"),
    }
}

/// The table, by name.
pub fn expected() -> BTreeMap<&'static str, Class> {
    let mut table = BTreeMap::new();
    for (class, names) in EXPECTED {
        for name in names.split_whitespace() {
            assert_eq!(table.insert(name, *class), None, "{name} stands twice in the table");
        }
    }
    table
}
