//! Kubeconfig files for the users of the control plane.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::path::Path;

/// How a user says who it is.
pub enum User {
    /// Certificate and key, in PEM.
    Certificate(String, String),
    /// A bearer token.
    Token(String),
}

/// Writes a kubeconfig with one cluster, one user and one context. JSON is YAML too.
pub fn write_kubeconfig(path: &Path, server: &str, authority: &str, user: &User) -> std::io::Result<()> {
    let user = match user {
        User::Certificate(certificate, key) => json!({
            "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
        }),
        User::Token(token) => json!({ "token": token }),
    };
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "live",
        "clusters": [{"name": "live", "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "live", "user": user}],
        "contexts": [{"name": "live", "context": {"cluster": "live", "user": "live"}}],
    });
    std::fs::write(path, config.to_string())
}
