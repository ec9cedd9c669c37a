//! Private keys: generating them, and converting them between PEM and the form that signs certificates.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey};
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::{BigUint, RsaPrivateKey, rand_core};

use super::primes::prime;
use crate::functions::{CallError, Env};

pub(super) enum PrivateKey {
    Rsa(Box<RsaPrivateKey>),
    /// PKCS#8 with its SEC 1 form.
    Ec {
        pkcs8: Vec<u8>,
        sec1: Vec<u8>,
    },
    /// PKCS#8 of a kind PEM carries as is.
    Pkcs8(Vec<u8>),
}

/// The environment's randomness, as the RSA and DSA generators read it.
pub(super) struct Draw<'e, 'a>(pub &'e Env<'a>);

impl rand_core::RngCore for Draw<'_, '_> {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        // Generators that cannot fail loop until a candidate passes; zeros from a broken source never do.
        let _ = self.0.random(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl rand_core::CryptoRng for Draw<'_, '_> {}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..128 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let used: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | used.len() as u8);
            out.extend(used);
        }
    }
    out.extend_from_slice(content);
    out
}

fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_none_or(|byte| byte & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    tlv(0x02, &bytes)
}

const OID_P256: &[u8] = &[0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07];
const OID_EC: &[u8] = &[0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01];

pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The first PEM block: its label and content.
pub(super) fn decode_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let packed: String = body.chars().filter(|rune| !rune.is_whitespace()).collect();
    Some((label.to_owned(), STANDARD.decode(packed).ok()?))
}

pub(super) fn generate_rsa(env: &mut Env<'_>, bits: usize) -> Result<PrivateKey, CallError> {
    // Key generation is the slowest function of templates; its cost grows with the fourth power.
    env.spend(if bits > 2048 { 2_500_000 } else { 990_000 })?;
    let (p, q) = (prime(env, bits / 2)?, prime(env, bits / 2)?);
    let key =
        RsaPrivateKey::from_p_q(p, q, BigUint::from(65_537_u32)).map_err(|problem| problem.to_string())?;
    Ok(PrivateKey::Rsa(Box::new(key)))
}

pub(super) fn generate_ec(env: &mut Env<'_>) -> Result<PrivateKey, CallError> {
    env.spend(1000)?;
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(|problem| problem.to_string())?;
    let pkcs8 = key.serialize_der();
    let marker = [0x02, 0x01, 0x01, 0x04, 0x20];
    let at = crate::sprig::strings::find(&pkcs8, &marker).ok_or("unexpected key encoding")? + marker.len();
    let scalar = pkcs8.get(at..at + 32).ok_or("unexpected key encoding")?;
    let point = pkcs8.get(pkcs8.len().saturating_sub(65)..).ok_or("unexpected key encoding")?;
    let public = tlv(0x03, &[&[0], point].concat());
    let fields =
        [&[0x02, 0x01, 0x01], &*tlv(0x04, scalar), &*tlv(0xA0, OID_P256), &*tlv(0xA1, &public)].concat();
    let sec1 = tlv(0x30, &fields);
    Ok(PrivateKey::Ec { pkcs8, sec1 })
}

pub(super) fn generate_ed25519(env: &mut Env<'_>) -> Result<PrivateKey, CallError> {
    env.spend(1000)?;
    let mut seed = [0; 32];
    env.random(&mut seed)?;
    let header = [0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70];
    let key = tlv(0x04, &tlv(0x04, &seed));
    Ok(PrivateKey::Pkcs8(tlv(0x30, &[&header, &*key].concat())))
}

/// A DSA key in the format only sprig uses; nothing can sign with it here.
pub(super) fn generate_dsa(env: &mut Env<'_>) -> Result<String, CallError> {
    env.spend(2_500_000)?;
    let mut draw = Draw(env);
    let components = dsa::Components::generate(&mut draw, dsa::KeySize::DSA_2048_256);
    let key = dsa::SigningKey::generate(&mut draw, components);
    let public = key.verifying_key();
    let parts =
        [public.components().p(), public.components().q(), public.components().g(), public.y(), key.x()];
    let mut fields = vec![0x02, 0x01, 0x00];
    parts.iter().for_each(|part| fields.extend(integer(part)));
    Ok(pem("DSA PRIVATE KEY", &tlv(0x30, &fields)))
}

impl PrivateKey {
    pub(super) fn from_pem(text: &str) -> Result<PrivateKey, String> {
        let (label, der) = decode_pem(text).ok_or("no PEM data in input")?;
        match label.as_str() {
            "PRIVATE KEY" => {
                if let Ok(key) = RsaPrivateKey::from_pkcs8_der(&der) {
                    return Ok(PrivateKey::Rsa(Box::new(key)));
                }
                KeyPair::try_from(der.as_slice())
                    .map_err(|problem| format!("decoding PEM as PKCS#8: {problem}"))?;
                Ok(PrivateKey::Pkcs8(der))
            }
            "RSA PRIVATE KEY" => match RsaPrivateKey::from_pkcs1_der(&der) {
                Ok(key) => Ok(PrivateKey::Rsa(Box::new(key))),
                Err(problem) => Err(format!("parsing RSA private key from PEM: {problem}")),
            },
            "EC PRIVATE KEY" => {
                let algorithm = tlv(0x30, &[OID_EC, OID_P256].concat());
                let fields = [&[0x02, 0x01, 0x00], &*algorithm, &*tlv(0x04, &der)].concat();
                let pkcs8 = tlv(0x30, &fields);
                KeyPair::try_from(pkcs8.as_slice())
                    .map_err(|problem| format!("parsing EC private key from PEM: {problem}"))?;
                Ok(PrivateKey::Ec { pkcs8, sec1: der })
            }
            label if label.ends_with(" PRIVATE KEY") => Err(format!("invalid private key type {label}")),
            label => Err(format!("no private key data in PEM block of type {label}")),
        }
    }

    pub(super) fn to_pem(&self) -> Result<String, String> {
        Ok(match self {
            PrivateKey::Rsa(key) => {
                let der = key.to_pkcs1_der().map_err(|problem| problem.to_string())?;
                pem("RSA PRIVATE KEY", der.as_bytes())
            }
            PrivateKey::Ec { sec1, .. } => pem("EC PRIVATE KEY", sec1),
            PrivateKey::Pkcs8(der) => pem("PRIVATE KEY", der),
        })
    }

    pub(super) fn signer(&self) -> Result<KeyPair, String> {
        let rsa;
        let der = match self {
            PrivateKey::Rsa(key) => {
                rsa = key.to_pkcs8_der().map_err(|problem| problem.to_string())?;
                rsa.as_bytes()
            }
            PrivateKey::Ec { pkcs8, .. } | PrivateKey::Pkcs8(pkcs8) => pkcs8,
        };
        KeyPair::try_from(der).map_err(|problem| problem.to_string())
    }
}
