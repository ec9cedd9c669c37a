//! What a reconcile does next, from the managed resource and the observed external resource. Pure: no I/O and no clock.
//!
//! [`before_observation`] decides before the external resource is observed, [`after_observation`] after that. `reconcile`
//! does what they return, in the order of crossplane-runtime.

use crate::kind::Layout;
use crate::policy::Policies;
use serde_json::Value;
use transom_object::meta;
use transom_object::time::Timestamp;
use transom_xapi::constants::annotation;
use transom_xapi::metadata;

/// How long after its creation an external resource may not be visible yet.
const CREATION_GRACE_NANOS: i64 = 30 * 1_000_000_000;
/// The condition of a managed resource whose creation may or may not have succeeded.
pub const CREATION_UNKNOWN: &str = "cannot determine creation result - remove the \
     crossplane.io/external-create-pending annotation if it is safe to proceed";

/// How a kind is reconciled.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which fields its spec has.
    pub layout: Layout,
    /// Whether its provider supports management policies.
    pub policies: bool,
    /// Whether the external resource is named after the managed resource unless the annotation sets another name. Such a
    /// creation can be repeated: the second one finds what the first one created.
    pub deterministic_names: bool,
}

impl Rules {
    /// The policies of a managed resource.
    pub fn policies_of(&self, object: &Value) -> Policies {
        Policies::of(object, self.layout, self.policies)
    }
}

/// What follows from the managed resource alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing is done until it is no longer paused.
    Paused,
    /// Nothing is done until its policies are changed, for this reason.
    InvalidPolicies(String),
    /// The managed resource is deleted, and the external resource stays.
    Orphan,
    /// It gets this external name.
    Name(String),
    /// A creation began, and its outcome is unknown.
    Blocked,
    /// The external resource is observed.
    Observe,
}

/// Decides before the external resource is observed.
pub fn before_observation(object: &Value, rules: &Rules) -> Opening {
    let policies = rules.policies_of(object);
    if metadata::is_paused(object) || policies.pauses() {
        return Opening::Paused;
    }
    if let Err(why) = policies.check() {
        return Opening::InvalidPolicies(why);
    }
    if meta::is_deleting(object) && !policies.may_delete() {
        return Opening::Orphan;
    }
    let named = meta::annotation(object, annotation::EXTERNAL_NAME).is_some_and(|name| !name.is_empty());
    if rules.deterministic_names && !named {
        return Opening::Name(meta::name(object).to_owned());
    }
    if !rules.deterministic_names && metadata::create_incomplete(object) {
        return Opening::Blocked;
    }
    Opening::Observe
}

/// The state of the external resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether it exists.
    pub exists: bool,
    /// Whether it is as the spec wants it.
    pub up_to_date: bool,
}

/// What is done after the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It does not exist, and may only be looked at.
    Missing,
    /// It was created a moment ago, and is not visible yet.
    AwaitExistence,
    /// The managed resource is deleted, and others have finalizers on it.
    AwaitFinalizers,
    /// It is deleted.
    Delete,
    /// It is gone: the managed resource may go.
    Release,
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It differs, and may not be changed.
    Restricted,
    /// There is nothing to do.
    Keep,
}

