//! The way to a registry where a proxy stands in it: a tunnel for what TLS protects, as `HTTPS_PROXY`, `ALL_PROXY` and
//! `NO_PROXY` say it (in small letters, too).

use crate::shell::options::StartupError;
use crate::shell::reference::is_loopback;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower::Service;

/// Which proxy stands before which server.
#[derive(Clone, Debug)]
pub struct Proxies(Arc<Matcher>);

impl Proxies {
    /// As the environment has it.
    pub fn of_environment() -> Self {
        Self(Arc::new(Matcher::from_env()))
    }

    /// This one for everything but these names and networks, by commas.
    pub fn through(proxy: &str, but: &str) -> Self {
        Self(Arc::new(Matcher::builder().https(proxy.to_owned()).no(but.to_owned()).build()))
    }

    /// The proxy before this server. Without TLS everything could be read and changed there, and this machine needs none.
    fn before(&self, server: &Uri) -> Option<Intercept> {
        let asked = server.scheme_str() == Some("https") && !server.host().is_some_and(is_loopback);
        asked.then(|| self.0.intercept(server)).flatten()
    }

    /// The address of the proxy before this server, without user and password; refused where it is none that is understood.
    pub fn named(&self, server: &Uri) -> Result<Option<String>, StartupError> {
        let Some(proxy) = self.before(server) else { return Ok(None) };
        let address = told(&proxy);
        if proxy.uri().scheme_str() == Some("http") { Ok(Some(address)) } else { Err(StartupError::Proxy { address }) }
    }
}

fn told(proxy: &Intercept) -> String {
    let uri = proxy.uri();
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", uri.scheme_str().unwrap_or("?"), uri.host().unwrap_or("?"))
}

/// Connects, through a proxy where one stands in the way.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    direct: HttpConnector,
    proxies: Proxies,
}

impl Ways {
    pub fn new(direct: HttpConnector, proxies: Proxies) -> Self {
        Self { direct, proxies }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Ways {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.before(&server) else {
            let connected = self.direct.call(server);
            return Box::pin(async move { connected.await.map_err(Into::into) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let error = StartupError::Proxy { address: told(&proxy) };
            return Box::pin(async move { Err(error.into()) });
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        let mut tunnel = match proxy.basic_auth() {
            Some(user) => tunnel.with_auth(user.clone()),
            None => tunnel,
        };
        let connected = tunnel.call(server);
        Box::pin(async move { connected.await.map_err(Into::into) })
    }
}
