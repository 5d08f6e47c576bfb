//! Why the operator does not start, in words and as an exit code.

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
    #[error("{flag} {text:?}: expected HOST:PORT or :PORT with a PORT up to 65535, or 0 for none")]
    Address {
        /// Which.
        flag: &'static str,
        /// As given.
        text: String,
    },
    /// An address that has to be one does not read.
    #[error("{flag} {text:?}: expected HOST:PORT or :PORT with a PORT up to 65535")]
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
    /// A proxy is named that cannot be spoken with.
    #[error("HTTPS_PROXY or ALL_PROXY names {address}: expected an address that begins with http://")]
    Proxy {
        /// As given, without user and password.
        address: String,
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
            | Self::Proxy { .. }
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
