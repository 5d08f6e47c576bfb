//! Every file under tests/golden is a story and a test: its transcript stands beside it, its claims must hold.

use cocoon_operator::scenario::patience;
use cocoon_operator::scenario::runner::{self, Played};
use cocoon_operator::scenario::script::Script;
use std::path::Path;

#[expect(dead_code, reason = "what the live stage alone asks of the lists")]
#[path = "live/apart.rs"]
mod apart;

fn in_memory(path: &Path, text: String) -> datatest_stable::Result<()> {
    let script = Script::parse(&path.display().to_string(), &text)?;
    let played = runner::play(&script)?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("a file name")?;
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(path).with_file_name("");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(beside);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.remove_snapshot_suffix();
    settings.bind(|| insta::assert_snapshot!(name, played.transcript));
    let story = path.strip_prefix("tests/golden").unwrap_or(path).with_extension("").display().to_string();
    let listed = wrongly_listed(&story, &script, &played);
    let wrong: Vec<String> = played.failures.into_iter().chain(listed).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n\n{}\n", played.transcript, wrong.join("\n")).into())
}

/// A real cluster cannot wait for ever: which stories are too long for it is known here, where they take no time.
fn wrongly_listed(story: &str, script: &Script, played: &Played) -> Option<String> {
    let takes = patience::takes(script, played);
    let otherwise = apart::EXCLUDED.iter().any(|(_, stories)| stories.contains(&story));
    let long = takes > patience::LONGEST && !otherwise;
    let should = if long { "belongs" } else { "does not belong" };
    (long != apart::TOO_LONG.contains(&story))
        .then(|| format!("it takes {takes:?}, so it {should} into TOO_LONG of tests/live/apart.rs"))
}

/// The shell against the served cluster tells what the core tells in memory, line by line.
fn embedded(path: &Path, text: String) -> datatest_stable::Result<()> {
    let script = Script::parse(&path.display().to_string(), &text)?;
    let (told, played) = (runner::play(&script)?, runner::play_embedded(&script)?);
    let diff = difference(&told.transcript, &played.transcript);
    let failures = played.failures.iter().filter(|failure| !told.failures.contains(failure));
    let wrong: Vec<String> = diff.into_iter().chain(failures.cloned()).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n\n{}\n", played.transcript, wrong.join("\n")).into())
}

/// The first lines that differ.
fn difference(in_memory: &str, embedded: &str) -> Option<String> {
    let (left, right): (Vec<&str>, Vec<&str>) = (in_memory.lines().collect(), embedded.lines().collect());
    let at = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at))?;
    let part =
        |lines: &[&str]| lines.iter().skip(at.saturating_sub(3)).take(10).copied().collect::<Vec<_>>().join("\n");
    Some(format!("line {}: in memory\n{}\n\nembedded\n{}", at + 1, part(&left), part(&right)))
}

datatest_stable::harness! {
    { test = in_memory, root = "tests/golden", pattern = r"\.yaml$" },
    { test = embedded, root = "tests/golden", pattern = r"\.yaml$" },
}
