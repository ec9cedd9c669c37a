//! Revisions of a Composition: when a new one is due, what it is called and which one is the latest.
//!
//! A revision is a Composition's labels, annotations and spec at some time, recognised by their hash. A Composition
//! that returns to an earlier state gets no third revision: the earlier one is numbered anew.

use crate::composition::{Composition, CompositionRevision, CompositionSpec, LabelMatch};
use crate::conditions::{self, Condition};
use crate::constants::{condition, kind, label};
use crate::metadata::{AlreadyControlled, controller_reference};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use transom_object::yaml;

/// How much of the hash fits the value of a label.
const LABEL_LENGTH: usize = 63;
/// How much of the hash goes into the name of a revision.
const NAME_LENGTH: usize = 7;

/// The hash of a Composition, in 64 hexadecimal digits: of the YAML of its labels, annotations and spec, just as
/// Crossplane writes it, so that taking over from Crossplane makes no new revisions.
pub fn hash(composition: &Composition) -> String {
    let mut hasher = Sha256::new();
    hasher.update(yaml::write(&json!(composition.metadata.labels)));
    hasher.update(yaml::write(&json!(composition.metadata.annotations)));
    hasher.update(yaml::write(&json!(composition.spec)));
    hasher.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn start(hash: &str, length: usize) -> &str {
    hash.get(..length).unwrap_or(hash)
}

/// The value of the label by which a revision is recognised.
pub fn hash_label(hash: &str) -> &str {
    start(hash, LABEL_LENGTH)
}

/// The name of the revision with this hash.
pub fn name(composition: &str, hash: &str) -> String {
    format!("{composition}-{}", start(hash, NAME_LENGTH))
}

/// A revision of the Composition as it is now, ready to be created. Its labels are those of the Composition, which
/// even win over Crossplane's own.
pub fn new(composition: &Composition, number: i64) -> Value {
    let hash = hash(composition);
    let metadata = &composition.metadata;
    let mut labels =
        json!({label::COMPOSITION_NAME: metadata.name, label::COMPOSITION_HASH: hash_label(&hash)});
    for (key, value) in metadata.labels.iter().flatten() {
        labels[key] = value.as_str().into();
    }
    let owner =
        controller_reference(kind::APIEXTENSIONS_V1, kind::COMPOSITION, &metadata.name, &metadata.uid);
    let mut revision = json!({
        "apiVersion": kind::APIEXTENSIONS_V1,
        "kind": kind::COMPOSITION_REVISION,
        "metadata": {"name": name(&metadata.name, &hash), "labels": labels, "ownerReferences": [owner]},
        "spec": spec(&composition.spec, number),
    });
    if let Some(annotations) = metadata.annotations.as_ref().filter(|a| !a.is_empty()) {
        revision["metadata"]["annotations"] = json!(annotations);
    }
    revision
}

/// The spec of a revision.
pub fn spec(composition: &CompositionSpec, number: i64) -> Value {
    let mut spec = json!(composition);
    spec["revision"] = number.into();
    spec
}

/// The revision with the highest number among those the Composition with this uid manages. Numbers start at 1.
pub fn latest<'a>(
    composition_uid: &str,
    revisions: impl IntoIterator<Item = &'a CompositionRevision>,
) -> Option<&'a CompositionRevision> {
    let owned = revisions.into_iter().filter(|r| r.metadata.is_controlled_by(composition_uid));
    // Of several with the same number the first counts.
    owned
        .filter(|r| r.spec.revision > 0)
        .reduce(|best, r| if r.spec.revision > best.spec.revision { r } else { best })
}

/// Whether the revision of the Composition as it is now, which carries these labels, is not there yet.
pub fn is_awaited<'a>(
    composition: &Composition,
    labels: &LabelMatch,
    revisions: impl IntoIterator<Item = &'a CompositionRevision>,
) -> bool {
    let hash = hash(composition);
    let is_current =
        |r: &CompositionRevision| r.metadata.label(label::COMPOSITION_HASH) == Some(hash_label(&hash));
    labels.matches(&composition.metadata.label_map()) && !revisions.into_iter().any(is_current)
}

/// What to do so that the Composition has its revisions.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Update a revision: number it, adopt it if it has no controller (references to owners do not survive a backup).
    Update {
        /// Its name.
        name: String,
        /// Whether to adopt it.
        adopt: bool,
        /// Its new number.
        number: i64,
    },
    /// Create a revision.
    Create {
        /// The revision.
        revision: Value,
        /// Its number.
        number: i64,
    },
}

