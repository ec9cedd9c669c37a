//! Aggregated ClusterRoles: their rules are those of all ClusterRoles that their selectors select.

use serde_json::Value;
use transom_object::labels::{Labels, Selector};

/// The selectors of an aggregated ClusterRole.
#[derive(Clone, Debug, Default)]
pub struct Selectors(Vec<Selector>);

impl Selectors {
    /// `None` for a role that is not aggregated, or whose selectors are invalid: such a role keeps its rules.
    pub fn of(role: &Value) -> Option<Self> {
        let rule = role.get("aggregationRule").filter(|rule| !rule.is_null())?;
        let selectors = rule["clusterRoleSelectors"].as_array().into_iter().flatten();
        selectors
            .map(|selector| Selector::from_label_selector(selector).ok())
            .collect::<Option<Vec<_>>>()
            .map(Self)
    }

    /// Whether a role with these labels is selected.
    pub fn select(&self, labels: &Labels) -> bool {
        self.0.iter().any(|selector| selector.matches(labels))
    }

    /// The rules of the selected roles: selector by selector, each in the order of `roles`, which is by name. No rule
    /// occurs twice.
    pub fn collect(
        &self,
        name: &str,
        roles: &[(&str, &Labels)],
        rules_of: impl Fn(&str) -> Vec<Value>,
    ) -> Vec<Value> {
        let mut rules = Vec::new();
        for selector in &self.0 {
            let selected = roles.iter().filter(|(other, labels)| *other != name && selector.matches(labels));
            for rule in selected.flat_map(|(other, _)| rules_of(other)) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_are_collected_once_in_the_order_of_selectors_and_names() {
        let labelled = |key: &str| Labels::from([(key.to_owned(), "true".to_owned())]);
        let roles =
            [("a", labelled("x")), ("b", labelled("y")), ("c", labelled("x")), ("sum", labelled("x"))];
        let role = json!({"aggregationRule": {"clusterRoleSelectors": [
            {"matchLabels": {"y": "true"}}, {"matchLabels": {"x": "true"}}]}});
        let selectors = Selectors::of(&role).unwrap();
        let listed: Vec<(&str, &Labels)> = roles.iter().map(|(name, labels)| (*name, labels)).collect();
        let rules = selectors.collect("sum", &listed, |name| match name {
            "a" => vec![json!({"verbs": ["get"]}), json!({"verbs": ["list"]})],
            "b" => vec![json!({"verbs": ["list"]})],
            "c" => vec![json!({"verbs": ["watch"]})],
            _ => vec![json!({"verbs": ["*"]})],
        });
        assert_eq!(json!(rules), json!([{"verbs": ["list"]}, {"verbs": ["get"]}, {"verbs": ["watch"]}]));
        assert!(selectors.select(&labelled("y")) && !selectors.select(&labelled("z")));
        assert!(Selectors::of(&json!({"rules": []})).is_none());
    }
}
