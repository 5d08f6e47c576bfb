//! Deliberate faults of the simulated API server, each made by tampering with what goes in and what comes out. The
//! comparison has to notice every single one.

use crate::recorded;
use crate::script::report::Report;
use crate::script::{cases, play_simulated};
use bytes::Bytes;
use cocoon_operator::sim::server::Cluster;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};
use std::convert::Infallible;

type Sent = UnsyncBoxBody<Bytes, Infallible>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A way in which the server is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// What exists is refused as invalid.
    WrongStatusCode,
    /// A changed spec is the same generation.
    NoGeneration,
    /// A stale version is as good as the present one.
    NoConflict,
    /// Pods do not wait for their node.
    InstantPodDeletion,
    /// Finalizers hold nothing.
    FinalizerIgnored,
    /// Quotas bind nobody.
    QuotaNotEnforced,
    /// Changes are not shown to watches.
    WatchEventLost,
    /// A write answers with a version from before it.
    VersionGoesBack,
    /// A default of the schema is not filled in.
    MissingDefault,
    /// Status can be written through the object itself.
    StatusThroughMain,
    /// A deletion does not look at its preconditions.
    PreconditionIgnored,
    /// A dry run is a real one.
    DryRunStores,
    /// Selectors select everything.
    SelectorIgnored,
}

impl Fault {
    /// The request as the faulty server takes it.
    async fn take(self, cluster: &Cluster, request: Request<Bytes>) -> Request<Bytes> {
        let (mut parts, bytes) = request.into_parts();
        let mut body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let path = parts.uri.path().to_owned();
        let deletes = parts.method == Method::DELETE;
        match self {
            Self::NoConflict if parts.method == Method::PATCH => take_away(&mut body, "metadata", "resourceVersion"),
            Self::InstantPodDeletion if deletes && path.contains("/pods/") => {
                parts.uri = with_query(&path, "gracePeriodSeconds=0");
                body = Value::Null;
            }
            Self::FinalizerIgnored if deletes => {
                let patch = json!({"metadata": {"finalizers": null}});
                let request = Request::patch(&path).header("Content-Type", "application/merge-patch+json");
                let request = request.body(Full::new(Bytes::from(patch.to_string()))).expect("a request");
                cluster.handle("admin", request).await.expect("an answer");
            }
            Self::QuotaNotEnforced if parts.method == Method::POST && path.ends_with("/pods") => {
                cluster.with(|world| {
                    let namespace = path.split('/').nth(4).unwrap_or("").to_owned();
                    world.store.modify("resourcequotas", &namespace, "pods", |quota| {
                        quota["status"]["hard"] = json!({"pods": "1000", "requests.cpu": "1000"});
                    });
                })
            }
            Self::PreconditionIgnored if deletes && body.is_object() => {
                body["preconditions"] = Value::Null;
            }
            Self::DryRunStores => parts.uri = without(&parts.uri, "dryRun"),
            Self::SelectorIgnored => parts.uri = without(&parts.uri, "labelSelector"),
            _ => return Request::from_parts(parts, bytes),
        }
        let bytes = if body.is_null() { bytes } else { Bytes::from(body.to_string()) };
        let bytes =
            if self == Self::InstantPodDeletion && deletes && path.contains("/pods/") { Bytes::new() } else { bytes };
        Request::from_parts(parts, bytes)
    }

    /// The answer as the faulty server gives it.
    fn give(self, method: &Method, status: &mut http::StatusCode, body: &mut Value) {
        match self {
            Self::WrongStatusCode if body["reason"] == "AlreadyExists" => {
                *status = http::StatusCode::UNPROCESSABLE_ENTITY;
                body["code"] = json!(422);
            }
            Self::NoGeneration if body["metadata"]["generation"].is_number() => {
                body["metadata"]["generation"] = json!(1)
            }
            Self::VersionGoesBack if *method == Method::PATCH && body["metadata"]["uid"].is_string() => {
                body["metadata"]["resourceVersion"] = json!("1");
            }
            Self::MissingDefault => take_away(body, "spec", "nodePool"),
            _ => {}
        }
    }

    fn keeps(self, line: &str) -> bool {
        self != Self::WatchEventLost || !line.contains("\"type\":\"MODIFIED\"")
    }
}

