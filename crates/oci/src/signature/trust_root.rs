//! The trust root of keyless signatures: the certificate authorities and logs of a Sigstore instance, in the format of
//! `trusted_root.json`. The public instance publishes its own; private ones can make one with `cosign trusted-root create`.

use super::key::PublicKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use transom_packages::Digest;

/// The largest trust root, in bytes.
pub const TRUST_ROOT_BYTES_MAX: usize = 4 << 20;
/// The most authorities or logs of one type.
const ENTRIES_MAX: usize = 100;
/// The most certificates in a chain.
const CHAIN_MAX: usize = 10;

/// A trust root that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Sigstore trust root cannot be used: {problem}")]
pub struct TrustRootError {
    /// What is wrong, and where.
    pub problem: String,
}

/// A trust root.
#[derive(Clone, Debug)]
pub struct TrustRoot {
    digest: Digest,
    authorities: Vec<CertificateAuthority>,
    timestamp_authorities: Vec<CertificateAuthority>,
    logs: Vec<Log>,
    certificate_logs: Vec<Log>,
}

/// A certificate authority.
#[derive(Clone, Debug)]
pub(super) struct CertificateAuthority {
    /// Its certificates; the last one is the root.
    pub(super) chain: Vec<CertificateDer<'static>>,
    valid: Validity,
}

/// A log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    ids: [Vec<u8>; 2],
    pub(super) key: PublicKey,
    valid: Validity,
}

/// From when until when something is trusted, in seconds since 1970. Both ends belong to it.
#[derive(Clone, Copy, Debug, Default)]
struct Validity {
    start: Option<i64>,
    end: Option<i64>,
}

impl Validity {
    fn contains(self, at: i64) -> bool {
        self.start.is_none_or(|start| start <= at) && self.end.is_none_or(|end| at <= end)
    }
}

impl TrustRoot {
    /// Reads a trust root.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrustRootError> {
        let wrong = |problem: String| TrustRootError { problem };
        if bytes.len() > TRUST_ROOT_BYTES_MAX {
            return Err(wrong(format!("it has more than {TRUST_ROOT_BYTES_MAX} bytes")));
        }
        let file: File = serde_json::from_slice(bytes)
            .map_err(|e| wrong(format!("it is not a trusted_root.json: {e}")))?;
        let root = Self {
            digest: Digest::of(bytes),
            authorities: each("certificateAuthorities", &file.certificate_authorities, authority)?,
            timestamp_authorities: each("timestampAuthorities", &file.timestamp_authorities, authority)?,
            logs: each("tlogs", &file.tlogs, log)?.into_iter().flatten().collect(),
            certificate_logs: each("ctlogs", &file.ctlogs, log)?.into_iter().flatten().collect(),
        };
        if root.authorities.is_empty() || root.logs.is_empty() {
            let problem = "it needs at least one of certificateAuthorities and one of tlogs with a key that is supported";
            return Err(wrong(problem.to_owned()));
        }
        Ok(root)
    }

    /// The digest of the file.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The authorities of signers' certificates that are trusted at a time.
    pub(super) fn authorities(&self, at: i64) -> impl Iterator<Item = &CertificateAuthority> {
        self.authorities.iter().filter(move |authority| authority.valid.contains(at))
    }

    /// The authorities of timestamps that are trusted at a time.
    pub(super) fn timestamp_authorities(&self, at: i64) -> impl Iterator<Item = &CertificateAuthority> {
        self.timestamp_authorities.iter().filter(move |authority| authority.valid.contains(at))
    }

    /// The logs of signatures with an id; at a time, if it is known.
    pub(super) fn logs<'r>(&'r self, id: &'r [u8], at: Option<i64>) -> impl Iterator<Item = &'r Log> {
        let is = move |log: &&Log| log.has_id(id) && at.is_none_or(|at| log.valid.contains(at));
        self.logs.iter().filter(is)
    }

    /// The logs of certificates with an id that are trusted at a time.
    pub(super) fn certificate_logs<'r>(&'r self, id: &'r [u8], at: i64) -> impl Iterator<Item = &'r Log> {
        self.certificate_logs.iter().filter(move |log| log.has_id(id) && log.valid.contains(at))
    }
}

impl Log {
    fn has_id(&self, id: &[u8]) -> bool {
        self.ids.iter().any(|own| own == id)
    }
}

/// The fields that are used. All others are ignored, as new ones come with new versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct File {
    tlogs: Vec<LogEntry>,
    ctlogs: Vec<LogEntry>,
    certificate_authorities: Vec<AuthorityEntry>,
    timestamp_authorities: Vec<AuthorityEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    public_key: KeyEntry,
    #[serde(default)]
    log_id: Option<LogId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyEntry {
    raw_bytes: String,
    #[serde(default)]
    valid_for: ValidFor,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorityEntry {
    cert_chain: CertChain,
    #[serde(default)]
    valid_for: ValidFor,
}

#[derive(Deserialize)]
struct CertChain {
    certificates: Vec<RawBytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBytes {
    raw_bytes: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ValidFor {
    start: Option<String>,
    end: Option<String>,
}

/// Converts the entries of a list. A problem names the entry.
fn each<E, T>(
    list: &str,
    entries: &[E],
    convert: fn(&E) -> Result<T, String>,
) -> Result<Vec<T>, TrustRootError> {
    if entries.len() > ENTRIES_MAX {
        return Err(TrustRootError { problem: format!("{list} has more than {ENTRIES_MAX} entries") });
    }
    let converted = entries.iter().enumerate().map(|(at, entry)| {
        convert(entry).map_err(|problem| TrustRootError { problem: format!("{list}[{at}]: {problem}") })
    });
    converted.collect()
}

fn authority(entry: &AuthorityEntry) -> Result<CertificateAuthority, String> {
    let certificates = &entry.cert_chain.certificates;
    if certificates.is_empty() || certificates.len() > CHAIN_MAX {
        return Err(format!("certChain must have 1 to {CHAIN_MAX} certificates"));
    }
    let chain = certificates.iter().map(|entry| decode(&entry.raw_bytes).map(CertificateDer::from));
    Ok(CertificateAuthority { chain: chain.collect::<Result<_, _>>()?, valid: validity(&entry.valid_for)? })
}

/// A log. One with a key of an algorithm that is not supported is left out: what it signed does not verify.
fn log(entry: &LogEntry) -> Result<Option<Log>, String> {
    let bytes = decode(&entry.public_key.raw_bytes)?;
    let valid = validity(&entry.public_key.valid_for)?;
    let named = entry.log_id.as_ref().map(|id| decode(&id.key_id)).transpose()?;
    // The id of a log is the hash of its key, unless it says otherwise.
    let hash = Sha256::digest(&bytes).to_vec();
    let ids = [named.unwrap_or_else(|| hash.clone()), hash];
    Ok(PublicKey::from_der(&bytes).ok().map(|key| Log { ids, key, valid }))
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|e| format!("{text:.20}… is not base64: {e}"))
}

fn validity(entry: &ValidFor) -> Result<Validity, String> {
    let second = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => {
            let parsed: Result<jiff::Timestamp, _> = text.parse();
            parsed.map(|time| Some(time.as_second())).map_err(|_| format!("validFor: {text:?} is not a time"))
        }
    };
    Ok(Validity { start: second(&entry.start)?, end: second(&entry.end)? })
}
