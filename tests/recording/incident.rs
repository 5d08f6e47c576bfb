//! Incident B as a recording: three sets whose namespace goes while pods are created. It is decided the same way for ever.

use crate::stage::{Dir, admin, cluster, create_set, operator, passes, until};
use cocoon_operator::cli::Failure;
use cocoon_operator::cli::recorded::Recorded;
use cocoon_operator::cli::replay;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::{JSON, Method, Request, Verb};
use cocoon_operator::scenario::from_recording::{self, Verdict};
use cocoon_operator::shell::recorder::{self, RecordTo};
use cocoon_operator::sim::faults::{Fault, Pattern, What};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RECORDING: &str = "tests/golden/recordings/incident-b.jsonl";
const NAMESPACE: &str = "netconn-test";

fn replayed(file: &str, check: bool) -> Result<(u8, String), Failure> {
    let args = replay::Args { check, ..replay::Args::of(&[file]) };
    replay::run(&args).map(|report| (report.code, report.text))
}

/// The incident happens, and is recorded; with `KEEP_RECORDING=1` this is the recording that is kept.
#[tokio::test(start_paused = true)]
async fn the_incident_is_recorded_while_it_happens() {
    let dir = Dir::new("incident");
    let cluster = cluster(&[NAMESPACE], &["node-a"]);
    let delete = Request::new(Method::Delete, format!("/api/v1/namespaces/{NAMESPACE}")).with_body(JSON, json!({}));
    // Right before the fifth create.
    let overtaken = Fault::new(Pattern::of(Verb::Create, "pods"), What::Overtaken(Box::new(delete))).nth(5);
    cluster.with(|world| world.faults.add(overtaken));
    let operator = operator(&cluster, RecordTo::dir(dir.path()));
    for name in ["netprobe-a", "netprobe-b", "netprobe-c"] {
        let spec =
            json!({"agent": {"image": "netprobe:1", "mode": "clone", "replicas": 2}, "snapshotPolicy": "main-only"});
        assert_eq!(create_set(&cluster, NAMESPACE, name, spec), 201);
    }
    until("the namespace is gone", || cluster.with(|world| world.store.get("namespaces", "", NAMESPACE).is_none()))
        .await;
    assert_eq!(operator.shell.metrics.errors(), 0);
    operator.stop().await;
    let (_, file) = recorder::files(dir.path()).expect("readable").remove(0);
    let (code, text) = replayed(file.to_str().expect("UTF-8"), true).expect("a recording");
    assert_eq!((code, text.as_str()), (0, ""));
    assert!(outcomes(&passes(dir.text())).any(|class| class == Class::NamespaceTerminating));
    if std::env::var_os("KEEP_RECORDING").is_some() {
        std::fs::write(RECORDING, std::fs::read(&file).expect("read")).expect("written");
    }
    assert_eq!(admin(&cluster, Method::Get, &format!("/api/v1/namespaces/{NAMESPACE}"), Value::Null), 404);
}

#[test]
fn the_incident_is_decided_the_same_way_for_ever() {
    let (code, text) = replayed(RECORDING, true).expect("a recording");
    assert_eq!((code, text.as_str()), (0, ""));
    let all = passes(RECORDING);
    let classes: BTreeSet<Class> = outcomes(&all).collect();
    assert!(classes.contains(&Class::NamespaceTerminating), "it is incident B: {classes:?}");
    let objects: BTreeSet<String> = all.iter().map(|pass| pass.line.object()).collect();
    assert_eq!(objects.len(), 3);
    let bytes = std::fs::metadata(RECORDING).expect("there").len();
    assert!(bytes < 300_000, "{bytes} bytes are too many to be kept for ever");
}

fn outcomes(all: &[Recorded]) -> impl Iterator<Item = Class> + '_ {
    all.iter().flat_map(|pass| &pass.line.turns).flat_map(|turn| &turn.outcomes).map(|outcome| outcome.class)
}

/// As if a rule had decided otherwise when it was recorded: exactly those passes differ, and the difference is shown.
#[test]
fn another_rule_shows_exactly_the_passes_that_it_changes() {
    let text = std::fs::read_to_string(RECORDING).expect("text");
    let dir = Dir::new("another-rule");
    let file = dir.path().join("other.jsonl");
    let (was, other) = ("\"rule\":\"namespace/look\"", "\"rule\":\"namespace/glance\"");
    std::fs::write(&file, text.replace(was, other)).expect("written");
    let changed: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.contains(was)).map(|(at, _)| at + 1).collect();
    assert!(!changed.is_empty() && changed.len() < text.lines().count() / 2, "{changed:?}");
    let (code, told) = replayed(file.to_str().expect("UTF-8"), true).expect("a recording");
    assert_eq!(code, 1);
    let name = file.display().to_string();
    let differing: Vec<usize> = told
        .lines()
        .filter_map(|line| line.strip_prefix(&name)?.strip_prefix(':')?.split(':').next()?.parse().ok())
        .collect();
    assert_eq!(differing, changed, "{told}");
    assert!(
        told.contains("  - ReadLive by namespace/glance") && told.contains("  + ReadLive by namespace/look"),
        "{told}"
    );

    // Words are no decision.
    std::fs::write(&file, text.replace("\"because\":\"a create was refused", "\"because\":\"a create was turned down"))
        .expect("written");
    assert_eq!(replayed(&name, true).expect("a recording"), (0, String::new()));
}

