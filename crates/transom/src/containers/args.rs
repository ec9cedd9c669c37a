//! The flags for functions that run from their packages.

use clap::Args;
use transom_container::{Engine, EngineChoice, EngineError, Limits};
use transom_object::quantity::Quantity;

#[derive(Args, Clone)]
#[command(next_help_heading = "Functions from packages")]
pub(crate) struct ContainerArgs {
    /// What runs functions from their packages: an OCI runtime (runc, crun, youki, or its path); chroot for namespaces
    /// alone; auto for the first of these that is found; none
    #[arg(long, default_value = "auto", value_name = "NAME|PATH")]
    container_runtime: EngineChoice,

    /// The most memory that a function from a package may use
    #[arg(long, default_value = "512Mi", value_parser = memory, value_name = "QUANTITY")]
    function_memory: u64,

    /// The most processor time that a function from a package may use, in processors
    #[arg(long, default_value = "2", value_parser = processors, value_name = "QUANTITY")]
    function_cpu: u64,

    /// The most processes and threads that a function from a package may have
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    function_processes: u64,
}

impl ContainerArgs {
    pub(super) fn engine(&self) -> Result<Engine, EngineError> {
        self.container_runtime.find(std::env::var_os("PATH").as_deref())
    }

    #[cfg(target_os = "linux")]
    pub(super) fn may_fall_back(&self) -> bool {
        self.container_runtime.may_fall_back()
    }

    #[cfg(target_os = "linux")]
    pub(super) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.function_memory,
            cpu_millis: self.function_cpu,
            processes: self.function_processes,
            ..Limits::default()
        }
    }
}

fn memory(text: &str) -> Result<u64, String> {
    positive(text, Quantity::value)
        .ok_or_else(|| format!("{text:?} is not an amount of memory; write it like 512Mi"))
}

fn processors(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of processors; write it like 2 or 500m");
    positive(text, Quantity::milli_value).ok_or_else(wrong)
}

fn positive(text: &str, number: fn(&Quantity) -> i64) -> Option<u64> {
    let quantity = Quantity::parse(text).ok()?;
    u64::try_from(number(&quantity)).ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        assert_eq!(memory("512Mi"), Ok(512 << 20));
        assert_eq!(processors("500m"), Ok(500));
        assert_eq!(processors("2"), Ok(2000));
        for wrong in ["", "0", "-1", "much"] {
            assert!(memory(wrong).is_err() && processors(wrong).is_err(), "{wrong}");
        }
    }
}
