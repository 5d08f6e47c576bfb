//! One pass: observe, decide, carry out, answer, until at rest. The heart; it looks into no action and no outcome.

use super::telling::{self, Heard};
use super::{Shell, execute};
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::tally;
use crate::core::control::errors::{self, Ending, PassResult};
use crate::core::control::pass::{Next, Pass};
use crate::core::control::wake::Key;
use crate::core::decision::Decision;
use crate::core::outcome::Outcome;
use crate::core::recording::End;

/// Drives one pass over this key, gives the key back to the queue, and says what it came to.
pub async fn pass(shell: &Shell, key: &Key) -> PassResult {
    let Some((mut seen, taken)) = shell.state.observe(key, shell.leader.lease()) else {
        shell.metrics.forget(key);
        shell.state.gone(key);
        return PassResult::Success;
    };
    if let Some(phase) = tally::new_failure(&mut seen) {
        shell.metrics.failed(&phase);
    }
    let subject = seen.subject();
    telling::hears(shell, key, Heard::Begins(&subject));
    if let Some((recorder, taken)) = shell.recorder.as_ref().zip(taken) {
        recorder.begins(key, taken);
    }
    let mut pass = Pass::begin(seen);
    let mut told = 0;
    loop {
        let next = pass.next_step();
        told = telling::turns(shell, key, pass.turns(), told);
        match next {
            Next::Do(wave) => {
                telling::hears(shell, key, Heard::Wave(pass.decision()));
                let outcomes = execute::wave(shell, &subject, &wave).await;
                pass.answer(outcomes);
            }
            Next::Rest(after) => return rest(shell, key, pass, after),
            Next::GiveUp(because) => {
                let decision = pass.decision().clone();
                let end = End::GaveUp { because: because.to_string() };
                record(shell, key, Some((&decision, pass.outcomes())), end);
                let counted = shell.state.bug(key, Some(pass.into_seen()), "Bug");
                telling::gave_up(shell, key, Some(&decision), &because, counted);
                return errors::result(Ending::Bug, counted);
            }
        }
    }
}

fn rest(shell: &Shell, key: &Key, pass: Pass<Observed>, after: Option<std::time::Duration>) -> PassResult {
    let decision = pass.decision().clone();
    let error = decision.error().map(|trouble| trouble.reason.to_string());
    record(shell, key, Some((&decision, pass.outcomes())), End::Rest { after, error });
    let mut seen = pass.into_seen();
    let behind = !seen.unseen.is_empty();
    let counted = errors::rested(&mut seen.memory, &decision, behind, seen.mono);
    telling::rested(shell, key, &decision, after, &counted);
    shell.state.rest(key, seen, after);
    errors::result(Ending::Rested(after), !counted.is_empty())
}

/// The pass is over, for the recording.
fn record(shell: &Shell, key: &Key, last: Option<(&Decision, &[Outcome])>, end: End) {
    if let Some(recorder) = &shell.recorder {
        recorder.ends(key, last, end);
    }
}

/// A pass panicked: what it knew is lost, the object backs off, and everybody else goes on (decision R5).
pub fn panicked(shell: &Shell, key: &Key, words: &str) -> PassResult {
    let counted = shell.state.bug(key, None, "Panic");
    shell.metrics.panicked();
    record(shell, key, None, End::Panicked { because: words.to_owned() });
    telling::gave_up(shell, key, None, &format!("a pass panicked: {words}"), counted);
    errors::result(Ending::Bug, counted)
}
