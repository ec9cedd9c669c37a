//! Signed certificate timestamps (RFC 6962): a log of certificates promises to list a certificate, so that one which was
//! issued wrongly does not stay unseen.

use super::der;
use super::key::HashAlgorithm;
use super::trust_root::TrustRoot;
use sha2::{Digest as _, Sha256};

/// 1.3.6.1.4.1.11129.2.4.2, the extension with the timestamps.
const EXTENSION: [u8; 10] = [0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
/// The most timestamps that are read.
const TIMESTAMPS_MAX: usize = 20;

/// Whether a log of the trust root promised to list a certificate that the key of its issuer signed.
pub(super) fn verify(certificate: &[u8], issuer_key: &[u8], root: &TrustRoot) -> Result<(), String> {
    let malformed = || "the timestamp (SCT) in the certificate is malformed".to_owned();
    let (listed, extension) = without_timestamps(certificate).ok_or_else(malformed)?;
    let Some(extension) = extension else {
        return Err("the certificate has no timestamp (SCT) of a certificate log".to_owned());
    };
    let timestamps = timestamps(&extension).ok_or_else(malformed)?;
    let issuer: [u8; 32] = Sha256::digest(issuer_key).into();
    if timestamps.iter().any(|timestamp| timestamp.is_signed(&listed, issuer, root)) {
        return Ok(());
    }
    Err("no timestamp (SCT) in the certificate is by a certificate log of the trust root".to_owned())
}

/// What a log signed of a certificate: all of it but the signature and the timestamps themselves. And the timestamps.
fn without_timestamps(certificate: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut content = der::only(certificate, der::SEQUENCE)?;
    let to_be_signed = der::expect(&mut content, der::SEQUENCE)?;
    let (mut kept, mut found) = (Vec::new(), None);
    for field in der::all(to_be_signed)? {
        if field.tag != der::context(3) {
            kept.extend_from_slice(field.whole);
            continue;
        }
        let mut extensions = Vec::new();
        for extension in der::all(der::only(field.content, der::SEQUENCE)?)? {
            let mut parts = extension.content;
            if extension.tag == der::SEQUENCE && der::expect(&mut parts, der::OID)? == EXTENSION {
                found = Some(der::all(parts)?.last()?.content.to_vec());
            } else {
                extensions.extend_from_slice(extension.whole);
            }
        }
        let extensions = der::encode(der::SEQUENCE, &extensions);
        kept.extend_from_slice(&der::encode(der::context(3), &extensions));
    }
    Some((der::encode(der::SEQUENCE, &kept), found))
}

struct Timestamp<'a> {
    log: &'a [u8],
    milliseconds: u64,
    extensions: &'a [u8],
    signature: &'a [u8],
}

fn timestamps(extension: &[u8]) -> Option<Vec<Timestamp<'_>>> {
    let mut outer = der::only(extension, der::OCTET_STRING)?;
    let mut list = vector(&mut outer)?;
    let mut all = Vec::new();
    while !list.is_empty() {
        let timestamp = Timestamp::parse(vector(&mut list)?)?;
        all.extend(timestamp.filter(|_| all.len() < TIMESTAMPS_MAX));
    }
    outer.is_empty().then_some(all)
}

impl<'a> Timestamp<'a> {
    /// A timestamp; nothing inside for one of a version or algorithm that is not known.
    fn parse(mut input: &'a [u8]) -> Option<Option<Self>> {
        let version = take(&mut input, 1)?[0];
        let log = take(&mut input, 32)?;
        let milliseconds = u64::from_be_bytes(take(&mut input, 8)?.try_into().ok()?);
        let extensions = vector(&mut input)?;
        let algorithms = take(&mut input, 2)?;
        let signature = vector(&mut input)?;
        if !input.is_empty() {
            return None;
        }
        // SHA-256 with RSA or ECDSA.
        let known = version == 0 && matches!(algorithms, [4, 1 | 3]);
        Some(known.then_some(Self { log, milliseconds, extensions, signature }))
    }

    fn is_signed(&self, listed: &[u8], issuer: [u8; 32], root: &TrustRoot) -> bool {
        let Some(message) = self.message(listed, issuer) else { return false };
        let at = i64::try_from(self.milliseconds / 1000).unwrap_or(i64::MAX);
        root.certificate_logs(self.log, at)
            .any(|log| log.key.verifies(&message, self.signature, HashAlgorithm::Sha256) == Ok(true))
    }

    /// What is signed, as RFC 6962 writes a certificate without its timestamps.
    fn message(&self, listed: &[u8], issuer: [u8; 32]) -> Option<Vec<u8>> {
        let mut message = vec![0, 0];
        message.extend_from_slice(&self.milliseconds.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        message.extend_from_slice(&issuer);
        let length = u32::try_from(listed.len()).ok().filter(|length| *length < 1 << 24)?;
        message.extend_from_slice(&length.to_be_bytes()[1..]);
        message.extend_from_slice(listed);
        message.extend_from_slice(&u16::try_from(self.extensions.len()).ok()?.to_be_bytes());
        message.extend_from_slice(self.extensions);
        Some(message)
    }
}

fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

/// Bytes after their length in two bytes.
fn vector<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_be_bytes(take(input, 2)?.try_into().ok()?);
    take(input, usize::from(length))
}
