//! The flags for functions that run from their packages.

use clap::Args;
#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use transom_container::Limits;
use transom_container::{Engine, EngineChoice, EngineError};
#[cfg(target_os = "linux")]
use transom_machine::{ContainerOptions, HostResources};
use transom_object::quantity::Quantity;
#[cfg(target_os = "linux")]
use transom_xfn::{Enforcement, Programs};

#[derive(Args, Clone)]
#[command(next_help_heading = "Functions and providers from packages")]
pub(crate) struct ContainerArgs {
    /// How functions and providers from packages are run: runc, crun, youki or the path of an OCI runtime; chroot: namespaces
    /// without an OCI runtime; auto: the first of these that is available; none: not at all
    #[arg(long, default_value = "auto", value_name = "NAME|PATH")]
    container_runtime: EngineChoice,

    /// Memory limit of a function from a package
    #[arg(long, default_value = "512Mi", value_parser = memory, value_name = "QUANTITY")]
    function_memory: u64,

    /// Memory limit of a provider from a package
    #[arg(long, default_value = "1Gi", value_parser = memory, value_name = "QUANTITY")]
    provider_memory: u64,

    /// CPU limit of a function or provider from a package, in processors
    #[arg(long, default_value = "2", value_parser = processors, value_name = "QUANTITY")]
    function_cpu: u64,

    /// Limit of processes and threads of a function or provider from a package
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    function_processes: u64,

    /// Run container functions even where their limits of memory and processors cannot be enforced
    #[arg(long)]
    accept_unenforced_limits: bool,
}

impl ContainerArgs {
    pub(super) fn engine(&self) -> Result<Engine, EngineError> {
        self.container_runtime.find(std::env::var_os("PATH").as_deref())
    }

    #[cfg(target_os = "linux")]
    pub(super) fn provider_memory(&self) -> u64 {
        self.provider_memory
    }

    /// How functions and providers from packages are run by an engine.
    #[cfg(target_os = "linux")]
    pub(super) fn containers(&self, engine: Engine) -> ContainerOptions {
        let limits = Limits {
            memory_bytes: self.function_memory,
            cpu_millis: self.function_cpu,
            processes: self.function_processes,
            ..Limits::default()
        };
        ContainerOptions { engine, may_fall_back: self.container_runtime.may_fall_back(), limits }
    }

    /// What runs the programs of images, once for every call.
    #[cfg(target_os = "linux")]
    pub(crate) fn programs(&self, place: HostResources) -> Arc<Programs> {
        let enforcement = match self.accept_unenforced_limits {
            true => Enforcement::Accepted,
            false => Enforcement::Required,
        };
        transom_machine::programs(place, self.engine(), self.container_runtime.may_fall_back(), enforcement)
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
