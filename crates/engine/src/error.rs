//! What goes wrong between a controller and the API server.
//!
//! `Display` shows one layer: what was attempted, or what went wrong. [`Error::chain`] shows all layers, outermost
//! first, as conditions, events and logs do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use transom_object::{GroupVersionKind, error_chain};

/// The result of an operation that a controller attempts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of another library or crate.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused the request; the fields of its Status.
    #[error("{message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason.
        reason: String,
        /// The human-readable reason.
        message: String,
    },
    /// The request could not be sent, or the response did not arrive. The texts of such errors contain those of their
    /// sources, so the error is not a source itself.
    #[error("{0}")]
    Transport(BoxError),
    /// The response arrived and is not what the API promises.
    #[error("{what}")]
    Unreadable {
        /// What could not be read.
        what: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The API server does not serve the kind.
    #[error("no matches for kind {:?} in version {:?}", .0.kind, .0.api_version())]
    UnknownKind(GroupVersionKind),
    /// The watch of a kind does not work.
    #[error(transparent)]
    Watch(Arc<Error>),
    /// The watch of a kind was stopped.
    #[error("the watch was stopped")]
    WatchStopped,
    /// Another process may write by now: this one no longer holds the shard of its run, or never did.
    #[error("this process does not hold the Lease that it would write by")]
    NotHeld,
    /// The objects or the settings themselves are wrong: a retry fails again until they change.
    #[error(transparent)]
    Permanent(BoxError),
    /// The objects are not as the controller needs them, and may be later.
    #[error(transparent)]
    Domain(BoxError),
    /// A server of another kind than the API server is overloaded, and named the time after which it may be asked again.
    /// The text is that of the cause, so the cause is not a source itself.
    #[error("{cause}")]
    Deferred {
        /// What went wrong.
        cause: BoxError,
        /// The time that the server named.
        retry_after: Duration,
    },
    /// What was attempted when another error occurred.
    #[error("{context}")]
    During {
        /// What was attempted.
        context: String,
        /// What went wrong.
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    /// The objects or the settings themselves are wrong: a retry fails again until they change.
    pub fn permanent(cause: impl Into<BoxError>) -> Self {
        Self::Permanent(cause.into())
    }

    /// The objects are not as the controller needs them, and may be later.
    pub fn domain(cause: impl Into<BoxError>) -> Self {
        Self::Domain(cause.into())
    }

    /// A server is overloaded, and named the time after which it may be asked again.
    pub fn deferred(cause: impl Into<BoxError>, retry_after: Duration) -> Self {
        Self::Deferred { cause: cause.into(), retry_after }
    }

    /// The request could not be sent, or the response did not arrive.
    pub fn transport(cause: impl Into<BoxError>) -> Self {
        Self::Transport(cause.into())
    }

    /// The response is not what the API promises.
    pub fn unreadable(what: impl Into<String>, cause: impl Into<BoxError>) -> Self {
        Self::Unreadable { what: what.into(), source: cause.into() }
    }

    /// The error and its causes, outermost first: `cannot bind claim: cannot update claim: conflict`.
    pub fn chain(&self) -> Chain<'_> {
        Chain(self)
    }

    fn root(&self) -> &Self {
        match self {
            Self::During { source, .. } => source.root(),
            other => other,
        }
    }

    /// The code and the reason with which the server refused.
    pub fn refusal(&self) -> Option<(u16, &str)> {
        match self.root() {
            Self::Refused { code, reason, .. } => Some((*code, reason)),
            _ => None,
        }
    }

    /// The message with which the server refused, without what was attempted.
    pub fn answer(&self) -> Option<&str> {
        match self.root() {
            Self::Refused { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether a retry fails again until the objects or the rights are changed.
    pub fn is_permanent(&self) -> bool {
        matches!(self.root(), Self::Permanent(_)) || self.is_invalid() || self.is_forbidden()
    }

    /// The time before which the operation is not to be attempted again, if a server named one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.root() {
            Self::Deferred { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 404)
    }

    /// Whether another client changed the object first. An object that exists already has the same code and another
    /// meaning.
    pub fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|(code, reason)| code == 409 && reason != "AlreadyExists")
            || self.is_not_held()
    }

    /// Whether another process may write by now. It counts as a conflict, which is not reported: that process does the
    /// same work.
    pub fn is_not_held(&self) -> bool {
        matches!(self.root(), Self::NotHeld)
    }

    /// Whether an object of the name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.refusal().is_some_and(|(code, reason)| code == 409 && reason == "AlreadyExists")
    }

    /// Whether the server found the object invalid.
    pub fn is_invalid(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 422)
    }

    /// Whether the request has more bytes than the server accepts.
    pub fn is_too_large(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 413)
    }

    /// Whether the controller lacks a right.
    pub fn is_forbidden(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 403)
    }

    /// Whether the server could not be reached or was busy: what it knew before, it still knows.
    pub fn is_interruption(&self) -> bool {
        let busy = |(code, _): (u16, &str)| [429, 503, 504].contains(&code);
        matches!(self.root(), Self::Transport(_)) || self.refusal().is_some_and(busy)
    }

    /// Whether the server does not serve the kind.
    pub fn is_unknown_kind(&self) -> bool {
        matches!(self.root(), Self::UnknownKind(_))
    }
}

