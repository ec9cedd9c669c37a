//! Access to repositories: anonymous first, then as the registry requires. Tokens are kept until shortly before
//! they expire, in memory only.
//!
//! Credentials go to the registry, and to a token realm on another host only if the registry itself named that realm
//! over TLS. A realm must be reached over TLS, or be on this machine.

use super::challenge::{Challenge, challenge};
use super::http::{Answer, Call, Http, same_origin};
use super::options::is_loopback;
use crate::failure::{invalid, unauthorized};
use base64::Engine as _;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode, Uri};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use transom_packages::{Credentials, RegistryError, RegistryErrorKind};

const TOKEN_RESPONSE_BYTES_MAX: u64 = 1 << 20;
const SESSIONS_MAX: usize = 1000;
/// How long before its end a token is no longer used.
const EXPIRY_MARGIN: Duration = Duration::from_secs(10);

/// What a request needs: a repository, and whether it writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Access {
    pub(super) registry: String,
    pub(super) repository: String,
    pub(super) push: bool,
}

impl Access {
    fn scope(&self) -> String {
        format!("repository:{}:{}", self.repository, if self.push { "pull,push" } else { "pull" })
    }
}

/// Authorization that registries gave or accepted.
#[derive(Default)]
pub(super) struct Sessions {
    known: Mutex<HashMap<Key, Session>>,
}

type Key = (Access, [u8; 32]);

#[derive(Clone)]
struct Session {
    header: HeaderValue,
    until: Option<Instant>,
}

impl Sessions {
    /// Sends a request with the first of the credentials that the registry accepts; without any, anonymously.
    pub(super) async fn send(
        &self,
        http: &Http,
        subject: &str,
        access: &Access,
        call: Call,
        candidates: &[&Credentials],
    ) -> Result<Answer, RegistryError> {
        // What can be done about it depends on where credentials come from: the caller adds that.
        let given = match candidates {
            [] => "no credentials were given",
            _ => "the given credentials are not sufficient",
        };
        let who: Vec<Option<&Credentials>> =
            if candidates.is_empty() { vec![None] } else { candidates.iter().copied().map(Some).collect() };
        let mut refused = unauthorized(subject, "access is refused");
        for credentials in who {
            match self.send_as(http, subject, access, call.clone(), credentials).await {
                Ok(answer) if is_refusal(answer.status) => {
                    refused = answer.failure(subject, "repository").await;
                }
                Err(error) if error.kind == RegistryErrorKind::Unauthorized => refused = error,
                result => return result,
            }
        }
        Err(RegistryError { message: format!("{}; {given}", refused.message), ..refused })
    }

    async fn send_as(
        &self,
        http: &Http,
        subject: &str,
        access: &Access,
        mut call: Call,
        credentials: Option<&Credentials>,
    ) -> Result<Answer, RegistryError> {
        let key = (access.clone(), fingerprint(credentials));
        call.authorization = self.known(&key);
        let answer = http.send(subject, &call).await?;
        if answer.status != StatusCode::UNAUTHORIZED || !same_origin(&answer.uri, &call.uri) {
            return Ok(answer);
        }
        self.forget(&key);
        let Some(asked) = challenge(&answer.headers) else { return Ok(answer) };
        let session = match (asked, credentials) {
            (Challenge::Basic, None) => return Ok(answer),
            (Challenge::Basic, Some(credentials)) => {
                Session { header: basic(credentials, subject)?, until: None }
            }
            (Challenge::Bearer { realm, service }, credentials) => {
                let realm = realm_of(http, subject, &call.uri, &realm)?;
                token(http, subject, access, &realm, service.as_deref(), credentials).await?
            }
        };
        call.authorization = Some(session.header.clone());
        drop(answer);
        let answer = http.send(subject, &call).await?;
        if !is_refusal(answer.status) {
            self.remember(key, session);
        }
        Ok(answer)
    }

    /// Authorization for a request that cannot be sent twice, after one that could.
    pub(super) fn current(&self, access: &Access, candidates: &[&Credentials]) -> Option<HeaderValue> {
        let keys = candidates.iter().map(|credentials| fingerprint(Some(credentials)));
        keys.chain([fingerprint(None)]).find_map(|fingerprint| self.known(&(access.clone(), fingerprint)))
    }

    fn known(&self, key: &Key) -> Option<HeaderValue> {
        let known = self.known.lock().ok()?;
        let session = known.get(key)?;
        let valid = session.until.is_none_or(|until| Instant::now() < until);
        valid.then(|| session.header.clone())
    }

    fn remember(&self, key: Key, session: Session) {
        if let Ok(mut known) = self.known.lock() {
            if known.len() >= SESSIONS_MAX {
                known.clear();
            }
            known.insert(key, session);
        }
    }