/// Decides after the external resource was observed.
pub fn after_observation(object: &Value, seen: Observed, rules: &Rules, now: Timestamp) -> Action {
    let policies = rules.policies_of(object);
    let deleting = meta::is_deleting(object);
    if !seen.exists && policies.only_observes() {
        return Action::Missing;
    }
    if !seen.exists && metadata::created_within(object, CREATION_GRACE_NANOS, now) {
        return Action::AwaitExistence;
    }
    if deleting {
        return match (meta::finalizers(object).len() > 1, seen.exists) {
            (true, _) => Action::AwaitFinalizers,
            (false, true) => Action::Delete,
            (false, false) => Action::Release,
        };
    }
    if !seen.exists && policies.may_create() {
        return Action::Create;
    }
    match (seen.up_to_date, policies.may_update()) {
        (true, _) => Action::Keep,
        // As in crossplane-runtime: without the right to create, something that is missing is updated.
        (false, true) => Action::Update,
        (false, false) if !seen.exists => Action::Keep,
        (false, false) => Action::Restricted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_object::time::parse;

    const RULES: Rules = Rules { layout: Layout::Legacy, policies: true, deterministic_names: false };
    const DETERMINISTIC: Rules = Rules { deterministic_names: true, ..RULES };
    const MODERN: Rules = Rules { layout: Layout::Modern, ..RULES };

    fn object(annotations: &Value, spec: &Value, finalizers: Option<&[&str]>) -> Value {
        let mut annotations = annotations.clone();
        if annotations.get(annotation::EXTERNAL_NAME).is_none() {
            annotations[annotation::EXTERNAL_NAME] = "x".into();
        }
        let mut object = json!({"metadata": {"name": "db1", "annotations": annotations}, "spec": spec});
        if let Some(finalizers) = finalizers {
            object["metadata"]["finalizers"] = json!(finalizers);
            object["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        }
        object
    }

    fn times(pending: &str, succeeded: &str, failed: &str) -> Value {
        let all = [("pending", pending), ("succeeded", succeeded), ("failed", failed)];
        let set = all.iter().filter(|(_, time)| !time.is_empty());
        set.map(|(what, time)| (format!("crossplane.io/external-create-{what}"), json!(time))).collect()
    }

    /// The numbers are those of the vectors in the description of crossplane-runtime's behaviour.
    #[test]
    fn the_managed_resource_alone_decides_first() {
        let day = |time: &str| if time.is_empty() { String::new() } else { format!("2024-01-01T{time}Z") };
        let created = |p: &str, s: &str, f: &str| times(&day(p), &day(s), &day(f));
        let none = json!({});
        let paused = json!({"crossplane.io/paused": "true"});
        let policies = |list: &[&str]| json!({"managementPolicies": list});
        let orphan = |list: &[&str]| json!({"managementPolicies": list, "deletionPolicy": "Orphan"});
        let all = ["Observe", "Create", "Update", "LateInitialize", "Delete"];
        let deleting = Some(&["mr"][..]);
        for (vector, annotations, spec, finalizers, rules, expected) in [
            ("R1", paused, none.clone(), deleting, RULES, Opening::Paused),
            ("R2", json!({"crossplane.io/paused": "True"}), none.clone(), None, RULES, Opening::Observe),
            ("R3", none.clone(), policies(&[]), deleting, RULES, Opening::Paused),
            ("R3b", none.clone(), policies(&[]), None, Rules { policies: false, ..RULES }, Opening::Observe),
            ("R6", none.clone(), orphan(&["*"]), deleting, RULES, Opening::Orphan),
            ("R7", none.clone(), orphan(&all), deleting, RULES, Opening::Observe),
            ("R6m", none.clone(), policies(&["Observe"]), deleting, MODERN, Opening::Orphan),
            ("R9", created("10:00:05", "10:00:04", ""), none.clone(), None, RULES, Opening::Blocked),
            ("R10", created("10:00:05", "10:00:05", ""), none.clone(), None, RULES, Opening::Observe),
            ("R11", created("10:00:05", "09:00:00", "10:00:06"), none.clone(), None, RULES, Opening::Observe),
            ("R12", times("garbage", "", ""), none.clone(), None, RULES, Opening::Observe),
            ("R13", created("10:00:05", "", ""), none.clone(), None, DETERMINISTIC, Opening::Observe),
            ("R14", created("10:00:05", "", ""), none, deleting, RULES, Opening::Blocked),
        ] {
            assert_eq!(
                before_observation(&object(&annotations, &spec, finalizers), &rules),
                expected,
                "{vector}"
            );
        }
        let unnamed = json!({"metadata": {"name": "db1"}});
        assert_eq!(before_observation(&unnamed, &DETERMINISTIC), Opening::Name("db1".to_owned()), "R8");
        assert_eq!(
            before_observation(&unnamed, &RULES),
            Opening::Observe,
            "its name is given when it is created"
        );
        let invalid = object(&json!({}), &policies(&["Observe", "Update", "Delete"]), None);
        assert!(matches!(before_observation(&invalid, &RULES), Opening::InvalidPolicies(_)), "R4");
    }

    #[test]
    fn what_is_observed_decides_next() {
        let now = parse("2024-01-01T10:00:00Z").unwrap();
        let (missing, differs) =
            (Observed { exists: false, up_to_date: false }, Observed { exists: true, up_to_date: false });
        let good = Observed { exists: true, up_to_date: true };
        let policies = |list: &[&str]| json!({"managementPolicies": list});
        let recent = |seconds: u32| times("", &format!("2024-01-01T09:59:{:02}Z", 60 - seconds), "");
        let none = json!({});
        let deleting = Some(&["mr"][..]);
        let foreground = Some(&["mr", "foregroundDeletion"][..]);
        for (vector, annotations, spec, finalizers, seen, expected) in [
            ("R16", none.clone(), policies(&["Observe"]), None, missing, Action::Missing),
            ("R17", recent(10), none.clone(), None, missing, Action::AwaitExistence),
            ("R18", recent(31), none.clone(), None, missing, Action::Create),
            ("R19", none.clone(), none.clone(), None, missing, Action::Create),
            ("R23", none.clone(), none.clone(), None, good, Action::Keep),
            (
                "R25",
                none.clone(),
                policies(&["Observe", "Create", "Delete"]),
                None,
                differs,
                Action::Restricted,
            ),
            ("R26", none.clone(), policies(&["Observe", "Update"]), None, missing, Action::Update),
            ("R27", none.clone(), policies(&["Observe", "Delete"]), None, missing, Action::Keep),
            ("R28", none.clone(), none.clone(), foreground, good, Action::AwaitFinalizers),
            ("R29", none.clone(), none.clone(), deleting, good, Action::Delete),
            ("R29b", none.clone(), none.clone(), deleting, missing, Action::Release),
            ("17 while deleting", recent(10), none.clone(), deleting, missing, Action::AwaitExistence),
            ("drift", none.clone(), none, None, differs, Action::Update),
        ] {
            let object = object(&annotations, &spec, finalizers);
            assert_eq!(after_observation(&object, seen, &RULES, now), expected, "{vector}");
        }
    }
}
