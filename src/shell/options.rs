//! Flags and environment of the operator, parsed once. A flag wins over the environment; an empty variable counts as
//! unset; a number that is not one is refused (decision R29).

pub use super::election_options::{ElectionOptions, ElectionSettings};
use super::recorder::RecordTo;
use super::reference::Base;
use clap::{ArgAction, Args};
use std::time::Duration;

/// Why the operator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// No registry is named.
    #[error("OCI_REGISTRY is not set: name the registry of VM snapshots, e.g. asia-docker.pkg.dev/project/repository")]
    NoRegistry,
    /// The registry's name does not read.
    #[error("OCI_REGISTRY {base:?}: {why}; expected HOST[:PORT][/PATH]")]
    Registry {
        /// As given.
        base: String,
        /// What is wrong with it.
        why: String,
    },
    /// The terms of the election contradict each other.
    #[error("{why}")]
    Election {
        /// What is wrong, and what is expected.
        why: &'static str,
    },
    /// An address does not read.
    #[error("{flag} {text:?}: expected HOST:PORT, :PORT, or 0 for none")]
    Address {
        /// Which.
        flag: &'static str,
        /// As given.
        text: String,
    },
    /// An address that has to be one does not read.
    #[error("{flag} {text:?}: expected HOST:PORT or :PORT")]
    Listener {
        /// Which.
        flag: &'static str,
        /// As given.
        text: String,
    },
    /// A kubeconfig does not read.
    #[error("kubeconfig {path}: {why}")]
    Kubeconfig {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Neither in a cluster nor told of one.
    #[error("no cluster: neither in-cluster credentials ({why}) nor --kubeconfig or KUBECONFIG")]
    NoCluster {
        /// Why there are no in-cluster credentials.
        why: String,
    },
    /// The API server does not answer.
    #[error("the API server at {url} does not answer: {why}")]
    Unreachable {
        /// Where.
        url: String,
        /// What happened.
        why: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// Which.
        address: String,
        /// Why.
        why: String,
    },
    /// The machine's certificates cannot be used.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// A recording cannot be begun.
    #[error("--record {dir}: {why}; expected a directory that can be written to")]
    Record {
        /// Where.
        dir: String,
        /// Why not.
        why: String,
    },
    /// Something of the machine that a start needs failed.
    #[error("{what}: {why}")]
    Environment {
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
}

impl StartupError {
    /// The exit code: 2 for bad input, 3 for a failed environment.
    pub const fn code(&self) -> u8 {
        match self {
            Self::NoRegistry
            | Self::Registry { .. }
            | Self::Election { .. }
            | Self::Address { .. }
            | Self::Listener { .. }
            | Self::Record { .. }
            | Self::Kubeconfig { .. } => 2,
            Self::NoCluster { .. }
            | Self::Unreachable { .. }
            | Self::Listen { .. }
            | Self::Tls(_)
            | Self::Environment { .. } => 3,
        }
    }
}

/// What `run` takes, and `sandbox` too.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Registry of VM snapshots: `HOST[:PORT][/PATH]`
    #[arg(long, env = "OCI_REGISTRY", value_name = "BASE")]
    pub oci_registry: Option<String>,
    /// Speak plain HTTP with the registry; without this only where it is on loopback
    #[arg(long, env = "OCI_REGISTRY_PLAIN_HTTP", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true", value_parser = flag_or_empty)]
    pub oci_registry_plain_http: Option<OrUnset<bool>>,
    /// Address of /metrics, `:PORT` for every interface, 0 for none
    #[arg(long, env = "METRICS_ADDR", value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: String,
    /// Address of /healthz and /readyz
    #[arg(long, env = "PROBE_ADDR", value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// Who leads.
    #[command(flatten)]
    pub election: ElectionOptions,
    /// How many CocoonSets are worked on at once
    #[arg(long, env = "COCOONSET_CONCURRENCY", value_name = "N", default_value = "4", value_parser = workers)]
    pub cocoonset_concurrency: OrUnset<usize>,
    /// How many CocoonHibernations are worked on at once
    #[arg(long, env = "HIBERNATION_CONCURRENCY", value_name = "N", default_value = "4", value_parser = workers)]
    pub hibernation_concurrency: OrUnset<usize>,
    /// error, warn, info, debug or trace
    #[arg(long, env = "OPERATOR_LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = level)]
    pub log_level: tracing::Level,
    /// text or json
    #[arg(long, env = "OPERATOR_LOG_FORMAT", value_name = "FORMAT", default_value = "text", value_parser = format)]
    pub log_format: LogFormat,
    /// Kubeconfig file; without it the cluster that this process runs in
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<String>,
    /// Longest wait for an answer of the API server
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub http_timeout: Duration,
    /// How long a watch stays open; one that is silent for twice as long makes the operator unready
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub watch_timeout: Duration,
    /// Longest wait at the end for what is under way
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration)]
    pub shutdown_timeout: Duration,
    /// Record every pass here, to be decided again with `replay`; the newest half gigabyte is kept
    #[arg(long, value_name = "DIR")]
    pub record: Option<std::path::PathBuf>,
}

