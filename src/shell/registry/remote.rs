//! A registry over HTTP: ask, and where it wants to know who asks, show it once (registry.md 3).

use super::Term;
use super::challenge::Challenge;
use super::credentials::{Credentials, Keyring};
use super::exchange::{Answered, Wire};
use super::proxy::Proxies;
use super::target;
use super::tickets::{Access, Place, Tickets};
use crate::core::classify::classify;
use crate::core::outcome::{Class, Outcome};
use crate::core::wire::{Reply, Verb};
use crate::shell::clock::Clock;
use crate::shell::options::StartupError;
use crate::shell::reference::Base;
use http::{HeaderValue, Method, Uri};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Every kind of manifest that a tag may point at.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v1+json, application/vnd.docker.distribution.manifest.v1+prettyjws";
/// How long a token is good where its giver does not say, as the distribution's documents have it.
const TOKEN: Duration = Duration::from_secs(60);
/// The longest that a token is kept, whatever its giver says.
const LONGEST: Duration = Duration::from_secs(3_600);
/// How long user and password are shown unasked, before the file they come from is read anew.
const PASSWORD: Duration = Duration::from_secs(300);

/// The registry at one base.
#[derive(Debug)]
pub(super) struct Remote {
    pub base: Base,
    pub keyring: Keyring,
    /// What stands before it.
    pub proxy: Option<String>,
    wire: Wire,
    tickets: Mutex<Tickets>,
    clock: Clock,
}

/// One question.
pub(super) struct Asked<'a> {
    pub verb: Verb,
    pub vm: &'a str,
    pub tag: &'a str,
    pub access: Access,
    /// Of each request.
    pub deadline: Duration,
    /// Of the whole call.
    pub until: Instant,
    /// How long a request may take, and whether it may leave.
    pub term: Term<'a>,
}

/// What came of it.
pub(super) struct Said {
    /// As received, for whoever counts.
    pub reply: Reply,
    /// As understood.
    pub outcome: Outcome,
    /// A page for people, by its own account.
    pub markup: bool,
}

/// What lets us in, and what must never be told of it.
struct Ticket {
    header: HeaderValue,
    place: Place,
    good_for: Duration,
    anonymous: bool,
}

impl Remote {
    pub fn new(base: Base, clock: Clock, connect: Duration, proxies: Proxies) -> Result<Self, StartupError> {
        let proxy = match base.to_string().parse() {
            Ok(server) => proxies.named(&server)?,
            Err(_) => None,
        };
        let wire = Wire::new(&base, connect, proxies)?;
        Ok(Self { base, keyring: Keyring::empty(), proxy, wire, tickets: Mutex::default(), clock })
    }

    /// Asks. A 401 is answered with one new ticket and one more try; a second one stands.
    pub async fn ask(&self, asked: &Asked<'_>) -> Said {
        let (Some(uri), Some(repository)) = (self.uri(asked), self.base.repository(asked.vm)) else {
            let words = format!("{}:{} is no reference that a registry could have", asked.vm, asked.tag);
            return Said::unsent(Outcome::of(Class::Unsupported).saying(words));
        };
        let held = self.tickets().get(&repository, asked.access, self.clock.since_start());
        let first = self.exchange(asked, &uri, held.as_ref()).await;
        let Some(challenge) = first.challenge.clone() else { return understood(asked.verb, first, held.as_ref()) };
        if let Some(held) = &held {
            self.tickets().forget(held);
        }
        let ticket = match self.ticket(asked, challenge, &repository).await {
            // The same once more would be refused once more.
            Ok(Some(ticket)) if held.as_ref() != Some(&ticket.header) => ticket,
            Ok(_) => return understood(asked.verb, first, held.as_ref()),
            Err(refused) => return *refused,
        };
        let second = self.exchange(asked, &uri, Some(&ticket.header)).await;
        if second.challenge.is_none() && !matches!(second.reply, Reply::Http { status: 401, .. }) {
            let now = self.clock.since_start();
            self.tickets().keep(ticket.place, ticket.header.clone(), now.saturating_add(ticket.good_for), now);
        }
        let mut said = understood(asked.verb, second, Some(&ticket.header));
        if said.outcome.class == Class::Denied && ticket.anonymous {
            said.outcome.message.push_str(" (asked without user and password: the Docker config names none)");
        }
        said
    }

    /// From now on outcomes say who did not answer, and why.
    pub fn tell_causes(&mut self) {
        self.wire.tells = true;
    }

    fn uri(&self, asked: &Asked<'_>) -> Option<Uri> {
        self.base.manifest(asked.vm, asked.tag)?.parse().ok()
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, asked: &Asked<'_>, uri: &Uri, ticket: Option<&HeaderValue>) -> Answered {
        let method = match asked.verb {
            Verb::RegistryHead => Method::HEAD,
            Verb::RegistryDelete => Method::DELETE,
            // The core asks nothing else of a registry; a GET changes nothing.
            Verb::RegistryGet
            | Verb::Get
            | Verb::List
            | Verb::Watch
            | Verb::Create
            | Verb::Update
            | Verb::Patch
            | Verb::Delete => Method::GET,
        };
        self.in_time(asked, self.wire.exchange(&method, uri, MANIFESTS, ticket)).await
    }

