//! A Sigstore instance in the process of a test: a certificate authority, a log of certificates, a log of signatures, and an
//! authority for timestamps, with a trust root of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, PublicKeyData, SanType, SerialNumber, SigningKey,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// 2026-01-02T03:04:05Z, when signatures are made.
pub(crate) const SIGNED_AT: i64 = 1_767_323_045;
pub(crate) const SUBJECT: &str = "dev@example.org";
pub(crate) const ISSUER: &str = "https://issuer.example.org";

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// A value in DER.
pub(crate) fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        0..=0x7f => bytes.push(u8::try_from(length).unwrap()),
        0x80..=0xff => bytes.extend([0x81, u8::try_from(length).unwrap()]),
        _ => {
            bytes.push(0x82);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    bytes.extend(content);
    bytes
}

pub(crate) struct Sigstore {
    root: CertifiedIssuer<'static, KeyPair>,
    pub fulcio: CertifiedIssuer<'static, KeyPair>,
    pub stamper: (Vec<u8>, KeyPair),
    pub certificate_log: KeyPair,
    pub log: KeyPair,
}

/// What a certificate is to be like.
pub(crate) struct Leaf {
    pub subject: SanType,
    pub issuer: Option<&'static str>,
    pub usage: ExtendedKeyUsagePurpose,
    /// From [`SIGNED_AT`], how long it is valid.
    pub minutes: u64,
    pub timestamps: Timestamps,
    pub is_authority: bool,
}

/// Which timestamps (SCT) of a log of certificates are in a certificate.
pub(crate) enum Timestamps {
    Right,
    None,
    /// By another log.
    OfStranger,
    /// With another time than the one that is signed.
    OfOtherTime,
    /// Of a certificate with another serial number.
    OfOtherCertificate,
    /// Bytes that are not a list of timestamps.
    Malformed,
}

impl Default for Leaf {
    fn default() -> Self {
        Self {
            subject: SanType::Rfc822Name(SUBJECT.try_into().unwrap()),
            issuer: Some(ISSUER),
            usage: ExtendedKeyUsagePurpose::CodeSigning,
            minutes: 10,
            timestamps: Timestamps::Right,
            is_authority: false,
        }
    }
}

/// A certificate and its key.
pub(crate) struct Certified {
    pub der: Vec<u8>,
    pub key: KeyPair,
}

impl Certified {
    pub(crate) fn pem(&self) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64(&self.der))
    }
}

fn key() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap()
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2035, 1, 1);
    params
}

