//! Audit policies (`audit.k8s.io/v1`): which requests are recorded, how much of them, and the file that events
//! are written to. Policies and events are pure.
//!
//! The first rule that matches a request decides; a request that no rule matches is not recorded. Of Secrets,
//! TokenReviews and requests for tokens only the metadata is recorded, with any policy.

#![warn(missing_docs)]

mod event;
mod file;
mod policy;

pub use event::{Event, ObjectReference};
pub use file::LogFile;
pub use policy::{Decision, Policy, PolicyError, Request};

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who did what, when, and with which result.
    Metadata,
    /// The same, and the object that was sent.
    Request,
    /// The same, and the object that was answered.
    RequestResponse,
}

impl Level {
    const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// As policies and events spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// When an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As soon as the user is known.
    RequestReceived,
    /// When a watch begins to answer.
    ResponseStarted,
    /// When the answer is complete.
    ResponseComplete,
}

impl Stage {
    const ALL: [Self; 3] = [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete];

    /// As policies and events spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
        }
    }
}
