//! The snapshot registry: does a tag exist, and let it go. By tag, each call with a deadline, understood by the one
//! classifier (registry.md 2, 3, 6).

mod challenge;
pub mod credentials;
mod exchange;
pub mod proxy;
mod remote;
mod target;
mod tickets;

use super::clock::Clock;
use super::limits::{Limits, held_back};
use super::options::StartupError;
use super::reference::Base;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::{Reply, Verb};
use credentials::Keyring;
use futures::future::BoxFuture;
use proxy::Proxies;
use remote::{Asked, Remote, Said};
use std::sync::Arc;
use std::time::Duration;
use tickets::Access;
use tokio::time::Instant;

/// Connect and response together (registry.md 6).
pub const DEADLINE: Duration = Duration::from_secs(10);
/// A call may take this many times as long, with the token and the look that it needs.
const REQUESTS: u32 = 3;

/// How long a call of this verb may still take; nothing where it may not be sent at all (decision R11).
pub type Term<'a> = &'a (dyn Fn(Verb) -> Option<Duration> + Send + Sync);

/// A registry in the same process: answers one whole call for a VM's tag. A delete that names a digest it carries out
/// only under that digest.
pub type Local = Arc<dyn Fn(Verb, String, String, Option<String>) -> BoxFuture<'static, Reply> + Send + Sync>;

/// The registry.
pub struct Registry {
    backend: Backend,
    limits: Limits,
    deadline: Duration,
}

enum Backend {
    Http(Box<Remote>),
    Local(Local),
}

impl Registry {
    /// Over HTTP, at this base; anonymous until a keyring is given. The environment says which proxy stands before it.
    pub fn http(base: Base, clock: Clock) -> Result<Self, StartupError> {
        Self::http_through(base, clock, Proxies::of_environment())
    }

    /// The same, through these proxies.
    pub fn http_through(base: Base, clock: Clock, proxies: Proxies) -> Result<Self, StartupError> {
        let remote = Remote::new(base, clock.clone(), DEADLINE, proxies)?;
        Ok(Self { backend: Backend::Http(Box::new(remote)), limits: Limits::new(clock), deadline: DEADLINE })
    }

    /// The proxy that stands before it.
    pub fn proxy(&self) -> Option<&str> {
        match &self.backend {
            Backend::Http(remote) => remote.proxy.as_deref(),
            Backend::Local(_) => None,
        }
    }

    /// In the same process.
    pub fn local(answer: Local, clock: Clock) -> Self {
        Self { backend: Backend::Local(answer), limits: Limits::new(clock), deadline: DEADLINE }
    }

    /// The same, with another deadline of its requests; a whole call may take three times as long.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same, with user and password from here where the registry asks for them.
    #[must_use]
    pub fn with_keyring(mut self, keyring: Keyring) -> Self {
        if let Backend::Http(remote) = &mut self.backend {
            remote.keyring = keyring;
        }
        self
    }

    /// The same; outcomes say who did not answer, and why.
    #[must_use]
    pub fn with_causes(mut self) -> Self {
        if let Backend::Http(remote) = &mut self.backend {
            remote.tell_causes();
        }
        self
    }

    /// Carries out one call of the core and understands the answer.
    ///
    /// A delete is sent only right after a HEAD that showed the tag, and the digest that it expects if it expects one:
    /// by tag it has no precondition of its own (decision R11), and a delete of what is not there makes some registries
    /// create an empty package (registry.md 4). A HEAD that shows no such tag, another digest, or fails, is the delete's
    /// outcome: nothing was sent and so nothing happened; the next decision probes again.
    ///
    /// Each request is sent only where the term allows it at that very moment, and waited for no longer than it lasts.
    pub async fn carry_out(&self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>, term: Term<'_>) -> Outcome {
        if term(verb).is_none() {
            return Said::of(verb, Reply::Fenced).outcome;
        }
        let until = Instant::now() + self.deadline.saturating_mul(REQUESTS);
        match &self.backend {
            Backend::Http(remote) => {
                let access = if verb == Verb::RegistryDelete { Access::Delete } else { Access::Pull };
                let mut asked = Asked { verb, vm, tag, access, deadline: self.deadline, until, term };
                if verb == Verb::RegistryDelete {
                    asked.verb = Verb::RegistryHead;
                    if let Some(instead) = held_by(self.look(remote, &mut asked).await, digest) {
                        return instead;
                    }
                    asked.verb = verb;
                }
                self.look(remote, &mut asked).await
            }
            Backend::Local(answer) => {
                // Not begun before the gate lets it through.
                let call = async {
                    let Some(left) = term(verb) else { return Said::of(verb, Reply::Fenced) };
                    let answer = answer(verb, vm.to_owned(), tag.to_owned(), digest.map(str::to_owned));
                    let reply = tokio::time::timeout(self.deadline.min(left), answer).await;
                    Said::of(verb, reply.unwrap_or(Reply::TimedOut))
                };
                self.gate(call).await.outcome
            }
        }
    }

