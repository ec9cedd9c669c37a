//! Runs unpacked images on this machine: isolated from its network, files and processes, limited, supervised. Linux only.
//!
//! | module | what it holds |
//! |---|---|
//! | `spec` | [`ContainerSpec`], [`Limits`]: what is run; and the plan that the processes of a container read |
//! | `engine` | [`EngineChoice`], [`Engine`]: an OCI runtime that is found on the machine, or namespaces without one |
//! | `bundle` | the `config.json` for an OCI runtime; pure |
//! | `workspace` | [`Workspace`]: the directories of a process, and the removal of what others left behind |
//! | `container` | one container: started, connected to, stopped |
//! | `once` | [`run_once`]: a container whose program reads its input, writes its output and ends |
//! | `cgroup`, `seccomp` | what containers may use, and the system calls that they may make |
//! | `remarks` | which limits a container reached, and that it did not end when asked to: for conditions |
//! | `control` | the socket between this process and the container's own, over which connections come |
//! | `supervisor` | [`Supervised`]: starts a container again when it ends |
//! | `logs` | [`LogFile`]: what a container prints, bounded |
//! | `shim` | what runs in the container's own processes before its program does |
//! | `crash_injection` | in debug builds: tests choose a step at which a process is killed |
//!
//! A container is a tree of three processes of this binary. The first makes the namespaces: its own network (with nothing
//! but loopback, unless it may use the machine's), mounts, processes, and users if it is not root. The second is process 1 of that process namespace: it
//! starts the container, makes connections inside of the network namespace and hands them out over the control socket. The
//! third, without an OCI runtime, is process 1 of another process namespace: it enters the image's root file system, gives
//! up all privileges and becomes the container's program.
//!
//! Guarantees: when this process ends, however it does, the control socket closes, the second process ends, and the kernel
//! kills everything in its namespace; mounts are in the namespaces and end with them. Directories and cgroups that stay
//! are removed by the next [`Workspace`].
//!
//! The crate must not know where images come from, or what their programs are for.

#![warn(missing_docs)]

#[cfg(target_os = "linux")]
mod bundle;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod control;
#[cfg(all(debug_assertions, target_os = "linux"))]
mod crash_injection;
mod engine;
mod logs;
#[cfg(target_os = "linux")]
mod once;
#[cfg(target_os = "linux")]
mod remarks;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
pub mod shim;
mod spec;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod workspace;

pub use engine::{Engine, EngineChoice, EngineChoiceError, EngineError};
pub use logs::{LogFile, LogReader};
#[cfg(target_os = "linux")]
pub use once::{OnceError, OnceLimits, OnceSettings, run_once};
pub use spec::{ContainerSpec, Limits, Mount, Network};
#[cfg(target_os = "linux")]
pub use supervisor::{Settings, Standing, Supervised};
#[cfg(target_os = "linux")]
pub use workspace::{Workspace, WorkspaceError};

/// Says that a step of a point is done. In debug builds a test may have chosen to kill the process at it, see `crash_injection`;
/// otherwise this does nothing.
#[inline]
pub fn reached(point: &str, step: &str) {
    #[cfg(all(debug_assertions, target_os = "linux"))]
    crash_injection::reach(point, step);
    #[cfg(not(all(debug_assertions, target_os = "linux")))]
    let _ = (point, step);
}
