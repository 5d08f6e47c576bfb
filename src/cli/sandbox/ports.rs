//! The ports of a sandbox: all are taken before anything starts, and told in its first lines.

use super::Args;
use super::apply::Applied;
use super::until::SETS;
use crate::shell::Ports;
use crate::shell::debug;
use crate::shell::http::{Serves, listen_as};
use crate::shell::options::{Address, Settings, StartupError, address};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// The ports on which an operator listens where nobody says otherwise.
const DEFAULTS: [(&str, u16); 3] = [("", 8080), ("", 8081), debug::DEFAULT];

/// Which ports are wanted.
#[derive(Debug)]
pub(super) struct SandboxPorts {
    api: Address,
    registry: Option<Address>,
    /// None where there is no operator.
    operator: Option<Settings>,
}

/// The ports that were taken.
#[derive(Debug)]
pub(super) struct Listening {
    pub api: TcpListener,
    pub registry: Option<TcpListener>,
    /// None where there is no operator.
    pub operator: Option<(Ports, Settings)>,
    lines: Vec<String>,
    url: String,
}

impl SandboxPorts {
    /// As the flags say.
    pub(super) fn parse(args: &Args) -> Result<Self, StartupError> {
        let refuse = |flag: &'static str, text: &str| StartupError::Listener { flag, text: text.to_owned() };
        let local = |flag: &'static str, text: &str| {
            let found = address(flag, text, 0).ok().flatten().filter(|_| !text.trim().is_empty());
            let found = found.ok_or_else(|| refuse(flag, text))?;
            // The API takes no credentials: it leaves the machine only where that is asked for.
            let host = if found.host.is_empty() { "127.0.0.1".to_owned() } else { found.host };
            Ok(Address { host, port: found.port })
        };
        Ok(Self {
            api: local("--listen", &args.listen)?,
            registry: args.registry_listen.as_deref().map(|text| local("--registry-listen", text)).transpose()?,
            operator: if args.no_operator { None } else { Some(args.run.settings()?) },
        })
    }

    /// Takes them all, or says which one is taken.
    pub(super) async fn take(self) -> Result<Listening, StartupError> {
        let api = listen_as("--listen", &self.api).await?;
        let url = format!("http://{}", reached(&api)?);
        let mut lines = vec![format!("Kubernetes API  {url}")];
        let registry = match &self.registry {
            Some(address) => {
                let listener = listen_as("--registry-listen", address).await?;
                lines.push(format!("Registry        http://{}", reached(&listener)?));
                Some(listener)
            }
            None => None,
        };
        let operator = match self.operator {
            Some(settings) => Some((ports_of(&settings, &mut lines).await?, settings)),
            None => {
                lines.push("Operator        none; start one beside it, see docs/sandbox.md".to_owned());
                None
            }
        };
        Ok(Listening { api, registry, operator, lines, url })
    }
}

/// Metrics, probes and debugging. Two sandboxes side by side are usual, and so is something else on 8080: the default ports give
/// way to free ones, those that were asked for do not.
async fn ports_of(settings: &Settings, lines: &mut Vec<String>) -> Result<Ports, StartupError> {
    let mut ports = Ports::default();
    let wanted = [
        (&settings.metrics, Serves::Metrics, "--metrics-bind-address", "Metrics         ", "/metrics"),
        (&settings.probes, Serves::Probes, "--health-probe-bind-address", "Probes          ", "/healthz, /readyz"),
        (
            &settings.debug,
            Serves::Debug,
            "--debug-bind-address",
            "Debug           ",
            "/debug/passes?object=NAMESPACE/NAME",
        ),
    ];
    for ((wanted, serves, flag, label, paths), (host, port)) in wanted.into_iter().zip(DEFAULTS) {
        let Some(wanted) = wanted else { continue };
        let by_default = wanted.host == host && wanted.port == port;
        // A sandbox is for this machine alone, unless somebody says otherwise.
        let local = Address { host: "127.0.0.1".to_owned(), port };
        let (listener, instead) = match listen_as(flag, if by_default { &local } else { wanted }).await {
            Ok(listener) => (listener, String::new()),
            Err(_) if by_default => {
                let free = Address { host: "127.0.0.1".to_owned(), port: 0 };
                (listen_as(flag, &free).await?, format!("  (port {port} is taken)"))
            }
            Err(error) => return Err(error),
        };
        lines.push(format!("{label}http://{}{paths}{instead}", reached(&listener)?));
        ports.add(listener, serves);
    }
    Ok(ports)
}

/// Where a client on this machine reaches it.
fn reached(listener: &TcpListener) -> Result<SocketAddr, StartupError> {
    let failed = |error: std::io::Error| StartupError::Environment { what: "a port", why: error.to_string() };
    let mut address = listener.local_addr().map_err(failed)?;
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        // Bound for both families.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(address)
}

impl Listening {
    /// What is where, and how it is used.
    pub(super) fn told(&self, applied: &[Applied]) -> String {
        let mut lines = self.lines.clone();
        let sets = |namespace: &str| {
            format!("{}/apis/cocoonset.cocoonstack.io/v1/namespaces/{namespace}/cocoonsets", self.url)
        };
        let set = applied.iter().find(|one| one.resource == SETS);
        lines.push(format!("Look            curl {}", sets(set.map_or("default", |set| &set.namespace))));
        if let Some(set) = set {
            lines.push(format!("Delete          curl -X DELETE {}/{}", sets(&set.namespace), set.name));
        }
        lines.push("Stop            Ctrl-C; nothing of it is kept".to_owned());
        lines.join("\n")
    }
}
