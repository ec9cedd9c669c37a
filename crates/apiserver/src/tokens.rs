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

/// Why there is no key, or it does not sign. Errors of `ring` are not sources: without its feature `std` they are no
/// `std::error::Error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignerError {
    /// The machine has no random numbers.
    #[error("cannot make a signing key: {0}")]
    Generate(ring::error::Unspecified),
    /// The bytes are not a key of the kind that signs tokens.
    #[error("the token signing key cannot be used: {0}")]
    Key(ring::error::KeyRejected),
    /// The key does not sign.
    #[error("cannot sign a token: {0}")]
    Sign(ring::error::Unspecified),
}

/// The key that signs tokens. Tokens stay valid after a restart if the key is the same.
pub struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    /// A new key, in PKCS#8, to keep and pass to [`Signer::from_pkcs8`].
    pub fn generate() -> Result<Vec<u8>, SignerError> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|doc| doc.as_ref().to_vec())
            .map_err(SignerError::Generate)
    }

    /// A signer with a key in PKCS#8.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map_err(SignerError::Key)?;
        Ok(Self { key, random })
    }

    pub(crate) fn sign(&self, claims: &Value) -> Result<String, SignerError> {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.key.sign(&self.random, signed.as_bytes()).map_err(SignerError::Sign)?;
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
    /// The service account of a token, if this server signed it for one of the `audiences` and the account still exists;
    /// and the audiences that it is for. Without any, the audience is this server.
    pub(crate) fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Option<(Identity, Vec<String>)> {
        let claims = self.signer.verify(token, jiff::Timestamp::now().as_second())?;
        let own = [ISSUER.to_owned()];
        let accepted = if audiences.is_empty() { &own } else { audiences };
        let audiences: Vec<String> =
            strings(&claims["aud"]).into_iter().filter(|audience| accepted.contains(audience)).collect();
        if audiences.is_empty() {
            return None;
        }
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
        if let Some(id) = claims["jti"].as_str() {
            user = user.with_credential(format!("JTI={id}"));
        }
        if let (Some(pod), Some(uid)) = (bound["pod"]["name"].as_str(), bound["pod"]["uid"].as_str()) {
            let key = |field: &str| format!("authentication.kubernetes.io/pod-{field}");
            user.extra.insert(key("name"), vec![pod.to_owned()]);
            user.extra.insert(key("uid"), vec![uid.to_owned()]);
        }
        Some((user, audiences))
    }

    /// The user of a token of this server, or of one that an authenticator knows: these are for this server only.
    pub(crate) async fn authenticate_any(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Option<(Identity, Vec<String>)> {
        if let Some(found) = self.authenticate_token(token, audiences) {
            return Some(found);
        }
        if !audiences.is_empty() && !audiences.iter().any(|audience| audience == ISSUER) {
            return None;
        }
        for authenticator in &self.authenticators {
            if let Some(user) = authenticator.authenticate(token).await {
                return Some((user, vec![ISSUER.to_owned()]));
            }
        }
        None
    }

    /// The status of a TokenReview.
    pub(crate) async fn review_token(&self, token: &str, audiences: &[String]) -> Value {
        let Some((user, audiences)) = self.authenticate_any(token, audiences).await else {
            return json!({"user": {}, "error": "invalid bearer token"});
        };
        let Identity { user: username, uid, groups, extra } = user;
        let user = json!({"username": username, "uid": uid, "groups": groups, "extra": extra});
        json!({"authenticated": true, "user": user, "audiences": audiences})
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
