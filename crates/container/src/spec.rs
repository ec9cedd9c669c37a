//! What is run in a container, and how.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// What the container is called, for messages and as its host name.
    pub name: String,
    /// The root file system. Containers read it only.
    pub root: PathBuf,
    /// The program and its arguments.
    pub args: Vec<String>,
    /// Variables, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The directory that the program starts in.
    pub cwd: String,
    /// The port, on loopback inside of the container, that connections are made to.
    pub port: u16,
    /// What the container may use.
    pub limits: Limits,
}

/// What a container may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, in bytes. Where cgroups cannot be used, of each process.
    pub memory_bytes: u64,
    /// Thousandths of a processor. Only where cgroups can be used.
    pub cpu_millis: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Files below `/tmp`, in bytes.
    pub tmp_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 512 << 20, cpu_millis: 2000, processes: 512, tmp_bytes: 64 << 20 }
    }
}

/// Open files of a process in a container.
pub(crate) const OPEN_FILES_MAX: u64 = 4096;

/// Everything that the processes of a container need to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) spec: ContainerSpec,
    /// Unique on this machine: the name of its cgroups, and of its state in an OCI runtime.
    pub(crate) id: String,
    /// Whether users get a namespace of their own: this process may not make the others without it.
    pub(crate) user_namespace: bool,
    /// The user and group that the program runs as. In a user namespace, 0 stands for the user of this process.
    pub(crate) user: u32,
    /// Whether the OCI runtime limits the container by cgroups. Otherwise its processes are limited, each by itself.
    pub(crate) cgroups: bool,
    /// The OCI runtime that runs the container; without one, namespaces alone.
    pub(crate) oci_runtime: Option<PathBuf>,
    /// The directory with this plan, and with the bundle for an OCI runtime.
    pub(crate) folder: PathBuf,
}

impl Plan {
    /// The file in a container's directory.
    pub(crate) const FILE: &str = "plan.json";

    /// The file that the OCI runtime makes when the container's program runs.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// Where the OCI runtime keeps its state.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.join("state")
    }
}
