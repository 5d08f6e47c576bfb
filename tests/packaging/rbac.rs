//! The operator may do exactly what it does: the permissions of deploy/ against the requests that the code sends.

use super::one;
use cocoon_operator::core::action::{Action, ActionKind, Change, Live, MetaPatch, Question, Subject, Want};
use cocoon_operator::core::announcement::Announcement;
use cocoon_operator::core::call::{Call, call};
use cocoon_operator::core::control::announcer::{Announcer, Moment};
use cocoon_operator::core::control::kinds::Kind;
use cocoon_operator::core::control::lease;
use cocoon_operator::core::outcome::{Class, Outcome};
use cocoon_operator::core::rule::{Because, RuleId};
use cocoon_operator::core::wire::Verb;
use cocoon_operator::shell::watch;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Group, resource with subresource, verb, and the one name that it is for where it is for one.
type Permission = (String, String, String, String);

fn permission(group: &str, resource: &str, verb: &str) -> Permission {
    (group.to_owned(), resource.to_owned(), verb.to_owned(), String::new())
}

/// What a path is about, as authorization sees it.
fn resource_of(path: &str) -> (String, String) {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, rest) = match parts[..] {
        ["api", "v1", ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => panic!("{path}"),
    };
    let resource = match rest {
        ["namespaces", _, resource, _, subresource] => format!("{resource}/{subresource}"),
        ["namespaces", _, resource] | ["namespaces", _, resource, _] => (*resource).to_owned(),
        [resource] | [resource, _] => (*resource).to_owned(),
        _ => panic!("{path}"),
    };
    (group.to_owned(), resource)
}

/// Wishes of this kind, every form that goes to another address. A new kind, or a new thing to read live, does not
/// compile until it is here.
fn wishes(kind: ActionKind) -> Vec<Want> {
    let change = |change: Change| vec![Want::Change(change)];
    let (pod, uid) = ("demo-0".to_owned(), "u".to_owned());
    let finalizers = vec!["f".to_owned()];
    match kind {
        ActionKind::ReadLive => {
            let first = Live::Object;
            let after = |live: &Live| match live {
                Live::Object => Some(Live::Pod("demo-0".to_owned())),
                Live::Pod(_) => Some(Live::Pods),
                Live::Pods => Some(Live::Namespace),
                Live::Namespace => Some(Live::Node("node-a".to_owned())),
                Live::Node(_) => None,
            };
            let all = std::iter::successors(Some(first), after);
            all.map(|live| Want::Ask(Question::ReadLive(live))).collect()
        }
        ActionKind::AddFinalizer => change(Change::AddFinalizer { tested: None, finalizers }),
        ActionKind::RemoveFinalizer => change(Change::RemoveFinalizer { tested: Some(finalizers), finalizers: vec![] }),
        ActionKind::CreatePod => {
            let create = |dry_run| Change::CreatePod { pod: pod.clone(), manifest: json!({}), dry_run };
            [true, false].map(create).map(Want::Change).to_vec()
        }
        ActionKind::DeletePod => change(Change::DeletePod { pod, uid, resource_version: None }),
        ActionKind::PatchPod => change(Change::PatchPod { pod, uid, patch: MetaPatch::default() }),
        ActionKind::PatchObject => {
            change(Change::PatchObject { annotations: Default::default(), resource_version: "1".to_owned() })
        }
        ActionKind::PatchStatus => {
            change(Change::PatchStatus { status: json!({}), dropped: vec![], resource_version: "1".to_owned() })
        }
        // The registry's, the announcer's, or nobody's.
        ActionKind::ProbeSnapshot
        | ActionKind::DeleteSnapshot
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => vec![],
    }
}

/// What the core's wishes need, for either custom resource.
fn of_the_core() -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    for kind in ["CocoonSet", "CocoonHibernation"] {
        let (namespace, name, uid) = ("ns".to_owned(), "demo".to_owned(), "u".to_owned());
        let subject = Subject { kind, namespace, name, uid };
        for want in ActionKind::ALL.iter().flat_map(|kind| wishes(*kind)) {
            let because = Because::Borrowed("a test");
            let action = Action { want, rule: RuleId("test/any".into()), because, also: vec![] };
            needed.insert(of_call(&call(&subject, &action).expect("a call")));
        }
    }
    needed
}

/// What a request of this call needs.
fn of_call(call: &Call) -> Permission {
    let Call::Api { verb, request, .. } = call else { panic!("{call:?}") };
    let (group, resource) = resource_of(&request.path);
    permission(&group, &resource, verb.label())
}

/// What is announced, for either custom resource: said once, and counted up where it is said again.
fn of_the_announcer() -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    for kind in ["CocoonSet", "CocoonHibernation"] {
        let (namespace, name, uid) = ("ns".to_owned(), "demo".to_owned(), "u".to_owned());
        let subject = Subject { kind, namespace, name, uid };
        let (reason, message) = ("Tested".to_owned(), "it is".to_owned());
        let want = Want::Announce(Announcement { warning: false, reason, message, related: None });
        let because = Because::Borrowed("a test");
        let action = Action { want, rule: RuleId("test/any".into()), because, also: vec![] };
        let mut announcer = Announcer::new("pod");
        let at = Moment { now: jiff::Timestamp::UNIX_EPOCH, mono: Duration::ZERO };
        for _ in 0..2 {
            let sending = announcer.speak(&subject, &action, at).expect("an announcement").expect("one is sent");
            needed.insert(of_call(&sending.call));
            announcer.answered(sending, &Outcome::of(Class::Done), Duration::ZERO);
        }
    }
    needed
}

