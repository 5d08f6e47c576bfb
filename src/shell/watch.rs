//! One kind, listed and watched for as long as the operator runs: each on its own, so that one that fails delays no
//! other (decision R26). Everything is read as raw JSON; what does not parse is one oddity, never a failed list.

use super::Shell;
use super::client::{Ended, Lines};
use crate::core::classify::{classify, classify_watch_error};
use crate::core::contract::keys;
use crate::core::control::backoff;
use crate::core::control::kinds::{Event, Kind};
use crate::core::meta;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::{Method, Request, Verb};
use futures::FutureExt;
use serde_json::Value;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tracing::{debug, error, info, warn};

/// Objects a page.
const PAGE: &str = "500";
/// How long after the server should have ended a watch we end it ourselves: its connection is half open.
const GRACE: Duration = Duration::from_secs(5);
/// How often a kind that may not be watched is tried again.
const REFUSED_AGAIN: Duration = Duration::from_secs(300);
/// A watch that ends sooner than this counts as a failure: something between us and the server cuts it.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// Broken streams in a row after which the version that the watch resumes from is no longer trusted.
const BROKEN_MOST: u32 = 3;
/// Watches in a row that brought nothing, not even a bookmark, after which a list is made: a server that was restored to
/// an earlier state holds open in silence, or ends, a watch of a version that it has not reached.
const SILENT_MOST: u32 = 2;
const ENDED_AT_ONCE: &str = "the watch ended within a second";

/// Keeps one kind listed and watched. A panic on what was read starts it over, like any other failure.
pub async fn keep(shell: &Shell, kind: Kind) {
    let mut panics: u32 = 0;
    loop {
        let Err(_) = AssertUnwindSafe(supervise(shell, kind)).catch_unwind().await;
        panics = panics.saturating_add(1);
        error!(kind = kind.resource(), panics, "a bug: what a watch showed could not be taken in; it starts over");
        tokio::time::sleep(backoff::delay(backoff::WATCH_FIRST, backoff::WATCH_MOST, panics, 0)).await;
    }
}

async fn supervise(shell: &Shell, kind: Kind) -> Infallible {
    let mut supervisor = Supervisor { shell, kind, failures: 0, expired: 0, silent: 0, said: None };
    loop {
        match supervisor.list().await {
            Ok(version) => supervisor.follow(version).await,
            Err(outcome) => supervisor.failed(&outcome).await,
        }
    }
}

/// Where objects of this kind are listed.
pub const fn path(kind: Kind) -> &'static str {
    match kind {
        Kind::CocoonSets => "/apis/cocoonset.cocoonstack.io/v1/cocoonsets",
        Kind::CocoonHibernations => "/apis/cocoonset.cocoonstack.io/v1/cocoonhibernations",
        Kind::Pods => "/api/v1/pods",
        Kind::Namespaces => "/api/v1/namespaces",
        Kind::Nodes => "/api/v1/nodes",
    }
}

/// The collection, narrowed to what concerns us.
pub fn collection(kind: Kind) -> Request {
    let request = Request::new(Method::Get, path(kind));
    match kind {
        Kind::Pods => request.with_query("labelSelector", keys::NAME),
        Kind::CocoonSets | Kind::CocoonHibernations | Kind::Namespaces | Kind::Nodes => request,
    }
}

struct Supervisor<'a> {
    shell: &'a Shell,
    kind: Kind,
    failures: u32,
    /// Watches in a row that were too old before they showed anything.
    expired: u32,
    /// Watches in a row that brought nothing.
    silent: u32,
    /// The class that was last complained of, so that it is said once.
    said: Option<Class>,
}

/// Why a watch is over.
enum Over {
    /// Go on from here.
    Resume(String),
    /// Go on from here, after a delay.
    Failed(String, Outcome),
    /// Its start is no longer remembered.
    Relist,
}

