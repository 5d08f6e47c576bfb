//! Reads of the API server and of a running operator, each with a deadline.

use super::super::{Failure, note};
use super::because;
use crate::core::classify::classify;
use crate::core::control::kinds::Kind;
use crate::core::control::wake::Key;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::{Method, Reply, Request, Verb};
use crate::shell::client::{self, Api};
use crate::shell::clock::Clock;
use crate::shell::watch::{collection, path};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for one answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Objects asked for at a time.
const PAGE: &str = "500";

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Everywhere, or it fails.
    Everywhere,
    /// Everywhere if that is allowed, else in this namespace.
    AtLeast(String),
}

/// A server that is asked.
pub(super) struct Cluster {
    api: Api,
    url: String,
}

impl Cluster {
    /// Not asked yet.
    pub(super) fn connect(config: kube::Config) -> Result<Self, Failure> {
        let url = config.cluster_url.to_string();
        let client = client::connect(config);
        let client = client.map_err(|error| Failure::Environment(format!("{url}: {}", because(&error))))?;
        Ok(Self { api: Api::new(client, Clock::real(), DEADLINE, Arc::default()), url })
    }

    /// Everything of this kind, and its version; nothing where a kind that the operator can do without may not be read.
    pub(super) async fn list(&self, kind: Kind, reach: &Reach) -> Result<Option<(Vec<Value>, String)>, Failure> {
        let everywhere = self.pages(collection(kind)).await;
        let refused = match everywhere {
            Ok(read) => return Ok(Some(read)),
            Err(outcome) if outcome.class != Class::RbacDenied => return Err(self.failed(kind.resource(), &outcome)),
            Err(outcome) => outcome,
        };
        match (kind, reach) {
            (Kind::Nodes, _) | (Kind::Namespaces, Reach::Everywhere) => {
                note(&format!(
                    "{} may not be read, and are unknown to a decision: {}",
                    kind.resource(),
                    refused.message
                ));
                Ok(None)
            }
            (Kind::Namespaces, Reach::AtLeast(namespace)) => {
                let request = Request::new(Method::Get, format!("{}/{namespace}", path(kind)));
                match self.ask(kind.resource(), Verb::Get, &request).await {
                    Outcome { class: Class::Done, answer: Answer::Object(object), .. } => {
                        Ok(Some((vec![object], String::new())))
                    }
                    outcome => {
                        note(&format!("namespace {namespace} may not be read, and is unknown: {}", outcome.message));
                        Ok(None)
                    }
                }
            }
            (Kind::CocoonSets | Kind::CocoonHibernations | Kind::Pods, Reach::AtLeast(namespace)) => {
                let mut request = collection(kind);
                request.path = match request.path.rsplit_once('/') {
                    Some((group, resource)) => format!("{group}/namespaces/{namespace}/{resource}"),
                    None => request.path,
                };
                let read = self.pages(request).await.map_err(|outcome| self.failed(kind.resource(), &outcome))?;
                note(&format!(
                    "{} of other namespaces may not be read: a VM name taken there is not seen",
                    kind.resource()
                ));
                Ok(Some(read))
            }
            (_, Reach::Everywhere) => Err(self.failed(kind.resource(), &refused)),
        }
    }

    /// One pod, whatever its labels; nothing where there is none.
    pub(super) async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
        let request = Request::new(Method::Get, format!("/api/v1/namespaces/{namespace}/pods/{name}"));
        match self.ask("pods", Verb::Get, &request).await {
            Outcome { class: Class::Done, answer: Answer::Object(pod), .. } => Ok(Some(pod)),
            Outcome { class: Class::NotFound, .. } => Ok(None),
            outcome => Err(self.failed(&format!("pod {namespace}/{name}"), &outcome)),
        }
    }

    /// What a running operator remembers of this object.
    pub(super) async fn memory(&self, key: &Key) -> Result<Value, Failure> {
        let request = Request::new(Method::Get, "/debug/memory").with_query("object", &key.to_string());
        let failed = |why: String| Failure::Environment(format!("--from {}: {why}", self.url));
        match self.api.send("debug", &request).await {
            Reply::Http { status: 200, body, .. } => {
                serde_json::from_slice(&body).map_err(|error| failed(format!("its answer is no JSON: {error}")))
            }
            Reply::Http { status: 404, .. } => {
                Err(failed(format!("no operator that knows {key} answers /debug/memory there")))
            }
            Reply::Http { status, .. } => Err(failed(format!("HTTP {status} for /debug/memory"))),
            Reply::TimedOut => Err(failed("no answer within the deadline".to_owned())),
            Reply::Reset { .. } | Reply::Fenced => Err(failed("no connection could be made".to_owned())),
        }
    }

    async fn pages(&self, first: Request) -> Result<(Vec<Value>, String), Outcome> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let mut request = first.clone().with_query("limit", PAGE);
            if !token.is_empty() {
                request = request.with_query("continue", &token);
            }
            match self.ask("list", Verb::List, &request).await {
                Outcome { class: Class::Done, answer: Answer::List { items, version, continue_token }, .. } => {
                    all.extend(items);
                    if continue_token.is_empty() {
                        return Ok((all, version));
                    }
                    token = continue_token;
                }
                outcome => return Err(outcome),
            }
        }
    }

    async fn ask(&self, flow: &str, verb: Verb, request: &Request) -> Outcome {
        classify(verb, &self.api.send(flow, request).await)
    }

    fn failed(&self, what: &str, outcome: &Outcome) -> Failure {
        Failure::Environment(format!(
            "{what} cannot be read from {}: {} ({})",
            self.url, outcome.class, outcome.message
        ))
    }
}
