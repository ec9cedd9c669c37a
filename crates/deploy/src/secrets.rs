//! Certificates in Secrets of a cluster: checked whenever they are needed, and replaced before they expire or when their
//! authority was.
//!
//! Replacing has an overlap. A Secret that gets a certificate of a new authority trusts the old one, too, for a day; and what
//! calls others keeps its old certificate beside the new one for as long, for servers that have not read theirs again.

use crate::certificates::{Authority, Leaf, Need, Usage, fingerprint, split};
use crate::following::Attempt;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::Mutex;
use transom_engine::{Clock, Cluster, Error, ErrorContext, Result};
use transom_object::time::Timestamp;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::constants::owner;

/// The Secret with the authority, as Crossplane's installation makes it.
const AUTHORITY: &str = "crossplane-root-ca";
/// The Secret with the certificate that functions are called with.
const CLIENT: &str = "crossplane-tls-client";
/// The service account of the control plane: the name in the certificate that functions are called with.
const ACCOUNT: &str = "crossplane";
/// Until when what was replaced is accepted.
const OVERLAP_ANNOTATION: &str = "transom.io/replaced-is-accepted-until";
const CERTIFICATE_OVERLAP: Duration = Duration::from_secs(24 * 3600);
/// How often a write is attempted that conflicts with writes of other clients.
const MAX_WRITE_ATTEMPTS: usize = 4;

/// Certificates to call functions with, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities whose certificates are accepted.
    pub authorities: String,
    /// The certificate to call with.
    pub current: Leaf,
    /// The one before, while it may still be asked for.
    pub previous: Option<Leaf>,
}

impl std::fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsFiles { .. }")
    }
}

/// The certificates of a control plane and its packages.
pub struct CertificateStore {
    cluster: Cluster,
    namespace: String,
    clock: Clock,
    /// Held while certificates are checked and replaced: many revisions ask at a time.
    turn: Mutex<()>,
}

/// What a Secret of a certificate should be like.
struct Wanted<'a> {
    name: &'a str,
    owner: Option<Value>,
    need: Need,
    /// Whether the one before is kept beside it for a while.
    keeps_previous: bool,
}

impl CertificateStore {
    /// The certificates in the Secrets of a namespace.
    pub fn new(cluster: Cluster, namespace: &str, clock: Clock) -> Self {
        Self { cluster, namespace: namespace.to_owned(), clock, turn: Mutex::default() }
    }

    /// Makes sure that a Secret has a certificate for a server, with the authorities that it accepts. Returns what changes
    /// with the certificate.
    pub async fn server(
        &self,
        secret: &str,
        owner: Option<Value>,
        names: Vec<String>,
    ) -> Result<ServerCertificate> {
        self.server_of(&Attempt::unfollowed(), secret, owner, names).await
    }

    /// The same, for a revision that is being run.
    pub(crate) async fn server_of(
        &self,
        attempt: &Attempt,
        secret: &str,
        owner: Option<Value>,
        names: Vec<String>,
    ) -> Result<ServerCertificate> {
        let need = Need { names, usage: Usage::Server };
        let wanted = Wanted { name: secret, owner, need, keeps_previous: false };
        let (files, authority) = self.ensure(attempt, wanted).await?;
        Ok(ServerCertificate {
            fingerprint: fingerprint(&[&authority, &files.current.certificate]),
            authorities: files.authorities,
            leaf: files.current,
        })
    }

    /// Makes sure that a Secret has a certificate to call others with.
    pub async fn client(&self, secret: &str, owner: Option<Value>, names: Vec<String>) -> Result<TlsFiles> {
        self.client_of(&Attempt::unfollowed(), secret, owner, names).await
    }

    /// The same, for a revision that is being run.
    pub(crate) async fn client_of(
        &self,
        attempt: &Attempt,
        secret: &str,
        owner: Option<Value>,
        names: Vec<String>,
    ) -> Result<TlsFiles> {
        let need = Need { names, usage: Usage::Client };
        Ok(self.ensure(attempt, Wanted { name: secret, owner, need, keeps_previous: true }).await?.0)
    }

    /// The certificate that functions are called with.
    pub async fn own_client(&self) -> Result<TlsFiles> {
        self.own_client_of(&Attempt::unfollowed()).await
    }

    /// The same, for a revision that is being run.
    pub(crate) async fn own_client_of(&self, attempt: &Attempt) -> Result<TlsFiles> {
        self.client_of(attempt, CLIENT, None, vec![format!("{ACCOUNT}.{}", self.namespace)]).await
    }

    async fn secret(&self, attempt: &Attempt, name: &str) -> Result<Option<Value>> {
        attempt.get(&self.cluster, &secret_gvk(), &self.namespace, name).await
    }

