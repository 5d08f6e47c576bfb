//! Where a redirect leads, and what may be asked at all.

use crate::shell::reference::is_loopback;
use http::Uri;

/// The address that a `Location` names, seen from this one (RFC 3986 5.2); none where it is no address of the web, or
/// carries a user's name, which no registry has reason to.
pub fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let location = location.trim().split('#').next().unwrap_or_default();
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let whole = if is_absolute(location) {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else {
        let (path, query) = location.split_once('?').map_or((location, None), |(path, query)| (path, Some(query)));
        let path = match path {
            "" => from.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{}/{path}", from.path().rsplit_once('/').map_or("", |(dir, _)| dir))),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{scheme}://{authority}{path}{query}")
    };
    let uri: Uri = whole.parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("https" | "http"));
    let host = uri.authority().filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    (is_web && host.is_some()).then_some(uri)
}

/// True where TLS protects it, or nothing has to: this machine, or a registry that is declared to be plain (decision
/// R29).
pub fn may_be_asked(uri: &Uri, plain: bool) -> bool {
    uri.scheme_str() == Some("https") || plain || uri.host().is_some_and(is_loopback)
}

/// The same server, so that what it may see of us may be shown to the other address too.
pub fn same_server(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme_str() == other.scheme_str() && host(one) == host(other) && port(one) == port(other)
}

/// As it may be told: without path and query, which may be signed.
pub fn told(uri: &Uri) -> String {
    format!("{}://{}", uri.scheme_str().unwrap_or("?"), uri.authority().map_or("?", |authority| authority.as_str()))
}

/// A name, a colon, and all that before any slash: RFC 3986's scheme.
fn is_absolute(location: &str) -> bool {
    let before = location.split(['/', '?']).next().unwrap_or_default();
    before.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("https://o.example/x?sig=1", Some("https://o.example/x?sig=1"))]
    #[case("HTTP://o.example", Some("http://o.example/"))]
    #[case("//o.example:5000/x", Some("https://o.example:5000/x"))]
    #[case("/v2/q/manifests/t?a=b#c", Some("https://r.example/v2/q/manifests/t?a=b"))]
    #[case("other", Some("https://r.example/v2/p/manifests/other"))]
    #[case("../blobs/x:y", Some("https://r.example/v2/p/blobs/x:y"))]
    #[case("./.././../../../../x", Some("https://r.example/x"))]
    #[case("..", Some("https://r.example/v2/p/"))]
    #[case("?page=2", Some("https://r.example/v2/p/manifests/t?page=2"))]
    #[case("", Some("https://r.example/v2/p/manifests/t"))]
    #[case("ftp://o.example/x", None)]
    #[case("file:///etc/passwd", None)]
    #[case("javascript:alert(1)", None)]
    #[case("https://user:secret@o.example/x", None)]
    #[case("https://", None)]
    #[case("https://o example/", None)]
    #[case("https:///x", None)]
    fn where_a_redirect_leads(#[case] location: &str, #[case] to: Option<&str>) {
        let from: Uri = "https://r.example/v2/p/manifests/t".parse().expect("an address");
        assert_eq!(resolve(&from, location).map(|uri| uri.to_string()).as_deref(), to, "{location}");
    }

    #[rstest]
    #[case("https://r.example/x", false, true)]
    #[case("http://r.example/x", false, false)]
    #[case("http://r.example/x", true, true)]
    #[case("http://127.0.0.1:5000/x", false, true)]
    #[case("http://localhost/x", false, true)]
    #[case("http://10.0.0.1/x", false, false)]
    fn what_may_be_asked(#[case] uri: &str, #[case] plain: bool, #[case] may: bool) {
        assert_eq!(may_be_asked(&uri.parse().expect("an address"), plain), may);
    }

    #[test]
    fn a_server_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| same_server(&one.parse().expect("one"), &other.parse().expect("other"));
        assert!(same("https://r.example/a", "https://R.example:443/b"));
        assert!(!same("https://r.example/a", "https://r.example:444/a"));
        assert!(!same("https://r.example/a", "http://r.example/a"));
        assert!(!same("https://r.example/a", "https://r.example.evil/a"));
    }
}
