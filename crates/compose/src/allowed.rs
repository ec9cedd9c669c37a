//! What a function may require.
//!
//! What the author of a Composition gives a function (`requirements` and `inputRef` of a step) is the author's decision
//! and not limited. What a function requires itself, now or in an earlier run, is decided here and nowhere else: nothing
//! if the control plane turns extra resources off, what the step's `allowedExtraResources` allow if there are any, and
//! otherwise everything.

use crate::failure::Cause;
use regex::Regex;
use std::collections::BTreeMap;
use transom_function::proto::v1::resource_selector::Match;
use transom_function::{Requirements, ResourceSelector};
use transom_go::regexp;
use transom_xapi::PipelineStep;
use transom_xapi::composition::AllowedResource;

/// What the function of one step may require.
pub(crate) struct Policy<'a> {
    step: &'a str,
    extra_resources: bool,
    /// `None` allows everything.
    list: Option<Vec<Entry<'a>>>,
}

impl<'a> Policy<'a> {
    /// Fails if a pattern of the list is not a regular expression, even if the function requires nothing.
    pub(crate) fn of(step: &'a PipelineStep, extra_resources: bool) -> Result<Self, Cause> {
        let entries = step.allowed_extra_resources.as_ref().map(|list| {
            let entries = list.iter().enumerate();
            entries.map(|(index, allowed)| Entry::of(&step.step, index, allowed)).collect()
        });
        Ok(Self { step: &step.step, extra_resources, list: entries.transpose()? })
    }

    /// Fails if the function may not require one of these.
    pub(crate) fn check(&self, required: &Requirements) -> Result<(), Cause> {
        for (name, selector) in required.extra_resources.iter().chain(&required.resources) {
            let (step, requirement) = (self.step.to_owned(), name.clone());
            if !self.extra_resources {
                return Err(Cause::ExtraResourcesOff { step, requirement });
            }
            if !self.list.as_ref().is_none_or(|list| list.iter().any(|entry| entry.allows(selector))) {
                let selector = serde_json::to_string(selector).unwrap_or_default();
                return Err(Cause::NotAllowed { step, requirement, selector });
            }
        }
        Ok(())
    }
}

/// One entry of a list. Without a pattern for the namespace it allows what it allows in all of them.
struct Entry<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: Option<Pattern>,
    labels: BTreeMap<&'a str, Pattern>,
    namespace: Option<Pattern>,
}

impl<'a> Entry<'a> {
    fn of(step: &str, index: usize, allowed: &'a AllowedResource) -> Result<Self, Cause> {
        let pattern = |field: String, text: &str| {
            Pattern::of(text).map_err(|why| Cause::BadPattern {
                step: step.to_owned(),
                field: format!("allowedExtraResources[{index}].{field}"),
                pattern: text.to_owned(),
                why,
            })
        };
        let name = allowed.match_name.as_deref().map(|text| pattern("matchName".to_owned(), text));
        let namespace =
            allowed.match_namespace.as_deref().map(|text| pattern("matchNamespace".to_owned(), text));
        let labels = allowed
            .match_labels
            .iter()
            .map(|(key, text)| Ok((key.as_str(), pattern(format!("matchLabels[{key:?}]"), text)?)));
        Ok(Self {
            api_version: &allowed.api_version,
            kind: &allowed.kind,
            name: name.transpose()?,
            labels: labels.collect::<Result<_, Cause>>()?,
            namespace: namespace.transpose()?,
        })
    }

    /// Whether a selector selects nothing but what this allows.
    fn allows(&self, selector: &ResourceSelector) -> bool {
        if self.api_version != selector.api_version || self.kind != selector.kind {
            return false;
        }
        let namespace = selector.namespace.as_deref().unwrap_or_default();
        // A selector without a namespace selects in all of them.
        let in_allowed = |pattern: &Pattern| match pattern {
            Pattern::Any => true,
            Pattern::Regex(_) => !namespace.is_empty() && pattern.matches(namespace),
        };
        if !self.namespace.as_ref().is_none_or(in_allowed) {
            return false;
        }
        let any_name = matches!(self.name, None | Some(Pattern::Any));
        match &selector.r#match {
            Some(Match::MatchName(name)) => match &self.name {
                Some(pattern) => pattern.matches(name),
                // An object's labels are not known before it is read.
                None => self.labels.is_empty(),
            },
            Some(Match::MatchLabels(wanted)) => {
                let given = |key: &str| wanted.labels.get(key);
                any_name
                    && self.labels.iter().all(|(key, pattern)| given(key).is_some_and(|v| pattern.matches(v)))
            }
            None => any_name && self.labels.is_empty(),
        }
    }
}

/// A pattern for a whole text.
enum Pattern {
    /// `*`
    Any,
    Regex(Regex),
}

