//! What a registry asks for with a 401: the `WWW-Authenticate` headers, read as RFC 9110 11.6.1 writes them.

/// One way in that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A token of this service, for these scopes where the registry names any.
    Bearer {
        /// Where tokens are given out.
        realm: String,
        /// Whom they are for; empty where nothing is said.
        service: String,
        /// Scopes as the registry writes them, apart by spaces; empty where nothing is said.
        scope: String,
    },
    /// User and password with every request.
    Basic,
}

/// The way to take of those offered: a token before a password, the first before the next. What does not read is no
/// offer.
pub fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<Challenge> = headers.flat_map(read).collect();
    let token = all.iter().find(|offer| matches!(offer, Challenge::Bearer { .. }));
    token.or_else(|| all.first()).cloned()
}

/// Every offer of one header.
fn read(header: &str) -> Vec<Challenge> {
    let mut offers: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        let (name, after) = token(rest);
        if name.is_empty() {
            break;
        }
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        match (value, offers.last_mut()) {
            // `name=value`: a parameter of the offer before it.
            (Some(value), Some((_, params))) => {
                let Some((value, after)) = value_of(value.trim_start_matches([' ', '\t'])) else { break };
                params.push((name.to_ascii_lowercase(), value));
                rest = after;
            }
            (Some(_), None) => break,
            // A name alone is a scheme.
            (None, _) => {
                offers.push((name.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
        }
    }
    offers.into_iter().filter_map(|(scheme, params)| offer(&scheme, &params)).collect()
}

fn offer(scheme: &str, params: &[(String, String)]) -> Option<Challenge> {
    let param = |wanted: &str| params.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: param("realm").filter(|realm| !realm.is_empty())?,
            service: param("service").unwrap_or_default(),
            scope: param("scope").unwrap_or_default(),
        }),
        _ => None,
    }
}

fn token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// A value, quoted or not, and what stands behind it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        // Some registries leave out the quotes around an address.
        let (value, rest) = text.split_at(text.find([',', ' ', '\t']).unwrap_or(text.len()));
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..).unwrap_or_default())),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    // The quotes never close: nothing of it can be trusted.
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn bearer(realm: &str, service: &str, scope: &str) -> Option<Challenge> {
        let [realm, service, scope] = [realm, service, scope].map(str::to_owned);
        Some(Challenge::Bearer { realm, service, scope })
    }

    #[rstest]
    #[case(&[r#"Bearer realm="https://a.example/token",service="r.example",scope="repository:p/v:pull,push""#],
        bearer("https://a.example/token", "r.example", "repository:p/v:pull,push"))]
    #[case(&[r#"bearer  service = "s" , REALM="https://a.example/t""#], bearer("https://a.example/t", "s", ""))]
    #[case(&[r#"Bearer realm=https://a.example/t?x=1,service=s"#], bearer("https://a.example/t?x=1", "s", ""))]
    #[case(&[r#"Bearer realm="https://a.example/\"t\\""#], bearer("https://a.example/\"t\\", "", ""))]
    #[case(&[r#"Basic realm="Registry, of \"ours\"", charset="UTF-8""#], Some(Challenge::Basic))]
    #[case(&["Basic"], Some(Challenge::Basic))]
    #[case(&["Basic realm=\"x\", Bearer realm=\"https://a.example/t\""], bearer("https://a.example/t", "", ""))]
    #[case(&["Basic realm=\"x\"", "Bearer realm=\"https://a.example/t\""], bearer("https://a.example/t", "", ""))]
    #[case(&["Negotiate", "Basic realm=\"x\""], Some(Challenge::Basic))]
    #[case(&["Negotiate dG9rZW4=", "Digest realm=\"x\", nonce=\"y\""], None)]
    #[case(&["Bearer service=\"s\""], None)]
    #[case(&["Bearer realm=\"\""], None)]
    #[case(&["Bearer realm=\"https://never.closed"], None)]
    #[case(&["realm=\"x\""], None)]
    #[case(&[""], None)]
    #[case(&[], None)]
    fn the_offers_of_a_401(#[case] headers: &[&str], #[case] chosen: Option<Challenge>) {
        assert_eq!(choose(headers.iter().copied()), chosen);
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read(text in "(Bearer|Basic|realm|=|\"|\\\\|,| |é|/){0,40}") {
            choose([text.as_str()].into_iter());
        }
    }
}
