//! User and password of a registry, from the Docker config that the platform's tools read (registry.md 5). Read anew
//! whenever a registry asks: a mounted secret changes while we run, and to be anonymous once is not to be so for ever.

use crate::shell::reference::Base;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use http::HeaderValue;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;
/// How Docker spells its hub in the file.
const HUB: &str = "index.docker.io";

/// Where credentials are looked up. The first file that exists counts.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    files: Vec<PathBuf>,
}

/// What to show a registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    Anonymous,
    /// A user and a password.
    Password {
        /// Who.
        user: String,
        /// Never printed.
        password: String,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password({user}, …)"),
        }
    }
}

impl Credentials {
    /// The value of an `Authorization` header; none for nobody.
    pub fn basic(&self) -> Option<HeaderValue> {
        let Self::Password { user, password } = self else { return None };
        let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
        let mut value = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl Keyring {
    /// No files: anonymous everywhere.
    pub fn empty() -> Self {
        Self::default()
    }

    /// This file alone.
    pub fn of_file(path: impl Into<PathBuf>) -> Self {
        Self { files: vec![path.into()] }
    }

    /// The files that the environment of this process names.
    pub fn of_environment() -> Self {
        Self::named(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    fn named(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let docker = variable("DOCKER_CONFIG").or_else(|| variable("HOME").map(|home| home.join(".docker")));
        let files = [
            docker.map(|directory| directory.join("config.json")),
            variable("REGISTRY_AUTH_FILE"),
            variable("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
        ];
        Self { files: files.into_iter().flatten().collect() }
    }

    /// What to show for this repository of this host. `Err` says what is wrong, and nothing of what is secret.
    pub fn lookup(&self, host: &str, repository: &str) -> Result<Credentials, String> {
        for file in &self.files {
            match read(file) {
                Ok(Some(config)) => {
                    return find(&config, host, repository).map_err(|why| format!("{}: {why}", file.display()));
                }
                Ok(None) => {}
                Err(why) => return Err(format!("{}: {why}", file.display())),
            }
        }
        Ok(Credentials::Anonymous)
    }
}

impl Keyring {
    /// What to say at the start of this registry's credentials: that they do not read, or that it is Google's and none
    /// are named. Neither keeps the operator from starting: the file may be mended while it runs.
    pub fn notice(&self, base: &Base) -> Option<String> {
        let host = base.host();
        match self.lookup(host, &base.repository("vk").unwrap_or_default()) {
            Err(why) => Some(format!("credentials of registry {host}: {why}")),
            Ok(Credentials::Anonymous) if base.is_google() => Some(format!(
                "registry {host} is asked without credentials: those of Google (workload identity, key file) are not \
                 understood by this version, and the Docker config names no user and password"
            )),
            Ok(Credentials::Anonymous | Credentials::Password { .. }) => None,
        }
    }
}

/// The file, where there is one.
fn read(file: &Path) -> Result<Option<Value>, String> {
    let size = match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => return Ok(None),
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if size > MAX_FILE {
        return Err("too large for a Docker config".to_owned());
    }
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    // The parser's own words may quote what is in the file.
    let config = serde_json::from_slice(&text)
        .map_err(|error| format!("no JSON at line {}, column {}", error.line(), error.column()))?;
    Ok(Some(config))
}

fn find(config: &Value, host: &str, repository: &str) -> Result<Credentials, String> {
    let auths = config.get("auths").and_then(Value::as_object);
    let helpers = config.get("credHelpers").and_then(Value::as_object);
    for wanted in keys(host, repository) {
        if helpers.is_some_and(|helpers| helpers.keys().any(|key| plain(key) == wanted)) {
            return Err(format!("names a credential helper for {wanted}; only user and password are understood"));
        }
        let entry = auths.and_then(|auths| auths.iter().find(|(key, _)| plain(key) == wanted)).map(|(_, entry)| entry);
        if let Some(entry) = entry {
            return of_entry(entry).map_err(|why| format!("the entry of {wanted} {why}"));
        }
    }
    Ok(Credentials::Anonymous)
}

/// Under which names an entry is looked for: the repository, whatever it is below, the host.
fn keys(host: &str, repository: &str) -> Vec<String> {
    let host = plain(host);
    let whole = format!("{host}/{repository}");
    let mut keys = Vec::new();
    let mut rest = whole.as_str();
    while rest.len() > host.len() {
        keys.push(rest.to_owned());
        rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
    }
    keys.push(host);
    keys
}

/// A key without scheme and without the version that Docker's own key has.
fn plain(key: &str) -> String {
    let bare = key.trim().trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
    let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
    match bare {
        "docker.io" | "registry-1.docker.io" => HUB.to_owned(),
        bare => bare.to_owned(),
    }
}

fn of_entry(entry: &Value) -> Result<Credentials, &'static str> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("identitytoken").is_some() || text("registrytoken").is_some() {
        return Err("has a token; only user and password are understood");
    }
    if let (Some(user), Some(password)) = (text("username"), text("password")) {
        return pair(user, password);
    }
    let Some(auth) = text("auth") else {
        return Err("has neither auth nor username and password (a credential store keeps them elsewhere)");
    };
    let auth = auth.trim();
    let bytes = BASE64_STANDARD.decode(auth).or_else(|_| BASE64_STANDARD_NO_PAD.decode(auth));
    let decoded = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    // Docker pads passwords with zero bytes.
    let decoded = decoded.as_deref().map(|pair| pair.trim_matches('\0'));
    let (user, password) = decoded.and_then(|pair| pair.split_once(':')).ok_or("has an auth that does not decode")?;
    pair(user, password)
}

fn pair(user: &str, password: &str) -> Result<Credentials, &'static str> {
    if user.contains(':') {
        return Err("has a colon in its user");
    }
    Ok(Credentials::Password { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn password(user: &str, password: &str) -> Result<Credentials, String> {
        Ok(Credentials::Password { user: user.to_owned(), password: password.to_owned() })
    }

    #[rstest]
    #[case::by_host(json!({"auths": {"r.example": {"auth": "dTpwOnc="}}}), password("u", "p:w"))]
    #[case::as_docker_writes_it(json!({"auths": {"https://r.example/v2/": {"auth": "dTpwOnc="}}}), password("u", "p:w"))]
    #[case::unpadded(json!({"auths": {"r.example": {"auth": "dTpwOnc"}}}), password("u", "p:w"))]
    #[case::in_two_fields(json!({"auths": {"r.example": {"username": "u", "password": "p"}}}), password("u", "p"))]
    #[case::the_nearest(json!({"auths": {"r.example": {"username": "h", "password": "p"},
        "r.example/p": {"username": "u", "password": "p"}}}), password("u", "p"))]
    #[case::another_host(json!({"auths": {"r.example.evil": {"username": "u", "password": "p"}}}),
        Ok(Credentials::Anonymous))]
    #[case::another_path(json!({"auths": {"r.example/q": {"username": "u", "password": "p"}}}),
        Ok(Credentials::Anonymous))]
    #[case::a_store_without_entry(json!({"credsStore": "desktop", "auths": {}}), Ok(Credentials::Anonymous))]
    #[case::nothing(json!({}), Ok(Credentials::Anonymous))]
    #[case::no_object(json!([]), Ok(Credentials::Anonymous))]
    fn what_the_file_says(#[case] config: Value, #[case] found: Result<Credentials, String>) {
        assert_eq!(find(&config, "r.example", "p/vk-a"), found);
    }

    #[rstest]
    #[case(json!({"credHelpers": {"r.example": "gcr"}}), "helper")]
    #[case(json!({"auths": {"r.example": {"identitytoken": "SECRET"}}}), "token")]
    #[case(json!({"auths": {"r.example": {"registrytoken": "SECRET"}}}), "token")]
    #[case(json!({"auths": {"r.example": {}}, "credsStore": "desktop"}), "store")]
    #[case(json!({"auths": {"r.example": {"auth": "SECRET!"}}}), "decode")]
    #[case(json!({"auths": {"r.example": {"username": "a:b", "password": "SECRET"}}}), "colon")]
    fn what_is_not_understood_is_said_and_kept_secret(#[case] config: Value, #[case] word: &str) {
        let why = find(&config, "r.example", "p/vk-a").expect_err("refused");
        assert!(why.contains(word) && !why.contains("SECRET"), "{why}");
    }

    #[test]
    fn docker_hub_has_several_names() {
        let config = json!({"auths": {"https://index.docker.io/v1/": {"username": "u", "password": "p"}}});
        for host in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
            assert_eq!(find(&config, host, "p/vk-a"), password("u", "p"), "{host}");
        }
    }

    #[test]
    fn the_environment_names_the_files() {
        let files = |given: &[(&str, &str)]| {
            let find = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, path)| PathBuf::from(path));
            Keyring::named(find).files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(files(&[("HOME", "/home/u")]), ["/home/u/.docker/config.json"]);
        assert_eq!(
            files(&[("HOME", "/home/u"), ("DOCKER_CONFIG", "/etc/d"), ("REGISTRY_AUTH_FILE", "/a.json")]),
            ["/etc/d/config.json", "/a.json"]
        );
        assert_eq!(files(&[("XDG_RUNTIME_DIR", "/run/u")]), ["/run/u/containers/auth.json"]);
        assert!(files(&[]).is_empty());
    }

    #[test]
    fn nothing_secret_is_printed() {
        let it = password("u", "SECRET").expect("a password");
        assert!(!format!("{it:?} {:?}", it.basic()).contains("SECRET"));
        assert!(!format!("{:?}", it.basic()).contains("dTpT"));
    }
}