/// What to do about the revisions that carry the Composition's name. A revision that something else manages stops
/// everything: the Composition cannot own it.
pub fn plan(
    composition: &Composition,
    revisions: &[CompositionRevision],
) -> Result<Vec<Step>, AlreadyControlled> {
    let uid = composition.metadata.uid.as_str();
    for revision in revisions {
        if let Some(other) = revision.metadata.controller().filter(|c| c.uid != uid) {
            let (name, other) = (revision.metadata.name.clone(), other.clone());
            return Err(AlreadyControlled { name, kind: other.kind, owner: other.name, uid: other.uid });
        }
    }
    let hash = hash(composition);
    let is_current =
        |r: &CompositionRevision| r.metadata.label(label::COMPOSITION_HASH) == Some(hash_label(&hash));
    let latest = revisions.iter().map(|r| r.spec.revision).max().unwrap_or_default().max(0);
    let latest_other = revisions.iter().filter(|r| !is_current(r)).map(|r| r.spec.revision).max();
    let mut exists = false;
    let mut steps = Vec::new();
    for revision in revisions {
        let adopt = revision.metadata.controller().is_none();
        let mut number = revision.spec.revision;
        if is_current(revision) && !exists {
            exists = true;
            // Of two revisions with the same number neither is the latest.
            if number < 1 || latest_other.is_some_and(|other| number <= other) {
                number = latest + 1;
            }
        }
        if adopt || number != revision.spec.revision {
            steps.push(Step::Update { name: revision.metadata.name.clone(), adopt, number });
        }
    }
    if !exists {
        steps.push(Step::Create { revision: new(composition, latest + 1), number: latest + 1 });
    }
    Ok(steps)
}

/// A revision whose pipeline is not known to be valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("selected CompositionRevision {name} does not have a valid function pipeline: {message}")]
pub struct InvalidPipeline {
    /// The name of the revision.
    pub name: String,
    /// Why it is not valid.
    pub message: String,
}

