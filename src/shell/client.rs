//! The API server as a place that requests are sent to: bytes out, bytes in, every call with a deadline, no retry of its
//! own (kube's would hide up to fifteen tries from the core).

use super::clock::Clock;
use super::limits::{Limits, held_back};
use super::metrics::Metrics;
use super::transport;
use crate::core::wire::{Reply, Request, retry_after};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The largest answer that is read; a list of five hundred pods has a hundredth of it.
const MAX_BODY: usize = 256 << 20;
/// The longest line of a watch: an object may have 1.5 MiB, and escapes may make it six times that.
const MAX_LINE: usize = 16 << 20;

/// The API server.
#[derive(Debug)]
pub struct Api {
    client: Client,
    limits: Limits,
    deadline: Duration,
    metrics: Arc<Metrics>,
}

struct Client(kube::Client);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// An open watch, line by line.
#[derive(Debug)]
pub struct Lines {
    body: Body,
    read: BytesMut,
}

/// Why a watch gave no further line.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The server closed it.
    Closed,
    /// The connection broke, or what came is no stream of lines.
    Broken,
}

impl Api {
    /// Over this client; each call is given up after `deadline`.
    pub fn new(client: kube::Client, clock: Clock, deadline: Duration, metrics: Arc<Metrics>) -> Self {
        Self { client: Client(client), limits: Limits::new(clock), deadline, metrics }
    }

    /// Sends one request of this flow and reads the whole answer.
    pub async fn send(&self, flow: &str, request: &Request) -> Reply {
        self.send_within(flow, request, || Some(self.deadline)).await
    }

    /// The same within a term: it may be waited for as long as `term` says at the moment at which it leaves, which may be
    /// long after it came here, and without a term it does not leave (decision R11).
    pub async fn send_within(&self, flow: &str, request: &Request, term: impl Fn() -> Option<Duration>) -> Reply {
        let permit = match self.limits.leave(flow).await {
            Ok(permit) => permit,
            Err(left) => return held_back(left),
        };
        let Some(left) = term() else { return Reply::Fenced };
        let reply = self.exchanged(request, self.deadline.min(left)).await;
        permit.answered(&reply);
        reply
    }

    /// Sends one request past the gate: what keeps the lease must not queue behind what the lease is for.
    pub async fn send_apart(&self, request: &Request, deadline: Duration) -> Reply {
        self.exchanged(request, self.deadline.min(deadline)).await
    }

    async fn exchanged(&self, request: &Request, deadline: Duration) -> Reply {
        let reply = tokio::time::timeout(deadline, self.exchange(request)).await.unwrap_or(Reply::TimedOut);
        self.metrics.request(request.method.as_str(), &reply);
        reply
    }

    /// Opens a watch: the deadline is for the answer's head. An answer that is no watch comes back as `Err`.
    pub async fn open(&self, flow: &str, request: &Request) -> Result<Lines, Reply> {
        let permit = self.limits.leave(flow).await.map_err(held_back)?;
        let opened = tokio::time::timeout(self.deadline, self.head(request)).await.unwrap_or(Err(Reply::TimedOut));
        let opened = match opened {
            Ok(response) if response.status() == http::StatusCode::OK => {
                let head = Reply::Http { status: 200, retry_after: None, body: Vec::new(), digest: None };
                Ok((Lines { body: response.into_body(), read: BytesMut::new() }, head))
            }
            Ok(response) => Err(tokio::time::timeout(self.deadline, whole(response)).await.unwrap_or(Reply::TimedOut)),
            Err(lost) => Err(lost),
        };
        let reply = match &opened {
            Ok((_, head)) => head,
            Err(reply) => reply,
        };
        self.metrics.request(request.method.as_str(), reply);
        permit.answered(reply);
        opened.map(|(lines, _)| lines)
    }

    /// How many requests may be under way now.
    pub fn width(&self) -> usize {
        self.limits.width()
    }

    async fn exchange(&self, request: &Request) -> Reply {
        match self.head(request).await {
            Ok(response) => whole(response).await,
            Err(lost) => lost,
        }
    }

    async fn head(&self, request: &Request) -> Result<http::Response<Body>, Reply> {
        let Ok(request) = spelled(request) else {
            // It could not even be written down: nothing left, and the core hears of it.
            return Err(Reply::Reset { sent: false });
        };
        self.client.0.send(request).await.map_err(|error| transport::lost(&error))
    }
}

impl Lines {
    /// The next line that is not empty.
    pub async fn next(&mut self) -> Result<Bytes, Ended> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1).freeze();
                let line = line.slice(..end);
                if !line.trim_ascii().is_empty() {
                    return Ok(line);
                }
                continue;
            }
            if self.read.len() > MAX_LINE {
                return Err(Ended::Broken);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(_)) => return Err(Ended::Broken),
                // Half a line is a broken connection, whatever the transport says.
                None if self.read.trim_ascii().is_empty() => return Err(Ended::Closed),
                None => return Err(Ended::Broken),
            }
        }
    }
}

/// The request as the client sends it.
pub(crate) fn spelled(request: &Request) -> Result<http::Request<Body>, http::Error> {
    let mut target = request.path.clone();
    if !request.query.is_empty() {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&request.query);
        target = format!("{target}?{}", query.finish());
    }
    let body = match &request.body {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string().into_bytes()),
    };
    let mut builder = http::Request::builder().method(request.method.as_str()).uri(target);
    builder = builder.header(http::header::ACCEPT, "application/json");
    if let Some(content_type) = &request.content_type {
        builder = builder.header(http::header::CONTENT_TYPE, content_type);
    }
    builder.body(body)
}

async fn whole(response: http::Response<Body>) -> Reply {
    let (parts, body) = response.into_parts();
    let header = parts.headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Reply::Http {
            status: parts.status.as_u16(),
            retry_after: header.and_then(retry_after),
            body: body.to_bytes().into(),
            digest: None,
        },
        Err(error) => transport::lost(error.as_ref()),
    }
}

/// The client for this configuration: no hidden retries, our own name, deadlines for the connection.
pub fn connect(mut config: kube::Config) -> Result<kube::Client, kube::Error> {
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    let name = concat!("cocoon-operator/", env!("CARGO_PKG_VERSION"));
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(name)));
    kube::Client::try_from(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::wire::Method;

    #[test]
    fn a_query_is_encoded() {
        let request = Request::new(Method::Get, "/api/v1/pods").with_query("labelSelector", "a.b/c in (x, y)&z");
        let spelled = spelled(&request).expect("a request");
        assert_eq!(spelled.uri().to_string(), "/api/v1/pods?labelSelector=a.b%2Fc+in+%28x%2C+y%29%26z");
    }

    #[tokio::test]
    async fn lines_are_put_together_from_pieces() {
        let pieces = ["{\"a\":", "1}\n\n{\"b\"", ":2}\n{\"half"];
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let frames =
                pieces.map(|piece| Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from(piece))));
            let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
            async move { Ok::<_, std::io::Error>(http::Response::new(body)) }
        });
        let client = kube::Client::new(service, "default");
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0);
        let api = Api::new(client, clock, Duration::from_secs(1), Arc::default());
        let mut lines = api.open("pods", &Request::new(Method::Get, "/api/v1/pods")).await.expect("a watch");
        assert_eq!(lines.next().await.as_deref(), Ok(b"{\"a\":1}".as_slice()));
        assert_eq!(lines.next().await.as_deref(), Ok(b"{\"b\":2}".as_slice()));
        assert_eq!(lines.next().await, Err(Ended::Broken));
    }
}
