//! What travels between a claim and its composite resource.

use super::*;

fn of() -> GroupVersionKind {
    GroupVersionKind::new("example.org", "v1", "XThing")
}

fn claim(spec: &Value) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": "c", "namespace": "ns", "labels": {"own": "1", "app.kubernetes.io/name": "x"},
            "annotations": {"own": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}", "x.k8s.io/y": "z"}},
        "spec": spec,
    })
}

fn xr(object: Value) -> Composite {
    Composite::new(object, Layout::Legacy)
}

fn bound(claim: &Value, observed: &Composite, enforced: bool) -> Binding {
    bind(claim, observed, &of(), "c-abcde", enforced).unwrap()
}

#[test]
fn a_new_claim_makes_its_composite_resource() {
    let claim = claim(&json!({
        "size": 1, "compositionRef": {"name": "r"}, "compositionSelector": {"matchLabels": {"a": "b"}},
        "compositeDeletePolicy": "Foreground", "writeConnectionSecretToRef": {"name": "s"},
        "compositionRevisionRef": {"name": "rev"}, "resourceRefs": [{"kind": "Smuggled"}], "crossplane": {"x": 1},
    }));
    assert_eq!(composite_name(&claim), CompositeName::Generate("c-".into()));
    let binding = bound(&claim, &xr(json!({})), false);
    assert_eq!(
        binding.composite,
        json!({
            "apiVersion": "example.org/v1", "kind": "XThing",
            "metadata": {
                "name": "c-abcde", "annotations": {"own": "1"},
                "labels": {"own": "1", "crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": "ns"},
            },
            "spec": {
                "size": 1, "compositionRef": {"name": "r"}, "compositionSelector": {"matchLabels": {"a": "b"}},
                "crossplane": {"x": 1},
                "claimRef": {"apiVersion": "example.org/v1", "kind": "Thing", "name": "c", "namespace": "ns"},
            },
        })
    );
    assert_eq!(
        binding.claim["spec"]["resourceRef"],
        json!({"apiVersion": "example.org/v1", "kind": "XThing", "name": "c-abcde"})
    );
    assert_eq!(composite_name(&binding.claim), CompositeName::Bound("c-abcde".into()));
    let again = bound(&binding.claim, &xr(json!({})), false);
    assert_eq!(again.claim, binding.claim, "nothing left to write");
}

#[test]
fn the_revision_goes_up_when_manual_and_down_when_automatic() {
    let claim = claim(&json!({"compositionRevisionRef": {"name": "mine"}}));
    let observed = |policy: &str| {
        xr(json!({"spec": {"compositionUpdatePolicy": policy, "compositionRevisionRef": {"name": "theirs"}}}))
    };
    let manual = bound(&claim, &observed("Manual"), false);
    assert_eq!(manual.composite["spec"]["compositionRevisionRef"], json!({"name": "mine"}));
    assert_eq!(manual.claim["spec"]["compositionRevisionRef"], json!({"name": "mine"}));
    let automatic = bound(&claim, &observed("Automatic"), false);
    assert_eq!(automatic.composite["spec"].get("compositionRevisionRef"), None);
    assert_eq!(automatic.claim["spec"]["compositionRevisionRef"], json!({"name": "theirs"}));
}

#[test]
fn the_composition_comes_back_unless_the_claim_has_one_or_it_is_enforced() {
    let observed = xr(json!({"spec": {
        "compositionRef": {"name": "theirs"}, "compositionRevisionSelector": {"matchLabels": {"a": "b"}},
    }}));
    let silent = bound(&claim(&json!({})), &observed, false);
    assert_eq!(silent.claim["spec"]["compositionRef"], json!({"name": "theirs"}));
    assert_eq!(silent.claim["spec"]["compositionRevisionSelector"], json!({"matchLabels": {"a": "b"}}));
    let own = claim(&json!({"compositionRef": {"name": "mine"}}));
    let kept = bound(&own, &observed, false);
    assert_eq!(kept.claim["spec"]["compositionRef"], json!({"name": "mine"}));
    assert_eq!(kept.composite["spec"]["compositionRef"], json!({"name": "mine"}));
    let enforced = bound(&own, &observed, true);
    assert_eq!(enforced.claim["spec"]["compositionRef"], json!({"name": "theirs"}));
    assert_eq!(enforced.composite["spec"].get("compositionRef"), None);
}

