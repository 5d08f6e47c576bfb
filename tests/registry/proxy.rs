//! A proxy before the registry: who is asked for what, and who is left out.

use crate::head;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::reference::Base;
use cocoon_operator::shell::registry::Registry;
use cocoon_operator::shell::registry::proxy::Proxies;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A proxy that lets nobody through, and what it was asked.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0_u8; 2048];
            let read = stream.read(&mut bytes).unwrap_or(0);
            seen.lock().expect("sound").push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").ok();
        }
    });
    (format!("127.0.0.1:{}", address.port()), asked)
}

fn registry(base: &str, plain: Option<bool>, proxies: Proxies) -> Registry {
    let base = Base::parse(base, plain).expect("a base");
    Registry::http_through(base, Clock::real(), proxies).expect("a registry")
}

#[tokio::test]
async fn what_tls_protects_is_asked_for_through_the_proxy() {
    let (address, asked) = proxy();
    let named = registry("registry.invalid/p", None, Proxies::through(&format!("http://me:secret@{address}"), ""));
    assert_eq!(named.proxy(), Some(format!("http://{address}").as_str()), "without its password");
    let outcome = head(&named).await;
    assert_eq!(outcome.class, Class::Unavailable, "{}", outcome.message);
    assert!(!outcome.message.contains("secret"), "{}", outcome.message);
    let asked = asked.lock().expect("sound").join("");
    assert!(asked.starts_with("CONNECT registry.invalid:443 HTTP/1.1"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic "), "{asked}");
}

#[tokio::test]
async fn some_are_asked_without_it() {
    let (address, asked) = proxy();
    let through = |but: &str| Proxies::through(&format!("http://{address}"), but);
    for (base, plain, but) in [
        ("registry.invalid/p", None, "other.invalid, .invalid"),
        ("127.0.0.1:1/p", Some(false), ""),
        ("registry.invalid/p", Some(true), ""),
        ("10.255.255.1:1/p", None, "10.0.0.0/8"),
    ] {
        let registry = registry(base, plain, through(but)).with_deadline(std::time::Duration::from_millis(300));
        assert_eq!(registry.proxy(), None, "{base} but {but}");
        head(&registry).await;
    }
    assert_eq!(*asked.lock().expect("sound"), Vec::<String>::new());
}

#[test]
fn a_proxy_that_nobody_can_speak_with_ends_the_start() {
    for proxy in ["socks5://proxy.invalid:1080", "https://me:secret@proxy.invalid"] {
        let base = Base::parse("registry.invalid/p", None).expect("a base");
        let refused = Registry::http_through(base, Clock::real(), Proxies::through(proxy, "")).expect_err("refused");
        assert_eq!(refused.code(), 2);
        assert!(refused.to_string().contains("expected an address that begins with http://"), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
