//! Management policies and deletion policies: what a managed resource lets its provider do. Pure.

use crate::kind::Layout;
use serde_json::Value;
use std::collections::BTreeSet;

/// The sets of policies that are supported, by the first letters of Observe, Create, Update, Delete and LateInitialize.
const SUPPORTED: [&str; 13] =
    ["OCUDL", "O", "OCUD", "OCUL", "OCU", "OCDL", "OCL", "OCD", "OC", "OD", "OU", "OL", "OUL"];

/// What a managed resource lets its provider do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    actions: BTreeSet<String>,
    /// Whether the provider supports management policies.
    enabled: bool,
    layout: Layout,
    deletion: String,
}

impl Policies {
    /// The policies of a managed resource. One without `managementPolicies` allows everything, which is the default of the
    /// field.
    pub fn of(object: &Value, layout: Layout, enabled: bool) -> Self {
        let listed = object.pointer("/spec/managementPolicies").and_then(Value::as_array);
        let actions = match listed {
            Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => BTreeSet::from(["*".to_owned()]),
        };
        let deletion = object.pointer("/spec/deletionPolicy").and_then(Value::as_str).unwrap_or("Delete");
        Self { actions, enabled, layout, deletion: deletion.to_owned() }
    }

    fn is_all(&self) -> bool {
        self.actions.len() == 1 && self.actions.contains("*")
    }

    fn allows(&self, action: &str) -> bool {
        !self.enabled || self.actions.contains("*") || self.actions.contains(action)
    }

    /// Whether nothing may be done at all.
    pub fn pauses(&self) -> bool {
        self.enabled && self.actions.is_empty()
    }

    /// Whether the policies can be used; otherwise why not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.is_all() || self.actions.is_empty() {
            return Ok(());
        }
        let shown = self.actions.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        if !self.enabled {
            return Err(format!(
                "`spec.managementPolicies` is set to a non-default value but the feature is not enabled: [{shown}]"
            ));
        }
        let letters: BTreeSet<char> =
            self.actions.iter().filter_map(|action| action.chars().next()).collect();
        if SUPPORTED.iter().any(|set| set.chars().collect::<BTreeSet<char>>() == letters) {
            return Ok(());
        }
        Err(format!(
            "`spec.managementPolicies` is set to a value([{shown}]) which is not supported. Check docs for supported \
             policies"
        ))
    }

    /// Whether the external resource may be created.
    pub fn may_create(&self) -> bool {
        self.allows("Create")
    }

    /// Whether the external resource may be changed.
    pub fn may_update(&self) -> bool {
        self.allows("Update")
    }

    /// Whether unset fields of the spec may be filled.
    pub fn may_late_initialize(&self) -> bool {
        self.allows("LateInitialize")
    }

    /// Whether the external resource may only be observed.
    pub fn only_observes(&self) -> bool {
        self.enabled && self.actions.len() == 1 && self.actions.contains("Observe")
    }

    /// Whether the external resource is deleted with the managed resource.
    pub fn may_delete(&self) -> bool {
        match self.layout {
            Layout::Modern => self.allows("Delete"),
            Layout::Legacy if !self.enabled => self.deletion != "Orphan",
            Layout::Legacy => {
                let listed = self.actions.contains("Delete");
                (self.deletion == "Delete" && (listed || self.actions.contains("*")))
                    || (!self.is_all() && listed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policies(list: &[&str], deletion: &str, layout: Layout) -> Policies {
        let object = json!({"spec": {"managementPolicies": list, "deletionPolicy": deletion}});
        Policies::of(&object, layout, true)
    }

    fn long(letters: &str) -> Vec<&'static str> {
        let action = |letter| match letter {
            'O' => "Observe",
            'C' => "Create",
            'U' => "Update",
            'D' => "Delete",
            'L' => "LateInitialize",
            _ => "*",
        };
        letters.chars().map(action).collect()
    }

    /// Set, create, update, late initialisation, delete when modern, legacy with Delete, legacy with Orphan.
    const TABLE: [(&str, &str); 14] = [
        ("*", "yyyyyn"),
        ("OCULD", "yyyyyy"),
        ("O", "nnnnnn"),
        ("OCUD", "yynyyy"),
        ("OCUL", "yyynnn"),
        ("OCU", "yynnnn"),
        ("OCDL", "ynyyyy"),
        ("OCL", "ynynnn"),
        ("OCD", "ynnyyy"),
        ("OC", "ynnnnn"),
        ("OD", "nnnyyy"),
        ("OU", "nynnnn"),
        ("OL", "nnynnn"),
        ("OUL", "nyynnn"),
    ];

    #[test]
    fn every_supported_set_allows_what_its_row_says() {
        for (set, expected) in TABLE {
            let list = long(set);
            let modern = policies(&list, "Delete", Layout::Modern);
            let allowed = [
                modern.may_create(),
                modern.may_update(),
                modern.may_late_initialize(),
                modern.may_delete(),
                policies(&list, "Delete", Layout::Legacy).may_delete(),
                policies(&list, "Orphan", Layout::Legacy).may_delete(),
            ];
            let shown: String = allowed.iter().map(|yes| if *yes { 'y' } else { 'n' }).collect();
            assert_eq!((shown.as_str(), modern.check()), (expected, Ok(())), "{set}");
        }
    }

    #[test]
    fn other_sets_are_refused() {
        for list in [&["*", "Observe"][..], &["Create"], &["Observe", "Update", "Delete"]] {
            let error = policies(list, "Delete", Layout::Legacy).check().unwrap_err();
            assert!(error.contains("which is not supported. Check docs for supported policies"), "{error}");
        }
        assert!(policies(&[], "Delete", Layout::Legacy).pauses());
    }

    #[test]
    fn a_provider_without_policies_refuses_any() {
        let object = json!({"spec": {"managementPolicies": ["Observe"], "deletionPolicy": "Orphan"}});
        let policies = Policies::of(&object, Layout::Legacy, false);
        assert!(policies.check().unwrap_err().contains("but the feature is not enabled: [Observe]"));
        assert!(policies.may_create() && !policies.may_delete() && !policies.only_observes());
        let none = Policies::of(&json!({"spec": {"managementPolicies": []}}), Layout::Legacy, false);
        assert!(!none.pauses() && none.check().is_ok() && none.may_delete());
        assert!(Policies::of(&json!({}), Layout::Modern, true).may_delete(), "the default allows everything");
    }
}
