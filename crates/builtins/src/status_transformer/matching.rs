//! Which resources a matcher selects, and whether their conditions match.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::{RunFunctionRequest, Struct};
use transom_go::regexp::{self, Limits};
use transom_object::GroupVersion;
use transom_object::json::go_type_in_struct;

use super::input::{ConditionMatcher, Matcher};
use crate::conditioned;

/// Where `function-extra-resources` leaves what it found.
const EXTRA_RESOURCES: &str = "apiextensions.crossplane.io/extra-resources";

/// The composite resource among others; no pattern is matched against it.
const COMPOSITE: &str = "function-status-transformer.reserved-keys.composite-resource";

/// What named groups of patterns matched. Unnamed groups share the empty name.
pub(super) type Captured = BTreeMap<String, String>;

/// The resources that matchers can be about.
pub(super) struct Candidates<'a> {
    request: &'a RunFunctionRequest,
    context: Option<&'a Struct>,
    /// Extra resources by the names that patterns see; loaded when they are first needed.
    extra: Option<BTreeMap<String, &'a Value>>,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(request: &'a RunFunctionRequest, context: Option<&'a Struct>) -> Self {
        Self { request, context, extra: None }
    }

    /// Finds the extra resources in the context.
    pub(super) fn load_extra(&mut self) -> Result<(), String> {
        if self.extra.is_some() {
            return Ok(());
        }
        let mut extra = BTreeMap::new();
        if let Some(left) = self.context.and_then(|context| context.fields().get(EXTRA_RESOURCES)) {
            let left = left
                .as_object()
                .ok_or_else(|| format!("unexpected extra-resources type: {}", go_type_in_struct(left)))?;
            for (into, list) in left {
                let unexpected = |place: String, value| {
                    format!("unexpected extra-resources value type for {place}: {}", go_type_in_struct(value))
                };
                let items = list.as_array().ok_or_else(|| unexpected(into.clone(), list))?;
                for (i, item) in items.iter().enumerate() {
                    if !item.is_object() {
                        return Err(unexpected(format!("{into} [{i}]"), item));
                    }
                    extra.insert(extra_name(into, item), item);
                }
            }
        }
        self.extra = Some(extra);
        Ok(())
    }
}

/// `extra-resource.<into>.<group>.<kind>.<namespace>.<name>`
fn extra_name(into: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = match GroupVersion::parse(text("/apiVersion")) {
        Some(version) => (version.group, text("/kind")),
        None => (String::new(), ""),
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    ["extra-resource", into, &group, kind, namespace, name].join(".")
}

/// What a matcher captures when it matches. Without a resource or a condition to look at, it does not.
pub(super) fn matches(matcher: &Matcher, candidates: &Candidates<'_>) -> Result<Option<Captured>, String> {
    let resources = resources(matcher, candidates)?;
    if resources.is_empty() || matcher.conditions.is_empty() {
        return Ok(None);
    }
    let (any_resource, any_condition) = match &*matcher.r#type {
        "AnyResourceMatchesAnyCondition" => (true, true),
        "AnyResourceMatchesAllConditions" => (true, false),
        "AllResourcesMatchAnyCondition" => (false, true),
        _ => (false, false),
    };
    let mut captured = Captured::new();
    for object in resources.values() {
        let mut matched = 0;
        for condition in &matcher.conditions {
            let Some(groups) = captures(condition, object)? else {
                if any_condition {
                    continue;
                }
                break;
            };
            matched += 1;
            // The very first match decides, and alone captures, when any of any will do.
            if any_resource && any_condition {
                return Ok(Some(groups));
            }
            captured.extend(groups);
        }
        let satisfied = if any_condition { matched > 0 } else { matched == matcher.conditions.len() };
        match (any_resource, satisfied) {
            (true, true) => return Ok(Some(captured)),
            (false, false) => return Ok(None),
            _ => {}
        }
    }
    Ok((!any_resource).then_some(captured))
}

/// The resources a matcher is about, by name.
fn resources<'a>(
    matcher: &Matcher,
    candidates: &Candidates<'a>,
) -> Result<BTreeMap<String, &'a Value>, String> {
    let mut found = BTreeMap::new();
    let observed = candidates.request.observed.iter().flat_map(|observed| &observed.resources);
    for (i, resource) in matcher.resources.iter().enumerate() {
        let pattern = regexp::compile_bytes(&resource.name, Limits::default())
            .map_err(|error| format!("cannot compile resource key regex, resourcesIndex: {i}: {error}"))?;
        let matching = observed.clone().filter(|(name, _)| pattern.is_match(name.as_bytes()));
        found.extend(matching.map(|(name, resource)| (name.clone(), resource.object())));
        if matcher.include_extra_resources {
            let extra = candidates.extra.iter().flatten();
            let matching = extra.filter(|(name, _)| pattern.is_match(name.as_bytes()));
            found.extend(matching.map(|(name, object)| (name.clone(), *object)));
        }
    }
    if matcher.include_composite_as_resource {
        found.insert(COMPOSITE.to_owned(), candidates.request.observed_composite().object());
    }
    Ok(found)
}

/// What a condition's message yields when the condition is as it should be.
fn captures(wanted: &ConditionMatcher, object: &Value) -> Result<Option<Captured>, String> {
    let found = conditioned::condition(object, &wanted.r#type);
    let differs = |wanted: &Option<String>, found: &str| wanted.as_deref().is_some_and(|text| text != found);
    if differs(&wanted.reason, found.reason) || differs(&wanted.status, found.status) {
        return Ok(None);
    }
    let Some(pattern) = &wanted.message else { return Ok(Some(Captured::new())) };
    let pattern = regexp::compile_bytes(pattern, Limits::default())
        .map_err(|error| format!("cannot compile message regex: {error}"))?;
    let Some(groups) = pattern.captures(found.message.as_bytes()) else { return Ok(None) };
    let named = pattern.capture_names().zip(groups.iter()).skip(1).map(|(name, group)| {
        let text = group.map(|group| String::from_utf8_lossy(group.as_bytes()).into_owned());
        (name.unwrap_or_default().to_owned(), text.unwrap_or_default())
    });
    Ok(Some(named.collect()))
}
