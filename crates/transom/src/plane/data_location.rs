//! The directories of a plane, and their removal when it does not start.

use super::args::DataArgs;
use crate::containers::logs::CONTAINERS;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use transom_console::Failure;

pub(crate) struct DataLocation {
    pub(crate) data_dir: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// The directories that this process created for its data, the innermost first.
    created: Vec<PathBuf>,
    in_memory: bool,
    /// The data directory of a plane in memory that was given none: removed when the plane stops.
    pub(crate) temporary: bool,
}

impl DataLocation {
    /// Finds the directories and creates those that are missing.
    pub(crate) fn resolve(args: &DataArgs) -> Result<Self, Failure> {
        let temporary = args.in_memory && args.data_dir.is_none();
        let (data_dir, created) = if temporary {
            let dir = create_temporary()?;
            (dir.clone(), vec![dir])
        } else {
            let dir = args.data_dir.clone().map_or_else(default_data_dir, Ok)?;
            let needed = !args.in_memory || args.kubeconfig.is_none();
            let created = if needed { create_private(&dir)? } else { Vec::new() };
            (dir, created)
        };
        let kubeconfig = args.kubeconfig.clone().unwrap_or_else(|| data_dir.join("kubeconfig"));
        let kubeconfig = std::path::absolute(&kubeconfig).unwrap_or(kubeconfig);
        Ok(Self { data_dir, kubeconfig, created, in_memory: args.in_memory, temporary })
    }

    /// The directory for what can be fetched again. Without one, a temporary directory, and packages are kept in memory.
    pub(crate) fn for_cache(cache_dir: Option<PathBuf>) -> Result<Self, Failure> {
        let in_memory = cache_dir.is_none();
        let history_window = std::time::Duration::ZERO;
        Self::resolve(&DataArgs { data_dir: cache_dir, in_memory, kubeconfig: None, history_window })
    }

    pub(super) fn in_memory(&self) -> bool {
        self.in_memory
    }

    pub(super) fn store_dir(&self) -> PathBuf {
        self.data_dir.join("store")
    }

    pub(super) fn pki_dir(&self) -> PathBuf {
        self.data_dir.join("pki")
    }

    /// Packages that were pulled, by digest.
    pub(super) fn packages_dir(&self) -> PathBuf {
        self.data_dir.join("xpkg")
    }

    /// The trust root of Sigstore, if there is a copy.
    pub(super) fn trust_root_file(&self) -> PathBuf {
        self.data_dir.join("sigstore").join("trusted_root.json")
    }

    /// Images, containers and logs of functions that run from their packages.
    pub(super) fn containers_dir(&self) -> PathBuf {
        self.data_dir.join(CONTAINERS)
    }

    /// Functions read templates from files below this directory only.
    pub(super) fn templates_dir(&self) -> PathBuf {
        self.data_dir.join("templates")
    }

    /// Whether this process created the data directory.
    pub(crate) fn is_new(&self) -> bool {
        !self.created.is_empty()
    }

    /// Removes the directories that this process created, with the content of the data directory. The caller must know
    /// that no other process has put data there.
    pub(crate) fn discard(&self) {
        let Some((data_dir, above)) = self.created.split_first() else { return };
        let removed = std::fs::remove_dir_all(data_dir);
        // Directories above it stay if they are no longer empty.
        let removed = removed.and_then(|()| above.iter().try_for_each(std::fs::remove_dir));
        if let Err(error) = removed {
            tracing::debug!(%error, dir = %data_dir.display(), "cannot remove a new data directory");
        }
    }
}

pub(crate) fn default_data_dir() -> Result<PathBuf, Failure> {
    let set = |key: &str| std::env::var_os(key).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("XDG_DATA_HOME") {
        return Ok(dir.join("transom"));
    }
    set("HOME")
        .map(|home| home.join(".local/share/transom"))
        .ok_or_else(|| Failure::new("no home directory to keep data in").remedy("pass --data-dir DIR"))
}

/// A new directory below the one for temporary files. Every user may create files there, so a directory that exists
/// already is never used.
fn create_temporary() -> Result<PathBuf, Failure> {
    let process = std::process::id();
    for attempt in 0..100 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let dir = std::env::temp_dir().join(format!("transom-{process}{suffix}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(cannot_create(&dir, &e)),
        }
    }
    Err(Failure::new("cannot find a name for a temporary directory").remedy("pass --data-dir DIR"))
}

/// Creates a directory that only its owner can enter. Returns the directories that did not exist before, the
/// innermost first.
fn create_private(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700);
    let above = dir.ancestors().skip(1);
    let missing: Vec<PathBuf> =
        above.take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).map(Path::to_owned).collect();
    if let Some(parent) = missing.first() {
        builder.recursive(true).create(parent).map_err(|e| cannot_create(dir, &e))?;
        builder.recursive(false);
    }
    match builder.create(dir) {
        Ok(()) => Ok(std::iter::once(dir.to_owned()).chain(missing).collect()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(Vec::new()),
        Err(e) => Err(cannot_create(dir, &e)),
    }
}

fn cannot_create(dir: &Path, e: &std::io::Error) -> Failure {
    Failure::new(format!("cannot create the data directory {}: {e}", dir.display()))
        .remedy("pass another one with --data-dir DIR")
}

/// Where cosign keeps the trust root of the public Sigstore: below `TUF_ROOT`, or in the home directory.
pub(crate) fn public_trust_root() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let root = folder("TUF_ROOT").or_else(|| folder("HOME").map(|home| home.join(".sigstore/root")))?;
    Some(root.join("tuf-repo-cdn.sigstore.dev/targets/trusted_root.json"))
}
