//! Conditions and events of a composite resource and, sometimes, of its claim.

pub use transom_object::EventType;
use transom_object::quote::quote;
use transom_xapi::Condition;

/// Which objects a condition or an event is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The composite resource.
    #[default]
    Composite,
    /// The composite resource and its claim.
    CompositeAndClaim,
}

/// A condition that a function sets, or the control plane itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetedCondition {
    /// The condition.
    pub condition: Condition,
    /// Which objects have it.
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
    /// Its type.
    pub r#type: EventType,
    /// A CamelCase reason.
    pub reason: String,
    /// The message without the step; see [`text`](Self::text).
    pub message: String,
    /// The step that returned it.
    pub step: Option<String>,
    /// Which objects it is recorded for.
    pub target: Target,
}

impl Event {
    /// An event of the control plane itself about the composite resource.
    pub fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, message)
    }

    /// A warning of the control plane itself about the composite resource.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, message)
    }

    fn new(r#type: EventType, reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Self { r#type, reason, message, step: None, target: Target::Composite }
    }

    /// The event as the claim gets it, without the step; `None` if it is not for the claim.
    pub(crate) fn for_claim(&self) -> Option<Self> {
        let is_for_claim = self.target == Target::CompositeAndClaim;
        is_for_claim.then(|| Self { step: None, ..self.clone() })
    }

    /// The message to record. It names the step, if there is one.
    pub fn text(&self) -> String {
        match &self.step {
            Some(step) => format!("Pipeline step {}: {}", quote(step), self.message),
            None => self.message.clone(),
        }
    }
}