    async fn in_time(&self, asked: &Asked<'_>, exchange: impl Future<Output = Answered>) -> Answered {
        let Some(left) = (asked.term)(asked.verb) else { return Answered::lost(Reply::Fenced) };
        let until = asked.until.min(Instant::now() + asked.deadline.min(left));
        tokio::time::timeout_at(until, exchange).await.unwrap_or_else(|_| Answered {
            cause: self.wire.tells.then(|| self.base.to_string()),
            ..Answered::lost(Reply::TimedOut)
        })
    }

    /// What the registry wants to see; none where we have it not.
    async fn ticket(
        &self,
        asked: &Asked<'_>,
        challenge: Challenge,
        repository: &str,
    ) -> Result<Option<Ticket>, Box<Said>> {
        let credentials = self.keyring.lookup(self.base.host(), repository).map_err(|why| {
            Box::new(Said::unsent(Outcome::of(Class::Denied).saying(format!("the registry wants credentials; {why}"))))
        })?;
        match challenge {
            Challenge::Basic => Ok(credentials.basic().map(|header| Ticket {
                header,
                place: Place::Registry,
                good_for: PASSWORD,
                anonymous: false,
            })),
            Challenge::Bearer { realm, service, scope } => {
                let uri = token_uri(&realm, &service, &scopes(&scope, repository, asked.access));
                self.token(asked, uri, &credentials, repository).await.map(Some)
            }
        }
    }

    async fn token(
        &self,
        asked: &Asked<'_>,
        uri: Option<Uri>,
        credentials: &Credentials,
        repository: &str,
    ) -> Result<Ticket, Box<Said>> {
        let denied = |words: String| Box::new(Said::unsent(Outcome::of(Class::Denied).saying(words)));
        let uri = uri.ok_or_else(|| denied("the registry sends us for a token to no address".to_owned()))?;
        let from = target::told(&uri);
        if !target::may_be_asked(&uri, self.base.is_declared_plain()) {
            return Err(denied(format!("the registry sends us for a token to {from}, which is not protected")));
        }
        let basic = credentials.basic();
        let exchange = self.wire.exchange(&Method::GET, &uri, crate::core::wire::JSON, basic.as_ref());
        let answered = self.in_time(asked, exchange).await;
        let Some((token, good_for)) = granted(&answered.reply) else {
            return Err(Box::new(no_token(&from, answered, basic.as_ref())));
        };
        let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {token}")) else {
            return Err(denied(format!("{from} gives a token that cannot be sent")));
        };
        header.set_sensitive(true);
        let place = Place::Repository(repository.to_owned(), asked.access);
        Ok(Ticket { header, place, good_for, anonymous: basic.is_none() })
    }
}

impl Said {
    /// An answer, understood.
    pub fn of(verb: Verb, reply: Reply) -> Self {
        understood(verb, Answered::lost(reply), None)
    }
    /// Nothing was asked.
    fn unsent(outcome: Outcome) -> Self {
        Self { reply: Reply::Reset { sent: false }, outcome, markup: false }
    }
}

fn understood(verb: Verb, answered: Answered, ticket: Option<&HeaderValue>) -> Said {
    let mut outcome = classify(verb, &answered.reply);
    if let Some(cause) = &answered.cause {
        outcome.message.push_str(&format!(" ({cause})"));
    }
    outcome.message = redacted(outcome.message, ticket);
    Said { reply: answered.reply, outcome, markup: answered.markup }
}

/// What came of a request whose token was refused: a look, whatever was to be done, since nothing was. No answer of
/// the token's giver says anything of a tag.
fn no_token(from: &str, answered: Answered, ticket: Option<&HeaderValue>) -> Said {
    let mut outcome = classify(Verb::RegistryGet, &answered.reply);
    let class = match outcome.class {
        Class::Absent | Class::Unsupported => Class::Denied,
        Class::Present => Class::Unavailable,
        class => class,
    };
    let words = match outcome.message.as_str() {
        "" => format!("no token from {from}"),
        words => format!("no token from {from}: {words}"),
    };
    let words = match &answered.cause {
        Some(cause) => format!("{words} ({cause})"),
        None => words,
    };
    outcome = Outcome { retry_after: outcome.retry_after, ..Outcome::of(class) };
    outcome.message = redacted(words, ticket);
    Said { reply: answered.reply, outcome, markup: answered.markup }
}

/// The words without what we showed, should the other side repeat it.
fn redacted(words: String, ticket: Option<&HeaderValue>) -> String {
    let shown = ticket.and_then(|ticket| ticket.to_str().ok()).and_then(|ticket| ticket.split_once(' '));
    match shown {
        Some((_, secret)) if !secret.is_empty() => words.replace(secret, "[redacted]"),
        _ => words,
    }
}

