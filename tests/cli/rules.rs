//! `rules`: every rule, its place, its origin and its stories; and names that last.

use super::run;
use cocoon_operator::core::{RETIRED, RULES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn all() -> Vec<Value> {
    let ran = run(&["rules", "-o", "json"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    serde_json::from_str::<Value>(&ran.out).expect("JSON").as_array().expect("an array").clone()
}

#[test]
fn every_rule_stands_where_it_says() {
    let rules = all();
    assert_eq!(rules.len(), RULES.iter().flat_map(|(_, files)| *files).map(|file| file.len()).sum::<usize>());
    for rule in rules {
        let (id, file) = (rule["id"].as_str().expect("id"), rule["file"].as_str().expect("file"));
        let line = usize::try_from(rule["line"].as_u64().expect("line")).expect("fits");
        let text = std::fs::read_to_string(file).expect("the file is there");
        let found = text.lines().nth(line - 1).unwrap_or_default();
        assert!(found.contains(&format!("= \"{id}\";")), "{id} is not at {file}:{line}, which reads: {found}");
    }
}

/// A file whose rules nobody lists would be decided by and never explained.
#[test]
fn every_declared_rule_is_listed() {
    let listed: BTreeSet<String> = all().iter().map(|rule| rule["file"].as_str().expect("file").to_owned()).collect();
    let files = walkdir::WalkDir::new("src/core").into_iter().flatten().map(|entry| entry.into_path());
    let declaring: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .filter(|path| std::fs::read_to_string(path).expect("readable").lines().any(|line| line == "rules! {"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    assert!(declaring.len() > 10);
    assert_eq!(listed, declaring);
}

#[test]
fn names_are_unique_well_formed_and_never_reused() {
    let mut seen: BTreeSet<String> = RETIRED.iter().map(|(id, _)| (*id).to_owned()).collect();
    for rule in all() {
        let id = rule["id"].as_str().expect("id");
        let words: Vec<&str> = id.split('/').collect();
        let fine = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        assert!(words.len() == 2 && words.iter().all(fine), "{id} is no CONCERN/WHAT-IT-DOES");
        assert!(seen.insert(id.to_owned()), "{id} is taken, or was once");
        let text = rule["text"].as_str().expect("text");
        assert!(text.len() > 12 && !text.ends_with(')'), "{id} does not say what it is for: {text}");
    }
}

#[test]
fn the_table_has_a_line_for_each() {
    let ran = run(&["rules"], b"");
    assert_eq!(ran.out.lines().count(), all().len() + 1);
    let line = ran.out.lines().find(|line| line.starts_with("namespace/look ")).expect("a line");
    assert!(line.contains("CocoonSet") && line.contains("src/core/cocoonset/concerns/namespace.rs:"), "{line}");
    assert!(line.contains("R6") && line.contains("Read the namespace live after a refused create"), "{line}");
}

#[test]
fn one_rule_is_told_in_full() {
    let ran = run(&["rules", "namespace/terminating"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("namespace/terminating controller CocoonSet declared src/core/cocoonset/"), "{words}");
    assert!(words.contains("from D-24, R6, R7"), "{words}");
    assert!(words.contains("every create would be refused, for as long as the pods take to go"), "{words}");
    let json = run(&["rules", "namespace/terminating", "-o", "json"], b"");
    let one: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(one["from"], serde_json::json!(["D-24", "R6", "R7"]));
}

#[test]
fn an_unknown_name_is_refused_with_the_one_that_was_meant() {
    for (given, meant) in [("namespace/lok", "namespace/look"), ("Main/Create", "main/create")] {
        let ran = run(&["rules", given], b"");
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1));
        assert!(ran.err.contains(given) && ran.err.contains(&format!("did you mean {meant}?")), "{}", ran.err);
    }
    let far = run(&["rules", "qqqqqqqqq"], b"");
    assert_eq!(far.code, 2);
    assert!(!far.err.contains("did you mean") && far.err.contains("expected"), "{}", far.err);
}

/// The stories are built in; this is what keeps them true.
#[test]
fn the_index_of_stories_is_what_the_transcripts_say() {
    let fresh = cocoon_operator::cli::stories::index(Path::new("tests/golden")).expect("readable");
    let stored = std::fs::read_to_string("src/cli/stories.txt").expect("src/cli/stories.txt");
    assert_eq!(stored, fresh, "src/cli/stories.txt is stale: run make docs");
    let told = run(&["rules", "--index", "tests/golden"], b"");
    assert_eq!((told.code, told.out), (0, fresh));
}

#[test]
fn a_story_is_found_by_the_rules_its_transcript_names() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stories");
    std::fs::create_dir_all(root.join("creation")).expect("a directory");
    let text = "main/create: x-0 is missing\n(seat/ask-snapshot) and not-main/create or main/created";
    std::fs::write(root.join("creation/one.snap"), text).expect("written");
    std::fs::write(root.join("creation/one.yaml"), "namespace/look").expect("written");
    let index = cocoon_operator::cli::stories::index(&root).expect("readable");
    let story = root.join("creation/one").to_string_lossy().into_owned();
    assert_eq!(index, format!("main/create\t{story}\nseat/ask-snapshot\t{story}\n"));
}

#[test]
fn the_page_names_every_rule() {
    let ran = run(&["rules", "--markdown"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for rule in all() {
        let heading = format!("\n### {}\n", rule["id"].as_str().expect("id"));
        assert_eq!(ran.out.matches(&heading).count(), 1, "{heading}");
    }
}
