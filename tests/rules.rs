//! The rules and their stories belong together: every rule is shown in one, and nothing lies about without the other.

use cocoon_operator::core::cocoonset::RULES;
use cocoon_operator::core::rule::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn golden() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = walkdir::WalkDir::new(root).into_iter().filter_map(Result::ok);
    files.map(walkdir::DirEntry::into_path).filter(|path| path.is_file()).collect()
}

fn with_extension(extension: &str) -> BTreeSet<PathBuf> {
    let is = |path: &PathBuf| path.extension().is_some_and(|own| own == extension);
    golden().into_iter().filter(is).map(|path| path.with_extension("")).collect()
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().flat_map(|file| file.iter().copied())
}

#[test]
fn every_rule_occurs_in_a_transcript() {
    let transcripts: Vec<String> = golden()
        .iter()
        .filter(|path| path.extension().is_some_and(|own| own == "snap"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let told: BTreeSet<&str> = transcripts.iter().flat_map(|text| text.split_whitespace()).collect();
    let missing: Vec<&str> = rules().map(|rule| rule.id).filter(|id| !told.contains(id)).collect();
    assert!(missing.is_empty(), "{} rules have no story: {missing:#?}", missing.len());
}

#[test]
fn ids_are_unique_and_every_rule_says_what_it_guards_against() {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for rule in rules() {
        assert!(rule.id.contains('/'), "{} is no concern/what-it-does", rule.id);
        assert!(!rule.doc.trim().is_empty(), "{} has no doc", rule.id);
        let before = seen.insert(rule.id, rule.file);
        assert_eq!(before, None, "{} stands in two places", rule.id);
    }
}

#[test]
fn every_transcript_has_its_script_and_every_script_its_transcript() {
    assert_eq!(with_extension("yaml"), with_extension("snap"));
}
