//! CertificateSigningRequests. Which changes are allowed depends on the endpoint that they come by.

use super::At;
use crate::pkcs10::{SigningRequest, certificate_problem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::field::{Error, Path};
use transom_object::names;

/// The endpoint by which a CertificateSigningRequest is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningRequestPart {
    /// The object itself: neither the decision nor the certificate.
    Main,
    /// `status`: the certificate.
    Status,
    /// `approval`: the decision.
    Approval,
}

/// Sorted, as errors list them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
/// A domain, and room for a label before a domain in the path.
const MAX_SIGNER_NAME: usize = 253 + 1 + (253 + 1 + 63);
const MIN_EXPIRATION_SECONDS: i64 = 600;
/// Conditions that are true or absent, and that stay once they are there.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
/// Conditions that only `approval` may write.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// The errors of a new request, or of an update if `old` is given.
pub fn signing_request(new: &Value, old: Option<&Value>, part: SigningRequestPart) -> Vec<Error> {
    let mut errors = Vec::new();
    let (object, old) = (At::root(new), old.map(At::root));
    let (spec, status) = (object.get("spec"), object.get("status"));
    let request = spec.get("request");
    if let Err(why) = SigningRequest::parse_base64(request.str()) {
        errors.push(Error::invalid(&request.path, request.str(), why.to_string()));
    }
    let usages_before = old.as_ref().map(|old| old.get("spec").get("usages"));
    usages(&spec.get("usages"), usages_before.as_ref(), &mut errors);
    let legacy = |at: &At<'_>| at.get("spec").text("signerName") == LEGACY_SIGNER;
    let signer = spec.get("signerName");
    if legacy(&object) && !old.as_ref().is_some_and(legacy) {
        let why = "the legacy signerName is not allowed via this API version";
        errors.push(Error::invalid(&signer.path, signer.str(), why));
    } else {
        signer_name(&signer, &mut errors);
    }
    let too_short = "may not specify a duration less than 600 seconds (10 minutes)";
    spec.get("expirationSeconds").at_least(MIN_EXPIRATION_SECONDS, too_short, &mut errors);
    conditions(&status.get("conditions"), old.as_ref(), &mut errors);
    certificate(&status, old.as_ref(), &mut errors);
    if let Some(old) = &old {
        update(&status, &old.get("status"), part, &mut errors);
    }
    errors
}

fn usages(usages: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<Error>) {
    let repeats = |at: &At<'_>| {
        let mut seen = BTreeSet::new();
        at.items().any(|usage| !seen.insert(usage.str()))
    };
    if usages.items().len() == 0 {
        errors.push(Error::required(&usages.path, ""));
    }
    // What an older version accepted stays acceptable.
    if !old.is_some_and(|old| old.items().any(|usage| !USAGES.contains(&usage.str()))) {
        usages.items().for_each(|usage| usage.one_of(&USAGES, errors));
    }
    if !old.is_some_and(repeats) {
        let mut seen = BTreeSet::new();
        for usage in usages.items() {
            if !seen.insert(usage.str()) {
                errors.push(Error::duplicate(&usage.path, usage.str()));
            }
        }
    }
}

fn signer_name(signer: &At<'_>, errors: &mut Vec<Error>) {
    let (path, name) = (&signer.path, signer.str());
    if name.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    let [domain, rest] = *name.split('/').collect::<Vec<_>>() else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(Error::invalid(path, name, why));
        return;
    };
    if domain.len() > 253 {
        errors.push(Error::too_long(path, 253));
    }
    labels(path, domain, names::is_dns1123_label, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(path, domain, why));
    }
    labels(path, rest, names::is_dns1123_subdomain, errors);
    if name.len() > MAX_SIGNER_NAME {
        errors.push(Error::too_long(path, 571));
    }
}

/// The errors of the first label that has any.
fn labels(path: &Path, text: &str, rule: fn(&str) -> Vec<String>, errors: &mut Vec<Error>) {
    let wrong = text.split('.').map(|label| (label, rule(label))).find(|(_, messages)| !messages.is_empty());
    if let Some((label, messages)) = wrong {
        let shown = messages.into_iter().map(|why| format!("validating label {label:?}: {why}"));
        errors.extend(shown.map(|why| Error::invalid(path, text, why)));
    }
}

/// What an older version of the API accepted is tolerated in an update.
#[derive(Default)]
struct Tolerated {
    both_decisions: bool,
    empty_type: bool,
    duplicates: bool,
}

impl Tolerated {
    fn of(old: &At<'_>) -> Self {
        let conditions = old.get("status").get("conditions");
        let types: Vec<&str> = conditions.items().map(|c| c.text("type")).collect();
        let unique: BTreeSet<&str> = types.iter().copied().collect();
        Self {
            both_decisions: DECISIONS.iter().all(|decision| types.contains(decision)),
            empty_type: types.contains(&""),
            duplicates: unique.len() < types.len(),
        }
    }
}

fn conditions(conditions: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<Error>) {
    let tolerated = old.map(Tolerated::of).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.text("type"), condition.get("status"));
        if kind.is_empty() && !tolerated.empty_type {
            errors.push(Error::required(&condition.path.child("type"), ""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.str().is_empty() {
            errors.push(Error::required(&status.path, ""));
        } else {
            status.one_of(allowed, errors);
        }
        let other = DECISIONS.iter().find(|other| **other != kind && DECISIONS.contains(&kind));
        if !tolerated.both_decisions && other.is_some_and(|other| seen.contains(other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(&conditions.path, kind, why));
        }
        if !seen.insert(kind) && !tolerated.duplicates {
            errors.push(Error::duplicate(&condition.path.child("type"), kind));
        }
    }
}

fn certificate(status: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<Error>) {
    let problem =
        |text: &str| certificate_problem(&STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec()));
    let text = status.text("certificate");
    if let Some(old) = old {
        let before = old.get("status").text("certificate");
        if before == text || problem(before).is_some() {
            return;
        }
    }
    if let Some(why) = problem(text) {
        errors.push(Error::invalid(&status.path.child("certificate"), "<certificate data>", why));
    }
}

fn update(new: &At<'_>, old: &At<'_>, part: SigningRequestPart, errors: &mut Vec<Error>) {
    let path = new.path.child("conditions");
    let of = |status: &At<'_>, kind: &str| -> Vec<Value> {
        status.get("conditions").items().filter(|c| c.text("type") == kind).map(|c| c.value.clone()).collect()
    };
    for kind in FINAL {
        if of(new, kind).len() < of(old, kind).len() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.push(Error::forbidden(&path, why));
        }
    }
    for kind in DECISIONS.into_iter().filter(|_| part != SigningRequestPart::Approval) {
        let (now, before) = (of(new, kind), of(old, kind));
        let change = match now.len().cmp(&before.len()) {
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if now != before => "modify",
            std::cmp::Ordering::Equal => continue,
        };
        errors
            .push(Error::forbidden(&path, format!("updates may not {change} a condition of type {kind:?}")));
    }
    let (now, before) = (new.text("certificate"), old.text("certificate"));
    if now != before {
        let why = match (part, before) {
            (SigningRequestPart::Status, "") => return,
            (SigningRequestPart::Status, _) => "updates may not modify existing certificate content",
            _ => "updates may not set certificate content",
        };
        errors.push(Error::forbidden(&new.path.child("certificate"), why));
    }
}
