//! Plays the recorded answers of a real API server (`tests/facts`) against the store: the same requests, the same
//! answers.

mod cases;
mod cases_more;
mod compare;
mod logs;
mod stage;
mod table;

use stage::Stage;
use std::collections::BTreeSet;
use std::fs;
use table::{TABLE, Treatment};

fn facts() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts");
    let names = fs::read_dir(folder).expect("the folder of facts").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.into_string().expect("a name")).filter(|name| name.contains(".json")).collect()
}

#[test]
fn every_fact_is_played_or_excused() {
    let table: BTreeSet<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(table.len(), TABLE.len(), "a fact stands in the table twice");
    assert_eq!(facts(), table, "facts on disk and facts in the table");
    for (name, treatment) in TABLE {
        if let Treatment::Excused(why) = treatment {
            assert!(!why.is_empty(), "{name} is excused without a reason");
        }
    }
}

#[test]
fn the_store_answers_as_recorded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts");
    let mut failures = Vec::new();
    let mut played = 0;
    for (name, treatment) in TABLE {
        let Treatment::Played(prepare) = treatment else { continue };
        let fact = fs::read_to_string(format!("{folder}/{name}")).expect("a fact");
        let mut stage = Stage::new();
        prepare(&mut stage);
        played += 1;
        if let Err(difference) = compare::play(&fact, stage) {
            failures.push(format!("=== {name}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{} of {played} differ\n{}", failures.len(), failures.join("\n"));
}
