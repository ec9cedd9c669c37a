//! Durations on the command line, in Go's form, which users of Kubernetes write: `90s`, `1h30m`.

use std::time::Duration;

/// A text that is not a duration for a flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// It is not written as one.
    #[error("{0:?} is not a duration; write it like 90s, 5m or 1h30m")]
    Malformed(String),
    /// It is negative.
    #[error("a duration cannot be negative")]
    Negative,
}

/// Go's durations, which Kubernetes users write: `90s`, `5m`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration, DurationError> {
    let nanos =
        transom_object::time::parse_duration(text).map_err(|_| DurationError::Malformed(text.to_owned()))?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| DurationError::Negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_go_durations() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert!(duration("5 minutes").is_err());
        assert!(duration("-5s").is_err());
    }
}
