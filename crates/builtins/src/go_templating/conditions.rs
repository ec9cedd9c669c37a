//! Status conditions: those a template reads, and those it sets.

use std::borrow::Cow;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value as Json;
use transom_function::{RunFunctionResponse, Status, Target};
use transom_gotemplate::{Form, Struct, Value};
use transom_object::json::kind_of;

/// Types only the control plane sets.
const RESERVED: [&str; 4] = ["Ready", "Synced", "Healthy", "UpToDate"];

/// The fields' names in JSON, and whether they are left out when empty.
const TAGS: &[(&str, bool)] = &[
    ("type", false),
    ("status", false),
    ("lastTransitionTime", false),
    ("reason", false),
    ("message", true),
    ("observedGeneration", true),
];

/// A condition of a resource; the target is read only where a template sets conditions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    r#type: Option<String>,
    status: Option<String>,
    last_transition_time: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    observed_generation: Option<i64>,
    target: Option<String>,
}

impl Condition {
    /// Reads a list of conditions, in which null is an empty one.
    fn list(json: &Json) -> Result<Vec<Self>, String> {
        let list = Option::<Vec<Option<Self>>>::deserialize(json).map_err(|problem| problem.to_string())?;
        let list: Vec<Self> = list.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect();
        for time in list.iter().filter_map(|condition| condition.last_transition_time.as_deref()) {
            transom_object::time::parse(time).map_err(|e| e.to_string())?;
        }
        Ok(list)
    }

    /// The conditions in a resource's status; `None` when it cannot be read as one.
    pub(super) fn list_in_status(status: &Value) -> Option<Vec<Self>> {
        match serde_json::Value::try_from(status).ok()? {
            Json::Null => Some(Vec::new()),
            Json::Object(mut fields) => Self::list(&fields.remove("conditions").unwrap_or_default()).ok(),
            _ => None,
        }
    }

    /// The condition of a type, or one of which nothing is known.
    pub(super) fn of_type(conditions: Vec<Self>, kind: &str) -> Self {
        let found =
            conditions.into_iter().find(|condition| condition.r#type.as_deref().unwrap_or("") == kind);
        let unknown =
            || Self { r#type: Some(kind.to_owned()), status: Some("Unknown".to_owned()), ..Self::default() };
        found.unwrap_or_else(unknown)
    }

    /// The condition as templates see it: a struct with fields such as `.Status` and `.LastTransitionTime`.
    pub(super) fn into_value(self) -> Value {
        let text = |text: Option<String>| Value::str(text.unwrap_or_default());
        let time = Value::embedded_time("v1.Time", self.last_transition_time.as_deref());
        let fields = vec![
            ("Type", text(self.r#type)),
            ("Status", text(self.status)),
            ("LastTransitionTime", time.unwrap_or(Value::Nil)),
            ("Reason", text(self.reason)),
            ("Message", text(self.message)),
            ("ObservedGeneration", Value::int64(self.observed_generation.unwrap_or_default())),
        ];
        Value::Struct(Rc::new(Struct {
            type_name: Cow::Borrowed("v2.Condition"),
            fields,
            form: Form::Tagged(TAGS),
        }))
    }
}

/// Sets the conditions a `ClaimConditions` document lists, up to the first that is reserved.
pub(super) fn set(response: &mut RunFunctionResponse, conditions: &Json) -> Result<(), String> {
    let conditions = Condition::list(conditions).map_err(|problem| {
        let found = kind_of(conditions);
        let problem = match conditions {
            Json::Array(_) | Json::Null => problem,
            _ => format!("json: cannot unmarshal {found} into Go value of type []main.TargetedCondition"),
        };
        format!("cannot get Conditions from input: cannot unmarshal value from JSON: {problem}")
    })?;
    for condition in conditions {
        let kind = condition.r#type.unwrap_or_default();
        if RESERVED.contains(&kind.as_str()) {
            return Err(format!("cannot set ClaimCondition type: {kind} is a reserved Crossplane Condition"));
        }
        let status = match condition.status.as_deref() {
            Some("True") => Status::ConditionTrue,
            Some("False") => Status::ConditionFalse,
            _ => Status::ConditionUnknown,
        };
        let set = response.condition(kind, status, condition.reason.unwrap_or_default());
        set.message = condition.message.filter(|message| !message.is_empty());
        if condition.target.as_deref() == Some("CompositeAndClaim") {
            set.set_target(Target::CompositeAndClaim);
        }
    }
    Ok(())
}
