//! JSON Web Tokens and the keys that sign them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

/// Why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// None of the keys has the id that the token names: the issuer may have new ones.
    UnknownKey,
    /// Anything else.
    Invalid(String),
}

fn invalid(why: impl Into<String>) -> Refused {
    Refused::Invalid(why.into())
}

/// The issuer that a token names. It proves nothing yet.
pub fn issuer_of(token: &str) -> Option<String> {
    let claims = token.split('.').nth(1).filter(|_| token.split('.').count() == 3)?;
    decode(claims).ok()?["iss"].as_str().map(str::to_owned)
}

fn decode(part: &str) -> Result<Value, Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| invalid("it is not base64"))?;
    serde_json::from_slice(&bytes).map_err(|_| invalid("it is not JSON"))
}

/// A public key.
#[derive(Clone, Debug)]
pub struct Key {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of an issuer.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<Key>);

impl KeySet {
    /// Reads a JWK set. Keys of other kinds, or for encryption, are left out.
    pub fn parse(document: &Value) -> Option<Self> {
        let keys = document["keys"].as_array()?;
        Some(Self(keys.iter().filter_map(read_key).collect()))
    }

    /// The claims of a token that one of the keys signed. Neither its issuer nor its times are checked.
    pub fn verify(&self, token: &str) -> Result<Value, Refused> {
        let (signed, signature) = token.rsplit_once('.').ok_or_else(|| invalid("it is not a JWT"))?;
        let (header, claims) = signed.split_once('.').ok_or_else(|| invalid("it is not a JWT"))?;
        let header = decode(header)?;
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let id = header["kid"].as_str();
        if header.get("crit").is_some() {
            return Err(invalid("it has critical extensions"));
        }
        let signature =
            URL_SAFE_NO_PAD.decode(signature).map_err(|_| invalid("its signature is not base64"))?;
        let candidates: Vec<&Key> =
            self.0.iter().filter(|key| id.is_none() || key.id.is_none() || key.id.as_deref() == id).collect();
        if candidates.is_empty() {
            return Err(Refused::UnknownKey);
        }
        let signs = |key: &&Key| key.verifies(algorithm, signed.as_bytes(), &signature);
        if !candidates.iter().any(signs) {
            // A key without an id may have been replaced.
            return Err(if id.is_none() { Refused::UnknownKey } else { invalid("its signature is wrong") });
        }
        decode(claims)
    }
}

fn read_key(key: &Value) -> Option<Key> {
    let text = |name: &str| key[name].as_str();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let point = |length: usize| {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == length && y.len() == length).then(|| [&[4_u8][..], &x, &y].concat())
    };
    let material = match (text("kty")?, text("crv")) {
        ("RSA", _) => Material::Rsa { n: bytes("n")?, e: bytes("e")? },
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
        _ => return None,
    };
    Some(Key { id: text("kid").map(str::to_owned), algorithm: text("alg").map(str::to_owned), material })
}

impl Key {
    /// The algorithm of the token must be one of the key: a token does not choose what its bytes are taken for.
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        if self.algorithm.as_deref().is_some_and(|only| only != algorithm) {
            return false;
        }
        match (&self.material, algorithm) {
            (Material::Rsa { n, e }, _) => rsa(algorithm).is_some_and(|parameters| {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }),
            (Material::P256(point), "ES256") => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            (Material::P384(point), "ES384") => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            (Material::Ed25519(key), "EdDSA") => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    match algorithm {
        "RS256" => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Some(&signature::RSA_PSS_2048_8192_SHA256),
        "PS384" => Some(&signature::RSA_PSS_2048_8192_SHA384),
        "PS512" => Some(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    /// An issuer of the tests.
    pub(crate) struct Signer(EcdsaKeyPair);

    impl Signer {
        pub(crate) fn new() -> Self {
            let random = SystemRandom::new();
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
        }

        pub(crate) fn keys(&self, id: &str) -> Value {
            let point = self.0.public_key().as_ref();
            let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
            json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id, "use": "sig"}]})
        }

        pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
            let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", encoded(header), encoded(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
        }
    }

    #[test]
    fn only_tokens_that_a_key_of_the_issuer_signed_as_it_says_are_accepted() {
        let (signer, other) = (Signer::new(), Signer::new());
        let keys = KeySet::parse(&signer.keys("one")).unwrap();
        let claims = json!({"iss": "https://issuer", "sub": "jane"});
        let header = json!({"alg": "ES256", "kid": "one"});
        assert_eq!(keys.verify(&signer.sign(&header, &claims)), Ok(claims.clone()));
        assert_eq!(issuer_of(&signer.sign(&header, &claims)).as_deref(), Some("https://issuer"));
        assert!(
            matches!(keys.verify(&other.sign(&header, &claims)), Err(Refused::Invalid(_))),
            "another key"
        );
        let renewed = json!({"alg": "ES256", "kid": "two"});
        assert_eq!(keys.verify(&signer.sign(&renewed, &claims)), Err(Refused::UnknownKey));
        for header in [
            json!({"alg": "none", "kid": "one"}),
            json!({"alg": "HS256", "kid": "one"}),
            json!({"alg": "RS256", "kid": "one"}),
            json!({"kid": "one"}),
            json!({"alg": "ES256", "kid": "one", "crit": ["b64"]}),
        ] {
            assert!(keys.verify(&signer.sign(&header, &claims)).is_err(), "{header}");
        }
        let token = signer.sign(&header, &claims);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let forged =
            format!("{}.{}", signed.split_once('.').unwrap().0, URL_SAFE_NO_PAD.encode(r#"{"sub":"root"}"#));
        assert!(keys.verify(&format!("{forged}.{signature}")).is_err(), "other claims");
        for nonsense in ["", ".", "..", "a.b", "a.b.c", &format!("{signed}.")] {
            assert!(keys.verify(nonsense).is_err(), "{nonsense:?}");
        }
        let encryption =
            json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "enc"}, {"kty": "oct", "k": "AAAA"}]});
        assert!(KeySet::parse(&encryption).unwrap().0.is_empty());
    }
}
