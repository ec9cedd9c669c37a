//! Service account tokens: signed on request, checked on use.
//!
//! A token is an ES256 JWT with the claims Kubernetes uses. It is valid only while its service account exists with
//! the same uid, so that deleting an account ends its tokens.

use crate::auth::Identity;
use crate::server::Inner;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};
use transom_object::json::strings;
use transom_store::Key;

pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
const HEADER: &str = r#"{"alg":"ES256","typ":"JWT"}"#;

/// The key that signs tokens. Tokens stay valid after a restart if the key is the same.
pub struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    /// A new key, in PKCS#8, to keep and pass to [`Signer::from_pkcs8`].
    pub fn generate() -> Result<Vec<u8>, String> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|doc| doc.as_ref().to_vec())
            .map_err(|e| format!("cannot make a signing key: {e}"))
    }

    /// A signer with a key in PKCS#8.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, String> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map_err(|e| format!("the token signing key cannot be used: {e}"))?;
        Ok(Self { key, random })
    }

    pub(crate) fn sign(&self, claims: &Value) -> Result<String, String> {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self
            .key
            .sign(&self.random, signed.as_bytes())
            .map_err(|e| format!("cannot sign a token: {e}"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }

    /// The claims of a token of ours that has not expired.
    fn verify(&self, token: &str, now: i64) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        public.verify(signed.as_bytes(), &signature).ok()?;
        let (header, claims) = signed.split_once('.')?;
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let current = claims["nbf"].as_i64()? <= now && now < claims["exp"].as_i64()?;
        (header["alg"] == "ES256" && claims["iss"] == ISSUER && current).then_some(claims)
    }
}

/// The object that a token is bound to, besides its service account: it is valid while the object exists with this uid.
pub(crate) struct Bound {
    /// `pod` or `secret`, as the claim is called.
    pub(crate) claim: &'static str,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Kinds a token can be bound to: their claim, and the store's name for them.
pub(crate) const BINDABLE: [(&str, &str); 2] = [("pod", "pods"), ("secret", "secrets")];

/// The claims of a token for one service account.
pub(crate) fn claims(
    (namespace, name, uid): (&str, &str, &str),
    bound: Option<&Bound>,
    audiences: &[String],
    issued: i64,
    expires: i64,
) -> Value {
    let mut claims = json!({
        "iss": ISSUER,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "aud": audiences,
        "iat": issued,
        "nbf": issued,
        "exp": expires,
        "jti": uuid::Uuid::new_v4().to_string(),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
    });
    if let Some(bound) = bound {
        claims["kubernetes.io"][bound.claim] = json!({"name": bound.name, "uid": bound.uid});
    }
    claims
}

impl Inner {
    /// The service account of a token, if this server signed it and the account still exists.
    pub(crate) fn authenticate_token(&self, token: &str) -> Option<(Identity, Vec<String>)> {
        let claims = self.signer.verify(token, jiff::Timestamp::now().as_second())?;
        let bound = &claims["kubernetes.io"];
        let namespace = bound["namespace"].as_str()?;
        let (name, uid) =
            (bound["serviceaccount"]["name"].as_str()?, bound["serviceaccount"]["uid"].as_str()?);
        let account = self.store.get(&Key::new("serviceaccounts", namespace, name))?;
        if account.header.uid != uid {
            return None;
        }
        for (claim, store_key) in BINDABLE {
            let Some(name) = bound[claim]["name"].as_str() else { continue };
            let object = self.store.get(&Key::new(store_key, namespace, name))?;
            if bound[claim]["uid"] != *object.header.uid {
                return None;
            }
        }
        let mut user = Identity::service_account(namespace, name);
        uid.clone_into(&mut user.uid);
        Some((user, strings(&claims["aud"])))
    }

    /// The status of a TokenReview.
    pub(crate) fn review_token(&self, token: &str) -> Value {
        match self.authenticate_token(token) {
            Some((user, audiences)) => {
                json!({"authenticated": true, "user": {"username": user.user, "uid": user.uid, "groups": user.groups}, "audiences": audiences})
            }
            None => {
                json!({"user": {}, "error": "invalid bearer token"})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_untouched_unexpired_tokens_verify() {
        let signer = Signer::from_pkcs8(&Signer::generate().unwrap()).unwrap();
        let token = signer.sign(&claims(("ns", "sa", "u"), None, &[], 100, 200)).unwrap();
        assert!(signer.verify(&token, 150).is_some());
        assert!(signer.verify(&token, 200).is_none(), "expired");
        assert!(signer.verify(&token, 50).is_none(), "not yet valid");
        let other = Signer::from_pkcs8(&Signer::generate().unwrap()).unwrap();
        assert!(other.verify(&token, 150).is_none(), "another key");
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let forged =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), signed.split_once('.').unwrap().1);
        assert!(signer.verify(&format!("{forged}.{signature}"), 150).is_none(), "another header");
        assert!(signer.verify("", 150).is_none());
        assert!(signer.verify("a.b.c", 150).is_none());
    }
}
