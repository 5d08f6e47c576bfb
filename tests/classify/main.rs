//! The classifier against every recorded answer of a real API server, against damaged ones, and against noise.

mod damage;
mod noise;
mod registry;
mod rules;

use cocoon_operator::core::classify::{MAX_MESSAGE, MAX_RETRY_AFTER, classify};
use cocoon_operator::core::outcome::{Answer, Class, Outcome};
use cocoon_operator::core::wire::{Reply, Verb, retry_after};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
struct Fact {
    name: String,
    verb: Verb,
    status: u16,
    retry_after: Option<Duration>,
    body: Value,
}

impl Fact {
    fn all() -> Vec<Self> {
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
    fn wire(&self) -> Vec<u8> {
        match &self.body {
            Value::String(text) => text.clone().into_bytes(),
            Value::Array(events) => events.iter().map(|e| format!("{e}\n")).collect::<String>().into_bytes(),
            other => other.to_string().into_bytes(),
        }
    }
    fn judge(&self, body: Vec<u8>) -> Outcome {
        classify(self.verb, &Reply::Http { status: self.status, retry_after: self.retry_after, body, digest: None })
    }
    fn succeeded(&self) -> bool {
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

fn expected() -> BTreeMap<&'static str, Class> {
    let mut table = BTreeMap::new();
    for (class, names) in EXPECTED {
        for name in names.split_whitespace() {
            assert_eq!(table.insert(name, *class), None, "{name} stands twice in the table");
        }
    }
    table
}

fn http(status: u16, body: impl Into<Vec<u8>>) -> Reply {
    Reply::Http { status, retry_after: None, body: body.into(), digest: None }
}

/// What holds of every outcome, whatever it was made of.
fn check_shape(outcome: &Outcome, at: &str) {
    let fine = matches!(outcome.class, Class::Done | Class::Present | Class::Absent);
    assert!(fine || !outcome.message.trim().is_empty(), "{at}: {} without words", outcome.class);
    assert!(outcome.message.len() <= MAX_MESSAGE, "{at}: {} bytes of message", outcome.message.len());
    assert!(
        outcome.retry_after.is_none_or(|d| !d.is_zero() && d <= MAX_RETRY_AFTER),
        "{at}: {:?}",
        outcome.retry_after
    );
    assert!(fine || outcome.answer == Answer::Nothing, "{at}: {} with an answer", outcome.class);
}

#[test]
fn every_recorded_answer_has_the_class_of_the_table() {
    let (table, facts) = (expected(), Fact::all());
    assert_eq!(facts.len(), 141);
    let seen: BTreeSet<&str> = facts.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(seen, table.keys().copied().collect::<BTreeSet<_>>(), "files and table differ");
    let wrong: Vec<String> = facts
        .iter()
        .map(|f| (f, f.judge(f.wire())))
        .inspect(|(f, outcome)| check_shape(outcome, &f.name))
        .filter(|(f, outcome)| outcome.class != table[f.name.as_str()])
        .map(|(f, o)| format!("{} ({:?}): {} instead of {}", f.name, f.verb, o.class, table[f.name.as_str()]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_server_returned_comes_along() {
    let facts = Fact::all();
    let outcome = |name: &str| facts.iter().find(|f| f.name == name).map(|f| f.judge(f.wire())).expect("recorded");
    let Answer::Object(pod) = outcome("c5-delete-bound-pod").answer else { panic!("no object") };
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(outcome("c9-delete-no-finalizer-cr").answer, Answer::Nothing);
    let Answer::List { items, continue_token, .. } = outcome("l4-list-continue-expired").answer else {
        panic!("no list")
    };
    assert!(!items.is_empty(), "{continue_token}");
    let second = Some(Duration::from_secs(1));
    for name in ["r-apf-GET", "r-inflight-POST", "l1-watch-future-rv"] {
        assert_eq!(outcome(name).retry_after, second, "{name}");
    }
    assert!(outcome("a2-pod-in-terminating-ns").message.contains("because it is being terminated"));
    assert_eq!(outcome("r-apf-GET").message, "HTTP 429: Too many requests, please try again later.");
}
