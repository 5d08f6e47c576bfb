//! A cluster behind a port, with the calls that it answered.

use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::store::ADMIN;
use cocoon_operator::sim::world::World;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A cluster without nodes and without an operator, as the one was that was recorded.
pub struct Served {
    /// `host:port`.
    pub address: String,
    calls: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    /// Serves until it is dropped.
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("runs");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let cluster = runtime.block_on(async { Cluster::new(World::new(jiff::Timestamp::now())) });
        let driven = cluster.clone();
        runtime.spawn(async move { driven.drive().await });
        runtime.spawn(accept(listener, cluster, Arc::clone(&calls)));
        Self { address, calls, _runtime: runtime }
    }

    /// The calls since the last time: method, path without its query, status.
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().expect("sound"))
    }
}

async fn accept(listener: TcpListener, cluster: Cluster, calls: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (cluster, calls) = (cluster.clone(), Arc::clone(&calls));
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (cluster, calls) = (cluster.clone(), Arc::clone(&calls));
            async move {
                let asked = format!("{} {}", request.method(), request.uri().path());
                let answer = cluster.handle(ADMIN, request).await;
                let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                calls.lock().expect("sound").push(format!("{asked} {status}"));
                answer
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
