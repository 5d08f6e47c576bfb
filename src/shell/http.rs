//! /metrics on one address, /healthz and /readyz on another, /debug on a third.

use super::Shell;
use super::debug;
use super::options::{Address, StartupError};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::debug;

/// What an address serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// /metrics.
    Metrics,
    /// /healthz and /readyz.
    Probes,
    /// /debug/passes and /debug/memory.
    Debug,
}

impl std::fmt::Display for Serves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Metrics => "/metrics",
            Self::Probes => "/healthz and /readyz",
            Self::Debug => "/debug/passes and /debug/memory",
        })
    }
}

/// A client that does not finish its request head within this is cut off.
const HEAD: Duration = Duration::from_secs(10);

/// Takes the port. Without a host, every interface, of both families where the machine has both.
pub async fn listen(address: &Address) -> Result<TcpListener, StartupError> {
    let refuse = |error: std::io::Error| StartupError::Listen { address: address.to_string(), why: error.to_string() };
    if !address.host.is_empty() {
        return TcpListener::bind((address.host.as_str(), address.port)).await.map_err(refuse);
    }
    match TcpListener::bind(("::", address.port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(refuse(error)),
        Err(_) => TcpListener::bind(("0.0.0.0", address.port)).await.map_err(refuse),
    }
}

/// The same for this flag, which is named where the port cannot be had.
pub async fn listen_as(flag: &str, address: &Address) -> Result<TcpListener, StartupError> {
    listen(address).await.map_err(|error| match error {
        StartupError::Listen { address, why } => {
            StartupError::Listen { address, why: format!("{why}; choose another with {flag}, port 0 takes a free one") }
        }
        other => other,
    })
}

/// Serves until dropped.
pub async fn serve(shell: Arc<Shell>, listener: TcpListener, serves: Serves) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others may close theirs.
                debug!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let shell = Arc::clone(&shell);
        let service = service_fn(move |request: Request<Incoming>| {
            let response = answer(&shell, serves, request.method(), target(&request));
            async move { Ok::<_, Infallible>(response) }
        });
        connections.spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
                debug!(%error, "a connection ended early");
            }
        });
    }
}

/// The path, with the query where there is one.
fn target(request: &Request<Incoming>) -> &str {
    let uri = request.uri();
    uri.path_and_query().map_or_else(|| uri.path(), |whole| whole.as_str())
}

/// The answer to one request; the path with its query.
pub fn answer(shell: &Shell, serves: Serves, method: &Method, target: &str) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    if serves == Serves::Debug {
        return debug::answer(shell, target);
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    match (serves, path) {
        (Serves::Metrics, "/metrics") => {
            shell.metrics.queue(&shell.state.stats(), &shell.state.take_spans());
            typed(StatusCode::OK, prometheus::TEXT_FORMAT, shell.metrics.text())
        }
        (Serves::Probes, "/healthz") => plain(StatusCode::OK, "ok\n".to_owned()),
        (Serves::Probes, "/readyz") => match shell.unready() {
            why if why.is_empty() => plain(StatusCode::OK, "ok\n".to_owned()),
            why => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", why.join("\n"))),
        },
        _ => plain(StatusCode::NOT_FOUND, "not found\n".to_owned()),
    }
}

pub(super) fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text)
}

pub(super) fn typed(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