/// The token of this answer and how long to keep it: a tenth less than it is good, so that none runs out on the way.
fn granted(reply: &Reply) -> Option<(String, Duration)> {
    let Reply::Http { status: 200, body, .. } = reply else { return None };
    let answer: Value = serde_json::from_slice(body).ok()?;
    let named = |key: &str| answer.get(key).and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = named("token").or_else(|| named("access_token"))?;
    let seconds = answer.get("expires_in").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
    let good = seconds.map_or(TOKEN, Duration::from_secs).min(LONGEST);
    Some((token.to_owned(), good - good / 10))
}

/// The scopes to ask for: what we are about to do, and what the registry says it takes. Where it calls the repository by
/// another name, its own words.
fn scopes(wanted: &str, repository: &str, access: Access) -> Vec<String> {
    let ours = format!("repository:{repository}:");
    let named: Vec<&str> = wanted.split_ascii_whitespace().collect();
    let about_us: Vec<&str> = named.iter().filter_map(|scope| scope.strip_prefix(ours.as_str())).collect();
    if about_us.is_empty() && !named.is_empty() {
        return named.into_iter().map(str::to_owned).collect();
    }
    let mut actions: Vec<&str> = access.actions().to_vec();
    actions.extend(about_us.iter().flat_map(|actions| actions.split(',')).filter(|action| !action.is_empty()));
    actions.sort_unstable();
    actions.dedup();
    vec![format!("{ours}{}", actions.join(","))]
}

fn token_uri(realm: &str, service: &str, scopes: &[String]) -> Option<Uri> {
    // An address without a host would be resolved against nothing.
    let at: Uri = realm.parse().ok()?;
    let at = target::resolve(&at, realm)?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !service.is_empty() {
        query.append_pair("service", service);
    }
    for scope in scopes {
        query.append_pair("scope", scope);
    }
    let joint = if at.query().is_some() { '&' } else { '?' };
    format!("{at}{joint}{}", query.finish()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", Access::Pull, &["repository:p/v:pull"])]
    #[case("", Access::Delete, &["repository:p/v:delete,pull,push"])]
    #[case("repository:p/v:pull,*", Access::Delete, &["repository:p/v:*,delete,pull,push"])]
    #[case("repository:p/v:pull registry:catalog:*", Access::Pull, &["repository:p/v:pull"])]
    #[case("repository:mirror/p/v:pull", Access::Pull, &["repository:mirror/p/v:pull"])]
    #[case("repository:p/vv:pull", Access::Pull, &["repository:p/vv:pull"])]
    fn the_scope_of_a_token(#[case] wanted: &str, #[case] access: Access, #[case] scope: &[&str]) {
        assert_eq!(scopes(wanted, "p/v", access), scope);
    }

    #[rstest]
    #[case(
        "https://a.example/token",
        Some("https://a.example/token?service=r.example&scope=repository%3Ap%2Fv%3Apull")
    )]
    #[case(
        "https://a.example/t?x=1",
        Some("https://a.example/t?x=1&service=r.example&scope=repository%3Ap%2Fv%3Apull")
    )]
    #[case("/token", None)]
    #[case("token", None)]
    #[case("https://user:secret@a.example/token", None)]
    #[case("file:///token", None)]
    fn where_tokens_are_asked_for(#[case] realm: &str, #[case] at: Option<&str>) {
        let uri = token_uri(realm, "r.example", &["repository:p/v:pull".to_owned()]);
        assert_eq!(uri.map(|uri| uri.to_string()).as_deref(), at);
    }

    #[rstest]
    #[case(r#"{"token": "t", "expires_in": 300}"#, Some(("t", 270)))]
    #[case(r#"{"access_token": "t"}"#, Some(("t", 54)))]
    #[case(r#"{"token": "", "access_token": "t", "expires_in": 0}"#, Some(("t", 54)))]
    #[case(r#"{"token": "t", "expires_in": -5}"#, Some(("t", 54)))]
    #[case(r#"{"token": "t", "expires_in": "300"}"#, Some(("t", 54)))]
    #[case(r#"{"token": "t", "expires_in": 18446744073709551615}"#, Some(("t", 3240)))]
    #[case(r#"{"token": 7}"#, None)]
    #[case("<html>sign in</html>", None)]
    #[case("", None)]
    fn how_long_a_token_is_kept(#[case] body: &str, #[case] kept: Option<(&str, u64)>) {
        let reply = Reply::Http { status: 200, retry_after: None, body: body.as_bytes().to_vec(), digest: None };
        let kept = kept.map(|(token, seconds)| (token.to_owned(), Duration::from_secs(seconds)));
        assert_eq!(granted(&reply), kept);
    }

    #[test]
    fn what_we_showed_is_not_repeated() {
        let ticket = HeaderValue::from_static("Bearer SECRET");
        assert_eq!(redacted("bad token SECRET!".to_owned(), Some(&ticket)), "bad token [redacted]!");
    }
}
