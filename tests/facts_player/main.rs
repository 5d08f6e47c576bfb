//! Plays the recorded answers of a real API server (`tests/facts`) against the store: the same requests, the same
//! answers.

mod cases;
mod cases_more;
mod compare;
mod logs;
mod server;
mod stage;
mod table;

use cocoon_operator::sim::store::Store;
use stage::{Stage, time};
use std::collections::BTreeSet;
use std::fs;
use table::{TABLE, Treatment};

fn facts() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts");
    let names = fs::read_dir(folder).expect("the folder of facts").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.into_string().expect("a name")).filter(|name| name.contains(".json")).collect()
}

/// A stage with the simulated server.
fn simulated() -> Stage {
    let mut store = Store::new(time("2026-11-30T08:00:00Z"));
    let crd = include_str!("../facts/widget-crd.json");
    let reply = store.install_crd(&serde_json::from_str(crd).expect("the CRD is JSON"));
    assert_eq!(reply.status, 201, "{:?}", reply.body);
    for name in ["f1-main", "f1-term", "f1-quota", "f2-quota", "n1", "lns"] {
        assert_eq!(store.add_namespace(name).status, 201);
    }
    Stage::on(Box::new(store))
}

#[test]
fn every_fact_is_played_or_excused() {
    let table: BTreeSet<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(table.len(), TABLE.len(), "a fact stands in the table twice");
    assert_eq!(facts(), table, "facts on disk and facts in the table");
    for (name, treatment) in TABLE {
        if let Treatment::Excused(why) | Treatment::Simulated(_, why) | Treatment::Read(why) = treatment {
            assert!(!why.is_empty(), "{name} is excused without a reason");
        }
    }
}

/// What the documentation says of the live suite.
#[test]
fn the_facts_of_the_live_suite_are_counted() {
    let played = TABLE.iter().filter(|(_, treatment)| matches!(treatment, Treatment::Played(_))).count();
    let told = format!("{played} facts are answered as recorded");
    assert!(include_str!("../../docs/testing.md").contains(&told), "docs/testing.md does not say: {told}");
}

#[test]
fn the_store_answers_as_recorded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts");
    let mut failures = Vec::new();
    let mut played = 0;
    for (name, treatment) in TABLE {
        let (Treatment::Played(prepare) | Treatment::Simulated(prepare, _)) = treatment else { continue };
        let fact = fs::read_to_string(format!("{folder}/{name}")).expect("a fact");
        let mut stage = simulated();
        prepare(&mut stage);
        played += 1;
        if let Err(difference) = compare::play(&fact, stage) {
            failures.push(format!("=== {name}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{} of {played} differ\n{}", failures.len(), failures.join("\n"));
}