    /// Asks, and asks for the manifest itself where a HEAD does not say enough: no digest, or an absence that a page for
    /// people speaks of, which a proxy sends for anything.
    async fn look(&self, remote: &Remote, asked: &mut Asked<'_>) -> Outcome {
        let said = self.gate(remote.ask(asked)).await;
        let nameless = matches!(said.outcome.answer, Answer::Snapshot { digest: None, .. });
        let doubtful = said.outcome.class == Class::Absent && said.markup;
        if asked.verb != Verb::RegistryHead || !(nameless || doubtful) {
            return said.outcome;
        }
        asked.verb = Verb::RegistryGet;
        self.gate(remote.ask(asked)).await.outcome
    }

    async fn gate(&self, call: impl Future<Output = Said>) -> Said {
        match self.limits.leave("snapshots").await {
            Ok(permit) => {
                let said = call.await;
                permit.answered(&said.reply);
                said
            }
            Err(left) => Said::of(Verb::RegistryHead, held_back(left)),
        }
    }
}

/// What stands in the place of a delete that expects this digest, or none, after this HEAD; nothing where it may be
/// sent.
fn held_by(head: Outcome, expected: Option<&str>) -> Option<Outcome> {
    let unsent = |words: String| Some(Outcome::of(Class::Unavailable).saying(words));
    match (head.class, &head.answer, expected) {
        (Class::Present, _, None) => None,
        (Class::Present, Answer::Snapshot { digest: Some(found), .. }, Some(expected)) if found == expected => None,
        (Class::Present, Answer::Snapshot { digest: Some(found), .. }, Some(expected)) => {
            unsent(format!("not deleted: the tag has digest {found}, {expected} was expected"))
        }
        (Class::Present, _, Some(expected)) => {
            unsent(format!("not deleted: the registry names no digest of the tag, {expected} was expected"))
        }
        _ => Some(head),
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.backend {
            Backend::Http(remote) => write!(f, "Registry({})", remote.base),
            Backend::Local(_) => f.write_str("Registry(local)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::classify::classify;

    const ONE: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
    const TWO: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

    /// What stands in the place of a delete that expects `ONE`, after a HEAD that is answered so.
    fn after_head(reply: Reply) -> Option<Class> {
        held_by(classify(Verb::RegistryHead, &reply), Some(ONE)).map(|outcome| outcome.class)
    }

    fn head(status: u16, digest: Option<&str>) -> Reply {
        Reply::Http { status, retry_after: None, body: Vec::new(), digest: digest.map(str::to_owned) }
    }

    #[test]
    fn a_tag_is_deleted_only_under_the_digest_that_was_decided_on() {
        assert_eq!(after_head(head(200, Some(ONE))), None);
        assert_eq!(after_head(head(200, Some(TWO))), Some(Class::Unavailable));
        assert_eq!(after_head(head(200, None)), Some(Class::Unavailable));
        assert_eq!(after_head(head(404, None)), Some(Class::Absent));
    }

    #[test]
    fn a_look_that_failed_is_no_delete() {
        assert_eq!(after_head(head(500, None)), Some(Class::Unavailable));
        assert_eq!(after_head(head(403, None)), Some(Class::Denied));
        assert_eq!(after_head(head(429, None)), Some(Class::Throttled));
        assert_eq!(after_head(Reply::TimedOut), Some(Class::Unavailable));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delete_leaves_only_with_enough_of_the_term_left() {
        let answers: Local = Arc::new(|_, _, _, _| Box::pin(std::future::ready(head(202, None))));
        let registry = Registry::local(answers, Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0));
        for (allowed, verb, class) in [
            (false, Verb::RegistryDelete, Class::Fenced),
            (true, Verb::RegistryDelete, Class::Absent),
            (false, Verb::RegistryHead, Class::Present),
        ] {
            let term = |verb| (allowed || verb != Verb::RegistryDelete).then_some(Duration::from_secs(1));
            let outcome = registry.carry_out(verb, "vk-a", "hibernate", None, &term).await;
            assert_eq!(outcome.class, class, "{verb:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_that_hangs_is_given_up() {
        let hangs: Local = Arc::new(|_, _, _, _| Box::pin(std::future::pending()));
        let registry = Registry::local(hangs, Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0));
        let outcome =
            registry.carry_out(Verb::RegistryDelete, "vk-a", "hibernate", None, &|_| Some(Duration::MAX)).await;
        assert_eq!(outcome.class, Class::Unknown);
    }
}
