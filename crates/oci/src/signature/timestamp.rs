//! Timestamps of RFC 3161: an authority of the trust root confirms the time at which a signature existed.

use super::certificate::{TIME_STAMPING, issuer_key, parse};
use super::der;
use super::key::{HashAlgorithm, PublicKey};
use super::trust_root::{CertificateAuthority, TrustRoot};

/// The largest timestamp, in bytes.
const TIMESTAMP_BYTES_MAX: usize = 256 << 10;
/// 1.2.840.113549.1.7.2
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// 1.2.840.113549.1.9.16.1.4
const TIMESTAMP_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
/// 1.2.840.113549.1.9.3
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
/// 1.2.840.113549.1.9.4
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
/// 2.16.840.1.101.3.4.2, before the number of the hash.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// A timestamp that is taken apart.
struct Token<'a> {
    /// What the authority says.
    info: &'a [u8],
    /// The certificates that came with it.
    certificates: Vec<&'a [u8]>,
    /// The hash that the attributes have of `info`, and that the signature is over.
    hash: HashAlgorithm,
    /// What is signed, as it is in the token; the signature is over it as a SET.
    attributes: &'a [u8],
    signature: &'a [u8],
}

/// When an authority of the trust root was shown a signature.
pub(super) fn verify(response: &[u8], signature: &[u8], root: &TrustRoot) -> Result<i64, String> {
    if response.len() > TIMESTAMP_BYTES_MAX {
        return Err(format!("the timestamp has more than {TIMESTAMP_BYTES_MAX} bytes"));
    }
    let malformed = || "the timestamp (RFC 3161) is malformed".to_owned();
    let token = Token::parse(response).ok_or_else(malformed)?;
    let (hash, imprint, at) = stamped(token.info).ok_or_else(malformed)?;
    if hash.digest(signature) != imprint {
        return Err("the timestamp is of another signature".to_owned());
    }
    if !token.says_its_content().ok_or_else(malformed)? {
        return Err("the timestamp is not what its authority signed".to_owned());
    }
    let message = der::encode(der::SET, token.attributes);
    let mut problem = "the trust root has no timestamp authority that was valid then".to_owned();
    let is_by = |authority: &CertificateAuthority| {
        let checked = token.is_signed(&message, authority, at);
        checked.map_err(|reason| problem = reason).is_ok()
    };
    if root.timestamp_authorities(at).any(is_by) { Ok(at) } else { Err(problem) }
}

impl<'a> Token<'a> {
    fn parse(response: &'a [u8]) -> Option<Self> {
        let mut fields = der::only(response, der::SEQUENCE)?;
        let status = der::expect(&mut fields, der::SEQUENCE)?;
        // 0 is granted, 1 granted with modifications.
        if !matches!(der::all(status)?.first()?.content, [0 | 1]) {
            return None;
        }
        let mut content = der::only(fields, der::SEQUENCE)?;
        if der::expect(&mut content, der::OID)? != SIGNED_DATA {
            return None;
        }
        let mut data = der::only(der::only(content, der::context(0))?, der::SEQUENCE)?;
        der::expect(&mut data, der::INTEGER)?;
        der::expect(&mut data, der::SET)?;
        let mut inside = der::expect(&mut data, der::SEQUENCE)?;
        if der::expect(&mut inside, der::OID)? != TIMESTAMP_INFO {
            return None;
        }
        let info = der::only(der::only(inside, der::context(0))?, der::OCTET_STRING)?;
        let certificates = match der::expect(&mut data, der::context(0)) {
            Some(list) => der::all(list)?.iter().map(|certificate| certificate.whole).collect(),
            None => Vec::new(),
        };
        der::expect(&mut data, der::context(1));
        let mut signer = der::only(der::only(data, der::SET)?, der::SEQUENCE)?;
        der::expect(&mut signer, der::INTEGER)?;
        der::next(&mut signer)?;
        let hash = hash_of(der::expect(&mut signer, der::SEQUENCE)?)?;
        let attributes = der::expect(&mut signer, der::context(0))?;
        der::expect(&mut signer, der::SEQUENCE)?;
        let signature = der::expect(&mut signer, der::OCTET_STRING)?;
        Some(Self { info, certificates, hash, attributes, signature })
    }