/// What keeps the lease: it is read, created, and from then on written over what was read.
fn of_the_election() -> BTreeSet<Permission> {
    let claim = lease::Claim { holder: "a", duration: Duration::from_secs(15), now: jiff::Timestamp::UNIX_EPOCH };
    let held = json!({"metadata": {"name": lease::NAME, "resourceVersion": "1"}});
    let held = lease::Record::of(&held).expect("the lease");
    let calls = [lease::read("ns"), lease::create("ns", &claim), lease::update("ns", &held, &claim)];
    let named = |call: &Call| {
        let (group, resource, verb, _) = of_call(call);
        // A create has no name to be allowed by.
        let name = if verb == "create" { "" } else { lease::NAME };
        (group, resource, verb, name.to_owned())
    };
    calls.iter().map(named).collect()
}

/// What is listed and watched.
fn of_the_watches() -> BTreeSet<Permission> {
    let both = |kind: &Kind| {
        let (group, resource) = resource_of(watch::path(*kind));
        [Verb::List, Verb::Watch].map(|verb| permission(&group, &resource, verb.label()))
    };
    Kind::ALL.iter().flat_map(both).collect()
}

/// Who names an owner whose deletion waits for the pod has to be allowed to write the owner's finalizers, where an
/// admission plugin asks for that. Read off a pod that the core wants.
fn of_owner_references() -> BTreeSet<Permission> {
    let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {"name": "demo", "namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "5",
            "creationTimestamp": "2026-08-03T12:00:00Z", "finalizers": ["cocoonset.cocoonstack.io/finalizer"]},
        "spec": {"agent": {"image": "img:1"}}});
    let seen = json!({"apiVersion": "debug.cocoonset.cocoonstack.io/v1alpha1", "kind": "Observation",
        "snapshots": {"vk-ns-demo-0": {"hibernate": "absent"}}});
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_cocoon-operator"))
        .args(["explain", "-f", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    write!(program.stdin.take().expect("stdin"), "{set}\n---\n{seen}\n").expect("it reads");
    let output = program.wait_with_output().expect("it ends");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let actions = told[0]["actions"].as_array().expect("actions").iter();
    let pods: Vec<&Value> = actions.map(|action| &action["pod"]).filter(|pod| pod.is_object()).collect();
    assert!(!pods.is_empty(), "no pod is created: {told}");
    let owners = pods.iter().flat_map(|pod| pod["metadata"]["ownerReferences"].as_array().expect("owners"));
    let blocking = owners.filter(|owner| owner["blockOwnerDeletion"] == true);
    blocking
        .map(|owner| {
            let group = owner["apiVersion"].as_str().and_then(|version| version.split_once('/')).expect("a group").0;
            let plural = format!("{}s", owner["kind"].as_str().expect("a kind").to_lowercase());
            permission(group, &format!("{plural}/finalizers"), "update")
        })
        .collect()
}

/// Every permission that a role gives.
fn given(kind: &str) -> BTreeSet<Permission> {
    let role = one(kind);
    let mut given = BTreeSet::new();
    let list = |rule: &Value, key: &str| -> Vec<String> {
        let items = rule.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        items.iter().map(|item| item.as_str().expect("text").to_owned()).collect()
    };
    for rule in role["rules"].as_array().expect("rules") {
        let mut names = list(rule, "resourceNames");
        if names.is_empty() {
            names.push(String::new());
        }
        for group in list(rule, "apiGroups") {
            for resource in list(rule, "resources") {
                for verb in list(rule, "verbs") {
                    let all = names.iter().map(|name| (group.clone(), resource.clone(), verb.clone(), name.clone()));
                    all.for_each(|one| assert!(given.insert(one.clone()), "{one:?} is given twice"));
                }
            }
        }
    }
    given
}

#[test]
fn the_whole_cluster_is_open_to_what_the_code_sends_and_to_nothing_else() {
    let mut needed = of_the_core();
    needed.extend(of_the_watches());
    needed.extend(of_owner_references());
    needed.extend(of_the_announcer());
    assert_eq!(given("ClusterRole"), needed);
}

#[test]
fn in_its_own_namespace_it_has_its_lease() {
    assert_eq!(given("Role"), of_the_election());
}

#[test]
fn nothing_is_given_by_a_star() {
    let all: Vec<Permission> = given("ClusterRole").into_iter().chain(given("Role")).collect();
    let star = |one: &&Permission| one.0 == "*" || one.1.contains('*') || one.2 == "*";
    assert_eq!(all.iter().find(star), None);
    assert!(!all.iter().any(|one| one.1 == "secrets"), "a namespace's secrets are none of its business");
}
