//! One action, carried out: the call that the core spells, sent once, its answer understood and shown to the view.
//! Nothing is retried, decided or hidden here.

use super::Shell;
use super::telling::plain;
use super::telling::{self, Heard};
use crate::core::action::{Action, Attempt, Subject, Want};
use crate::core::call::{Call, call};
use crate::core::classify::classify;
use crate::core::control::announcer::Moment;
use crate::core::control::wake::Key;
use crate::core::outcome::{Class, Outcome};
use crate::core::wire::Reply;
use std::time::Duration;
use tracing::{info, warn};

/// The longest that a pass waits for an event.
const EVENT_DEADLINE: Duration = Duration::from_secs(5);

/// Who says what is said in events, the pod's name: as the deployment states it, else as its host is called.
pub fn instance() -> String {
    let named = ["POD_NAME", "HOSTNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    named.map(|name| name.trim().to_owned()).find(|name| !name.is_empty()).unwrap_or_default()
}

/// Carries a wave out side by side; the outcomes in order of the actions.
pub async fn wave(shell: &Shell, subject: &Subject, actions: &[Action]) -> Vec<Outcome> {
    futures::future::join_all(actions.iter().map(|action| one(shell, subject, action))).await
}

async fn one(shell: &Shell, subject: &Subject, action: &Action) -> Outcome {
    let outcome = match call(subject, action) {
        Some(call) => answer(shell, &call).await,
        None => announce(shell, subject, action).await,
    };
    if let Some(attempt) = Attempt::of(&action.want) {
        // At once, and not at the end of the wave: a watch may show the write in between.
        shell.state.answered(subject, &attempt, &outcome);
    }
    telling::hears(shell, &key_of(subject), Heard::Answered(action, &outcome));
    outcome
}

async fn answer(shell: &Shell, call: &Call) -> Outcome {
    // A rehearsed pass sends no write; should one come all the same, it ends here, whatever it goes to.
    if shell.settings.dry_run && call.verb().writes() {
        return classify(call.verb(), &Reply::Fenced);
    }
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

/// What is to be told is logged, counted, and sent as an event. It counts here because an announcement stands behind the
/// change that it is about: it is reached only where that happened, whatever becomes of the event.
async fn announce(shell: &Shell, subject: &Subject, action: &Action) -> Outcome {
    let Want::Announce(told) = &action.want else { return Outcome::of(Class::Done) };
    let key = key_of(subject);
    shell.metrics.announced(&key, &told.reason);
    info!(
        controller = subject.kind.to_lowercase(), namespace = subject.namespace, name = subject.name,
        rule = %action.rule, reason = told.reason, warning = told.warning, "{}", plain(&told.message)
    );
    let at = Moment { now: shell.clock.wall(), mono: shell.clock.since_start() };
    let spoken = shell.announcer().speak(subject, action, at);
    let sending = match spoken {
        Some(Ok(sending)) => sending,
        Some(Err(instead)) => {
            shell.metrics.event("held_back");
            return instead;
        }
        None => return Outcome::of(Class::Done),
    };
    // The rest of the plan waits for it, but not long: nothing depends on it.
    let sent = tokio::time::timeout(EVENT_DEADLINE, answer(shell, &sending.call)).await;
    let outcome = sent.unwrap_or_else(|_| classify(sending.call.verb(), &Reply::TimedOut));
    shell.metrics.event(match (outcome.class == Class::Done, sending.repeats()) {
        (true, false) => "sent",
        (true, true) => "repeated",
        (false, _) => "failed",
    });
    if shell.announcer().answered(sending, &outcome, shell.clock.since_start()) {
        warn!(
            controller = subject.kind.to_lowercase(), namespace = subject.namespace, name = subject.name,
            rule = %action.rule, class = %outcome.class, "an event is lost: {}", plain(&outcome.message)
        );
    }
    outcome
}

fn key_of(subject: &Subject) -> Key {
    Key::new(&subject.namespace, &subject.name)
}
