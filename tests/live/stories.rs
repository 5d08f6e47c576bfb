//! Every story that can be told on a real cluster, told there: the same claims, and step by step the same effects as in
//! memory.

use cocoon_operator::scenario::live::{Ground, Live};
use cocoon_operator::scenario::projection::{Effects, effects};
use cocoon_operator::scenario::runner::{self, Played};
use cocoon_operator::scenario::script::Script;
use cocoon_operator::scenario::steps::Step;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The stories, each a test.
pub fn trials(ground: &Ground) -> Vec<Trial> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = walkdir::WalkDir::new(&root).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = files.map(walkdir::DirEntry::into_path);
    let stories = files.filter(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    stories.enumerate().map(|(number, file)| trial(ground, &root, number, file)).collect()
}

fn trial(ground: &Ground, root: &Path, number: usize, file: PathBuf) -> Trial {
    let name = file.strip_prefix(root).unwrap_or(&file).with_extension("").display().to_string();
    let ground = ground.clone();
    Trial::test(format!("stories::{name}"), move || play(&ground, number, &file))
}

fn play(ground: &Ground, number: usize, file: &Path) -> Result<(), Failed> {
    let script = Script::load(file)?;
    let told = runner::play(&script)?;
    if told.took.as_secs() > 120 {
        return Err(format!("EXCLUDED {:?}", told.took).into());
    }
    let mut live = Live::new(ground, &script, number, told.took)?;
    let played = runner::play_on(&script, &mut live)?;
    let wrong: Vec<String> = difference(&script, &told, &played).into_iter().chain(played.failures.iter().cloned()).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("in memory\n{}\n\nlive\n{}\n\n{}\n", told.transcript, played.transcript, wrong.join("\n")).into())
}

/// What the two stages do not agree on: what the operator did up to each `settle`, and how everything stands then.
fn difference(script: &Script, told: &Played, played: &Played) -> Vec<String> {
    let (there, here) = (effects(&told.happenings), effects(&played.happenings));
    let mut wrong = Vec::new();
    let (mut begin, last) = (0, script.when.len().saturating_sub(1));
    for (at, step) in script.when.iter().enumerate() {
        if !matches!(step, Step::Settle) && at != last {
            continue;
        }
        let part = |all: &[Effects]| all.iter().take(at + 1).skip(begin).flatten().cloned().collect::<Effects>();
        let lines = |one: &Played| one.pictures.get(at).map(|picture| picture.lines.clone()).unwrap_or_default();
        let pairs = [("effect", part(&there), part(&here)), ("state", lines(told), lines(played))];
        for (what, there, here) in pairs {
            let mut only = |one: &BTreeSet<String>, other: &BTreeSet<String>, place: &str| {
                let lines = one.difference(other);
                wrong.extend(lines.map(|line| format!("when[{begin}..={at}]: {what} only {place}: {line}")));
            };
            only(&there, &here, "in memory");
            only(&here, &there, "live");
        }
        begin = at + 1;
    }
    wrong
}
