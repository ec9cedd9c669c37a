//! What runs containers: an OCI runtime that is found on the machine, or namespaces without one.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The OCI runtimes that are looked for, in this order.
const OCI_RUNTIMES: [&str; 3] = ["runc", "crun", "youki"];

/// What is to run containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The first OCI runtime that is found, else namespaces without one.
    #[default]
    Auto,
    /// The OCI runtime of this name.
    Named(String),
    /// The OCI runtime at this path.
    At(PathBuf),
    /// Namespaces without an OCI runtime.
    Chroot,
    /// Nothing: containers are not run.
    None,
}

/// A text that names no container runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a container runtime; use auto, {known}, chroot, none, or the path of an OCI runtime",
    known = OCI_RUNTIMES.join(", ")
)]
pub struct EngineChoiceError(pub String);

impl FromStr for EngineChoice {
    type Err = EngineChoiceError;

    fn from_str(text: &str) -> Result<Self, EngineChoiceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "chroot" => Ok(Self::Chroot),
            "none" => Ok(Self::None),
            name if OCI_RUNTIMES.contains(&name) => Ok(Self::Named(name.to_owned())),
            path if path.contains('/') => Ok(Self::At(path.into())),
            other => Err(EngineChoiceError(other.to_owned())),
        }
    }
}

/// What runs containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// This OCI runtime.
    Oci(PathBuf),
    /// Namespaces without an OCI runtime.
    Chroot,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oci(program) => {
                f.write_str(&program.file_name().unwrap_or(program.as_os_str()).to_string_lossy())
            }
            Self::Chroot => f.write_str("namespaces without an OCI runtime"),
        }
    }
}

/// Why containers cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// They are not requested.
    #[error("containers are not run, because --container-runtime is none; choose another one, such as auto")]
    Disabled,
    /// An OCI runtime is not installed.
    #[error(
        "there is no {0} on the PATH; install it (on Debian and Ubuntu: apt-get install {0}), or choose another \
         --container-runtime, such as chroot"
    )]
    NotFound(String),
    /// There is no program at a path.
    #[error("{} is not a program; --container-runtime takes the path of an OCI runtime", .0.display())]
    NotAProgram(PathBuf),
    /// The operating system is not Linux.
    #[error("containers run on Linux only; serve the function elsewhere and call it at its endpoint")]
    NotLinux,
}

impl EngineChoice {
    /// Whether namespaces without an OCI runtime are used if the OCI runtime does not work.
    pub fn may_fall_back(&self) -> bool {
        *self == Self::Auto
    }

    /// What runs containers here, given the `PATH`.
    pub fn find(&self, path: Option<&OsStr>) -> Result<Engine, EngineError> {
        if *self == Self::None {
            return Err(EngineError::Disabled);
        }
        if !cfg!(target_os = "linux") {
            return Err(EngineError::NotLinux);
        }
        match self {
            Self::None | Self::Chroot => Ok(Engine::Chroot),
            Self::Auto => {
                let found = OCI_RUNTIMES.iter().find_map(|name| look_up(name, path));
                Ok(found.map_or(Engine::Chroot, Engine::Oci))
            }
            Self::Named(name) => {
                look_up(name, path).map(Engine::Oci).ok_or_else(|| EngineError::NotFound(name.clone()))
            }
            Self::At(program) if is_program(program) => Ok(Engine::Oci(absolute(program))),
            Self::At(program) => Err(EngineError::NotAProgram(program.clone())),
        }
    }
}

/// The program of a name in the directories of the `PATH`, and in those of administrators, which users may not have there.
fn look_up(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let listed = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = listed.into_iter().chain(more).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| is_program(program)))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn choices_are_read() {
        for (text, choice) in [
            ("auto", EngineChoice::Auto),
            ("runc", EngineChoice::Named("runc".into())),
            ("chroot", EngineChoice::Chroot),
            ("none", EngineChoice::None),
            ("/opt/bin/my-runc", EngineChoice::At("/opt/bin/my-runc".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text}");
        }
        let error = "docker".parse::<EngineChoice>().unwrap_err().to_string();
        assert!(error.contains("use auto, runc, crun, youki, chroot, none"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_oci_runtime_is_found_by_name_and_else_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, full) = (dir.path().join("empty"), dir.path().join("full"));
        std::fs::create_dir(&empty).unwrap();
        std::fs::create_dir(&full).unwrap();
        let program = full.join("youki");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([&empty, &full]).unwrap();
        let named = EngineChoice::Named("youki".into());
        assert_eq!(named.find(Some(&path)), Ok(Engine::Oci(program.clone())));
        assert_eq!(EngineChoice::At(program.clone()).find(None), Ok(Engine::Oci(program)));
        let error = EngineChoice::Named("crux".into()).find(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("apt-get install crux") && error.contains("chroot"), "{error}");
        assert_eq!(EngineChoice::None.find(Some(&path)), Err(EngineError::Disabled));
        assert_eq!(EngineChoice::Chroot.find(None), Ok(Engine::Chroot));
    }
}