#[test]
fn an_external_name_stays_and_comes_back() {
    let key = annotation::EXTERNAL_NAME;
    let mut claim = claim(&json!({}));
    claim["metadata"]["annotations"][key] = "wish".into();
    let binding = bound(&claim, &xr(json!({"metadata": {"annotations": {key: "real"}}})), false);
    assert_eq!(binding.composite["metadata"]["annotations"][key], "real");
    assert_eq!(binding.claim["metadata"]["annotations"][key], "real");
    let fresh = bound(&claim, &xr(json!({})), false);
    assert_eq!(fresh.composite["metadata"]["annotations"][key], "wish");
}

#[test]
fn odd_objects_are_errors_not_panics() {
    for spec in [json!(42), json!(null), json!([])] {
        assert_eq!(bind(&claim(&spec), &xr(json!({})), &of(), "n", false), Err(Error::Spec));
    }
    let odd = json!({"status": 1});
    assert_eq!(copy_status(&mut claim(&json!({})), &odd), Err(Error::CompositeStatus));
    assert_eq!(bind(&claim(&json!({})), &xr(odd), &of(), "n", false), Err(Error::CompositeStatus));
    assert_eq!(copy_status(&mut claim(&json!({})), &json!({})), Ok(false));
}

#[test]
fn status_comes_back_without_what_is_crossplanes() {
    let mut claim = claim(&json!({}));
    claim["status"] = json!({
        "old": 1,
        "conditions": [{"type": "Ready", "status": "True", "reason": "r", "lastTransitionTime": "t"}],
        "connectionDetails": {"lastPublishedTime": "mine"},
    });
    let theirs = json!({"status": {
        "url": "u", "conditions": [{"type": "Synced"}], "claimConditionTypes": ["X"], "watchedResourceRefs": [],
        "connectionDetails": {"lastPublishedTime": "theirs"},
    }});
    assert_eq!(copy_status(&mut claim, &theirs), Ok(true));
    assert_eq!(
        claim["status"],
        json!({
            "url": "u",
            "conditions": [{"type": "Ready", "status": "True", "reason": "r", "lastTransitionTime": "t"}],
            "connectionDetails": {"lastPublishedTime": "mine"},
        })
    );
    assert_eq!(copy_status(&mut claim, &theirs), Ok(false));
}

#[test]
fn only_listed_conditions_reach_the_claim() {
    let xr = xr(json!({"status": {
        "claimConditionTypes": ["Shown"],
        "conditions": [
            {"type": "Shown", "status": "True", "reason": "r"}, {"type": "Hidden", "status": "True", "reason": "r"},
            {"type": "Ready", "status": "False", "reason": "Creating"},
        ],
    }}));
    let kinds: Vec<_> = conditions_of(&xr).into_iter().map(|c| (c.kind, c.reason)).collect();
    let expected = [("Synced", "ReconcileSuccess"), ("Shown", "r"), ("Ready", "Waiting")];
    assert_eq!(kinds, expected.map(|(k, r)| (k.to_owned(), r.to_owned())));
}

#[test]
fn another_claims_composite_resource_is_left_alone() {
    let claim = claim(&json!({}));
    let reference = |name: &str| json!({"apiVersion": "example.org/v1", "kind": "Thing", "name": name, "namespace": "ns"});
    let created = json!({"name": "x", "creationTimestamp": "2024-01-01T00:00:00Z"});
    let of_other = xr(json!({"metadata": created, "spec": {"claimRef": reference("d")}}));
    assert_eq!(
        must_be_bindable(&claim, &of_other).unwrap_err().to_string(),
        "refusing to operate on composite resource \"x\" that is not bound to this claim: bound to claim \"d\""
    );
    let own = xr(json!({"metadata": created, "spec": {"claimRef": reference("c")}}));
    assert!(must_be_bindable(&claim, &own).is_ok() && is_bound(&claim, &own));
    let free = xr(json!({"metadata": created, "spec": {}}));
    assert!(must_be_bindable(&claim, &free).is_ok() && !is_bound(&claim, &free));
    assert!(must_be_bindable(&claim, &xr(json!({}))).is_ok());
}

#[test]
fn deletion_follows_the_policy() {
    let created = json!({"metadata": {"creationTimestamp": "t"}});
    let going = json!({"metadata": {"creationTimestamp": "t", "deletionTimestamp": "t"}});
    let foreground = claim(&json!({"compositeDeletePolicy": "Foreground"}));
    let background = claim(&json!({"compositeDeletePolicy": "Background"}));
    for (claim, xr, expected) in [
        (&foreground, &json!({}), Deletion::Finish),
        (&foreground, &created, Deletion::Foreground),
        (&foreground, &going, Deletion::Wait),
        (&background, &created, Deletion::Background),
        (&background, &going, Deletion::Background),
        (&background, &json!({}), Deletion::Finish),
    ] {
        assert_eq!(deletion(claim, xr), expected, "{claim} {xr}");
    }
}