impl Supervisor<'_> {
    /// All pages; the version of the list. An expired token starts over, as a failure.
    async fn list(&mut self) -> Result<String, Outcome> {
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let mut request = collection(self.kind).with_query("limit", PAGE);
            if !token.is_empty() {
                request = request.with_query("continue", &token);
            }
            let reply = self.shell.api.send(self.kind.resource(), &request).await;
            let outcome = classify(Verb::List, &reply);
            self.shell.metrics.outcome(Verb::List, self.kind.resource(), outcome.class);
            match outcome {
                Outcome { class: Class::Done, answer: Answer::List { items, version, continue_token }, .. } => {
                    all.extend(items);
                    token = continue_token;
                    if token.is_empty() {
                        return Ok(self.listed(all, version));
                    }
                }
                outcome => return Err(outcome),
            }
        }
    }

    fn listed(&mut self, items: Vec<Value>, version: String) -> String {
        debug!(kind = self.kind.resource(), objects = items.len(), %version, "listed");
        self.shell.state.apply(self.kind, Event::Listed { items, version: version.clone() });
        self.well();
        version
    }

    /// Watches from this version on, again and again, until only a new list helps.
    async fn follow(&mut self, mut version: String) {
        let mut broken = 0;
        self.silent = 0;
        loop {
            match self.watch(version.clone()).await {
                Over::Resume(_) if self.silent >= SILENT_MOST => {
                    debug!(kind = self.kind.resource(), %version, "silent for long: listed anew");
                    return;
                }
                Over::Resume(from) => {
                    broken = 0;
                    version = from;
                }
                Over::Failed(from, outcome) => {
                    broken = if from == version && outcome.class == Class::Malformed { broken + 1 } else { 0 };
                    version = from;
                    self.failed(&outcome).await;
                    if outcome.class == Class::RbacDenied || broken >= BROKEN_MOST || self.silent >= SILENT_MOST {
                        return;
                    }
                }
                Over::Relist => {
                    debug!(kind = self.kind.resource(), %version, "the watch is too old and starts over");
                    self.pause_if_expired_again().await;
                    return;
                }
            }
        }
    }

    /// A list helps once, at once; a watch that is too old right after its list would go round without a pause.
    async fn pause_if_expired_again(&mut self) {
        self.expired = self.expired.saturating_add(1);
        if self.expired > 1 {
            tokio::time::sleep(self.backoff(self.expired - 1)).await;
        }
    }

    fn backoff(&self, failures: u32) -> Duration {
        let seed = self.shell.clock.seed().wrapping_mul(2 * (self.kind as u64) + 1);
        backoff::delay(backoff::WATCH_FIRST, backoff::WATCH_MOST, failures, seed)
    }

    /// One watch, from its opening to its end.
    async fn watch(&mut self, version: String) -> Over {
        let open_for = self.open_for();
        let request = collection(self.kind)
            .with_query("watch", "true")
            .with_query("allowWatchBookmarks", "true")
            .with_query("resourceVersion", &version)
            .with_query("timeoutSeconds", &open_for.as_secs().to_string());
        let opened = self.shell.clock.since_start();
        let mut lines = match self.shell.api.open(self.kind.resource(), &request).await {
            Ok(lines) => lines,
            Err(reply) => return self.refused(version, classify(Verb::Watch, &reply)),
        };
        self.shell.health.heard(self.kind);
        let mut at = version;
        self.silent = self.silent.saturating_add(1);
        let read = tokio::time::timeout(open_for.saturating_add(GRACE), self.read(&mut lines, &mut at)).await;
        let lasted = self.shell.clock.since_start().saturating_sub(opened);
        match read {
            Ok(Some(outcome)) => self.refused(at, outcome),
            Ok(None) if lasted < TOO_SHORT => Over::Failed(at, Outcome::of(Class::Unavailable).saying(ENDED_AT_ONCE)),
            Ok(None) => {
                self.well();
                self.expired = 0;
                Over::Resume(at)
            }
            // Not heard of: silence shows in the readiness, if the next watch is as silent.
            Err(_) => Over::Resume(at),
        }
    }

    /// A second more for each kind, so that they do not all open again at once.
    fn open_for(&self) -> Duration {
        let seconds = self.shell.settings.watch_timeout.as_secs().max(1);
        Duration::from_secs(seconds.saturating_add(self.kind as u64))
    }

    fn refused(&self, version: String, outcome: Outcome) -> Over {
        self.shell.metrics.outcome(Verb::Watch, self.kind.resource(), outcome.class);
        if outcome.class == Class::Expired { Over::Relist } else { Over::Failed(version, outcome) }
    }

    /// Reads events until the stream ends; an outcome where it ended badly.
    async fn read(&mut self, lines: &mut Lines, at: &mut String) -> Option<Outcome> {
        loop {
            let line = match lines.next().await {
                Ok(line) => line,
                Err(Ended::Closed) => return None,
                Err(Ended::Broken) => {
                    return Some(Outcome::of(Class::Unavailable).saying("the watch's connection broke"));
                }
            };
            self.silent = 0;
            let Ok(event) = serde_json::from_slice::<Value>(&line) else {
                self.shell.metrics.odd_line(self.kind.resource());
                return Some(Outcome::of(Class::Malformed).saying("a watch event that is no JSON"));
            };
            let object = event.get("object").unwrap_or(&Value::Null);
            match event.get("type").and_then(Value::as_str) {
                Some("ERROR") => return Some(classify_watch_error(object)),
                Some("BOOKMARK") => {
                    let version = meta::text(object, "resourceVersion");
                    self.take(Event::Bookmark(version.clone()), version, at);
                }
                Some("ADDED" | "MODIFIED") if is_named(object) => {
                    self.take(Event::Applied(object.clone()), meta::text(object, "resourceVersion"), at);
                }
                Some("DELETED") if is_named(object) => {
                    self.take(Event::Deleted(object.clone()), meta::text(object, "resourceVersion"), at);
                }
                _ => {
                    self.shell.metrics.odd_line(self.kind.resource());
                    warn!(kind = self.kind.resource(), "a watch event without a known type or a name was passed over");
                }
            }
        }
    }

    fn take(&mut self, event: Event, version: String, at: &mut String) {
        self.shell.state.apply(self.kind, event);
        self.well();
        self.expired = 0;
        if !version.is_empty() {
            *at = version;
        }
    }

    /// The kind is heard of again.
    fn well(&mut self) {
        self.shell.health.heard(self.kind);
        self.failures = 0;
        if self.said.take().is_some() {
            info!(kind = self.kind.resource(), "watched again");
        }
    }

    /// Says once what is wrong, and waits before the next try.
    async fn failed(&mut self, outcome: &Outcome) {
        let class = outcome.class;
        let forbidden = class == Class::RbacDenied || class == Class::ForbiddenOther;
        self.failures = self.failures.saturating_add(1);
        let delay = if forbidden && self.kind.is_optional() {
            self.shell.health.refused(self.kind);
            self.shell.state.apply(self.kind, Event::Refused);
            REFUSED_AGAIN
        } else {
            self.shell.health.failing(self.kind);
            self.backoff(self.failures)
        };
        self.complain(outcome, forbidden);
        tokio::time::sleep(delay.max(outcome.retry_after.unwrap_or_default())).await;
    }

    fn complain(&mut self, outcome: &Outcome, forbidden: bool) {
        let kind = self.kind.resource();
        let (class, message) = (outcome.class.name(), &outcome.message);
        if self.said == Some(outcome.class) {
            debug!(kind, class, message, failures = self.failures, "still not watched");
            return;
        }
        self.said = Some(outcome.class);
        match outcome.class {
            _ if forbidden && self.kind.is_optional() => {
                warn!(kind, class, message, "may not be watched; running on without: less is known of what was lost");
            }
            Class::NotServed if !self.kind.is_optional() => {
                warn!(kind, class, message, "not served; install the CRDs (cocoon-operator crds), they are waited for");
            }
            // What ends and resumes at the first try is daily business.
            Class::Unavailable | Class::Expired if self.failures <= 1 => {
                debug!(kind, class, message, "a list or watch failed and is tried again");
                self.said = None;
            }
            _ => warn!(kind, class, message, "a list or watch failed and is tried again"),
        }
    }
}

fn is_named(object: &Value) -> bool {
    !meta::text(object, "name").is_empty()
}
