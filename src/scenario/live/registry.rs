//! The registry of one operator, over HTTP.

use crate::core::wire::Reply;
use crate::shell::clock::Clock;
use crate::shell::reference::Base;
use crate::shell::registry::{Local, Registry};
use crate::sim::http::{accept, manifests};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Serves what answers there, on a free port of loopback.
pub fn serve(answer: Local, clock: Clock) -> Result<(Registry, JoinHandle<()>), Box<dyn std::error::Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let registry = Registry::http(Base::parse(&listener.local_addr()?.to_string(), None)?, clock)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = tokio::spawn(async move {
        let handle = move |request: http::Request<hyper::body::Incoming>| {
            let answer = Arc::clone(&answer);
            async move { manifests(&request, |verb, vm, tag| answer(verb, vm, tag, None)).await }
        };
        accept(listener, handle).await.ok();
    });
    Ok((registry, server))
}

/// Where none can be served: the story shows why.
pub fn none(because: &str, clock: Clock) -> Registry {
    let body = format!("no registry is served: {because}").into_bytes();
    let answers: Local = Arc::new(move |_, _, _, _| {
        let reply = Reply::Http { status: 503, retry_after: None, body: body.clone(), digest: None };
        Box::pin(std::future::ready(reply))
    });
    Registry::local(answers, clock)
}