impl Sigstore {
    pub(crate) fn new() -> Self {
        let root = CertifiedIssuer::self_signed(authority("root"), key()).unwrap();
        let mut params = authority("fulcio");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let fulcio = CertifiedIssuer::signed_by(params, key(), &root).unwrap();
        let mut params = authority("stamper");
        params.is_ca = IsCa::NoCa;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::TimeStamping];
        let stamper = key();
        let certificate = params.signed_by(&stamper, &root).unwrap().der().to_vec();
        Self { root, fulcio, stamper: (certificate, stamper), certificate_log: key(), log: key() }
    }

    /// `trusted_root.json`
    pub(crate) fn trust_root(&self) -> Value {
        let valid = json!({"start": "2025-06-01T00:00:00Z"});
        let log = |key: &KeyPair| {
            let spki = key.subject_public_key_info();
            json!({
                "baseUrl": "https://log.example.org", "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": base64(&spki), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid},
                "logId": {"keyId": base64(sha256(&spki))},
            })
        };
        let chain = |certificates: &[&[u8]]| {
            let list: Vec<Value> = certificates.iter().map(|der| json!({"rawBytes": base64(der)})).collect();
            json!({"certChain": {"certificates": list}, "validFor": valid})
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log)],
            "ctlogs": [log(&self.certificate_log)],
            "certificateAuthorities": [chain(&[self.fulcio.der(), self.root.der()])],
            "timestampAuthorities": [chain(&[&self.stamper.0, self.root.der()])],
        })
    }

    /// Issues a certificate.
    pub(crate) fn issue(&self, leaf: &Leaf) -> Certified {
        let key = key();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from_slice(&[7]));
        params.subject_alt_names = vec![leaf.subject.clone()];
        params.extended_key_usages = vec![leaf.usage.clone()];
        if leaf.is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let since = u64::try_from(SIGNED_AT - 1_767_225_600).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1) + Duration::from_secs(since);
        params.not_after = params.not_before + Duration::from_secs(leaf.minutes * 60);
        if let Some(issuer) = leaf.issuer {
            let text = der(0x0c, issuer.as_bytes());
            params
                .custom_extensions
                .push(CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 57264, 1, 8], text));
        }
        if let Some(list) = self.timestamps(leaf, &params, &key) {
            let extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], list);
            params.custom_extensions.push(extension);
        }
        Certified { der: params.signed_by(&key, &self.fulcio).unwrap().der().to_vec(), key }
    }

    /// The timestamps of a certificate, as the content of their extension.
    fn timestamps(&self, leaf: &Leaf, params: &CertificateParams, key: &KeyPair) -> Option<Vec<u8>> {
        let stranger = Self::log_key();
        let mut params = params.clone();
        let (log, shift) = match leaf.timestamps {
            Timestamps::Right => (&self.certificate_log, 0),
            Timestamps::None => return None,
            Timestamps::OfStranger => (&stranger, 0),
            Timestamps::OfOtherTime => (&self.certificate_log, 1),
            Timestamps::OfOtherCertificate => {
                params.serial_number = Some(SerialNumber::from_slice(&[8]));
                (&self.certificate_log, 0)
            }
            Timestamps::Malformed => return Some(der(4, &[0, 9, 1])),
        };
        let unlisted = params.signed_by(key, &self.fulcio).unwrap().der().to_vec();
        let content = first(&unlisted).0;
        let listed = first(content).1;
        let milliseconds = u64::try_from(SIGNED_AT).unwrap() * 1000;
        let mut message = vec![0, 0];
        message.extend(milliseconds.to_be_bytes());
        message.extend([0, 1]);
        message.extend(sha256(self.fulcio.key().subject_public_key_info()));
        message.extend(&u32::try_from(listed.len()).unwrap().to_be_bytes()[1..]);
        message.extend(listed);
        message.extend([0, 0]);
        let signature = log.sign(&message).unwrap();
        let mut timestamp = vec![0];
        timestamp.extend(sha256(log.subject_public_key_info()));
        timestamp.extend((milliseconds + shift).to_be_bytes());
        timestamp.extend([0, 0, 4, 3]);
        timestamp.extend(u16::try_from(signature.len()).unwrap().to_be_bytes());
        timestamp.extend(signature);
        let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        Some(der(4, &sized(&sized(&timestamp))))
    }

    fn log_key() -> KeyPair {
        key()
    }

    /// The annotation of cosign with an entry of the log.
    pub(crate) fn entry(&self, body: &Value, at: i64) -> Value {
        Self::entry_by(&self.log, body, at)
    }

    /// An entry that any key signed.
    pub(crate) fn entry_by(log: &KeyPair, body: &Value, at: i64) -> Value {
        let (body, id) = (base64(body.to_string()), hex(sha256(log.subject_public_key_info())));
        let promised = format!(r#"{{"body":"{body}","integratedTime":{at},"logID":"{id}","logIndex":42}}"#);
        let promise = base64(log.sign(promised.as_bytes()).unwrap());
        let payload = json!({"body": body, "integratedTime": at, "logID": id, "logIndex": 42});
        json!({"SignedEntryTimestamp": promise, "Payload": payload})
    }

    /// A timestamp of RFC 3161.
    pub(crate) fn timestamp(&self, signature: &[u8], time: &str) -> Vec<u8> {
        Self::timestamp_by(&self.stamper.1, signature, time)
    }

    /// A timestamp that any key signed.
    pub(crate) fn timestamp_by(stamper: &KeyPair, signature: &[u8], time: &str) -> Vec<u8> {
        let oid = |bytes: &[u8]| der(6, bytes);
        let sha256_oid = der(0x30, &oid(&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1]));
        let info_oid = oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4]);
        let imprint = der(0x30, &[sha256_oid.clone(), der(4, &sha256(signature))].concat());
        let serial = der(2, &[5]);
        let info = [der(2, &[1]), oid(&[0x2a, 3]), imprint, serial, der(0x18, time.as_bytes())].concat();
        let info = der(0x30, &info);
        let attribute = |id: &[u8], value: Vec<u8>| der(0x30, &[oid(id), der(0x31, &value)].concat());
        let attributes = [
            attribute(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3], info_oid.clone()),
            attribute(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4], der(4, &sha256(&info))),
        ]
        .concat();
        let signed = stamper.sign(&der(0x31, &attributes)).unwrap();
        let ecdsa = der(0x30, &oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
        let signer = [
            der(2, &[1]),
            der(0x30, &[]),
            sha256_oid.clone(),
            der(0xa0, &attributes),
            ecdsa,
            der(4, &signed),
        ]
        .concat();
        let content = der(0x30, &[info_oid, der(0xa0, &der(4, &info))].concat());
        let data = [der(2, &[3]), der(0x31, &sha256_oid), content, der(0x31, &der(0x30, &signer))].concat();
        let signed_data = oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2]);
        let token = der(0x30, &[signed_data, der(0xa0, &der(0x30, &data))].concat());
        der(0x30, &[der(0x30, &der(2, &[0])), token].concat())
    }
}

/// Content and all bytes of the first value.
fn first(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (header, length) = match bytes[1] {
        short @ 0..=0x7f => (2, usize::from(short)),
        0x81 => (3, usize::from(bytes[2])),
        _ => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
    };
    (&bytes[header..header + length], &bytes[..header + length])
}
