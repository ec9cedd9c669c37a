//! What the program of an image may use, with Crossplane's defaults.

use std::time::Duration;
use transom_container::Limits;
use transom_object::quantity::Quantity;
use transom_object::time::parse_duration;
use transom_xapi::inline::{ContainerFunction, DEFAULT_CPU, DEFAULT_MEMORY, DEFAULT_TIMEOUT};
use transom_xapi::package::PullPolicy;

/// Processes and threads of a function.
const PROCESSES_MAX: u64 = 512;
/// Files below `/tmp`, in bytes.
const TMP_BYTES_MAX: u64 = 64 << 20;
/// The longest timeout: a reconcile takes no longer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// How the program of an image is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// When the image is pulled.
    pub policy: PullPolicy,
    /// How long a call may take.
    pub timeout: Duration,
    /// Whether the program has the network of its runner.
    pub host_network: bool,
    /// What it may use.
    pub limits: Limits,
}

/// A setting of a function that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("container.{field}: {problem}")]
pub struct SettingsError {
    /// The field, below `container`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl RunSettings {
    /// The settings of a function in a Composition.
    pub fn of(function: &ContainerFunction) -> Result<Self, SettingsError> {
        let policy = function.image_pull_policy.as_deref().unwrap_or_default();
        let cpu = function.limit("cpu").unwrap_or(DEFAULT_CPU);
        let memory = function.limit("memory").unwrap_or(DEFAULT_MEMORY);
        Ok(Self {
            policy: PullPolicy::parse(policy).map_err(|e| wrong("imagePullPolicy", e.to_string()))?,
            timeout: timeout(function.timeout.as_deref()).map_err(|e| wrong("timeout", e))?,
            host_network: function.uses_runner_network(),
            limits: limits(cpu, memory)
                .map_err(|(name, problem)| wrong(&format!("resources.limits.{name}"), problem))?,
        })
    }
}

fn wrong(field: &str, problem: String) -> SettingsError {
    SettingsError { field: field.to_owned(), problem }
}

/// A timeout as Go writes it, or the default.
pub(crate) fn timeout(text: Option<&str>) -> Result<Duration, String> {
    let text = text.filter(|text| !text.is_empty()).unwrap_or(DEFAULT_TIMEOUT);
    let nanos = parse_duration(text).map_err(|_| format!("{text:?} is not a duration; write it like 20s"))?;
    let timeout = u64::try_from(nanos).map(Duration::from_nanos).unwrap_or_default();
    if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
        return Err(format!("{text} is not between 0 and {} s", LONGEST_TIMEOUT.as_secs()));
    }
    Ok(timeout)
}

/// Limits from quantities of processors and memory. `Err` is the name of the limit, and what is wrong with it.
pub(crate) fn limits(cpu: &str, memory: &str) -> Result<Limits, (&'static str, String)> {
    let wrong = |text: &str| format!("{text:?} is not a positive quantity");
    Ok(Limits {
        cpu_millis: positive(cpu, Quantity::milli_value).ok_or_else(|| ("cpu", wrong(cpu)))?,
        memory_bytes: positive(memory, Quantity::value).ok_or_else(|| ("memory", wrong(memory)))?,
        processes: PROCESSES_MAX,
        tmp_bytes: TMP_BYTES_MAX,
    })
}

fn positive(text: &str, number: fn(&Quantity) -> i64) -> Option<u64> {
    let quantity = Quantity::parse(text).ok()?;
    u64::try_from(number(&quantity)).ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(function: Value) -> Result<RunSettings, SettingsError> {
        RunSettings::of(&serde_json::from_value(function).unwrap())
    }

    #[test]
    fn the_defaults_are_those_of_crossplane() {
        let settings = of(json!({"image": "i"})).unwrap();
        assert_eq!(settings.policy, PullPolicy::IfNotPresent);
        assert_eq!(settings.timeout, Duration::from_secs(20));
        assert!(!settings.host_network);
        assert_eq!((settings.limits.cpu_millis, settings.limits.memory_bytes), (100, 128 << 20));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (function, words) in [
            (json!({"timeout": "soon"}), "container.timeout: \"soon\" is not a duration"),
            (json!({"timeout": "0s"}), "container.timeout: 0s is not between"),
            (json!({"timeout": "20m"}), "container.timeout: 20m is not between"),
            (json!({"imagePullPolicy": "Often"}), "container.imagePullPolicy: \"Often\""),
            (json!({"resources": {"limits": {"cpu": "none"}}}), "container.resources.limits.cpu: \"none\""),
            (json!({"resources": {"limits": {"memory": 0}}}), "container.resources.limits.memory: \"0\""),
        ] {
            let error = of(function).unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