/// A value, or a variable that is set to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrUnset<T>(pub Option<T>);

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// An address to listen on; without a host, every interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Name or number; empty for every interface.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bracketed = self.host.contains(':');
        if bracketed { write!(f, "[{}]:{}", self.host, self.port) } else { write!(f, "{}:{}", self.host, self.port) }
    }
}

/// What the running operator needs of the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Passes at once.
    pub workers: usize,
    /// Deadline of each call.
    pub http_timeout: Duration,
    /// `timeoutSeconds` of each watch.
    pub watch_timeout: Duration,
    /// How long in-flight passes may take at the end.
    pub shutdown_timeout: Duration,
    /// Where /metrics is served.
    pub metrics: Option<Address>,
    /// Where the probes are served.
    pub probes: Option<Address>,
    /// Where passes are recorded.
    pub record: Option<RecordTo>,
    /// The election, if there is one.
    pub election: Option<ElectionSettings>,
}

impl Default for Settings {
    /// What the flags default to, without any port and election.
    fn default() -> Self {
        Self {
            workers: 4,
            http_timeout: Duration::from_secs(30),
            watch_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(20),
            metrics: None,
            probes: None,
            record: None,
            election: None,
        }
    }
}

impl RunOptions {
    /// What the running operator needs.
    pub fn settings(&self) -> Result<Settings, StartupError> {
        Ok(Settings {
            workers: self.cocoonset_concurrency.0.unwrap_or(4),
            http_timeout: self.http_timeout,
            watch_timeout: self.watch_timeout,
            shutdown_timeout: self.shutdown_timeout,
            metrics: address("--metrics-bind-address", &self.metrics_bind_address, 8080)?,
            probes: address("--health-probe-bind-address", &self.health_probe_bind_address, 8081)?,
            record: self.record.as_ref().map(RecordTo::dir),
            election: self.election.settings()?,
        })
    }

    /// The registry that is named.
    pub fn registry(&self) -> Result<Base, StartupError> {
        let base = self.oci_registry.as_deref().filter(|base| !base.trim().is_empty());
        Base::parse(base.ok_or(StartupError::NoRegistry)?, self.oci_registry_plain_http.and_then(|plain| plain.0))
    }
}

/// An address as a flag gives it; nothing for `0`, this port of every interface for nothing.
pub fn address(flag: &'static str, text: &str, default: u16) -> Result<Option<Address>, StartupError> {
    let refuse = || StartupError::Address { flag, text: text.to_owned() };
    match text.trim() {
        "" => Ok(Some(Address { host: String::new(), port: default })),
        "0" => Ok(None),
        text => {
            let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            if bare.is_none() && host.contains(':') {
                return Err(refuse());
            }
            let host = bare.unwrap_or(host).to_owned();
            Ok(Some(Address { host, port: port.parse().map_err(|_| refuse())? }))
        }
    }
}

/// As Go reads a truth value.
pub(super) fn flag_or_empty(text: &str) -> Result<OrUnset<bool>, String> {
    match text.trim() {
        "" => Ok(OrUnset(None)),
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(OrUnset(Some(true))),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(OrUnset(Some(false))),
        _ => Err("expected true or false".to_owned()),
    }
}

