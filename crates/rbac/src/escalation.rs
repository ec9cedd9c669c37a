//! Whether a user has everything that a role would give: only then may it write the role, or bind it.

use crate::index::User;
use crate::rule::{Part, Rule, Target, quoted_list};
use std::collections::{BTreeMap, BTreeSet};

/// How many combinations of verbs, groups, resources and names a role may have where they have to be compared one by one.
/// Real roles have some hundreds.
const MAX_PARTS: usize = 100_000;

/// Why a user may not grant rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

/// Every verb on everything, which an aggregation rule can collect.
pub fn full_authority() -> Vec<Rule> {
    let all = || vec!["*".to_owned()];
    vec![
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Fails unless `held` has all that `granted` has.
pub fn confirm(user: &User<'_>, held: &[&Rule], granted: &[Rule]) -> Result<(), Refusal> {
    let parts = granted.iter().fold(0_usize, |sum, rule| sum.saturating_add(rule.count_parts()));
    if parts > MAX_PARTS {
        return Err(Refusal(format!(
            "the rules have {parts} combinations of verbs, groups, resources and names, more than the {MAX_PARTS} that \
             can be compared with those of user {:?}; split the role, or let a user with the verb \"escalate\" write it",
            user.name
        )));
    }
    let missing: Vec<Part<'_>> = granted
        .iter()
        .flat_map(Rule::parts)
        .filter(|part| !held.iter().any(|rule| rule.covers(part)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = compact(&missing).into_iter().collect();
    let groups = quoted_list(user.groups.iter().map(String::as_str));
    Err(Refusal(format!(
        "user {:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        shown.join("\n")
    )))
}

/// The parts of `expected` that `held` does not have, each as a rule.
pub(crate) fn missing_rules(held: &[Rule], expected: &[Rule]) -> Vec<Rule> {
    let parts = expected.iter().flat_map(Rule::parts);
    parts
        .filter(|part| !held.iter().any(|rule| rule.covers(part)))
        .map(|part| rule_of(part.target, &[part.verb]))
        .collect()
}

/// The parts as rules, those that differ only in their verb as one, in the order of their texts.
fn compact(parts: &[Part<'_>]) -> BTreeSet<String> {
    let mut verbs: BTreeMap<Target<'_>, Vec<&str>> = BTreeMap::new();
    let mut shown = BTreeSet::new();
    for part in parts {
        match part.target {
            Target::Resource { .. } => verbs.entry(part.target).or_default().push(part.verb),
            Target::Path(_) => {
                shown.insert(rule_of(part.target, &[part.verb]).compact_text());
            }
        }
    }
    shown.extend(verbs.into_iter().map(|(target, verbs)| rule_of(target, &verbs).compact_text()));
    shown
}

fn rule_of(target: Target<'_>, verbs: &[&str]) -> Rule {
    let one = |text: &str| vec![text.to_owned()];
    let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    match target {
        Target::Path(path) => Rule { verbs, non_resource_urls: one(path), ..Rule::default() },
        Target::Resource { group, resource, name } => Rule {
            verbs,
            api_groups: one(group),
            resources: one(resource),
            resource_names: name.map(one).unwrap_or_default(),
            ..Rule::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn rules(value: &Value) -> Vec<Rule> {
        value.as_array().unwrap().iter().map(Rule::of).collect()
    }

    fn refusal(held: &Value, granted: &Value) -> Option<String> {
        let (held, groups) = (rules(held), ["a".to_owned(), "b".to_owned()]);
        let user = User { name: "jane", groups: &groups };
        confirm(&user, &held.iter().collect::<Vec<_>>(), &rules(granted)).err().map(|refusal| refusal.0)
    }

    #[test]
    fn what_is_missing_is_listed_compactly() {
        let held = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let granted = json!([
            {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "secrets"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
        ]);
        assert_eq!(
            refusal(&held, &granted).unwrap(),
            "user \"jane\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\" \"watch\"]}\n\
             {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
        );
    }

    #[test]
    fn wildcards_cover_and_are_covered_by_wildcards_alone() {
        let one = json!([{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]}]);
        let any_scale = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}]);
        let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        assert_eq!(refusal(&any_scale, &one), None);
        assert_eq!(refusal(&everything, &any_scale), None);
        assert!(refusal(&one, &any_scale).is_some());
        assert!(refusal(&any_scale, &everything).is_some());
        let many = json!([{"verbs": ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
            "apiGroups": ["*"], "resources": ["*"]}]);
        assert!(refusal(&many, &everything).is_some(), "a list of verbs is not all verbs");
    }

    #[test]
    fn a_name_does_not_cover_all_names() {
        let named =
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["maps"], "resourceNames": ["a"]}]);
        let other = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["maps"], "resourceNames": ["a", "b"]}]);
        let all = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["maps"]}]);
        assert_eq!(refusal(&named, &named), None);
        assert_eq!(refusal(&all, &named), None);
        assert!(refusal(&named, &all).is_some());
        let missing = refusal(&named, &other).unwrap();
        assert!(
            missing.ends_with(
                "{APIGroups:[\"\"], Resources:[\"maps\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}"
            ),
            "{missing}"
        );
    }

    #[test]
    fn a_role_of_endless_combinations_is_refused_without_comparing_them() {
        let list: Vec<String> = (0..1000).map(|i| format!("x{i}")).collect();
        let granted = json!([{"verbs": list, "apiGroups": list, "resources": list}]);
        let why = refusal(&json!([]), &granted).unwrap();
        assert!(why.contains("1000000000 combinations"), "{why}");
    }
}
