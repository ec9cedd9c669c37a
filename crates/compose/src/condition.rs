//! Conditions and events: what the composite resource, and sometimes its claim, is told.

pub use transom_object::EventType;
use transom_object::quote::quote;
use transom_xapi::Condition;

/// Who is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    #[default]
    Composite,
    CompositeAndClaim,
}

/// A condition that a function sets, or the control plane itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetedCondition {
    pub condition: Condition,
    pub target: Target,
}

impl From<Condition> for TargetedCondition {
    fn from(condition: Condition) -> Self {
        Self { condition, target: Target::Composite }
    }
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub r#type: EventType,
    pub reason: String,
    /// What the claim is told; the composite resource is told [`text`](Self::text).
    pub message: String,
    /// The step that says so.
    pub step: Option<String>,
    pub target: Target,
}

impl Event {
    /// The message for the composite resource: it names the step.
    pub fn text(&self) -> String {
        match &self.step {
            Some(step) => format!("Pipeline step {}: {}", quote(step), self.message),
            None => self.message.clone(),
        }
    }
}
