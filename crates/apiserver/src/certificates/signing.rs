//! What follows from a stored request: a certificate, a refusal, its removal, or nothing.

use super::{CLIENT_SIGNER, SigningRequest};
use serde_json::Value;
use std::time::Duration;
use transom_kinds::pkcs10::expiry_of_base64;
use transom_object::json::strings;
use transom_object::time;
use transom_rbac::MASTERS;

/// The shortest time for which a certificate is issued.
const SHORTEST_CERTIFICATE_LIFETIME: Duration = Duration::from_secs(600);
const HOUR_SECONDS: i64 = 3600;
const DAY_SECONDS: i64 = 24 * HOUR_SECONDS;

/// A certificate for a client that is to be signed.
#[derive(Clone, Debug)]
pub struct CertificateOrder {
    /// The subject and its key, whose possession is proven.
    pub request: SigningRequest,
    /// Whether the key may sign, for example handshakes.
    pub signs: bool,
    /// Whether the key may encrypt keys.
    pub enciphers: bool,
    /// How long the certificate should be valid; the signer's longest time, if none is given or it is shorter.
    pub lifetime: Option<Duration>,
}

/// Why a certificate could not be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateSignerError {
    /// Because of what is requested, which cannot change: the request has failed.
    #[error("cannot sign a certificate for this request")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Because of the signer, which may be able to do it later: it is tried again.
    #[error("cannot sign certificates at the moment")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Signs certificates with which clients authenticate to the server. It decides nothing about who gets one.
pub trait CertificateSigner: Send + Sync {
    /// The certificate in PEM.
    fn sign(&self, order: &CertificateOrder) -> Result<String, CertificateSignerError>;
}

/// What is to be done with a request.
#[derive(Debug)]
pub(crate) enum Next {
    /// Not approved, finished, or another signer's.
    Nothing,
    /// It cannot be signed, for this reason.
    Fail(String),
    /// It is approved.
    Sign(Box<CertificateOrder>),
}

/// What is to be done with a stored request for [`CLIENT_SIGNER`].
pub(crate) fn next(object: &Value) -> Next {
    let spec = &object["spec"];
    let is_issued = !text(&object["status"], "certificate").is_empty();
    let waits = has(object, "Approved") && !has(object, "Denied") && !has(object, "Failed");
    if is_issued || !waits || text(spec, "signerName") != CLIENT_SIGNER {
        return Next::Nothing;
    }
    let request = match SigningRequest::parse_base64(text(spec, "request")) {
        Ok(request) => request,
        Err(why) => return Next::Fail(format!("unable to parse csr: {why}")),
    };
    // An approver may have seen them instead of those that the certificate would stand for.
    if request.unread_names > 0 {
        return Next::Fail(
            "a common name or organization of the subject is neither a UTF8String, PrintableString, IA5String nor \
             NumericString: request it again with UTF8Strings"
                .into(),
        );
    }
    // The certificate would stand for the first name, and an approver may have seen the last.
    if request.common_names.len() > 1 {
        return Next::Fail("the subject has more than one common name".into());
    }
    if request.organizations.iter().any(|group| group == MASTERS) {
        return Next::Fail(format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"));
    }
    let usages = strings(&spec["usages"]);
    let known = ["digital signature", "key encipherment", "client auth"];
    if let Some(usage) = usages.iter().find(|usage| !known.contains(&usage.as_str())) {
        return Next::Fail(format!("invalid usage for client certificate: {usage}"));
    }
    let wants = |usage: &str| usages.iter().any(|u| u == usage);
    if !wants("client auth") {
        return Next::Fail("missing required usage for client certificate: client auth".into());
    }
    let seconds = spec["expirationSeconds"].as_u64();
    Next::Sign(Box::new(CertificateOrder {
        request,
        signs: wants("digital signature"),
        enciphers: wants("key encipherment"),
        lifetime: seconds.map(|seconds| Duration::from_secs(seconds).max(SHORTEST_CERTIFICATE_LIFETIME)),
    }))
}

/// Whether a request is old enough to be removed: an hour after it was issued, denied or failed, a day after it was created
/// or approved without a certificate, and when its certificate has expired. `now` in Unix seconds.
pub(crate) fn is_outdated(object: &Value, now: i64) -> bool {
    let older = |at: &str, seconds: i64| time::parse(at).is_ok_and(|at| now - at.as_second() > seconds);
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let certificate = text(&object["status"], "certificate");
    if conditions.is_empty() {
        return older(text(&object["metadata"], "creationTimestamp"), DAY_SECONDS);
    }
    conditions.iter().any(|condition| {
        let since = text(condition, "lastUpdateTime");
        match text(condition, "type") {
            "Denied" | "Failed" => older(since, HOUR_SECONDS),
            "Approved" if certificate.is_empty() => older(since, DAY_SECONDS),
            "Approved" => {
                older(since, HOUR_SECONDS) || expiry_of_base64(certificate).is_some_and(|at| now > at)
            }
            _ => false,
        }
    })
}

fn has(object: &Value, kind: &str) -> bool {
    object["status"]["conditions"].as_array().into_iter().flatten().any(|c| c["type"] == kind)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
