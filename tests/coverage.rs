//! docs/coverage.md names a story or a test for whatever the operator is to do right; each of them has to exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../docs/coverage.md");

/// The defects that this step does right.
const DEFECTS: &[(u32, u32)] =
    &[(7, 8), (11, 11), (17, 26), (28, 29), (31, 35), (44, 48), (51, 53), (56, 57), (63, 68), (71, 71), (74, 82)];

struct Row<'a> {
    subject: &'a str,
    named: Vec<&'a str>,
}

/// The rows of all tables: their first cell, and what is in backquotes in the last.
fn rows() -> Vec<Row<'static>> {
    let cells = PAGE.lines().filter(|line| line.starts_with("| ")).map(|line| line.trim_matches('|').split(" | "));
    let rows = cells.map(|cells| {
        let cells: Vec<&str> = cells.map(str::trim).collect();
        let named = cells.last().into_iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        Row { subject: cells[0], named }
    });
    rows.filter(|row| row.named.iter().any(|name| name.contains('/'))).collect()
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What is wrong with a name, if anything.
fn missing(name: &str) -> Option<String> {
    let Some((file, function)) = name.split_once("::") else {
        let both = ["yaml", "snap"].map(|ending| root(&format!("tests/golden/{name}.{ending}")));
        return both.iter().any(|path| !path.is_file()).then(|| format!("{name}: no such story"));
    };
    let text = std::fs::read_to_string(root(file)).unwrap_or_default();
    (!text.contains(&format!("fn {function}("))).then(|| format!("{name}: no such test"))
}

#[test]
fn every_story_and_test_that_is_named_exists() {
    let rows = rows();
    assert!(rows.len() > 100, "only {} rows were read", rows.len());
    let wrong: Vec<String> = rows.iter().flat_map(|row| &row.named).filter_map(|name| missing(name)).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_defect_has_a_line() {
    let told: BTreeSet<&str> = rows().iter().map(|row| row.subject).collect();
    let wanted = DEFECTS.iter().flat_map(|(first, last)| *first..=*last).map(|number| format!("D-{number:02}"));
    let lacking: Vec<String> = wanted.filter(|defect| !told.contains(defect.as_str())).collect();
    assert_eq!(lacking, Vec::<String>::new());
}

#[test]
fn every_rule_has_a_story_or_says_why_not() {
    let rules = include_str!("../docs/rules.md").lines().filter_map(|line| line.strip_prefix("### "));
    let stories = include_str!("../src/cli/stories.txt").lines().filter_map(|line| line.split('\t').next());
    let told: BTreeSet<&str> = stories.chain(rows().iter().map(|row| row.subject)).collect();
    let lacking: Vec<&str> = rules.filter(|rule| !told.contains(rule)).collect();
    assert_eq!(lacking, Vec::<&str>::new());
}

/// A story that nobody names is fine; one that claims nothing of the operator is not.
#[test]
fn every_story_claims_more_than_an_end() {
    let mut thin = Vec::new();
    let concerns = std::fs::read_dir(root("tests/golden")).unwrap();
    for file in concerns.flat_map(|concern| std::fs::read_dir(concern.unwrap().path()).unwrap()) {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let claims = text.split("\nthen:").nth(1).unwrap_or_default().lines().filter(|line| !line.is_empty());
            if claims.count() < 3 {
                thin.push(path.display().to_string());
            }
        }
    }
    assert_eq!(thin, Vec::<String>::new());
}
