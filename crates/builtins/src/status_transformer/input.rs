//! The input: hooks, each with what must match and what is done then.

use serde::Deserialize;

use crate::named::{OneOf, names};

names! {
    /// How many of the resources and conditions must match.
    MatcherType:
        "AllResourcesMatchAllConditions",
        "AllResourcesMatchAnyCondition",
        "AnyResourceMatchesAllConditions",
        "AnyResourceMatchesAnyCondition";
    /// Who a condition or event is for.
    Targets: "Composite", "CompositeAndClaim";
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Input {
    pub status_condition_hooks: Vec<Hook>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Hook {
    pub matchers: Vec<Matcher>,
    pub set_conditions: Vec<SetCondition>,
    pub create_events: Vec<CreateEvent>,
}

/// Which resources must have which conditions.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Matcher {
    #[serde(rename = "name")]
    _name: String,
    pub r#type: OneOf<MatcherType>,
    pub resources: Vec<ResourceMatcher>,
    pub conditions: Vec<ConditionMatcher>,
    pub include_composite_as_resource: bool,
    pub include_extra_resources: bool,
}

/// A pattern of resources' names.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceMatcher {
    pub name: String,
}

/// What a condition must be. The message is a pattern that may capture.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ConditionMatcher {
    pub r#type: String,
    pub status: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SetCondition {
    pub target: OneOf<Targets>,
    pub force: bool,
    pub condition: Condition,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    pub r#type: String,
    pub status: String,
    pub reason: String,
    pub message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CreateEvent {
    pub target: OneOf<Targets>,
    pub event: Event,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub r#type: Option<String>,
    pub reason: Option<String>,
    pub message: String,
}