#[test]
fn the_story_is_told() {
    let (code, text) = replayed(RECORDING, false).expect("a recording");
    assert_eq!(code, 0);
    for part in [
        "CocoonSet netconn-test/netprobe-a",
        "  claim/add-finalizer",
        "    CreatePod netprobe-",
        "-> NamespaceTerminating",
        "  rests",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

/// The set whose create met the end of the namespace, as a scenario: the same is done in it.
#[test]
fn the_incident_of_one_set_becomes_a_scenario_in_which_the_same_is_done() {
    let all = passes(RECORDING);
    let refused =
        all.iter().find(|pass| outcomes(std::slice::from_ref(pass)).any(|class| class == Class::NamespaceTerminating));
    let object = refused.expect("one was refused").line.object();
    let args = replay::Args { as_scenario: true, object: Some(object.clone()), ..replay::Args::of(&[RECORDING]) };
    let report = replay::run(&args).expect("a scenario");
    assert!(report.text.contains("it does the same "), "{}", report.text);
    let dir = Dir::new("scenario");
    let file = dir.path().join("incident.yaml");
    std::fs::write(&file, &report.text).expect("written");
    let (code, told) = replayed(file.to_str().expect("UTF-8"), false).expect("a scenario");
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("NamespaceTerminating"), "{told}");
    let of_one: Vec<_> =
        all.into_iter().filter(|pass| pass.line.object() == object).map(|pass| (pass.line, pass.held)).collect();
    assert_eq!(from_recording::scenario(&of_one).expect("a scenario").played, Verdict::Same);
    assert!(from_recording::scenario(&[]).is_err());
    let several = replay::Args { as_scenario: true, ..replay::Args::of(&[RECORDING]) };
    let fault = replay::run(&several).expect_err("three objects");
    assert_eq!(fault.code(), 2);
    assert!(fault.to_string().contains("--object"), "{fault}");
}

/// An object that was deleted and made again: the passes of one of its lives are picked by its uid.
#[test]
fn one_of_several_lives_is_picked() {
    let all = passes(RECORDING);
    let object = all[0].line.object();
    let first = all[0].line.uid.clone();
    let dir = Dir::new("lives");
    let file = dir.path().join("passes-000001.jsonl");
    let text = std::fs::read_to_string(RECORDING).expect("text");
    let later = text.replace(&first, "another-life");
    std::fs::write(&file, format!("{text}{later}")).expect("written");
    let args = |uid: Option<&str>| replay::Args {
        as_scenario: true,
        object: Some(object.clone()),
        uid: uid.map(str::to_owned),
        ..replay::Args::of(&[file.to_str().expect("UTF-8")])
    };
    let fault = replay::run(&args(None)).expect_err("two lives");
    assert!(
        fault.to_string().contains(&format!("--uid to name one (in their order: {first}, another-life)")),
        "{fault}"
    );
    replay::run(&args(Some(&first))).expect("a scenario");
    replay::run(&args(Some("another-life"))).expect("a scenario");
    let fault = replay::run(&args(Some("nobody's"))).expect_err("no such life");
    assert!(fault.code() == 2 && fault.to_string().contains(&first), "{fault}");
}

/// What no cluster would take is written down all the same, and whoever calls hears that it cannot be played.
#[test]
fn a_scenario_that_cannot_be_played_ends_with_1() {
    let dir = Dir::new("unplayable");
    let file = dir.path().join("passes-1.jsonl");
    let text = std::fs::read_to_string(RECORDING).expect("read").replace(NAMESPACE, "No_Namespace");
    std::fs::write(&file, text).expect("written");
    let object = Some("No_Namespace/netprobe-a".to_owned());
    let args = replay::Args { as_scenario: true, object, ..replay::Args::of(&[file.to_str().expect("UTF-8")]) };
    let report = replay::run(&args).expect("a scenario");
    assert!(report.text.starts_with("# does not "), "{}", report.text);
    assert_eq!(report.code, 1, "{}", report.text);
}