/// Shows an error and its causes.
pub struct Chain<'a>(&'a Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_chain::chain(self.0))
    }
}

/// Adds what was attempted to an error.
pub trait ErrorContext<T> {
    /// The same result; an error says what was attempted first.
    fn context(self, attempted: impl fmt::Display) -> Result<T>;

    /// The same result; an error has the reason of the event that reports it.
    fn with_event_reason(self, reason: &'static str) -> Result<T, ReportedError>;
}

impl<T> ErrorContext<T> for Result<T> {
    fn context(self, attempted: impl fmt::Display) -> Result<T> {
        self.map_err(|source| Error::During { context: attempted.to_string(), source: Box::new(source) })
    }

    fn with_event_reason(self, reason: &'static str) -> Result<T, ReportedError> {
        self.map_err(|error| ReportedError { reason, error })
    }
}

/// An error that users see as an event, with the event's reason.
#[derive(Debug)]
pub struct ReportedError {
    /// The reason of the event.
    pub reason: &'static str,
    /// What went wrong.
    pub error: Error,
}

/// What was found; nothing if the object does not exist.
pub fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

/// What was found; nothing if the kind is not served, as then no object of it exists.
pub fn existing<T>(result: Result<Option<T>>) -> Result<Option<T>> {
    match result {
        Err(e) if e.is_unknown_kind() => Ok(None),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, reason: &str) -> Error {
        Error::Refused { code, reason: reason.to_owned(), message: "no".to_owned() }
    }

    #[test]
    fn a_chain_reads_from_the_outside_and_keeps_its_meaning() {
        let error = Err::<(), _>(refused(409, "Conflict")).context("cannot update").context("cannot bind");
        let error = error.unwrap_err();
        assert_eq!(error.chain().to_string(), "cannot bind: cannot update: no");
        assert!(error.is_conflict() && !error.is_invalid());
    }

    #[test]
    fn no_layer_repeats_its_cause() {
        let odd = || Error::unreadable("cannot read the list", "line 3");
        let error = Err::<(), _>(Error::Watch(Arc::new(odd()))).context("cannot start").unwrap_err();
        assert_eq!(error.chain().to_string(), "cannot start: cannot read the list: line 3");
        let mut layers = Vec::new();
        let mut next: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = next {
            layers.push(error.to_string());
            next = error.source();
        }
        assert_eq!(layers, ["cannot start", "cannot read the list", "line 3"]);
    }

    #[test]
    fn conflicts_differ_from_objects_that_exist_already() {
        assert!(refused(409, "").is_conflict() && refused(409, "Usage").is_conflict());
        assert!(
            !refused(409, "AlreadyExists").is_conflict() && refused(409, "AlreadyExists").is_already_exists()
        );
    }

    #[test]
    fn the_time_that_a_server_named_is_found_below_what_was_attempted() {
        let busy = || Error::deferred("too many requests", Duration::from_secs(7));
        let error = Err::<(), _>(busy()).context("cannot pull").unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(error.chain().to_string(), "cannot pull: too many requests");
        assert!(!error.is_permanent() && Error::domain("no").retry_after().is_none());
    }

    #[test]
    fn only_a_missing_object_is_not_an_error() {
        assert!(found::<()>(Err(refused(404, "NotFound"))).unwrap().is_none());
        assert!(found::<()>(Err(refused(403, "Forbidden"))).unwrap_err().is_forbidden());
    }
}
