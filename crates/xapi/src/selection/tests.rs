//! Which Composition and which revision is chosen.

use super::*;
use crate::composite::Layout;
use serde_json::{Value, json};

fn xr(machinery: &Value) -> Composite {
    let object = json!({
        "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x", "uid": "u"}, "spec": machinery,
    });
    Composite::new(object, Layout::Legacy)
}

fn definition(spec: &Value) -> Definition {
    serde_json::from_value(json!({"spec": spec})).unwrap()
}

fn compose(name: &str, kind: &str, labels: &Value) -> Composition {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": kind}},
    }))
    .unwrap()
}

fn rev(name: &str, of: &str, number: i64, labels: &Value) -> CompositionRevision {
    let mut all = json!({label::COMPOSITION_NAME: of});
    for (k, v) in labels.as_object().unwrap() {
        all[k] = v.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": all, "ownerReferences": [{"uid": of, "controller": true}]},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"}, "revision": number,
            "writeConnectionSecretsToNamespace": "ns",
        },
    }))
    .unwrap()
}

#[test]
fn enforced_beats_referenced_beats_selector_beats_default() {
    let enforce =
        definition(&json!({"enforcedCompositionRef": {"name": "e"}, "defaultCompositionRef": {"name": "d"}}));
    let suggest = definition(&json!({"defaultCompositionRef": {"name": "d"}}));
    let silent = definition(&json!({}));
    let referring = xr(&json!({"compositionRef": {"name": "r"}}));
    let selecting = xr(&json!({"compositionSelector": {"matchLabels": {"a": "b"}}}));
    let bare = xr(&json!({}));
    use CompositionChoice::{Default, Enforced, Referenced, Search};
    assert_eq!(composition(&referring, &enforce), Enforced("e".into()));
    assert_eq!(composition(&xr(&json!({"compositionRef": {"name": "e"}})), &enforce), Referenced);
    assert_eq!(composition(&referring, &suggest), Referenced);
    assert_eq!(composition(&bare, &suggest), Default("d".into()));
    let labels = LabelMatch { match_labels: [("a".to_owned(), "b".to_owned())].into() };
    assert_eq!(composition(&selecting, &suggest), Search(labels));
    assert_eq!(composition(&bare, &silent), Search(LabelMatch::default()));
}

#[test]
fn only_compatible_compositions_with_the_labels_are_chosen() {
    let all = [
        compose("b", "XThing", &json!({"a": "b"})),
        compose("a", "XThing", &json!({"a": "b"})),
        compose("c", "XOther", &json!({"a": "b"})),
        compose("d", "XThing", &json!({})),
    ];
    let labels = LabelMatch { match_labels: [("a".to_owned(), "b".to_owned())].into() };
    let pick = |labels: &LabelMatch, random| {
        choose(&xr(&json!({})), labels, &all, random).map(|c| &*c.metadata.name)
    };
    assert_eq!(pick(&labels, 0), Ok("a"));
    assert_eq!(pick(&labels, u32::MAX), Ok("b"));
    assert_eq!(pick(&LabelMatch::default(), u32::MAX), Ok("d"));
    let nowhere = LabelMatch { match_labels: [("a".to_owned(), "z".to_owned())].into() };
    assert_eq!(pick(&nowhere, 0), Err(Error::NoComposition));
}

#[test]
fn manual_keeps_and_automatic_follows() {
    let fields = json!({
        "compositionRevisionRef": {"name": "r"}, "compositionRevisionSelector": {"matchLabels": {"a": "b"}},
    });
    let with = |policy: &str| {
        let mut fields = fields.clone();
        fields["compositionUpdatePolicy"] = policy.into();
        xr(&fields)
    };
    let labels = LabelMatch { match_labels: [("a".to_owned(), "b".to_owned())].into() };
    let current = Some("r".to_owned());
    assert_eq!(revision(&with("Manual")), RevisionChoice::Kept { current, labels: labels.clone() });
    assert_eq!(revision(&with("Automatic")), RevisionChoice::Latest(labels.clone()));
    assert_eq!(
        revision(&xr(&fields)),
        RevisionChoice::Latest(LabelMatch::default()),
        "no policy, no selector"
    );
    let unpinned = xr(&json!({"compositionUpdatePolicy": "Manual"}));
    assert_eq!(revision(&unpinned), RevisionChoice::Latest(LabelMatch::default()));
    let pinned = xr(&json!({"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "r"}}));
    assert_eq!(revision(&pinned), RevisionChoice::Pinned("r".into()));
    let mut new = fields.clone();
    new.as_object_mut().unwrap().remove("compositionRevisionRef");
    new["compositionUpdatePolicy"] = "Manual".into();
    assert_eq!(revision(&xr(&new)), RevisionChoice::Kept { current: None, labels });
}

#[test]
fn the_selector_of_the_definition_is_not_the_users() {
    let selector = json!({"matchLabels": {"channel": "alpha"}});
    let labels =
        xr(&json!({"compositionRevisionSelector": selector})).composition_revision_selector().unwrap();
    assert!(is_own_revision_selector(&labels, &definition(&json!({}))));
    let default = definition(&json!({"defaultCompositionRevisionSelector": selector}));
    assert!(!is_own_revision_selector(&labels, &default));
}

#[test]
fn the_latest_revision_with_the_labels_is_taken() {
    let composition = compose("c", "XThing", &json!({}));
    let all = [
        rev("c-1", "c", 1, &json!({"channel": "stable"})),
        rev("c-2", "c", 2, &json!({"channel": "beta"})),
        rev("o-3", "o", 3, &json!({"channel": "stable"})),
    ];
    let name = |labels: &LabelMatch| latest(&composition, labels, &all).map(|r| r.metadata.name.as_str());
    assert_eq!(name(&LabelMatch::default()), Ok("c-2"));
    let stable = LabelMatch { match_labels: [("channel".to_owned(), "stable".to_owned())].into() };
    assert_eq!(name(&stable), Ok("c-1"));
    let none = LabelMatch { match_labels: [("channel".to_owned(), "none".to_owned())].into() };
    assert_eq!(name(&none), Err(Error::NoRevision));
}

#[test]
fn the_default_selector_speaks_only_for_the_silent() {
    let d = definition(&json!({"defaultCompositionRevisionSelector": {"matchLabels": {"a": "b"}}}));
    assert!(default_revision_selector(&xr(&json!({})), &d).is_some());
    assert!(default_revision_selector(&xr(&json!({"compositionRevisionRef": {"name": "r"}})), &d).is_none());
    let own = xr(&json!({"compositionRevisionSelector": {"matchLabels": {}}}));
    assert!(default_revision_selector(&own, &d).is_none());
}

#[test]
fn missing_configuration_is_found_once() {
    let revision = rev("c-1", "c", 1, &json!({}));
    let mut composite = xr(&json!({}));
    let missing = configure(&composite, &revision.spec.composition).unwrap();
    assert_eq!(missing.name_prefix.as_deref(), Some("x"));
    assert_eq!(missing.connection_secret, Some(SecretReference { name: "u".into(), namespace: "ns".into() }));
    missing.apply(&mut composite);
    assert!(configure(&composite, &revision.spec.composition).unwrap().is_empty());
    composite.object["kind"] = "XOther".into();
    assert_eq!(configure(&composite, &revision.spec.composition), Err(Error::NotCompatible));
    let modern = Composite::new(xr(&json!({})).object, Layout::Modern);
    assert_eq!(configure(&modern, &revision.spec.composition).unwrap().connection_secret, None);
}
