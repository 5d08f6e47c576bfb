//! Every story that can be told on a real cluster, told there: the same claims, and step by step the same effects as in
//! memory.

use crate::apart;
use cocoon_operator::scenario::live::{Ground, Live};
use cocoon_operator::scenario::patience;
use cocoon_operator::scenario::projection::{Effects, effects};
use cocoon_operator::scenario::runner::{self, Played};
use cocoon_operator::scenario::script::Script;
use cocoon_operator::scenario::setting;
use cocoon_operator::scenario::steps::Step;
use jiff::{SignedDuration, Timestamp};
use libtest_mimic::{Failed, Trial};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How claims begin that are about what happened on the way.
const ON_THE_WAY: [&str; 8] =
    ["calls of", "answers", "writes", "rule", "event", "it is", "refused creates", "patch cocoonsets comes"];

/// How many stories have been told, and how many are being told.
#[derive(Clone, Default)]
pub struct Progress(Arc<(AtomicUsize, AtomicUsize)>);

/// One that is being told.
struct Telling(Progress);

impl Progress {
    fn begin(&self) -> Telling {
        self.0.1.fetch_add(1, Ordering::Relaxed);
        Telling(self.clone())
    }
    /// Those that are over.
    pub fn told(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }
    /// Those that are not.
    pub fn under_way(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.0.1.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The stories that are played, each a test, and one about those that are not.
pub fn trials(ground: &Ground, progress: &Progress) -> Vec<Trial> {
    let all = stories();
    let names: BTreeSet<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let mut trials = vec![Trial::test("stories::those_apart_are_rightly_so", move || rightly_apart(&names))];
    // Those that take longest begin first, and the others fill the time.
    let mut all: Vec<_> = all.into_iter().enumerate().collect();
    all.sort_by_cached_key(|(number, (_, file))| (Reverse(ends(file)), *number));
    for (number, (name, file)) in all {
        let (ground, progress) = (ground.clone(), progress.clone());
        let apart = apart::excluded(&name).is_some();
        let test = Trial::test(format!("stories::{name}"), move || play(&ground, &progress, number, &name, &file));
        trials.push(test.with_ignored_flag(apart));
    }
    trials
}

/// About how long a story is, by its transcript: to play them all beforehand would take too long.
fn ends(file: &Path) -> SignedDuration {
    patience::ends(&std::fs::read_to_string(file.with_extension("snap")).unwrap_or_default())
}

/// Every story by its name.
fn stories() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = walkdir::WalkDir::new(&root).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = files.map(walkdir::DirEntry::into_path);
    let stories = files.filter(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    let name = |file: &Path| file.strip_prefix(&root).unwrap_or(file).with_extension("").display().to_string();
    stories.map(|file| (name(&file), file)).collect()
}

/// What stands in the lists is a story, once. That each takes as long as its list says, its golden test sees to.
fn rightly_apart(names: &BTreeSet<String>) -> Result<(), Failed> {
    let listed = apart::EXCLUDED.iter().chain(apart::CLAIMS_ONLY).flat_map(|(_, stories)| stories.iter());
    let mut seen = BTreeSet::new();
    for story in apart::TOO_LONG.iter().chain(listed) {
        if !names.contains(*story) {
            return Err(format!("{story} is no story").into());
        }
        if !seen.insert(*story) {
            return Err(format!("{story} is listed twice").into());
        }
    }
    Ok(())
}

fn play(ground: &Ground, progress: &Progress, number: usize, name: &str, file: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let script = Script::parse(name, &text)?;
    let told = runner::play(&script)?;
    let script = Script::parse(name, &setting::at(&text, Timestamp::now())?)?;
    let expected = patience::takes(&script, &told);
    let script = patience::shortened(script, &told);
    // A story is not begun where there is nothing to begin with.
    while ground.outage.is_felt() {
        std::thread::sleep(Duration::from_millis(500));
    }
    let _counted = progress.begin();
    let begun = Instant::now();
    let mut live = Live::new(ground, &script, number, &told, expected)?;
    let played = runner::play_on(&script, &mut live)?;
    let mut wrong = played.failures.clone();
    if ground.outage.felt_since(begun) {
        wrong = in_the_end(&script, &told, &played);
    } else if apart::claims_only(name).is_none() {
        wrong.extend(difference(&script, &told, &played));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("in memory\n{}\n\nlive\n{}\n\n{}\n", told.transcript, played.transcript, wrong.join("\n")).into())
}

/// The same of a story in the middle of which the control plane was away: nothing is lost, and it ends as it would have.
/// What happened on the way to it is another story.
fn in_the_end(script: &Script, told: &Played, played: &Played) -> Vec<String> {
    let on_the_way = |failure: &String| ON_THE_WAY.iter().any(|claim| failure.starts_with(&format!("`{claim}")));
    // An API server that has just started refuses whose rights it has not read yet: that is an error until it is over (R4).
    let is_cold = played.transcript.contains("ERROR RbacDenied");
    let excused = |failure: &String| on_the_way(failure) || (is_cold && failure.starts_with("`errors is"));
    let mut wrong: Vec<String> = played.failures.iter().filter(|failure| !excused(failure)).cloned().collect();
    if !matches!(script.when.last(), Some(Step::Settle)) {
        // It ends at a moment, which comes later here: what is so then is not what was so before.
        wrong.retain(|failure| failure.starts_with("`errors is") || failure.contains("gave up"));
        return wrong;
    }
    let lines = |one: &Played| one.pictures.last().map(|picture| picture.lines.clone()).unwrap_or_default();
    let (there, here) = (lines(told), lines(played));
    wrong.extend(there.difference(&here).map(|line| format!("in the end only in memory: {line}")));
    // A VM that came up meanwhile leaves what it was when it goes.
    let more = here.difference(&there).filter(|line| !(line.starts_with("tag ") && line.ends_with(":latest")));
    wrong.extend(more.map(|line| format!("in the end only live: {line}")));
    wrong
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
