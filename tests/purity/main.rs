//! The core does no I/O, and this is where that sentence is made true.
//!
//! Three fences stand beside this one: features (no runtime, client or logger compiles into the core), lints
//! (`clippy.toml`), and behaviour (the same observation is decided the same way). This one reads the source token by
//! token, inside macro calls as well, and allows instead of forbidding: a door nobody thought of is closed.

mod proof;
mod scan;

use scan::faults;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(root: &str) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    let files = files.map(|entry| entry.expect("readable").into_path());
    files.filter(|path| path.extension().is_some_and(|x| x == "rs")).collect()
}

#[test]
fn the_core_reaches_nothing_that_can_touch_the_world() {
    let files = sources("src/core");
    assert!(files.len() > 3, "the core is not where this test looks for it");
    let all: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).expect("readable");
            let below = path.strip_prefix("src").expect("below src").to_path_buf();
            faults(&below, &text).into_iter().map(move |fault| format!("src/{}:{fault}", below.display()))
        })
        .collect();
    assert!(all.is_empty(), "the core reaches out:\n{}", all.join("\n"));
}

#[test]
fn the_core_denies_the_lints_that_fence_it() {
    let text = std::fs::read_to_string("src/core/mod.rs").expect("src/core/mod.rs");
    let file = syn::parse_file(&text).expect("Rust");
    let denied: String = file
        .attrs
        .iter()
        .filter(|a| a.path().is_ident("deny") || a.path().is_ident("forbid"))
        .filter_map(|a| a.meta.require_list().ok().map(|list| list.tokens.to_string()))
        .collect();
    for lint in ["disallowed_methods", "disallowed_types", "disallowed_macros", "wildcard_enum_match_arm"] {
        assert!(denied.contains(lint), "src/core/mod.rs does not deny clippy::{lint}");
    }
}

/// What is not optional in Cargo.toml compiles into the core, and must be what the core may use.
#[test]
fn only_what_the_core_may_use_is_not_optional() {
    let manifest = std::fs::read_to_string("Cargo.toml").expect("Cargo.toml");
    let section = manifest.split("\n[dependencies]\n").nth(1).expect("[dependencies]");
    let names: BTreeSet<String> = section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.contains("optional = true"))
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.trim().replace('-', "_")))
        .collect();
    let allowed: BTreeSet<String> = scan::CRATES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(names, allowed);
    assert!(Path::new("clippy.toml").exists(), "the lints have no list");
}