    async fn ensure(&self, attempt: &Attempt, wanted: Wanted<'_>) -> Result<(TlsFiles, String)> {
        let _turn = self.turn.lock().await;
        let authority = self.authority(attempt).await.context("cannot use the certificate authority")?;
        let existing = self.secret(attempt, wanted.name).await?;
        let now = self.clock.now();
        let existing = existing.unwrap_or_default();
        let (data, changed) = decide(&authority, &existing, &wanted, now).map_err(Error::domain)?;
        let mut overlap = overlap(&existing).filter(|_| data.has_previous());
        if let Some(why) = changed {
            tracing::info!(secret = wanted.name, why, "replaces a certificate");
            let mut metadata = json!({"name": wanted.name, "namespace": self.namespace});
            if let Some(owner) = &wanted.owner {
                metadata["ownerReferences"] = json!([owner]);
            }
            if data.has_previous() {
                let until = now.checked_add(CERTIFICATE_OVERLAP).unwrap_or(now);
                metadata["annotations"] = json!({OVERLAP_ANNOTATION: transom_object::time::format(until)});
                overlap = Some(until);
            }
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data.encoded(),
            });
            let written = self.cluster.apply(&secret, owner::RUNTIME).await;
            attempt.saw(&written.context("cannot write a Secret with a certificate")?);
        }
        let over = overlap.and_then(|until| until.checked_add(Duration::from_secs(1)).ok());
        let due = [authority.renewal(), data.current.renewal(), over];
        due.into_iter().flatten().for_each(|time| attempt.renews_at(time));
        Ok((data.files(), authority.certificate().to_owned()))
    }

    /// The authority, which is made if there is none that can be used. Of two processes that make it at once, one wins.
    async fn authority(&self, attempt: &Attempt) -> Result<Authority> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let existing = self.secret(attempt, AUTHORITY).await?;
            let now = self.clock.now();
            let stored = existing.clone().unwrap_or_default();
            let (certificate, key) = (text(&stored, "tls.crt"), text(&stored, "tls.key"));
            if !certificate.is_empty() || !key.is_empty() {
                match Authority::read(&certificate, &key, now) {
                    Ok(authority) => return Ok(authority),
                    Err(error) => {
                        tracing::warn!(secret = AUTHORITY, %error, "replaces the certificate authority");
                    }
                }
            }
            let authority = Authority::new(now).map_err(Error::domain)?;
            let encode = |text: &str| STANDARD.encode(text);
            let data =
                json!({"tls.crt": encode(authority.certificate()), "tls.key": encode(authority.key())});
            let written = match existing {
                Some(mut secret) => {
                    secret["data"] = data;
                    self.cluster.update(&secret, owner::RUNTIME).await
                }
                None => {
                    let metadata = json!({"name": AUTHORITY, "namespace": self.namespace});
                    let secret = json!({
                        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data,
                    });
                    self.cluster.create(&secret, owner::RUNTIME).await
                }
            };
            match written {
                Ok(written) => {
                    attempt.saw(&written);
                    return Ok(authority);
                }
                Err(error) if error.is_conflict() || error.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::domain(format!(
            "Secret {AUTHORITY:?} could not be written in {MAX_WRITE_ATTEMPTS} attempts: another client keeps changing it"
        )))
    }
}

/// The certificate of a server.
#[derive(Clone, Debug)]
pub struct ServerCertificate {
    /// Changes with the certificate or its authority.
    pub fingerprint: String,
    /// The authorities whose certificates are accepted, in PEM.
    pub authorities: String,
    /// The certificate and its key.
    pub leaf: Leaf,
}

fn secret_gvk() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "Secret")
}

