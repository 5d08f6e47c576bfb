//! Flags and environment of the election (spec/observability.md 5 and 6).

use super::leader::{identity, own_namespace};
use super::options::{OrUnset, StartupError, duration, flag_or_empty};
use crate::core::control::election::TAG_DELETE_TERM;
use clap::{ArgAction, Args};
use std::time::Duration;

/// Whether and how a leader is elected.
#[derive(Clone, Debug, Args)]
pub struct ElectionOptions {
    /// Elect a leader among replicas; with false, the other flags of the election mean nothing
    #[arg(long, env = "LEADER_ELECT", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true", value_parser = flag_or_empty)]
    pub leader_elect: OrUnset<bool>,
    /// Namespace of the lease; without it the one that this process runs in, outside of a cluster cocoon-system
    #[arg(long, env = "LEADER_ELECT_NAMESPACE", value_name = "NAMESPACE")]
    pub leader_elect_namespace: Option<String>,
    /// How long others wait for a leader that is silent; whole seconds
    #[arg(long, env = "LEADER_ELECT_LEASE_DURATION", value_name = "DURATION", default_value = "15s",
        value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long after its last renewal a leader still writes
    #[arg(long, env = "LEADER_ELECT_RENEW_DEADLINE", value_name = "DURATION", default_value = "10s",
        value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// How long between two tries to get or renew the lease
    #[arg(long, env = "LEADER_ELECT_RETRY_PERIOD", value_name = "DURATION", default_value = "2s",
        value_parser = duration)]
    pub leader_elect_retry_period: Duration,
}

/// An election that this process takes part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionSettings {
    /// Where the lease is.
    pub namespace: String,
    /// Who this process is.
    pub identity: String,
    /// How long others wait.
    pub lease: Duration,
    /// How long it writes after a renewal.
    pub renew: Duration,
    /// Between two tries.
    pub retry: Duration,
}

impl ElectionSettings {
    /// With the durations that the flags default to.
    pub fn usual(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    /// What people should know of before they wonder.
    pub fn notice(&self) -> Option<String> {
        let longest = self.renew.saturating_sub(self.retry);
        (longest < TAG_DELETE_TERM).then(|| {
            format!(
                "--leader-elect-renew-deadline {:?}: a tag is deleted only with {TAG_DELETE_TERM:?} of the term left, \
                 which may be never",
                self.renew
            )
        })
    }
}

impl ElectionOptions {
    /// The election, or none.
    pub fn settings(&self) -> Result<Option<ElectionSettings>, StartupError> {
        if !self.leader_elect.0.unwrap_or(true) {
            return Ok(None);
        }
        let (lease, renew, retry) =
            (self.leader_elect_lease_duration, self.leader_elect_renew_deadline, self.leader_elect_retry_period);
        let refuse = |why| Err(StartupError::Election { why });
        if lease.subsec_nanos() != 0 {
            return refuse("--leader-elect-lease-duration has to be in whole seconds");
        }
        if lease <= renew {
            return refuse("--leader-elect-lease-duration has to be longer than --leader-elect-renew-deadline");
        }
        if renew <= retry {
            return refuse("--leader-elect-renew-deadline has to be longer than --leader-elect-retry-period");
        }
        let named = self.leader_elect_namespace.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let is_label = |name: &str| {
            name.len() <= 63 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if named.is_some_and(|name| !is_label(name)) {
            return refuse("--leader-elect-namespace is no name of a namespace");
        }
        let namespace = named.map_or_else(own_namespace, str::to_owned);
        Ok(Some(ElectionSettings { namespace, identity: identity(), lease, renew, retry }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        election: ElectionOptions,
    }

    fn settings(flags: &[&str]) -> Result<Option<ElectionSettings>, StartupError> {
        Line::try_parse_from([&["run"], flags].concat()).expect("parses").election.settings()
    }

    #[test]
    fn it_is_on_unless_it_is_off() {
        for flags in [&[][..], &["--leader-elect"], &["--leader-elect=true"], &["--leader-elect=1"]] {
            let election = settings(flags).expect("valid").expect("an election");
            assert_eq!((election.lease.as_secs(), election.renew.as_secs(), election.retry.as_secs()), (15, 10, 2));
            assert_eq!(election.notice(), None);
        }
        assert_eq!(settings(&["--leader-elect=false"]).expect("valid"), None);
        assert!(Line::try_parse_from(["run", "--leader-elect=maybe"]).is_err());
    }

    #[test]
    fn two_processes_of_one_host_are_two() {
        let one = settings(&[]).expect("valid").expect("an election");
        let two = settings(&[]).expect("valid").expect("an election");
        assert_ne!(one.identity, two.identity);
    }

    #[test]
    fn durations_that_would_let_two_write_are_refused() {
        for flags in [
            &["--leader-elect-lease-duration=10s"][..],
            &["--leader-elect-renew-deadline=15s"],
            &["--leader-elect-retry-period=10s"],
            &["--leader-elect-lease-duration=20500ms"],
            &["--leader-elect-namespace=a/b"],
        ] {
            assert_eq!(settings(flags).expect_err("refused").code(), 2, "{flags:?}");
        }
        let short = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"];
        let short = settings(&[&short[..], &["--leader-elect-namespace=team-a"]].concat()).expect("valid");
        let short = short.expect("an election");
        assert_eq!(short.namespace, "team-a");
        assert!(short.notice().expect("said").contains("5s"));
    }
}
