//! A night: an hour, fifty sets, edits and faults at random; every pass is decided again as it was.

use crate::stage::{Dir, admin, cluster, create_set, operator, passes, set_path};
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::{Method, Verb};
use cocoon_operator::shell::recorder::{self, RecordTo};
use cocoon_operator::sim::faults::{Fault, Pattern, What, reply_of_class};
use cocoon_operator::sim::server::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const NAMESPACES: [&str; 5] = ["team-a", "team-b", "team-c", "team-d", "team-e"];
const NODES: [&str; 4] = ["node-a", "node-b", "node-c", "node-d"];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(all.len() as u64)).expect("small");
        &all[at]
    }
}

fn spec(dice: &mut Dice) -> Value {
    let image = format!("img:{}", dice.below(4));
    let mut spec = json!({"agent": {"image": image, "mode": "clone", "replicas": dice.below(3)}});
    if dice.below(3) == 0 {
        spec["toolboxes"] = json!([{"name": "tools", "image": "box:1"}]);
    }
    spec
}

/// Somebody does something.
fn stir(cluster: &Cluster, dice: &mut Dice) {
    let namespace = *dice.one_of(&NAMESPACES);
    let name = format!("set-{}", dice.below(10));
    let path = set_path(namespace, &name);
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    match dice.below(14) {
        0..=3 => drop(admin(cluster, Method::Patch, &path, json!({"spec": spec(dice)}))),
        4 => drop(admin(cluster, Method::Patch, &path, json!({"spec": {"suspend": dice.below(2) == 0}}))),
        5 => drop(admin(cluster, Method::Delete, &path, json!({}))),
        6..=7 => drop(create_set(cluster, namespace, &name, spec(dice))),
        8 => drop(admin(cluster, Method::Delete, &format!("{pods}/{name}-{}", dice.below(3)), json!({}))),
        9 => {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-2")},
                "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}]}]}});
            admin(cluster, Method::Post, &pods, pod);
        }
        10 => {
            let node = *dice.one_of(&NODES);
            cluster.with(|world| if dice.below(3) == 0 { world.node_not_ready(node) } else { world.node_back(node) });
        }
        11 if dice.below(4) == 0 => {
            admin(cluster, Method::Delete, &format!("/api/v1/namespaces/{namespace}"), json!({}));
        }
        _ => fault(cluster, dice),
    }
    for namespace in NAMESPACES {
        cluster.with(|world| {
            if world.store.get("namespaces", "", namespace).is_none() {
                world.store.add_namespace(namespace);
            }
        });
    }
}

fn fault(cluster: &Cluster, dice: &mut Dice) {
    let (verb, kind) = *dice.one_of(&[
        (Verb::Create, "pods"),
        (Verb::Patch, "pods"),
        (Verb::Delete, "pods"),
        (Verb::Patch, "cocoonsets"),
        (Verb::Patch, "cocoonsets/status"),
        (Verb::RegistryHead, "snapshots"),
    ]);
    let classes = [Class::Conflict, Class::Throttled, Class::Unavailable, Class::RbacDenied, Class::QuotaExceeded];
    let what = match dice.below(7) {
        0 => What::TimeoutBefore,
        1 => What::ResetAfter,
        _ => reply_of_class(*dice.one_of(&classes), verb, kind, "demo").map_or(What::TimeoutBefore, What::Answer),
    };
    cluster.with(|world| world.faults.add(Fault::new(Pattern::of(verb, kind), what).times(1 + dice.below(3))));
}

/// Records a night of so many seconds.
fn night(dir: &Dir, seconds: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let cluster = cluster(&NAMESPACES, &NODES);
        let mut dice = Dice(3);
        for namespace in NAMESPACES {
            for set in 0..10 {
                assert_eq!(create_set(&cluster, namespace, &format!("set-{set}"), spec(&mut dice)), 201);
            }
        }
        let to = RecordTo { waiting: 1_000_000, ..RecordTo::dir(dir.path()) };
        let operator = operator(&cluster, to);
        let mut left = seconds;
        while left > 0 {
            let pause = (1 + dice.below(12)).min(left);
            left -= pause;
            tokio::time::sleep(Duration::from_secs(pause)).await;
            stir(&cluster, &mut dice);
        }
        let metrics = operator.shell.metrics.clone();
        operator.stop().await;
        assert!(!metrics.text().contains("recorded_passes_total{result=\"lost\"}"), "nothing is lost");
    });
}

/// An hour, or with `NIGHT_SECONDS=600` less.
#[test]
fn every_pass_of_a_night_is_decided_again_as_it_was() {
    let seconds = std::env::var("NIGHT_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    let seconds: u64 = seconds.unwrap_or(3_600);
    decided_again(seconds, usize::try_from(seconds).expect("small") / 2);
}

fn decided_again(seconds: u64, least: usize) {
    let dir = Dir::new("night");
    let began = std::time::Instant::now();
    night(&dir, seconds);
    let recorded = began.elapsed();
    let all = passes(dir.text());
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for pass in &all {
        for outcome in pass.line.turns.iter().flat_map(|turn| &turn.outcomes) {
            *classes.entry(outcome.class.name()).or_default() += 1;
        }
        let replayed = pass.replay().expect("reads");
        assert!(replayed.words.is_empty(), "{:?}", replayed.words);
        if let Some(difference) = replayed.difference {
            wrong.push(format!("{} {}\n{difference}", pass.at, pass.key()));
        } else {
            assert_eq!(replayed.story, pass.line.story, "{}", pass.at);
        }
    }
    let mut bytes = 0;
    for (_, file) in recorder::files(dir.path()).expect("readable") {
        let text = std::fs::read_to_string(file).expect("text");
        // Pods of others have secrets, and were looked at.
        assert!(text.contains("TOKEN") && !text.contains("hunter2"), "a secret is in it");
        bytes += text.len();
    }
    let (passes, took) = (all.len(), began.elapsed());
    println!("{passes} passes, {bytes} bytes, recorded in {recorded:?}, all {took:?}, {classes:?}");
    assert!(
        wrong.is_empty(),
        "{} of {passes} differ:\n{}",
        wrong.len(),
        wrong.iter().take(5).cloned().collect::<String>()
    );
    assert!(passes > least, "{passes} passes are no night");
    assert!(classes.len() > 8, "{classes:?}");
}
