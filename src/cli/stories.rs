//! Which story shows which rule at work: an index of the transcripts under tests/golden, built into the program.

use crate::core::RULES;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// `rule<TAB>story` lines, as [`index`] writes them. A test keeps it equal to the transcripts.
const BUILT_IN: &str = include_str!("stories.txt");

/// The stories that name this rule, as built in.
pub fn of_rule(id: &str) -> impl Iterator<Item = &'static str> {
    let lines = BUILT_IN.lines().filter_map(|line| line.split_once('\t'));
    let id = id.to_owned();
    lines.filter(move |(rule, _)| *rule == id).map(|(_, story)| story)
}

/// The index of the transcripts (`*.snap`) below this directory: each rule, and each story that names it.
pub fn index(root: &Path) -> std::io::Result<String> {
    let known: BTreeSet<&str> =
        RULES.iter().flat_map(|(_, files)| *files).flat_map(|file| *file).map(|rule| rule.id).collect();
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for path in transcripts(root)? {
        let story = path.with_extension("").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path)?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '/';
        for word in text.split(|c: char| !is_part(c)) {
            if let Some(rule) = known.get(word) {
                found.entry(rule).or_default().insert(story.clone());
            }
        }
    }
    Ok(found.iter().flat_map(|(rule, stories)| stories.iter().map(move |story| format!("{rule}\t{story}\n"))).collect())
}

fn transcripts(root: &Path) -> std::io::Result<BTreeSet<std::path::PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "snap") {
                found.insert(path);
            }
        }
    }
    Ok(found)
}
