//! How versions are converted into each other.

use super::Options;
use super::names::one_of;
use super::spec::{Spec, given, list, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_kinds::validate::{client_service, client_url};
use transom_object::field::{Error, Path};
use transom_object::names::is_dns1035_label;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

fn client_config<'a>(spec: &Spec<'a>) -> Option<&'a Value> {
    spec.conversion.and_then(|c| given(&c["webhook"], "clientConfig"))
}

fn reviews<'a>(spec: &Spec<'a>) -> &'a [Value] {
    spec.conversion.map_or(&[], |c| list(&c["webhook"], "conversionReviewVersions"))
}

fn is_known(review: &Value) -> bool {
    REVIEWS.iter().any(|known| review == known)
}

/// Whether a stored definition names a version of ConversionReview that is known, or none.
pub(super) fn recognizes_a_review(spec: &Spec<'_>) -> bool {
    reviews(spec).is_empty() || reviews(spec).iter().any(is_known)
}

/// Whether a stored definition has no bad bundle, so that its next version may have none either.
pub(super) fn ca_bundle_is_good(spec: &Spec<'_>) -> bool {
    let bundle = client_config(spec).map_or("", |c| text(c, "caBundle"));
    bundle.is_empty() || ca_bundle_problem(bundle).is_none()
}

pub(super) fn check(spec: &Spec<'_>, options: &Options, path: &Path) -> Vec<Error> {
    let Some(conversion) = spec.conversion else { return Vec::new() };
    let (strategy, at) = (text(conversion, "strategy"), path.child("strategy"));
    let mut errors = Vec::new();
    if strategy != "None" && spec.preserve_unknown != Some(false) {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(Error::invalid(&at, strategy, detail));
    }
    errors.extend(one_of(&at, strategy, &["None", "Webhook"]));
    let (client_at, reviews_at) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy == "Webhook" {
        match client_config(spec) {
            Some(config) => errors.extend(client(config, options.ca_bundle, &client_at)),
            None => errors.push(Error::required(&client_at, "required when strategy is set to Webhook")),
        }
        errors.extend(review_versions(reviews(spec), options.recognized_reviews, &reviews_at));
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    for (set, at) in [(client_config(spec).is_some(), client_at), (!reviews(spec).is_empty(), reviews_at)] {
        if set {
            errors.push(Error::forbidden(&at, detail));
        }
    }
    errors
}

fn client(config: &Value, check_bundle: bool, path: &Path) -> Vec<Error> {
    let mut errors = match (given(config, "url"), given(config, "service")) {
        (Some(url), None) => client_url(url, &path.child("url")),
        (None, Some(service)) => {
            // kube-apiserver confuses name and namespace: it reports one when the other is missing.
            let mut swapped = service.clone();
            swapped["name"] = text(service, "namespace").into();
            swapped["namespace"] = text(service, "name").into();
            client_service(&swapped, &path.child("service"))
        }
        _ => vec![Error::required(path, "exactly one of url or service is required")],
    };
    let bundle = text(config, "caBundle");
    if check_bundle
        && !bundle.is_empty()
        && let Some(problem) = ca_bundle_problem(bundle)
    {
        errors.push(Error::invalid(&path.child("caBundle"), bundle, problem));
    }
    errors
}

/// Why a bundle, in base64, gives no certificate authority.
fn ca_bundle_problem(bundle: &str) -> Option<String> {
    let fail = |why: &str| Some(format!("unable to load root certificates: {why}"));
    let bytes = STANDARD.decode(bundle).unwrap_or_default();
    let mut problem = fail("no valid certificate authority data seen");
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let Ok((after, block)) = x509_parser::pem::parse_x509_pem(rest) else {
            return problem
                .filter(|_| rest.len() != bytes.len())
                .or(fail("unable to parse bytes as PEM block"));
        };
        if block.label == "CERTIFICATE" {
            match block.parse_x509() {
                // One is enough.
                Ok(_) => return None,
                Err(e) => problem = fail(&format!("failed to parse certificate: {e}")),
            }
        }
        rest = after;
    }
    problem
}

fn review_versions(versions: &[Value], must_recognize: bool, path: &Path) -> Vec<Error> {
    if versions.is_empty() {
        return vec![Error::required(path, "")];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        let at = path.index(i);
        if !seen.insert(version) {
            errors.push(Error::invalid(&at, version, "duplicate version"));
            continue;
        }
        errors.extend(is_dns1035_label(version).into_iter().map(|m| Error::invalid(&at, version, m)));
    }
    if must_recognize && !versions.iter().any(is_known) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(Error::invalid(path, json!(versions), detail));
    }
    errors
}