/// A field of a Secret, decoded.
fn text(secret: &Value, field: &str) -> String {
    let decoded = secret["data"][field].as_str().and_then(|data| STANDARD.decode(data).ok());
    decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Until when what was replaced is accepted.
fn overlap(secret: &Value) -> Option<Timestamp> {
    transom_object::time::parse(meta::annotation(secret, OVERLAP_ANNOTATION)?).ok()
}

/// What a Secret holds.
struct Data {
    authorities: Vec<String>,
    current: Leaf,
    previous: Option<Leaf>,
}

impl Data {
    fn has_previous(&self) -> bool {
        self.previous.is_some() || self.authorities.len() > 1
    }

    fn files(&self) -> TlsFiles {
        let (authorities, current) = (self.authorities.concat(), self.current.clone());
        TlsFiles { authorities, current, previous: self.previous.clone() }
    }

    fn encoded(&self) -> Value {
        let mut data = Map::new();
        let mut add =
            |field: &str, text: &str| drop(data.insert(field.to_owned(), STANDARD.encode(text).into()));
        add("ca.crt", &self.authorities.concat());
        add("tls.crt", &self.current.certificate);
        add("tls.key", &self.current.key);
        if let Some(previous) = &self.previous {
            add("previous.crt", &previous.certificate);
            add("previous.key", &previous.key);
        }
        Value::Object(data)
    }
}

/// What a Secret should hold, and why that is not what it holds.
fn decide(
    authority: &Authority,
    existing: &Value,
    wanted: &Wanted<'_>,
    now: Timestamp,
) -> Result<(Data, Option<String>), crate::CertificateError> {
    let stored = Leaf { certificate: text(existing, "tls.crt"), key: text(existing, "tls.key") };
    let known = split(&text(existing, "ca.crt"));
    let own = split(authority.certificate());
    let is_over = overlap(existing).is_none_or(|until| until < now);
    let previous = Leaf { certificate: text(existing, "previous.crt"), key: text(existing, "previous.key") };
    let has_previous = !previous.certificate.is_empty();
    let problem = authority.check(&stored, &wanted.need, now).err();
    let first = known.first() == own.first();
    if problem.is_none() && first {
        let replaced = known.len() > 1 || has_previous;
        let authorities = if is_over { own } else { known };
        let previous = Some(previous).filter(|_| has_previous && !is_over);
        let why = (replaced && is_over).then(|| "the replaced authority is no longer trusted".to_owned());
        return Ok((Data { authorities, current: stored, previous }, why));
    }
    let is_first = stored.certificate.is_empty();
    let why = problem.unwrap_or_else(|| "it was issued by an authority that has been replaced".to_owned());
    let why = if is_first { "there is none".to_owned() } else { why };
    // The authority before, which servers that have not read their certificates again still have.
    let before = known.into_iter().filter(|certificate| !own.contains(certificate)).take(1);
    let authorities = own.iter().cloned().chain(before).collect();
    let previous = Some(stored).filter(|stored| wanted.keeps_previous && stored.is_valid(now));
    Ok((Data { authorities, current: authority.issue(&wanted.need, now)?, previous }, Some(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        transom_object::time::parse(text).unwrap()
    }

    fn wanted(usage: Usage) -> Wanted<'static> {
        let need = Need { names: vec!["x.ns".to_owned()], usage };
        Wanted { name: "s", owner: None, need, keeps_previous: usage == Usage::Client }
    }

    fn secret(data: &Data, until: Option<&str>) -> Value {
        let mut secret = json!({"metadata": {"name": "s"}, "data": data.encoded()});
        if let Some(until) = until {
            secret["metadata"]["annotations"] = json!({OVERLAP_ANNOTATION: until});
        }
        secret
    }

    #[test]
    fn a_certificate_is_made_once_and_kept() {
        let now = at("2026-01-01T00:00:00Z");
        let authority = Authority::new(now).unwrap();
        let wanted = wanted(Usage::Server);
        let (made, why) = decide(&authority, &Value::Null, &wanted, now).unwrap();
        assert_eq!(why.as_deref(), Some("there is none"));
        let (kept, why) = decide(&authority, &secret(&made, None), &wanted, now).unwrap();
        assert_eq!(why, None);
        assert_eq!(kept.current, made.current);
        let (renewed, why) =
            decide(&authority, &secret(&made, None), &wanted, at("2026-11-01T00:00:00Z")).unwrap();
        assert_eq!(why.as_deref(), Some("it expires soon"));
        assert_ne!(renewed.current, made.current);
    }

    #[test]
    fn a_replaced_authority_heals_with_an_overlap() {
        let now = at("2026-01-01T00:00:00Z");
        let (old, new) = (Authority::new(now).unwrap(), Authority::new(now).unwrap());
        for usage in [Usage::Server, Usage::Client] {
            let wanted = wanted(usage);
            let (first, _) = decide(&old, &Value::Null, &wanted, now).unwrap();
            let (second, why) = decide(&new, &secret(&first, None), &wanted, now).unwrap();
            assert!(why.is_some_and(|why| why.contains("its authority did not make it")));
            assert_eq!(second.authorities.len(), 2, "both are accepted");
            assert_eq!(second.authorities[0], split(new.certificate())[0], "the new one first");
            assert_eq!(second.previous, (usage == Usage::Client).then_some(first.current));
            assert_eq!(new.check(&second.current, &wanted.need, now), Ok(()));
            let during = secret(&second, Some("2026-01-02T00:00:00Z"));
            let (kept, why) = decide(&new, &during, &wanted, at("2026-01-01T12:00:00Z")).unwrap();
            assert_eq!((why, kept.authorities.len()), (None, 2));
            let (after, why) = decide(&new, &during, &wanted, at("2026-01-03T00:00:00Z")).unwrap();
            assert!(why.is_some());
            assert_eq!((after.authorities.len(), after.previous.is_none()), (1, true));
            assert_eq!(after.current, second.current, "the certificate stays");
        }
    }

    #[test]
    fn a_certificate_that_nothing_accepts_is_not_kept_beside_the_new_one() {
        let now = at("2026-01-01T00:00:00Z");
        let (old, new) = (Authority::new(now).unwrap(), Authority::new(now).unwrap());
        let wanted = wanted(Usage::Client);
        let (mut first, _) = decide(&old, &Value::Null, &wanted, now).unwrap();
        let previous = |stored: &Data, now: &str| {
            decide(&new, &secret(stored, None), &wanted, at(now)).unwrap().0.previous
        };
        assert_eq!(previous(&first, "2026-01-01T00:00:00Z"), Some(first.current.clone()));
        assert_eq!(previous(&first, "2028-01-01T00:00:00Z"), None, "it has expired");
        first.current.key = "damaged".to_owned();
        assert_eq!(previous(&first, "2026-01-01T00:00:00Z"), None);
    }
}
