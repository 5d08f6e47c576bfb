//! TLS with the machine's certificates, and with those of a file (`SSL_CERT_FILE`). The variable is read by the process,
//! so the client runs in one of its own: this test, started again.

use crate::head;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::reference::Base;
use cocoon_operator::shell::registry::Registry;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Tells the client where the registry is.
const ADDRESS: &str = "COCOON_TEST_REGISTRY";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// A registry named localhost whose certificate only `ca.pem` vouches for.
fn serve() -> SocketAddr {
    let chain: Vec<_> = CertificateDer::pem_file_iter(data("localhost.pem"))
        .expect("a file")
        .map(|certificate| certificate.expect("a certificate"))
        .collect();
    let key = PrivateKeyDer::from_pem_file(data("localhost.key")).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut tls = rustls::StreamOwned::new(connection, stream);
            let answer =
                format!("HTTP/1.1 200 X\r\nConnection: close\r\nDocker-Content-Digest: {}\r\n\r\n", crate::ONE);
            // A client that turns away is what one of these tests is about.
            if tls.read(&mut [0_u8; 4096]).is_ok_and(|read| read > 0) && tls.write_all(answer.as_bytes()).is_ok() {
                tls.conn.send_close_notify();
                tls.flush().ok();
            }
        }
    });
    address
}

/// What the client says in a process of its own, which trusts what this file names.
fn seen_by_a_process(certificates: &Path) -> String {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "tls::the_client", "--nocapture"])
        .env(ADDRESS, format!("localhost:{}/p", serve().port()))
        .env("SSL_CERT_FILE", certificates)
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Started by the others in a process of its own; alone it has nobody to ask.
#[tokio::test]
async fn the_client() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let base = Base::parse(&address, Some(false)).expect("a base");
    let outcome = head(&Registry::http(base, Clock::real()).expect("certificates")).await;
    println!("class={} message={}", outcome.class, outcome.message);
}

#[test]
fn a_file_may_vouch_for_a_registry() {
    let said = seen_by_a_process(&data("ca.pem"));
    assert!(said.contains("class=Present"), "{said}");
}

#[tokio::test]
async fn who_does_not_answer_is_said_where_it_is_wanted() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let base = || Base::parse(&format!("{silent}/p"), None).expect("a base");
    let plain = head(&Registry::http(base(), Clock::real()).expect("certificates")).await;
    assert_eq!(plain.message, "no connection could be made, nothing was sent");
    let told = head(&Registry::http(base(), Clock::real()).expect("certificates").with_causes()).await;
    assert!(told.message.starts_with(&format!("{} (http://{silent}: ", plain.message)), "{}", told.message);
    assert!(told.message.contains("refused"), "{}", told.message);
}

#[test]
fn a_registry_that_nobody_vouches_for_is_not_asked() {
    // A certificate that vouches for something else.
    let said = seen_by_a_process(&data("localhost.pem"));
    assert!(said.contains("class=Unavailable"), "{said}");
}