    /// Whether the attributes that are signed are of the content.
    fn says_its_content(&self) -> Option<bool> {
        let attribute = |oid: &[u8]| {
            let mut found = der::all(self.attributes)?.into_iter().filter_map(|attribute| {
                let mut parts = attribute.content;
                (der::expect(&mut parts, der::OID)? == oid).then_some(parts)
            });
            let value = der::only(found.next()?, der::SET)?;
            found.next().is_none().then_some(value)
        };
        let kind = der::only(attribute(CONTENT_TYPE)?, der::OID)?;
        let digest = der::only(attribute(MESSAGE_DIGEST)?, der::OCTET_STRING)?;
        Some(kind == TIMESTAMP_INFO && digest == self.hash.digest(self.info))
    }

    /// Whether a certificate of an authority signed this.
    fn is_signed(&self, message: &[u8], authority: &CertificateAuthority, at: i64) -> Result<(), String> {
        // The first certificate of an authority may be that of its signer; otherwise it comes with the timestamp.
        let own = authority.chain.first().map(|certificate| &**certificate);
        let mut problem = "the timestamp is not signed by an authority of the trust root".to_owned();
        for certificate in own.into_iter().chain(self.certificates.iter().copied()) {
            let Ok(parsed) = parse(certificate) else { continue };
            let is_by = |key: &PublicKey| key.verifies(message, self.signature, self.hash) == Ok(true);
            if !PublicKey::from_der(parsed.public_key().raw).is_ok_and(|key| is_by(&key)) {
                continue;
            }
            let for_timestamps = parsed.extended_key_usage().ok().flatten();
            if !for_timestamps.is_some_and(|usage| usage.value.time_stamping) {
                problem = "the certificate of the timestamp is not for timestamps".to_owned();
                continue;
            }
            let beside: Vec<Vec<u8>> = self.certificates.iter().map(|other| other.to_vec()).collect();
            match issuer_key(certificate, &beside, authority, at, TIME_STAMPING) {
                Ok(_) => return Ok(()),
                Err(reason) => problem = format!("the certificate of the timestamp: {reason}"),
            }
        }
        Err(problem)
    }
}

/// Of what a timestamp is, and when it was made.
fn stamped(info: &[u8]) -> Option<(HashAlgorithm, &[u8], i64)> {
    let mut fields = der::only(info, der::SEQUENCE)?;
    der::expect(&mut fields, der::INTEGER)?;
    der::expect(&mut fields, der::OID)?;
    let mut imprint = der::expect(&mut fields, der::SEQUENCE)?;
    let hash = hash_of(der::expect(&mut imprint, der::SEQUENCE)?)?;
    let imprint = der::only(imprint, der::OCTET_STRING)?;
    der::expect(&mut fields, der::INTEGER)?;
    let time = std::str::from_utf8(der::expect(&mut fields, der::GENERALIZED_TIME)?).ok()?;
    Some((hash, imprint, second(time)?))
}

fn hash_of(algorithm: &[u8]) -> Option<HashAlgorithm> {
    let oid = der::all(algorithm)?.first().filter(|element| element.tag == der::OID)?.content;
    Some(match oid.strip_prefix(SHA2)? {
        [1] => HashAlgorithm::Sha256,
        [2] => HashAlgorithm::Sha384,
        [3] => HashAlgorithm::Sha512,
        _ => return None,
    })
}

/// The second of a time such as `20260102030405Z` or `20260102030405.5Z`.
fn second(time: &str) -> Option<i64> {
    let digits = time.strip_suffix('Z')?.split('.').next()?;
    let parsed = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", digits).ok()?;
    Some(parsed.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}
