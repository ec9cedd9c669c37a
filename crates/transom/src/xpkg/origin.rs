//! Where a reference is read from: a registry, or a folder or file in place of all registries. The environment is read
//! here.

use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use transom_console::Failure;
use transom_oci::cache::{Cache, Cached};
use transom_oci::credentials::{DockerConfig, HelperOptions};
use transom_oci::daemon::Daemon;
use transom_oci::layer::LayerLimits;
use transom_oci::layout::LocalRegistry;
use transom_oci::remote::{Proxies, RemoteOptions, RemoteRegistry};
use transom_oci::tarball::Tarball;
use transom_oci::{ImageParts, ImageSource};
use transom_packages::{Credentials, Reference, Registry, RegistryError, RegistryErrorKind, stream};

/// The most bytes of packages that are kept.
const CACHE_BYTES: u64 = 1 << 30;

/// The flag for a folder or file in place of registries.
#[derive(Args)]
pub(super) struct Origin {
    /// A bundle, an OCI layout or a folder of *.xpkg files to read instead of registries; nothing is asked over the network
    #[arg(long, value_name = "FILE|DIR")]
    packages: Option<PathBuf>,

    #[command(flatten)]
    plain: PlainHttp,
}

/// The flag for registries without TLS.
#[derive(Args, Default)]
pub(crate) struct PlainHttp {
    /// A registry that is spoken to without TLS, as HOST or HOST:PORT; may be repeated. One on this machine needs no flag
    #[arg(long = "plain-http", value_name = "HOST", value_delimiter = ',', value_parser = plain_http_host)]
    pub(crate) plain_http: Vec<String>,
}

/// A host, with a port or without.
pub(crate) fn plain_http_host(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a registry; write it like registry.example.org:5000");
    let authority: http::uri::Authority = text.parse().map_err(|_| wrong())?;
    if authority.as_str().contains('@') { Err(wrong()) } else { Ok(text.to_owned()) }
}

/// Flags for registries.
#[derive(Args, Default)]
pub(super) struct Trust {
    /// Do not verify the certificate of the registry
    #[arg(long)]
    insecure_skip_tls_verify: bool,

    #[command(flatten)]
    plain: PlainHttp,
}

/// An opened origin.
pub(super) enum Opened {
    Remote(Arc<RemoteRegistry>, DockerConfig),
    /// The same, with a cache of packages.
    Cached(Cached<RemoteRegistry>, Arc<RemoteRegistry>, DockerConfig),
    Local(LocalRegistry),
}

impl Origin {
    pub(super) async fn open(&self) -> Result<Opened, Failure> {
        match &self.packages {
            None => remote_with(false, &self.plain).map(|(r, c)| Opened::Remote(Arc::new(r), c)),
            Some(path) => {
                let opened = LocalRegistry::open(path, LayerLimits::default()).await;
                let remedy = "--packages names a bundle, an OCI layout, or a folder of *.xpkg files";
                opened.map(Opened::Local).map_err(|e| explain(&e).remedy(remedy))
            }
        }
    }
}

impl Opened {
    /// The same with a cache of packages in a folder. Packages in folders and files need none.
    pub(super) async fn cached(self, folder: Option<&Path>, clean: bool) -> Result<Self, Failure> {
        let Self::Remote(remote, config) = self else { return Ok(self) };
        let Some(folder) = folder.map(Path::to_owned).or_else(cache_folder) else {
            return Ok(Self::Remote(remote, config));
        };
        if clean && folder.exists() {
            let removed = std::fs::remove_dir_all(&folder);
            removed.map_err(|e| Failure::new(format!("cannot remove {}: {e}", folder.display())))?;
        }
        let cache = Cache::open(&folder, CACHE_BYTES)
            .await
            .map_err(|e| explain(&e).remedy("--cache-dir names another folder, --no-cache uses none"))?;
        Ok(Self::Cached(Cached::new(remote.clone(), Arc::new(cache)), remote, config))
    }

