//! The certificates of one control plane: made at its start, thrown away with its folder.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType,
};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// A certificate authority and the folder that it writes to.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate, in PEM.
    pub certificate: String,
}

/// A certificate and its key, in PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// Why none could be made.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

impl Authority {
    /// A new one, with `ca.crt` and the key that signs service account tokens (`sa.key`, `sa.pub`) in the folder.
    pub fn new(folder: &Path) -> Result<Self, Fault> {
        let mut params = named("control-plane-tests", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        std::fs::write(folder.join("ca.crt"), &certificate)?;
        let tokens = KeyPair::generate()?;
        std::fs::write(folder.join("sa.key"), tokens.serialize_pem())?;
        std::fs::write(folder.join("sa.pub"), public_pem(&tokens))?;
        Ok(Self { folder: folder.to_owned(), issuer: Issuer::new(params, key), certificate })
    }

    /// A certificate for a server on loopback: `NAME.crt` and `NAME.key` in the folder.
    pub fn server(&self, name: &str) -> Result<(), Fault> {
        let mut params = named(name, None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.subject_alt_names =
            vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)), SanType::DnsName("localhost".try_into()?)];
        let identity = self.sign(params)?;
        std::fs::write(self.folder.join(format!("{name}.crt")), identity.certificate)?;
        std::fs::write(self.folder.join(format!("{name}.key")), identity.key)?;
        Ok(())
    }

    /// A client certificate for this user, in this group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, Fault> {
        let mut params = named(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity, Fault> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}

/// A public key as the API server reads it.
fn public_pem(key: &KeyPair) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(key.subject_public_key_info());
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}
