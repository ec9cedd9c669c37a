//! Events: the type of a `v1` Event.

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Information.
    Normal,
    /// A problem, or the sign of one.
    Warning,
}

impl EventType {
    /// As the field `type` of an Event has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