    fn forget(&self, key: &Key) {
        if let Ok(mut known) = self.known.lock() {
            known.remove(key);
        }
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// A fingerprint of credentials, which can be compared without keeping the credentials themselves.
fn fingerprint(credentials: Option<&Credentials>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    if let Some(credentials) = credentials {
        for part in [&credentials.username, &credentials.password] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.update(credentials.identity_token.as_deref().unwrap_or_default());
        hasher.update(b"credentials");
    }
    hasher.finalize().into()
}

fn basic(credentials: &Credentials, subject: &str) -> Result<HeaderValue, RegistryError> {
    let Credentials { username, password, .. } = credentials;
    if username.is_empty() && password.is_empty() {
        return Err(unauthorized(
            subject,
            "the registry requires a user and a password; the credentials have neither",
        ));
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    secret_header(&format!("Basic {encoded}"), subject)
}

fn secret_header(value: &str, subject: &str) -> Result<HeaderValue, RegistryError> {
    let mut header = HeaderValue::from_str(value)
        .map_err(|_| unauthorized(subject, "a token or password has characters that a header cannot have"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// The address of a token realm, if credentials may go there.
fn realm_of(http: &Http, subject: &str, registry: &Uri, realm: &str) -> Result<Uri, RegistryError> {
    let uri: Uri = realm
        .parse()
        .map_err(|_| invalid(subject, "the registry names a token realm that is not an address"))?;
    http.check_address(&format!("{subject}: token realm"), &uri)?;
    let named_over_tls = registry.scheme_str() == Some("https");
    let host = |uri: &Uri| uri.host().unwrap_or_default().to_ascii_lowercase();
    let (here, there) = (host(registry), host(&uri));
    let same_host = here == there || is_loopback(&here) && is_loopback(&there);
    if named_over_tls || same_host {
        return Ok(uri);
    }
    Err(invalid(
        subject,
        format_args!(
            "the registry names a token realm on another host ({there}) without TLS, which is refused"
        ),
    ))
}

#[derive(serde::Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Asks a realm for a token. The scope is our own, never what the registry suggests.
async fn token(
    http: &Http,
    subject: &str,
    access: &Access,
    realm: &Uri,
    service: Option<&str>,
    credentials: Option<&Credentials>,
) -> Result<Session, RegistryError> {
    let call = token_call(subject, access, realm, service, credentials)?;
    let answer = http.send(&format!("{subject}: token realm"), &call).await?;
    if !answer.status.is_success() {
        // A realm answers 400 or 404 as well when it does not know a user.
        let failure = answer.failure(&format!("{subject}: token realm"), "user or service").await;
        return Err(RegistryError { kind: RegistryErrorKind::Unauthorized, ..failure });
    }
    let body = answer.bytes(&format!("{subject}: token realm"), TOKEN_RESPONSE_BYTES_MAX).await?;
    // serde's messages may quote the token.
    let response: TokenResponse = serde_json::from_slice(&body)
        .map_err(|_| invalid(subject, "the token realm does not respond with a token in JSON"))?;
    let token = response.token.or(response.access_token).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| invalid(subject, "the token realm responds without a token"))?;
    let lifetime = Duration::from_secs(response.expires_in.unwrap_or(60).min(3600));
    let until = Instant::now() + lifetime.saturating_sub(EXPIRY_MARGIN);
    Ok(Session { header: secret_header(&format!("Bearer {token}"), subject)?, until: Some(until) })
}

/// The request for a token: an identity token is exchanged, a user and a password are sent as such.
fn token_call(
    subject: &str,
    access: &Access,
    realm: &Uri,
    service: Option<&str>,
    credentials: Option<&Credentials>,
) -> Result<Call, RegistryError> {
    let mut fields = form_urlencoded::Serializer::new(String::new());
    if let Some(service) = service {
        fields.append_pair("service", service);
    }
    fields.append_pair("scope", &access.scope());
    let identity = credentials.and_then(|credentials| credentials.identity_token.as_deref());
    if let Some(identity) = identity {
        fields.append_pair("grant_type", "refresh_token");
        fields.append_pair("refresh_token", identity);
        fields.append_pair("client_id", "transom");
        let mut call = Call::new(Method::POST, realm.clone());
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        call.body = Bytes::from(fields.finish());
        Ok(call)
    } else {
        let separator = if realm.query().is_some() { '&' } else { '?' };
        let address = format!("{realm}{separator}{}", fields.finish());
        let uri = address.parse().map_err(|_| invalid(subject, "the token realm is not valid"))?;
        let mut call = Call::new(Method::GET, uri);
        call.authorization = credentials.map(|credentials| basic(credentials, subject)).transpose()?;
        Ok(call)
    }
}