    pub(super) fn images(&self) -> &dyn ImageSource {
        match self {
            Self::Remote(registry, _) | Self::Cached(_, registry, _) => &**registry,
            Self::Local(registry) => registry,
        }
    }

    pub(super) fn registry(&self) -> &dyn Registry {
        match self {
            Self::Remote(registry, _) => &**registry,
            Self::Cached(cached, _, _) => cached,
            Self::Local(registry) => registry,
        }
    }

    /// The package at a reference.
    pub(super) async fn package(&self, reference: &Reference) -> Result<stream::Package, Failure> {
        let with = self.credentials(reference).await?;
        let digest = self.registry().resolve(reference, &with).await.map_err(|e| self.explain(&e))?;
        let fetched = self.registry().fetch(&reference.at(digest), &with).await;
        let fetched = fetched.map_err(|e| self.explain(&e))?;
        stream::parse(&fetched.content).map_err(|e| Failure::new(format!("{reference}: {e}")))
    }

    /// The credentials that the user has for a reference.
    pub(super) async fn credentials(&self, reference: &Reference) -> Result<Vec<Credentials>, Failure> {
        match self {
            Self::Remote(_, config) | Self::Cached(_, _, config) => credentials(config, reference).await,
            Self::Local(_) => Ok(Vec::new()),
        }
    }

    /// What an error of this origin means to the user.
    pub(super) fn explain(&self, error: &RegistryError) -> Failure {
        let Self::Local(local) = self else { return explain(error) };
        if error.kind != RegistryErrorKind::NotFound {
            return Failure::new(error.message.clone());
        }
        let known = local.references();
        let listed = known.iter().filter(|name| !name.contains(":sha256-")).take(5);
        let listed: Vec<&str> = listed.map(String::as_str).collect();
        Failure::new(error.message.clone()).remedy(format!("--packages holds {}", listed.join(", ")))
    }
}

pub(super) async fn credentials(
    config: &DockerConfig,
    reference: &Reference,
) -> Result<Vec<Credentials>, Failure> {
    let found = config.lookup(reference, &HelperOptions::default()).await;
    found.map_err(|e| Failure::new(format!("{reference}: {e}")))
}

/// A client of registries with the settings of the environment.
pub(super) fn remote(trust: &Trust) -> Result<(RemoteRegistry, DockerConfig), Failure> {
    remote_with(trust.insecure_skip_tls_verify, &trust.plain)
}

fn remote_with(
    insecure_skip_tls_verify: bool,
    plain: &PlainHttp,
) -> Result<(RemoteRegistry, DockerConfig), Failure> {
    let variable = |names: [&str; 2]| names.into_iter().find_map(|name| std::env::var(name).ok());
    let http = variable(["HTTP_PROXY", "http_proxy"]);
    let https = variable(["HTTPS_PROXY", "https_proxy"]);
    let except = variable(["NO_PROXY", "no_proxy"]);
    let proxies = Proxies::new(http.as_deref(), https.as_deref(), except.as_deref()).map_err(|e| {
        Failure::new(e.to_string()).remedy("see HTTP_PROXY and HTTPS_PROXY in the environment")
    })?;
    // Attempts of several processes must not coincide; nothing secret depends on it.
    let options = RemoteOptions {
        insecure_skip_tls_verify,
        plain_http_hosts: plain.plain_http.iter().cloned().collect(),
        proxies,
        jitter_seed: u64::from(std::process::id()),
        transfers: super::progress::listener(),
        ..RemoteOptions::default()
    };
    let registry = RemoteRegistry::new(options).map_err(|e| explain(&e))?;
    Ok((registry, docker_config()?))
}

/// A client of registries for images that are run, with the settings of the environment.
pub(crate) fn remote_for_images() -> Result<(RemoteRegistry, DockerConfig), Failure> {
    remote(&Trust::default())
}

/// Where packages are kept: in the folder for caches of the user.
fn cache_folder() -> Option<PathBuf> {
    user_caches().map(|caches| caches.join("xpkg"))
}

