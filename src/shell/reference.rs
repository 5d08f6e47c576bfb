//! Where a VM's snapshots live: registry, repository and scheme, from the base that the environment names
//! (registry.md 2).

use super::options::StartupError;
use std::net::IpAddr;

/// A registry and the path under which every VM has its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    scheme: &'static str,
    host: String,
    path: String,
    declared: bool,
}

/// How long a repository's name may be.
const MAX_REPOSITORY: usize = 255;
/// The host of a base that names none.
const DEFAULT_HOST: &str = "index.docker.io";

impl Base {
    /// Reads `OCI_REGISTRY`. `plain_http` forces the scheme; else only loopback is spoken to without TLS (decision R29).
    pub fn parse(base: &str, plain_http: Option<bool>) -> Result<Self, StartupError> {
        let refuse = |why: &str| StartupError::Registry { base: base.to_owned(), why: why.to_owned() };
        let text = base.trim().trim_end_matches('/');
        if text.is_empty() {
            return Err(refuse("it is empty"));
        }
        if text.contains("://") {
            return Err(refuse("it has a scheme; write only host and path"));
        }
        let (first, rest) = text.split_once('/').unwrap_or((text, ""));
        let is_host = first.contains(['.', ':']) || first == "localhost";
        let (host, path) = if is_host { (first, rest) } else { (DEFAULT_HOST, text) };
        let authority: http::uri::Authority = host.parse().map_err(|_| refuse("its host does not read"))?;
        if host.contains('@') || authority.host().is_empty() || host.ends_with(':') {
            return Err(refuse("its host does not read"));
        }
        if !path.chars().all(is_of_repository) {
            return Err(refuse("its path may have only a-z, 0-9 and _ - . / (no tag, no digest)"));
        }
        if path.split('/').any(|part| part.is_empty() && !path.is_empty()) {
            return Err(refuse("its path has an empty part"));
        }
        if path.len() + 2 > MAX_REPOSITORY {
            return Err(refuse("its path is too long"));
        }
        let plain = plain_http.unwrap_or_else(|| is_loopback(authority.host()));
        let scheme = if plain { "http" } else { "https" };
        let declared = plain_http == Some(true);
        Ok(Self { scheme, host: host.to_owned(), path: path.to_owned(), declared })
    }

    /// True where plain HTTP is declared to be fine, for whatever the registry sends us to as well (decision R29).
    pub fn is_declared_plain(&self) -> bool {
        self.declared
    }

    /// Host and port, as named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository of a VM; `None` where no registry could have it.
    pub fn repository(&self, vm: &str) -> Option<String> {
        let repository = if self.path.is_empty() { vm.to_owned() } else { format!("{}/{vm}", self.path) };
        let fits = (2..=MAX_REPOSITORY).contains(&repository.len()) && !vm.is_empty();
        let climbs = repository.split('/').any(|part| part.is_empty() || part == "." || part == "..");
        (fits && !climbs && repository.chars().all(is_of_repository)).then_some(repository)
    }

    /// The manifest of a VM's tag; `None` where no registry could have it.
    pub fn manifest(&self, vm: &str, tag: &str) -> Option<String> {
        let repository = self.repository(vm)?;
        let tag_reads = (1..=128).contains(&tag.len())
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            && !tag.starts_with(['.', '-']);
        tag_reads.then(|| format!("{}://{}/v2/{repository}/manifests/{tag}", self.scheme, self.host))
    }

    /// True where it is spoken to without TLS.
    pub fn is_plain(&self) -> bool {
        self.scheme == "http"
    }

    /// What to say at the start: that an older operator would have fallen back to plain HTTP silently, or that nothing
    /// protects what is said (decision R29).
    pub fn notice(&self) -> Option<String> {
        let host = &self.host;
        match self.scheme {
            "https" if is_private(host) => Some(format!(
                "registry {host} is asked over https only; if it speaks plain HTTP, set OCI_REGISTRY_PLAIN_HTTP=true"
            )),
            "http" if !self.is_local() => Some(format!(
                "registry {host} is asked over plain HTTP: answers can be forged and credentials read on the way"
            )),
            _ => None,
        }
    }

