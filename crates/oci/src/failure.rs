//! How this crate makes errors. Messages name the reference, layer or file first; they never contain credentials,
//! tokens, or the query of an address (signed addresses are credentials).

use std::fmt::Display;
use transom_packages::{RegistryError, RegistryErrorKind};

/// An error of a kind, about a subject.
fn failure(kind: RegistryErrorKind, subject: impl Display, problem: impl Display) -> RegistryError {
    RegistryError { kind, message: format!("{subject}: {problem}"), retry_after: None }
}

/// There is no such thing.
pub(crate) fn not_found(subject: impl Display, problem: impl Display) -> RegistryError {
    failure(RegistryErrorKind::NotFound, subject, problem)
}

/// The credentials are missing or not accepted.
pub(crate) fn unauthorized(subject: impl Display, problem: impl Display) -> RegistryError {
    failure(RegistryErrorKind::Unauthorized, subject, problem)
}

/// Another attempt may succeed.
pub(crate) fn unavailable(subject: impl Display, problem: impl Display) -> RegistryError {
    failure(RegistryErrorKind::Unavailable, subject, problem)
}

/// The certificate of the registry is not trusted.
pub(crate) fn untrusted(subject: impl Display, problem: impl Display) -> RegistryError {
    failure(RegistryErrorKind::Untrusted, subject, problem)
}

/// The content is not what it must be.
pub(crate) fn invalid(subject: impl Display, problem: impl Display) -> RegistryError {
    failure(RegistryErrorKind::Invalid, subject, problem)
}

/// A file or folder that cannot be read or written.
pub(crate) fn file(path: &std::path::Path, action: &str, error: &std::io::Error) -> RegistryError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => RegistryErrorKind::NotFound,
        _ => RegistryErrorKind::Unavailable,
    };
    failure(kind, path.display(), format_args!("cannot {action}: {error}"))
}

/// All of an error's causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}

/// The innermost cause of an error, without the number that the system has for it.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => words[..1].to_lowercase() + &words[1..],
        None => text,
    }
}