/// Where images that are run are kept, unless another folder is given.
pub(crate) fn containers_folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let caches = given.map(Path::to_owned).or_else(user_caches).ok_or_else(|| {
        Failure::new("no home directory to keep images of functions in").remedy("pass --cache-dir DIR")
    })?;
    Ok(caches.join("containers"))
}

fn user_caches() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("transom"))
}

/// Where Docker's configuration is: in the folder `DOCKER_CONFIG`, or in `~/.docker`.
pub(crate) fn docker_config_file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker"));
    folder.or_else(home).map(|folder| folder.join("config.json"))
}

fn docker_config() -> Result<DockerConfig, Failure> {
    let Some(path) = docker_config_file() else { return Ok(DockerConfig::default()) };
    match std::fs::read(&path) {
        Ok(bytes) => {
            DockerConfig::parse(&bytes).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
        }
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(DockerConfig::default())
        }
        Err(e) => Err(Failure::new(format!("cannot read {}: {e}", path.display()))),
    }
}

/// A package that a command names: a reference, or a file.
pub(super) enum Named {
    Reference(Reference),
    File(PathBuf),
}

impl Named {
    /// What exists as a file, or ends in `.xpkg`, is a file.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let path = Path::new(text);
        if path.is_file() || path.extension().is_some_and(|extension| extension == "xpkg") {
            return Ok(Self::File(path.to_owned()));
        }
        reference(text).map(Self::Reference)
    }
}

/// Reads a reference from the command line.
pub(crate) fn reference(text: &str) -> Result<Reference, Failure> {
    Reference::parse(text).map_err(|e| {
        Failure::new(e.to_string()).remedy("write it like registry.example.org/acme/platform:v1.0.0")
    })
}

/// Writes an image of the Docker daemon to a file, as `docker save` does.
pub(super) async fn from_daemon(image: &str, path: &Path) -> Result<(), Failure> {
    let host = std::env::var("DOCKER_HOST").ok();
    let remedy = format!("run `docker save {image} -o FILE`, and give that file");
    let daemon = Daemon::at(host.as_deref()).ok_or_else(|| {
        let host = host.unwrap_or_default();
        Failure::new(format!("DOCKER_HOST is {host}, which is not a socket of this machine")).remedy(&remedy)
    })?;
    daemon.save(image, path).await.map_err(|e| Failure::new(e.message).remedy(&remedy))
}

/// The package in a file as it is pushed, and a reference that stands for it.
pub(super) fn file(path: &Path) -> Result<(ImageParts, Reference), Failure> {
    let image = Tarball::open(path).and_then(|archive| archive.single()?.annotated(&BTreeMap::new()));
    let image = image.map_err(|e| explain(&e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digest = Some(image.digest.clone());
    Ok((image, Reference { registry: "file".to_owned(), repository: name, tag: None, digest }))
}

/// The only package in the current folder.
pub(super) fn only_package() -> Result<PathBuf, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read the current folder: {e}"));
    let mut found = Vec::new();
    for item in std::fs::read_dir(".").map_err(cannot)? {
        let path = PathBuf::from(item.map_err(cannot)?.file_name());
        if path.extension().is_some_and(|extension| extension == "xpkg") {
            found.push(path);
        }
    }
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new("there is no *.xpkg file in the current folder")
            .remedy("make one with `transom xpkg build`, or name the file")),
        several => {
            Err(Failure::new(format!("there are {} *.xpkg files in the current folder", several.len()))
                .remedy("name the one that is meant"))
        }
    }
}

/// What an error of a registry means to the user.
pub(crate) fn explain(error: &RegistryError) -> Failure {
    let failure = Failure::new(error.message.clone());
    match error.kind {
        RegistryErrorKind::Unauthorized => failure
            .remedy("log in with `docker login`: credentials are read from DOCKER_CONFIG or ~/.docker/config.json"),
        RegistryErrorKind::Unavailable | RegistryErrorKind::Untrusted => failure.remedy(
            "HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are used, and --packages reads a bundle without a network",
        ),
        _ => failure,
    }
}
