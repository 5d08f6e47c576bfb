//! One action, carried out: the call that the core spells, sent once, its answer understood and shown to the view.
//! Nothing is retried, decided or hidden here.

use super::Shell;
use super::telling::plain;
use super::telling::{self, Heard};
use crate::core::action::{Action, Attempt, Subject, Want};
use crate::core::call::{Call, call};
use crate::core::classify::classify;
use crate::core::control::wake::Key;
use crate::core::outcome::{Class, Outcome};
use tracing::info;

/// Carries a wave out side by side; the outcomes in order of the actions.
pub async fn wave(shell: &Shell, subject: &Subject, actions: &[Action]) -> Vec<Outcome> {
    futures::future::join_all(actions.iter().map(|action| one(shell, subject, action))).await
}

async fn one(shell: &Shell, subject: &Subject, action: &Action) -> Outcome {
    let outcome = match call(subject, action) {
        Some(call) => answer(shell, &call).await,
        None => announce(shell, subject, action),
    };
    if let Some(attempt) = Attempt::of(&action.want) {
        // At once, and not at the end of the wave: a watch may show the write in between.
        shell.state.answered(subject, &attempt, &outcome);
    }
    telling::hears(shell, &key_of(subject), Heard::Answered(action, &outcome));
    outcome
}

async fn answer(shell: &Shell, call: &Call) -> Outcome {
    let outcome = match call {
        Call::Api { verb, resource, request } => {
            let term = || shell.leader.term(*verb);
            classify(*verb, &shell.api.send_within(resource, request, term).await)
        }
        Call::Registry { verb, vm, tag, digest } => {
            let term = |verb| shell.leader.term(verb);
            shell.registry.carry_out(*verb, vm, tag, digest.as_deref(), &term).await
        }
    };
    shell.metrics.outcome(call.verb(), call.resource(), outcome.class);
    outcome
}

/// What is to be told is logged and counted. It counts here because an announcement stands behind the change that it is
/// about: it is reached only where that happened.
fn announce(shell: &Shell, subject: &Subject, action: &Action) -> Outcome {
    if let Want::Announce(told) = &action.want {
        let key = key_of(subject);
        shell.metrics.announced(&key, &told.reason);
        info!(
            controller = subject.kind.to_lowercase(), namespace = subject.namespace, name = subject.name,
            rule = %action.rule, reason = told.reason, warning = told.warning, "{}", plain(&told.message)
        );
    }
    Outcome::of(Class::Done)
}

fn key_of(subject: &Subject) -> Key {
    Key::new(&subject.namespace, &subject.name)
}
