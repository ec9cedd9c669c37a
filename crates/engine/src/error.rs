//! What goes wrong between a controller and the API server.

use std::fmt;
use transom_object::GroupVersionKind;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation. Its text is the chain of what was attempted, outermost first, as conditions and events show it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused.
    #[error("{message}")]
    Refused { code: u16, reason: String, message: String },
    /// There was no answer, or none that could be understood.
    #[error("{0}")]
    Transport(String),
    #[error("no matches for kind {:?} in version {:?}", .0.kind, .0.api_version())]
    UnknownKind(GroupVersionKind),
    /// Something about the objects themselves, in words for users.
    #[error("{0}")]
    Unfit(String),
    #[error("{context}: {source}")]
    During {
        context: String,
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    pub fn unfit(message: impl Into<String>) -> Self {
        Self::Unfit(message.into())
    }

    fn root(&self) -> &Self {
        match self {
            Self::During { source, .. } => source.root(),
            other => other,
        }
    }

    fn refusal(&self) -> Option<(u16, &str)> {
        match self.root() {
            Self::Refused { code, reason, .. } => Some((*code, reason)),
            _ => None,
        }
    }

    /// What the server answered, without what was attempted.
    pub fn answer(&self) -> Option<&str> {
        match self.root() {
            Self::Refused { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether trying again cannot help until the objects or the rights are changed.
    pub fn is_verdict(&self) -> bool {
        matches!(self.root(), Self::Unfit(_)) || self.is_invalid() || self.is_forbidden()
    }

    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 404)
    }

    /// Whether someone else was faster. Two other refusals share the code but not the meaning.
    pub fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|(code, reason)| code == 409 && reason != "AlreadyExists")
    }

    /// Whether a usage protects the object from being deleted.
    pub fn is_in_use(&self) -> bool {
        let in_use = |message: &str| message.contains("This resource is in-use by ");
        matches!(self.root(), Self::Refused { code: 409, message, .. } if in_use(message))
    }

    pub fn is_already_exists(&self) -> bool {
        self.refusal().is_some_and(|(code, reason)| code == 409 && reason == "AlreadyExists")
    }

    pub fn is_invalid(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 422)
    }

    /// Whether the request has more bytes than the server takes.
    pub fn is_too_large(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 413)
    }

    pub fn is_forbidden(&self) -> bool {
        self.refusal().is_some_and(|(code, _)| code == 403)
    }

    pub fn is_unknown_kind(&self) -> bool {
        matches!(self.root(), Self::UnknownKind(_))
    }
}

/// Says what was attempted.
pub trait ErrorContext<T> {
    fn context(self, context: impl fmt::Display) -> Result<T>;
}

impl<T> ErrorContext<T> for Result<T> {
    fn context(self, context: impl fmt::Display) -> Result<T> {
        self.map_err(|source| Error::During { context: context.to_string(), source: Box::new(source) })
    }
}

/// An object that is gone is as good as none.
pub fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Of a kind that is not served nothing exists.
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
        let error = Err::<(), _>(refused(409, "Conflict"))
            .context("cannot update")
            .context("cannot bind")
            .unwrap_err();
        assert_eq!(error.to_string(), "cannot bind: cannot update: no");
        assert!(error.is_conflict() && !error.is_invalid());
    }

    #[test]
    fn conflicts_are_told_from_what_exists_already() {
        assert!(refused(409, "").is_conflict() && refused(409, "Usage").is_conflict());
        assert!(
            !refused(409, "AlreadyExists").is_conflict() && refused(409, "AlreadyExists").is_already_exists()
        );
    }

    #[test]
    fn only_objects_that_are_gone_are_as_good_as_none() {
        assert!(found::<()>(Err(refused(404, "NotFound"))).unwrap().is_none());
        assert!(found::<()>(Err(refused(403, "Forbidden"))).unwrap_err().is_forbidden());
    }
}
