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
    /// The port, on loopback inside of the container, that connections are made to. A container without one counts as running
    /// when its program has run for a moment.
    pub port: Option<u16>,
    /// The network that it sees.
    #[serde(default)]
    pub network: Network,
    /// Files and folders of this machine that it sees as well.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// What the container may use.
    pub limits: Limits,
}

/// The network that a container sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// A network of its own, with only the loopback interface.
    #[default]
    None,
    /// That of this machine.
    Host,
}

/// A file or folder of this machine that a container reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// On this machine. The user of the container must be able to read it.
    pub source: PathBuf,
    /// In the container: an absolute path. It is made if the image does not have it.
    pub target: String,
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

/// Open files of a process in a container: of a server, and of a program that runs once, which is Crossplane's.
const OPEN_FILES_MAX: u64 = 4096;
const OPEN_FILES_ONCE_MAX: u64 = 1024;

/// What a container may keep in shared memory, in bytes.
pub(crate) const SHARED_MEMORY_BYTES: u64 = 16 << 20;

/// The parts of `/proc` that are about the machine: a container does not see them.
pub(crate) const MASKED_PATHS: [&str; 9] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
];

/// The parts of `/proc` that configure the machine: a container only reads them.
pub(crate) const READ_ONLY_PATHS: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

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
    /// The OCI runtime that runs the container; without one, it runs in namespaces.
    pub(crate) oci_runtime: Option<PathBuf>,
    /// The directory with this plan, and with the bundle for an OCI runtime.
    pub(crate) folder: PathBuf,
    /// The cgroups that limit a container that does not run once, made by this process. None where they cannot be used: its
    /// processes are limited, each by itself.
    #[serde(default)]
    pub(crate) counted_by: Vec<PathBuf>,
    /// For a container that runs once and is attached to pipes.
    #[serde(default)]
    pub(crate) once: Option<Once>,
}

/// What is different about a container that runs once: its standard input comes over the control socket, its program is
/// restricted to some system calls, and its limits are on cgroups that this process makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Once {
    /// Its cgroups. None where they cannot be used: its processes are limited, each by itself.
    pub(crate) cgroups: Vec<PathBuf>,
}

impl Plan {
    /// The file in a container's directory.
    pub(crate) const FILE: &str = "plan.json";

    /// The file that the OCI runtime makes when the container's program runs.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// The cgroups that limit the container, made by this process.
    pub(crate) fn own_cgroups(&self) -> &[PathBuf] {
        self.once.as_ref().map_or(&self.counted_by, |once| &once.cgroups)
    }

    /// How many files each process may have open.
    pub(crate) fn open_files_max(&self) -> u64 {
        if self.once.is_some() { OPEN_FILES_ONCE_MAX } else { OPEN_FILES_MAX }
    }

    /// Where the OCI runtime keeps its state.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.join("state")
    }
}
