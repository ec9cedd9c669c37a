//! Where packages come from: registries over HTTPS, or folders and files mounted in their place, behind a cache in the
//! data directory.

use super::args::{ControllerArgs, PackageArgs};
use super::controllers::system_clock;
use super::data_location::DataLocation;
use super::trust;
use crate::xpkg::origin;
use std::path::Path;
use std::sync::Arc;
use transom_console::Failure;
use transom_controllers::{PackageSources, PullSecretError};
use transom_oci::ImageSource;
use transom_oci::cache::{Cache, Cached};
use transom_oci::credentials::{MachineConfig, from_secret};
use transom_oci::layer::LayerLimits;
use transom_oci::layout::LocalRegistry;
use transom_oci::mounts::Mounts;
use transom_oci::remote::{Proxies, RemoteOptions, RemoteRegistry};

/// The most bytes of packages in the cache.
const CACHE_BYTES: u64 = 1 << 30;
/// The file with certificate authorities that registries are verified by, besides those of the system.
const CA_BUNDLE_VARIABLE: &str = "CA_BUNDLE_PATH";

/// What the flags say about packages.
pub(crate) struct Packages {
    pub(super) sources: PackageSources,
    /// Where images of packages are read from.
    pub(super) images: Arc<dyn ImageSource>,
    /// What is to be installed from: the folders and files of `--packages`.
    pub(super) given: Vec<Arc<LocalRegistry>>,
}

/// The registries that a plane installs packages from. A plane in memory keeps no packages on disk.
pub(crate) async fn open(
    args: &PackageArgs,
    controllers: &ControllerArgs,
    location: &DataLocation,
) -> Result<Packages, Failure> {
    let mut mounts = Mounts::new();
    let mut given = Vec::new();
    for path in &args.packages {
        let local = open_local(path, "--packages").await?;
        mounts.add(None, local.clone());
        given.push(local);
    }
    for stand_in in &args.package_source {
        mounts.add(stand_in.prefix.as_deref(), open_local(&stand_in.path, "--package-source").await?);
    }
    let everything =
        !args.packages.is_empty() || args.package_source.iter().any(|source| source.prefix.is_none());
    if !everything {
        // Not the process id: in a pod it is always the same.
        let (_, jitter_seed) = system_clock();
        let mut options = RemoteOptions { jitter_seed, ..remote_options()? };
        options.plain_http_hosts = args.plain.plain_http.iter().cloned().collect();
        if let Some(timeout) = controllers.registry_timeout {
            (options.response_timeout, options.idle_timeout) = (timeout, timeout);
            options.connect_timeout = timeout;
        }
        mounts =
            mounts.over(Arc::new(RemoteRegistry::new(options).map_err(|e| Failure::new(e.to_string()))?));
    }
    let mounts = Arc::new(mounts);
    Ok(Packages { sources: sources(mounts.clone(), controllers, location).await?, images: mounts, given })
}

async fn sources(
    registry: Arc<Mounts>,
    controllers: &ControllerArgs,
    location: &DataLocation,
) -> Result<PackageSources, Failure> {
    let read_pull_secret = Arc::new(|data: &std::collections::BTreeMap<String, Vec<u8>>| {
        from_secret(|field| data.get(field).map(Vec::as_slice)).map_err(|e| PullSecretError(e.into()))
    });
    // Signatures are read from where images are, not from the cache.
    let verifier = trust::verifier(registry.clone(), controllers, location)?;
    if location.in_memory() {
        return Ok(PackageSources::new(registry, read_pull_secret, verifier));
    }
    let opened = Cache::open(&location.packages_dir(), CACHE_BYTES).await;
    let cache = opened.map_err(|e| Failure::new(format!("cannot open the cache of packages: {e}")))?;
    let registry = Arc::new(Cached::new(registry, Arc::new(cache)));
    Ok(PackageSources::new(registry, read_pull_secret, verifier))
}

async fn open_local(path: &Path, flag: &str) -> Result<Arc<LocalRegistry>, Failure> {
    let opened = LocalRegistry::open(path, LayerLimits::default()).await;
    opened.map(Arc::new).map_err(|e| {
        let remedy = "it must be a bundle, an OCI layout, or a folder of *.xpkg files";
        Failure::new(format!("{flag}: {e}")).remedy(remedy)
    })
}

/// Proxies, certificate authorities and Docker's configuration by the variables that the original reads.
fn remote_options() -> Result<RemoteOptions, Failure> {
    let variable = |upper: &str| {
        let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        value(upper).or_else(|| value(&upper.to_lowercase()))
    };
    let (http, https, except) = (variable("HTTP_PROXY"), variable("HTTPS_PROXY"), variable("NO_PROXY"));
    let proxies = Proxies::new(http.as_deref(), https.as_deref(), except.as_deref());
    let mut options = RemoteOptions {
        proxies: proxies.map_err(|e| Failure::new(e.to_string()))?,
        machine_config: origin::docker_config_file().map(MachineConfig::new),
        ..RemoteOptions::default()
    };
    if let Some(path) = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty()) {
        let shown = std::path::Path::new(&path).display().to_string();
        let read = std::fs::read(&path);
        let failed = |e| Failure::new(format!("cannot read {shown}, which {CA_BUNDLE_VARIABLE} names: {e}"));
        options.extra_roots_pem.push(read.map_err(failed)?);
    }
    Ok(options)
}
