//! What a step may read: a Composition can list the resources its functions may require.

use regex::Regex;
use transom_function::ResourceSelector;
use transom_function::proto::v1::resource_selector::Match;
use transom_xapi::composition::AllowedResource;

/// Whether a selector selects nothing but what a list allows. No list allows everything.
pub(crate) fn allows(list: Option<&[AllowedResource]>, selector: &ResourceSelector) -> bool {
    list.is_none_or(|list| list.iter().any(|entry| entry_allows(entry, selector)))
}

fn entry_allows(entry: &AllowedResource, selector: &ResourceSelector) -> bool {
    if entry.api_version != selector.api_version || entry.kind != selector.kind {
        return false;
    }
    let restricts_names = entry.match_name.as_deref().is_some_and(|pattern| pattern != "*");
    match &selector.r#match {
        Some(Match::MatchName(name)) => match &entry.match_name {
            Some(pattern) => matches(pattern, name),
            // An object's labels are not known before it is read.
            None => entry.match_labels.is_empty(),
        },
        Some(Match::MatchLabels(wanted)) => {
            let given = |key: &str| wanted.labels.get(key);
            !restricts_names
                && entry
                    .match_labels
                    .iter()
                    .all(|(key, pattern)| given(key).is_some_and(|v| matches(pattern, v)))
        }
        None => !restricts_names && entry.match_labels.is_empty(),
    }
}

/// A pattern matches the whole text; one that is none matches nothing.
fn matches(pattern: &str, text: &str) -> bool {
    pattern == "*" || Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn entry(name: Option<&str>, labels: &[(&str, &str)]) -> AllowedResource {
        AllowedResource {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            match_name: name.map(str::to_owned),
            match_labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        }
    }

    #[test]
    fn lists_allow_what_they_name() {
        let named = |name: &str| ResourceSelector::named("v1", "ConfigMap", name);
        let labelled = |labels: &[(&str, &str)]| {
            let labels: BTreeMap<_, _> = labels.iter().copied().collect();
            ResourceSelector::labelled("v1", "ConfigMap", labels)
        };
        let all = ResourceSelector::all("v1", "ConfigMap");
        assert!(allows(None, &named("a")));
        assert!(!allows(Some(&[]), &named("a")));
        let secrets = ResourceSelector::named("v1", "Secret", "a");
        assert!(!allows(Some(&[entry(None, &[])]), &secrets));

        let names = [entry(Some("app-.*"), &[])];
        assert!(allows(Some(&names), &named("app-1")));
        assert!(!allows(Some(&names), &named("an-app-1")), "the whole name counts");
        assert!(!allows(Some(&names), &all), "a list would return other names, too");
        assert!(!allows(Some(&[entry(Some("("), &[])]), &named("(")), "no pattern matches nothing");

        let labels = [entry(None, &[("team", "a|b")])];
        assert!(allows(Some(&labels), &labelled(&[("team", "a"), ("x", "y")])));
        assert!(!allows(Some(&labels), &labelled(&[("team", "ab")])));
        assert!(!allows(Some(&labels), &labelled(&[("x", "y")])));
        assert!(!allows(Some(&labels), &named("a")));

        let any = [entry(None, &[])];
        assert!(allows(Some(&any), &all) && allows(Some(&any), &named("x")));
        assert!(allows(Some(&[entry(Some("*"), &[])]), &all));
    }
}
