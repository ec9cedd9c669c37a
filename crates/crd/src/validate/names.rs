//! Group, scope and names, and the approval that groups of the Kubernetes community need.

use super::annotation;
use super::spec::{Spec, list, text};
use serde_json::Value;
use transom_object::field::{Error, Path};
use transom_object::names::{is_dns1035_label, is_dns1123_subdomain};
use transom_schema::validate::formats::Format;

const APPROVED: &str = "api-approved.kubernetes.io";

/// `metadata.name` follows from the spec.
pub(super) fn object_name(new: &Value, spec: &Spec<'_>) -> Vec<Error> {
    let metadata = Path::new("metadata");
    let expected = format!("{}.{}", text(spec.names, "plural"), spec.group);
    ["generateName", "name"]
        .into_iter()
        .filter_map(|field| {
            let name = text(&new["metadata"], field);
            let wrong = !name.is_empty() && name != expected;
            let detail = "must be spec.names.plural+\".\"+spec.group";
            wrong.then(|| Error::invalid(&metadata.child(field), name, detail))
        })
        .collect()
}

/// Group and scope.
pub(super) fn group_and_scope(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let at = path.child("group");
    let wrong = is_dns1123_subdomain(spec.group);
    if spec.group.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if !wrong.is_empty() {
        errors.push(Error::invalid(&at, spec.group, wrong.join(",")));
    } else if !spec.group.contains('.') {
        errors.push(Error::invalid(&at, spec.group, "should be a domain with at least one dot"));
    }
    errors.extend(one_of(&path.child("scope"), spec.scope, &["Cluster", "Namespaced"]));
    errors
}

/// A text that must be there and one of a few.
pub(super) fn one_of(path: &Path, value: &str, accepted: &[&str]) -> Option<Error> {
    if value.is_empty() {
        return Some(Error::required(path, ""));
    }
    (!accepted.contains(&value)).then(|| Error::not_supported(path, value, accepted))
}

/// The names that a spec must have.
pub(super) fn given(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let missing = ["plural", "singular", "kind", "listKind"].into_iter();
    let missing = missing.filter(|name| text(spec.names, name).is_empty());
    missing.map(|name| Error::required(&path.child(name), "")).collect()
}

/// What names must look like, wherever they stand.
pub(super) fn form(names: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for name in ["plural", "singular"] {
        let value = text(names, name);
        errors.extend(label(&path.child(name), value).filter(|_| !value.is_empty()));
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        let wrong = is_dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            errors.push(Error::invalid(&path.child(name), value, detail));
        }
    }
    let labels = |key: &'static str| {
        let at = path.child(key);
        let items = list(names, key).iter().enumerate();
        items.filter_map(move |(i, name)| label(&at.index(i), name.as_str().unwrap_or_default()))
    };
    errors.extend(labels("shortNames"));
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(Error::invalid(&path.child("listKind"), kind, detail));
    }
    errors.extend(labels("categories"));
    errors
}

/// A DNS-1035 label.
pub(super) fn label(path: &Path, value: &str) -> Option<Error> {
    let wrong = is_dns1035_label(value);
    (!wrong.is_empty()).then(|| Error::invalid(path, value, wrong.join(",")))
}

/// What an update may not change: where objects are stored, and how they are read.
pub(super) fn unchanged(new: &Spec<'_>, old: &Spec<'_>, established: bool) -> Vec<Error> {
    let spec = Path::new("spec");
    let names = spec.child("names");
    let name = |spec: &Spec<'_>, key: &str| text(spec.names, key).to_owned();
    let fields = [
        (established, spec.child("scope"), new.scope.to_owned(), old.scope.to_owned()),
        (established, names.child("kind"), name(new, "kind"), name(old, "kind")),
        (true, spec.child("group"), new.group.to_owned(), old.group.to_owned()),
        (true, names.child("plural"), name(new, "plural"), name(old, "plural")),
    ];
    let changed = fields.into_iter().filter(|(fixed, _, new, old)| *fixed && new != old);
    changed.map(|(_, path, new, _)| Error::invalid(&path, new, "field is immutable")).collect()
}

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval_of(definition: &Value) -> Approval {
    let given = annotation(definition, APPROVED);
    // A request URI may also be a path; an approval is a URL with a scheme and a host.
    let host = given.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    if given.is_empty() {
        Approval::Missing
    } else if given.starts_with("unapproved") {
        Approval::Bypassed
    } else if Format::Uri.accepts(given) && host.is_some_and(|h| !h.is_empty() && !h.ends_with('@')) {
        Approval::Approved
    } else {
        Approval::Invalid
    }
}

/// The groups `*.k8s.io` and `*.kubernetes.io` belong to the community. An update may leave an annotation as bad
/// as it was.
pub(super) fn approval(new: &Value, spec: &Spec<'_>, old: Option<&Value>) -> Option<Error> {
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        spec.group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let state = approval_of(new);
    if !protected || old.is_some_and(|old| approval_of(old) == state) {
        return None;
    }
    let path = Path::new("metadata").child("annotations").key(APPROVED);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => {
            let detail = format!("protected groups must have approval annotation {APPROVED:?}, {see}");
            Some(Error::required(&path, detail))
        }
        Approval::Invalid => {
            let detail = format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \"unapproved\", {see}"
            );
            Some(Error::invalid(&path, annotation(new, APPROVED), detail))
        }
    }
}
