//! The certificates of a plane: one authority for each data directory, a server certificate for each start, and the client
//! certificate of the admin. `issue` signs what CertificateSigningRequests ask for.
//!
//! Private keys are readable by the owner of the directory only, and never appear in messages.

mod issue;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, DnsName};
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use time::{Duration, OffsetDateTime};
use transom_apiserver::{CertificateOrder, CertificateSigner, CertificateSignerError};
use transom_console::Failure;

const AUTHORITY_LIFETIME: Duration = Duration::days(3650);
const LEAF_LIFETIME: Duration = Duration::days(365);
/// A certificate that is kept in a file is renewed at a start when less than this is left of its lifetime.
const RENEWED_BEFORE: Duration = Duration::days(182);

pub(crate) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// An authority that is not kept.
    pub(crate) fn ephemeral() -> Result<Self, Failure> {
        let (certificate, key) = new_authority().map_err(|e| failed(&e))?;
        Self::from_pem(certificate, &key).map_err(|e| failed(&e))
    }

    /// The directory's authority, made on the first start. Kubeconfigs stay valid for as long as it is kept.
    pub(crate) fn load_or_create(dir: &Path) -> Result<Self, Failure> {
        let (certificate_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
        let trouble = |what: &str, e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot {what} the certificate authority in {}: {e}", dir.display()))
                .remedy("make the directory readable and writable, or remove it to get a new authority (kubeconfigs made before stop working)")
        };
        if certificate_path.exists() && key_path.exists() {
            let certificate = fs::read_to_string(&certificate_path).map_err(|e| trouble("read", &e))?;
            let key = fs::read_to_string(&key_path).map_err(|e| trouble("read", &e))?;
            return Self::from_pem(certificate, &key).map_err(|e| trouble("use", &e));
        }
        let (certificate, key) = new_authority().map_err(|e| failed(&e))?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| trouble("create", &e))?;
        write_private(&key_path, &key).map_err(|e| trouble("write", &e))?;
        write_private(&certificate_path, &certificate).map_err(|e| trouble("write", &e))?;
        Self::from_pem(certificate, &key).map_err(|e| failed(&e))
    }

    fn from_pem(certificate: String, key: &str) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(&certificate, KeyPair::from_pem(key)?)?;
        Ok(Self { certificate, issuer })
    }

    pub(crate) fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// For the listener: every name and address a client may use for it.
    pub(crate) fn server(&self, names: &[String]) -> Result<Leaf, Failure> {
        let mut params = leaf("transom", None, ExtendedKeyUsagePurpose::ServerAuth);
        for name in names {
            let san = subject_name(name).ok_or_else(|| {
                Failure::new(format!("--tls-san {name:?} is neither a DNS name nor an IP address"))
                    .remedy("write it like plane.example.org, *.example.org or 192.0.2.1")
            })?;
            if !params.subject_alt_names.contains(&san) {
                params.subject_alt_names.push(san);
            }
        }
        self.sign(&params)
    }

    /// For a client: the user is the common name, groups are organizations.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<Leaf, Failure> {
        self.sign(&leaf(user, Some(group), ExtendedKeyUsagePurpose::ClientAuth))
    }

    /// Whether this is a certificate of [`Self::client`], in PEM, that need not be renewed yet.
    pub(crate) fn is_lasting(&self, certificate: &[u8], user: &str) -> bool {
        let Ok(certificate) = CertificateDer::from_pem_slice(certificate) else { return false };
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&certificate) else { return false };
        let named = parsed.subject().iter_common_name().any(|name| name.as_str() == Ok(user));
        let renewal = OffsetDateTime::now_utc() + RENEWED_BEFORE;
        named && parsed.validity().not_after.timestamp() > renewal.unix_timestamp()
    }

    fn sign(&self, params: &CertificateParams) -> Result<Leaf, Failure> {
        let key = KeyPair::generate().map_err(|e| failed(&e))?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(|e| failed(&e))?;
        Ok(Leaf { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl CertificateSigner for Authority {
    fn sign(&self, order: &CertificateOrder) -> Result<String, CertificateSignerError> {
        self.issue(order, OffsetDateTime::now_utc())
    }
}

/// The key that signs service account tokens, made on the first start. Tokens stay valid for as long as it is
/// kept.
pub(crate) fn token_key(dir: &Path) -> Result<Vec<u8>, Failure> {
    let path = dir.join("tokens.key");
    let trouble = |what: &str, e: &dyn std::fmt::Display| {
        Failure::new(format!("cannot {what} {}: {e}", path.display())).remedy(
            "make it readable and writable, or remove it to get a new key (tokens made before stop working)",
        )
    };
    match fs::read(&path) {
        Ok(key) => transom_apiserver::Signer::from_pkcs8(&key).map(|_| key).map_err(|e| trouble("use", &e)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let key = transom_apiserver::Signer::generate().map_err(|e| Failure::new(e.to_string()))?;
            write_private(&path, &key).map_err(|e| trouble("write", &e))?;
            Ok(key)
        }
        Err(e) => Err(trouble("read", &e)),
    }
}

/// An IP address, a DNS name, or a DNS name with `*` for its first label.
fn subject_name(name: &str) -> Option<SanType> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Some(SanType::IpAddress(ip));
    }
    DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).ok()?;
    Some(SanType::DnsName(name.try_into().ok()?))
}

fn failed(e: &rcgen::Error) -> Failure {
    Failure::new(format!("cannot make a certificate: {e}"))
}

fn new_authority() -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::default();
    // Never the name of a leaf: OpenSSL takes a certificate that names itself as issuer for self-signed.
    params.distinguished_name = name("transom-ca", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    lifetime(&mut params, AUTHORITY_LIFETIME);
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn leaf(
    common_name: &str,
    organization: Option<&str>,
    purpose: ExtendedKeyUsagePurpose,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(common_name, organization);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    lifetime(&mut params, LEAF_LIFETIME);
    params
}

fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}

/// From a little before now, for clocks that disagree.
fn lifetime(params: &mut CertificateParams, lifetime: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(1);
    params.not_after = now + lifetime;
}

/// Writes a file that only its owner can read, complete or not at all: written beside it and renamed.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>) -> std::io::Result<()> {
    let aside = path.with_extension(format!("tmp-{}", std::process::id()));
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(content.as_ref())?;
        file.sync_all()?;
        fs::rename(&aside, path)
    })();
    if written.is_err() {
        // Half a file is useless, and the disk may be full.
        let _ = fs::remove_file(&aside);
    }
    written
}
