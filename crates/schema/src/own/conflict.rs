//! Why an apply is refused, worded as Kubernetes words it.

use super::element::Path;
use super::managers::{ManagerId, Operation};
use super::wording::quote;
use std::collections::BTreeMap;
use std::fmt;
use transom_object::Status;
use transom_object::status::{Cause, Details};

/// A field the applied configuration would change although another manager owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager.
    pub manager: ManagerId,
    /// When the other manager wrote it, if the message includes it.
    pub at: Option<String>,
    /// The field.
    pub path: Path,
}

/// Why an apply failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409: other managers own fields with other values, and the apply was not forced.
    Conflicts(Vec<Conflict>),
    /// 400: the configuration can not be applied here at all.
    Invalid(String),
    /// 500 without a reason: values that do not fit their schema, or can not be converted.
    Failed(String),
}

impl ApplyError {
    /// The response that reports it.
    pub fn to_status(&self) -> Status {
        match self {
            Self::Conflicts(conflicts) => {
                let causes = conflicts.iter().map(Conflict::to_cause).collect();
                Status::new(409, "Conflict", self.to_string())
                    .with_details(Details { causes, ..Details::default() })
            }
            Self::Invalid(message) => Status::bad_request(message),
            Self::Failed(message) => Status::new(500, "", message),
        }
    }
}

impl Conflict {
    fn to_cause(&self) -> Cause {
        Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", self.describe_manager()),
            field: self.path.to_string(),
        }
    }

    fn describe_manager(&self) -> String {
        let mut out = quote(&self.manager.manager);
        if !self.manager.subresource.is_empty() {
            out = format!("{out} with subresource {}", quote(&self.manager.subresource));
        }
        if self.manager.operation == Operation::Update {
            out = format!("{out} using {}", self.manager.api_version);
            if let Some(at) = &self.at {
                out = format!("{out} at {at}");
            }
        }
        out
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) | Self::Failed(message) => f.write_str(message),
            Self::Conflicts(conflicts) => match conflicts.as_slice() {
                [one] => {
                    write!(
                        f,
                        "Apply failed with 1 conflict: conflict with {}: {}",
                        one.describe_manager(),
                        one.path
                    )
                }
                all => {
                    let mut by_manager: BTreeMap<String, Vec<&Conflict>> = BTreeMap::new();
                    for conflict in all {
                        by_manager.entry(conflict.manager.identifier()).or_default().push(conflict);
                    }
                    write!(f, "Apply failed with {} conflicts: ", all.len())?;
                    for (i, conflicts) in by_manager.values().enumerate() {
                        let separator = if i == 0 { "" } else { "\n" };
                        let manager = conflicts.first().map(|c| c.describe_manager()).unwrap_or_default();
                        write!(f, "{separator}conflicts with {manager}:")?;
                        conflicts.iter().try_for_each(|c| write!(f, "\n- {}", c.path))?;
                    }
                    Ok(())
                }
            },
        }
    }
}

impl std::error::Error for ApplyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(manager: &str, operation: Operation, path: &[&str]) -> Conflict {
        let id = ManagerId {
            manager: manager.into(),
            operation,
            api_version: "v1".into(),
            subresource: String::new(),
        };
        Conflict { manager: id, at: None, path: Path::of(path) }
    }

    #[test]
    fn one_conflict_reads_as_a_sentence() {
        let mut c = conflict("foo", Operation::Update, &["spec", "replicas"]);
        c.manager.subresource = "scale".into();
        let status = ApplyError::Conflicts(vec![c]).to_status();
        assert_eq!(
            status.message,
            "Apply failed with 1 conflict: conflict with \"foo\" with subresource \"scale\" using v1: .spec.replicas"
        );
        assert_eq!((status.code, &*status.reason), (409, "Conflict"));
        let cause = &status.details.unwrap().causes[0];
        assert_eq!(cause.message, "conflict with \"foo\" with subresource \"scale\" using v1");
        assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldManagerConflict", ".spec.replicas"));
    }

    #[test]
    fn many_conflicts_are_grouped_by_manager() {
        let all = vec![
            conflict("b", Operation::Apply, &["spec", "a"]),
            conflict("a", Operation::Apply, &["spec", "x"]),
            conflict("b", Operation::Apply, &["spec", "b"]),
        ];
        assert_eq!(
            ApplyError::Conflicts(all).to_string(),
            "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.x\nconflicts with \"b\":\n- .spec.a\n- .spec.b"
        );
    }
}