/// Whether a revision may run: its condition `ValidPipeline` or, as long as it has none, `verdict`. A revision exists
/// before its status does, and that alone is not a failure.
pub fn must_be_valid(
    revision: &CompositionRevision,
    verdict: impl FnOnce() -> Condition,
) -> Result<(), InvalidPipeline> {
    let mut valid = conditions::get(&revision.status.conditions, condition::VALID_PIPELINE);
    if valid.status == "Unknown" {
        valid = verdict();
    }
    if valid.is_true() {
        return Ok(());
    }
    let message = if valid.message.is_empty() { "pipeline status unknown".to_owned() } else { valid.message };
    Err(InvalidPipeline { name: revision.metadata.name.clone(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composition(labels: &Value) -> Composition {
        serde_json::from_value(json!({
            "metadata": {"name": "example", "uid": "c", "labels": labels},
            "spec": {
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "pipeline": [{
                    "step": "one",
                    "functionRef": {"name": "f"},
                    "input": {"apiVersion": "x/v1", "kind": "In", "n": 1.5, "s": "yes", "l": [1, null, ""]},
                }],
            },
        }))
        .unwrap()
    }

    fn revision(name: &str, hash: &str, number: i64, owner: Option<&str>) -> CompositionRevision {
        let owners: Vec<_> =
            owner.into_iter().map(|uid| controller_reference("a", "Composition", "example", uid)).collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {label::COMPOSITION_HASH: hash}, "ownerReferences": owners},
            "spec": {"revision": number},
        }))
        .unwrap()
    }

    /// Recorded from Crossplane's own code.
    #[test]
    fn the_hash_is_crossplanes() {
        let hash = hash(&composition(&json!({"a": "b", "n": "1"})));
        assert_eq!(hash, "e0d1d0906bc623d045f98d2d40348c929410aae453bf21dfb3bb9225a148ba19");
    }

    #[test]
    fn every_part_counts() {
        let plain = composition(&Value::Null);
        let mut annotated = plain.clone();
        annotated.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
        let mut other = plain.clone();
        other.spec.pipeline[0].step = "two".to_owned();
        let hashes = [&plain, &annotated, &other, &composition(&json!({"a": "b"}))].map(hash);
        assert!(hashes.iter().enumerate().all(|(i, h)| !hashes[..i].contains(h)), "{hashes:?}");
    }

    #[test]
    fn a_revision_carries_labels_annotations_owner_and_spec() {
        let composition = composition(&json!({"channel": "dev", label::COMPOSITION_NAME: "mine"}));
        let hash = hash(&composition);
        let new = new(&composition, 4);
        assert_eq!(new["metadata"]["name"], format!("example-{}", &hash[..7]));
        assert_eq!(
            new["metadata"]["labels"],
            json!({"channel": "dev", label::COMPOSITION_NAME: "mine", label::COMPOSITION_HASH: hash[..63]})
        );
        assert_eq!(new["spec"]["revision"], 4);
        assert_eq!(new["spec"]["pipeline"], json!(composition.spec.pipeline));
        assert_eq!(new["metadata"]["ownerReferences"][0]["uid"], "c");
        assert!(new["metadata"].get("annotations").is_none());
    }

    #[test]
    fn the_latest_is_the_highest_that_is_ours() {
        let list = [
            revision("a", "", 1, Some("c")),
            revision("b", "", 9, Some("x")),
            revision("c", "", 3, Some("c")),
        ];
        assert_eq!(latest("c", &list).unwrap().metadata.name, "c");
        assert!(latest("nobody", &list).is_none());
        assert!(latest("c", &[revision("a", "", 0, Some("c"))]).is_none());
    }

    #[test]
    fn revisions_are_created_renumbered_and_adopted() {
        let composition = composition(&Value::Null);
        let current = hash(&composition);
        let label = hash_label(&current);
        let created = plan(&composition, &[]).unwrap();
        assert!(matches!(&created[..], [Step::Create { number: 1, .. }]), "{created:?}");
        let steps = plan(&composition, &[revision("a", "old", 3, Some("c"))]).unwrap();
        assert!(matches!(&steps[..], [Step::Create { number: 4, .. }]), "{steps:?}");
        let same = [revision("a", "old", 1, Some("c")), revision("b", label, 2, Some("c"))];
        assert_eq!(plan(&composition, &same).unwrap(), []);
        let back = [revision("a", label, 1, Some("c")), revision("b", "new", 2, Some("c"))];
        let step = Step::Update { name: "a".into(), adopt: false, number: 3 };
        assert_eq!(plan(&composition, &back).unwrap(), [step]);
        let restored = [revision("a", "old", 1, None), revision("b", label, 2, None)];
        assert_eq!(
            plan(&composition, &restored).unwrap(),
            [
                Step::Update { name: "a".into(), adopt: true, number: 1 },
                Step::Update { name: "b".into(), adopt: true, number: 2 },
            ]
        );
        let foreign = plan(&composition, &[revision("a", "old", 1, Some("x"))]).unwrap_err();
        assert_eq!(foreign.to_string(), "a is already controlled by Composition example (UID x)");
    }

    #[test]
    fn only_a_valid_pipeline_runs() {
        let mut revision = revision("a", "", 1, None);
        let (fine, incapable) = (Condition::valid_pipeline, || Condition::missing_capabilities("not yet"));
        assert_eq!(must_be_valid(&revision, fine), Ok(()), "a status that is not there yet is not a failure");
        assert_eq!(
            must_be_valid(&revision, incapable).unwrap_err().to_string(),
            "selected CompositionRevision a does not have a valid function pipeline: not yet"
        );
        revision.status.conditions = vec![Condition::missing_capabilities("no")];
        assert!(must_be_valid(&revision, fine).unwrap_err().to_string().ends_with(": no"));
        revision.status.conditions = vec![Condition::valid_pipeline()];
        assert_eq!(must_be_valid(&revision, incapable), Ok(()));
    }

    #[test]
    fn a_revision_is_awaited_until_it_is_there() {
        let composition = composition(&json!({"channel": "dev"}));
        let hash = hash(&composition);
        let labels =
            |value: &str| LabelMatch { match_labels: [("channel".to_owned(), value.to_owned())].into() };
        let old = revision("a", "old", 1, Some("c"));
        assert!(is_awaited(&composition, &labels("dev"), [&old]));
        assert!(!is_awaited(&composition, &labels("prod"), [&old]), "it will not have these labels");
        let current = revision("b", hash_label(&hash), 2, Some("c"));
        assert!(!is_awaited(&composition, &LabelMatch::default(), [&old, &current]));
    }
}