fn take_away(body: &mut Value, part: &str, field: &str) {
    if let Some(map) = body.get_mut(part).and_then(Value::as_object_mut) {
        map.remove(field);
    }
}

fn with_query(path: &str, query: &str) -> http::Uri {
    format!("{path}?{query}").parse().expect("a path")
}

fn without(uri: &http::Uri, parameter: &str) -> http::Uri {
    let kept: Vec<&str> = uri.query().unwrap_or("").split('&').filter(|part| !part.starts_with(parameter)).collect();
    with_query(uri.path(), &kept.join("&"))
}

/// A client of a cluster that has this fault.
fn client(cluster: &Cluster, fault: Fault) -> kube::Client {
    let cluster = cluster.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let cluster = cluster.clone();
        async move { answer(&cluster, fault, request).await }
    });
    kube::Client::new(service, "default")
}

async fn answer(cluster: &Cluster, fault: Fault, request: Request<Body>) -> Result<Response<Sent>, BoxError> {
    let (parts, body) = request.into_parts();
    let sent = body.collect().await?.to_bytes();
    let method = parts.method.clone();
    let watches = parts.uri.query().is_some_and(|query| query.contains("watch=true"));
    let request = fault.take(cluster, Request::from_parts(parts, sent)).await;
    let main = (request.uri().path().to_owned(), request.body().clone());
    let response = cluster.handle("admin", request.map(Full::new)).await?;
    let through_main = fault == Fault::StatusThroughMain && method == Method::PATCH && !main.0.ends_with("/status");
    let response = if through_main && response.status().is_success() {
        let request =
            Request::patch(format!("{}/status", main.0)).header("Content-Type", "application/merge-patch+json");
        let second = cluster.handle("admin", request.body(Full::new(main.1))?).await?;
        if second.status().is_success() { second } else { response }
    } else {
        response
    };
    let (mut head, body) = response.into_parts();
    if watches {
        let lines = body.map_frame(move |frame| {
            frame.map_data(|line| if fault.keeps(&String::from_utf8_lossy(&line)) { line } else { Bytes::new() })
        });
        return Ok(Response::from_parts(head, lines.boxed_unsync()));
    }
    let bytes = body.collect().await?.to_bytes();
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(Response::from_parts(head, Full::new(bytes).boxed_unsync()));
    };
    fault.give(&method, &mut head.status, &mut value);
    Ok(Response::from_parts(head, Full::new(Bytes::from(value.to_string())).boxed_unsync()))
}

/// Whether the comparison notices this fault in these cases. A script that cannot be played to its end has, too.
#[rstest]
#[case(Fault::WrongStatusCode, "life-cocoonset")]
#[case(Fault::NoGeneration, "schema-changes")]
#[case(Fault::NoConflict, "life-cocoonset")]
#[case(Fault::InstantPodDeletion, "pods-bound")]
#[case(Fault::FinalizerIgnored, "life-cocoonset")]
#[case(Fault::QuotaNotEnforced, "quota")]
#[case(Fault::WatchEventLost, "watch-sets")]
#[case(Fault::VersionGoesBack, "life-configmap")]
#[case(Fault::MissingDefault, "schema-specs")]
#[case(Fault::StatusThroughMain, "life-cocoonset")]
#[case(Fault::PreconditionIgnored, "life-lease")]
#[case(Fault::DryRunStores, "life-cocoonhibernation")]
#[case(Fault::SelectorIgnored, "watch-sets")]
fn a_fault_is_noticed(#[case] fault: Fault, #[case] case: &str) {
    let chosen: Vec<_> = cases().into_iter().filter(|one| one.name == case).collect();
    assert!(!chosen.is_empty(), "a case {case}");
    let sound = play_simulated(&chosen, |cluster| cluster.client("admin", "default")).expect("the script plays");
    assert!(Report::of(&sound, &recorded()).unexplained.is_empty(), "without the fault there is nothing to notice");
    match play_simulated(&chosen, |cluster| client(cluster, fault)) {
        Ok(said) => assert!(!Report::of(&said, &recorded()).unexplained.is_empty(), "{fault:?} went unnoticed"),
        Err(error) => println!("{fault:?}: the script came to an end: {error}"),
    }
}