impl Pattern {
    /// The pattern, or what is wrong with it: one of Go's, as the schema of Compositions requires when it is written.
    /// It must be a regular expression as it is written: put between brackets before that is known, `a)|(?:.*` would
    /// become a pattern that matches everything.
    fn of(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let compile = |text: &str| regexp::compile(text, regexp::Limits::default());
        let whole = compile(text).and_then(|_| compile(&format!("^(?:{text})$")));
        whole.map(Self::Regex).map_err(|e| e.code().to_owned())
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: Option<&str>, labels: &[(&str, &str)]) -> AllowedResource {
        AllowedResource {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            match_name: name.map(str::to_owned),
            match_namespace: None,
            match_labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        }
    }

    fn step(list: Option<&[AllowedResource]>) -> PipelineStep {
        let allowed_extra_resources = list.map(<[_]>::to_vec);
        PipelineStep { step: "a".to_owned(), allowed_extra_resources, ..PipelineStep::default() }
    }

    fn requiring(selector: &ResourceSelector, extra: bool) -> Requirements {
        let mut required = Requirements::default();
        let field = if extra { &mut required.extra_resources } else { &mut required.resources };
        field.insert("it".to_owned(), selector.clone());
        required
    }

    fn allows(list: Option<&[AllowedResource]>, selector: &ResourceSelector) -> bool {
        let step = step(list);
        let policy = Policy::of(&step, true).unwrap();
        let [one, other] = [true, false].map(|extra| policy.check(&requiring(selector, extra)).is_ok());
        assert_eq!(one, other, "the name of the field does not matter");
        one
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
        assert!(allows(Some(&names), &named("app-1").in_namespace("any")), "entries do not limit namespaces");
        assert!(!allows(Some(&names), &named("an-app-1")), "the whole name counts");
        assert!(!allows(Some(&names), &named("x\napp-1")), "of all lines");
        assert!(!allows(Some(&names), &all), "a list would return other names, too");
        assert!(
            !allows(Some(&[entry(Some("a|b"), &[])]), &named("ax")),
            "alternatives are of the whole name"
        );
        assert!(allows(Some(&[entry(Some("(?m)^app$"), &[])]), &named("app")));
        assert!(!allows(Some(&[entry(Some("(?m)^app$"), &[])]), &named("app\nx")));

        // As Go reads them, and so as they were checked when they were written.
        let quoted = [entry(Some(r"\Qa.b\E"), &[])];
        assert!(allows(Some(&quoted), &named("a.b")) && !allows(Some(&quoted), &named("axb")));
        assert!(allows(Some(&[entry(Some("[a&&b]"), &[])]), &named("a")), "both are in the class");

        let labels = [entry(None, &[("team", "a|b")])];
        assert!(allows(Some(&labels), &labelled(&[("team", "a"), ("x", "y")])));
        assert!(!allows(Some(&labels), &labelled(&[("team", "ab")])));
        assert!(!allows(Some(&labels), &labelled(&[("x", "y")])));
        assert!(!allows(Some(&labels), &named("a")));

        let any = [entry(None, &[])];
        assert!(allows(Some(&any), &all) && allows(Some(&any), &named("x")));
        assert!(allows(Some(&[entry(Some("*"), &[])]), &all));
    }

    #[test]
    fn a_pattern_is_a_regular_expression_as_it_is_written() {
        for (pattern, why) in [
            ("app)|(?:.*", "unexpected )"),
            ("(", "missing closing )"),
            ("[a", "missing closing ]"),
            ("a\\", "trailing backslash"),
            ("(?x)a # swallows what follows", "invalid or unsupported Perl syntax"),
        ] {
            let good = entry(Some("app"), &[]);
            let by_name = [good.clone(), entry(Some(pattern), &[])];
            let by_label = [good.clone(), entry(None, &[("team", pattern)])];
            for (list, field) in [(by_name, "matchName"), (by_label, "matchLabels[\"team\"]")] {
                let words = match Policy::of(&step(Some(&list)), true) {
                    Ok(_) => String::new(),
                    Err(cause) => cause.to_string(),
                };
                let expected = format!("allowedExtraResources[1].{field} is malformed");
                assert!(words.contains(&expected) && words.contains(why), "{pattern}: {words}");
            }
        }
    }

    #[test]
    fn nothing_may_be_required_once_that_is_turned_off() {
        let step = step(None);
        let policy = Policy::of(&step, false).unwrap();
        let required = requiring(&ResourceSelector::named("v1", "ConfigMap", "a"), false);
        assert!(matches!(policy.check(&required), Err(Cause::ExtraResourcesOff { .. })));
        let mut schemas = Requirements::default();
        schemas.schemas.insert("it".to_owned(), Default::default());
        assert!(policy.check(&schemas).is_ok(), "a schema is not a resource");
    }
}