    /// True where the platform's other tools find credentials by themselves, which this version does not (registry.md
    /// 5).
    pub fn is_google(&self) -> bool {
        let host = self.host.split(':').next().unwrap_or_default();
        host == "gcr.io" || [".gcr.io", ".pkg.dev", ".google.com"].iter().any(|end| host.ends_with(end))
    }

    fn is_local(&self) -> bool {
        self.host.parse::<http::uri::Authority>().is_ok_and(|authority| is_loopback(authority.host()))
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

fn is_of_repository(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c)
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || without_brackets(host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Hosts for which the platform's old client tried plain HTTP after https had failed.
fn is_private(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let host = authority.host();
    host.ends_with(".local")
        || matches!(without_brackets(host).parse::<IpAddr>(), Ok(IpAddr::V4(address)) if address.is_private())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("asia-docker.pkg.dev/proj/repo", "https://asia-docker.pkg.dev/v2/proj/repo/vk-a/manifests/hibernate")]
    #[case("registry.example:5000", "https://registry.example:5000/v2/vk-a/manifests/hibernate")]
    #[case("localhost:5000", "http://localhost:5000/v2/vk-a/manifests/hibernate")]
    #[case("reg.localhost/x/", "http://reg.localhost/v2/x/vk-a/manifests/hibernate")]
    #[case("127.0.0.1:5001/p", "http://127.0.0.1:5001/v2/p/vk-a/manifests/hibernate")]
    #[case("[::1]:5001", "http://[::1]:5001/v2/vk-a/manifests/hibernate")]
    #[case("10.0.0.7:5000/p", "https://10.0.0.7:5000/v2/p/vk-a/manifests/hibernate")]
    #[case("proj/repo", "https://index.docker.io/v2/proj/repo/vk-a/manifests/hibernate")]
    fn a_reference_is_built_as_the_platform_builds_it(#[case] base: &str, #[case] url: &str) {
        let base = Base::parse(base, None).expect("a base");
        assert_eq!(base.manifest("vk-a", "hibernate").as_deref(), Some(url));
    }

    #[rstest]
    #[case("")]
    #[case("  ")]
    #[case("https://r.example/p")]
    #[case("r.example/Proj")]
    #[case("r.example/p:tag")]
    #[case("r.example/p@sha256:abc")]
    #[case("r.example//p")]
    #[case("user@r.example/p")]
    #[case("r.example:/p")]
    fn a_bad_base_is_refused_at_the_start(#[case] base: &str) {
        assert_eq!(Base::parse(base, None).expect_err("refused").code(), 2);
    }

    #[test]
    fn plain_http_beyond_loopback_only_on_demand() {
        let scheme = |base, plain| Base::parse(base, plain).expect("a base").to_string();
        assert_eq!(scheme("10.0.0.7/p", Some(true)), "http://10.0.0.7/p");
        assert_eq!(scheme("localhost:5000/p", Some(false)), "https://localhost:5000/p");
        assert!(Base::parse("10.0.0.7/p", None).expect("a base").notice().is_some());
        assert!(Base::parse("reg.local:5000/p", None).expect("a base").notice().is_some());
        assert!(Base::parse("asia-docker.pkg.dev/p", None).expect("a base").notice().is_none());
        let unprotected = Base::parse("10.0.0.7/p", Some(true)).expect("a base").notice().expect("a warning");
        assert!(unprotected.contains("plain HTTP"), "{unprotected}");
        assert!(Base::parse("localhost:5000/p", None).expect("a base").notice().is_none());
    }

    #[test]
    fn googles_hosts_are_known() {
        let google = |base| Base::parse(base, None).expect("a base").is_google();
        assert!(["gcr.io/p", "eu.gcr.io/p", "asia-docker.pkg.dev/p/r", "x.google.com:443/p"].into_iter().all(google));
        assert!(!["pkg.dev.example/p", "notgcr.io/p", "localhost:5000"].into_iter().any(google));
    }

    #[test]
    fn a_name_that_leaves_its_repository_is_none() {
        let base = Base::parse("r.example/p", None).expect("a base");
        for vm in ["", "..", "a/../b", "a//b", "Up", "a?b", "a#b", "a%2e"] {
            assert_eq!(base.manifest(vm, "latest"), None, "{vm}");
        }
        for tag in ["", "a/b", ".x", "a b"] {
            assert_eq!(base.manifest("vk-a", tag), None, "{tag}");
        }
    }
}