fn workers(text: &str) -> Result<OrUnset<usize>, String> {
    match text.trim() {
        "" => Ok(OrUnset(None)),
        text => match text.parse() {
            Ok(count @ 1..=1024) => Ok(OrUnset(Some(count))),
            _ => Err("expected a whole number from 1 to 1024, in the flag or its variable".to_owned()),
        },
    }
}

fn level(text: &str) -> Result<tracing::Level, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "error" | "fatal" | "panic" => Ok(tracing::Level::ERROR),
        "warn" | "warning" => Ok(tracing::Level::WARN),
        "" | "info" => Ok(tracing::Level::INFO),
        "debug" => Ok(tracing::Level::DEBUG),
        "trace" => Ok(tracing::Level::TRACE),
        _ => Err("expected error, warn, info, debug or trace".to_owned()),
    }
}

fn format(text: &str) -> Result<LogFormat, String> {
    match text.trim() {
        "" | "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration from 1s to 1h, e.g. 30s or 5m".to_owned();
    let parsed: jiff::SignedDuration = text.trim().parse().map_err(|_| expected())?;
    let duration = Duration::try_from(parsed).map_err(|_| expected())?;
    if (1..=3_600).contains(&duration.as_secs()) { Ok(duration) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunOptions,
    }

    /// The options of this line; the environment of the test is not the operator's, so flags only.
    fn parse(flags: &[&str]) -> Result<RunOptions, clap::Error> {
        Line::try_parse_from([&["run"], flags].concat()).map(|line| line.run)
    }

    #[test]
    fn defaults_are_those_of_the_platform() {
        let options = parse(&[]).expect("no flag is needed");
        let settings = options.settings().expect("valid");
        assert_eq!((settings.workers, settings.http_timeout.as_secs()), (4, 30));
        assert_eq!(settings.metrics, Some(Address { host: String::new(), port: 8080 }));
        assert_eq!(settings.probes, Some(Address { host: String::new(), port: 8081 }));
    }

    #[test]
    fn a_number_that_is_none_is_refused() {
        for bad in ["four", "0", "-1", "1e3", "4 4", "99999999999999999999"] {
            assert_eq!(
                parse(&[&format!("--cocoonset-concurrency={bad}")]).expect_err("refused").exit_code(),
                2,
                "{bad}"
            );
            assert_eq!(parse(&[&format!("--hibernation-concurrency={bad}")]).expect_err("refused").exit_code(), 2);
        }
        assert_eq!(parse(&["--cocoonset-concurrency", "7"]).expect("parses").cocoonset_concurrency, OrUnset(Some(7)));
        assert_eq!(parse(&["--cocoonset-concurrency="]).expect("unset").settings().expect("valid").workers, 4);
    }

    #[test]
    fn addresses_read_as_go_reads_them() {
        let metrics =
            |text: &str| parse(&["--metrics-bind-address", text]).expect("parses").settings().map(|s| s.metrics);
        let some = |host: &str, port| Some(Address { host: host.to_owned(), port });
        assert_eq!(metrics(":9090").expect("valid"), some("", 9090));
        assert_eq!(metrics("127.0.0.1:0").expect("valid"), some("127.0.0.1", 0));
        assert_eq!(metrics("[::1]:80").expect("valid"), some("::1", 80));
        assert_eq!(metrics("0").expect("valid"), None);
        for bad in ["8080", "::1:80", "host:port", ":70000"] {
            assert_eq!(metrics(bad).expect_err("refused").code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_registry_is_needed_to_run() {
        assert_eq!(parse(&[]).expect("parses").registry().expect_err("refused").code(), 2);
        assert_eq!(parse(&["--oci-registry="]).expect("parses").registry().expect_err("refused").code(), 2);
        let plain = parse(&["--oci-registry=10.1.1.1/p", "--oci-registry-plain-http"]).expect("parses");
        assert_eq!(plain.registry().expect("a base").to_string(), "http://10.1.1.1/p");
    }

    #[test]
    fn durations_have_a_unit_and_bounds() {
        assert_eq!(parse(&["--http-timeout=5s"]).expect("parses").http_timeout, Duration::from_secs(5));
        for bad in ["0s", "2h", "-3s", "soon", "30"] {
            assert!(parse(&[&format!("--http-timeout={bad}")]).is_err(), "{bad}");
        }
    }
}
