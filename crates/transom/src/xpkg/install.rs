//! `transom xpkg install` and `update`: the objects in a control plane that install packages.

use super::{origin, progress};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;
use transom_console::control_plane::{self, ControlPlaneArgs};
use transom_console::{Failure, Format, duration};
use transom_engine::Cluster;
use transom_object::{GroupVersionKind, meta};
use transom_packages::{PackageKind, Reference};
use transom_xapi::constants::{group, kind};

const FIELD_MANAGER: &str = "transom-xpkg";
/// How often a package is looked at while it is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often a change is sent that the server refuses because of other writes to the object.
const UPDATE_ATTEMPTS: u32 = 5;

/// Install a package in a control plane
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg install configuration registry.example.org/acme/platform:v1.0.0
  transom xpkg install function registry.example.org/acme/function:v1.0.0 my-function    under another name
  transom xpkg install provider registry.example.org/acme/provider:v1.0.0 --wait 5m      until it is healthy
  transom xpkg install configuration registry.example.org/acme/platform:v1.0.0 --dry-run -o yaml    what would be made
  transom xpkg install configuration registry.example.org/acme/platform:v1.0.0 --server-side     again and again")]
pub(crate) struct Install {
    #[command(flatten)]
    target: Target,

    /// The DeploymentRuntimeConfig of a Provider or Function
    #[arg(long, value_name = "NAME")]
    runtime_config: Option<String>,

    /// Activate revisions by hand
    #[arg(short = 'm', long)]
    manual_activation: bool,

    /// Secrets with credentials for the registry
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    package_pull_secrets: Vec<String>,

    /// How many old revisions are kept; without it, what the control plane keeps by default
    #[arg(short = 'r', long, value_name = "COUNT")]
    revision_history_limit: Option<u32>,

    /// How long to wait until the package is healthy
    #[arg(short = 'w', long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    wait: Duration,

    /// Change the package if it exists already, by server-side apply; the same command can be repeated
    #[arg(long)]
    server_side: bool,

    #[command(flatten)]
    how: How,
}

/// How a change is made and reported.
#[derive(Args)]
struct How {
    /// Have the control plane check the change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// How the object is printed: one line, or all of it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// Change the version of an installed package
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg update configuration registry.example.org/acme/platform:v1.1.0
  transom xpkg update function registry.example.org/acme/function:v1.1.0 my-function    that has another name")]
pub(crate) struct Update {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    how: How,
}

#[derive(Args)]
struct Target {
    /// What the package is
    #[arg(value_name = "KIND")]
    kind: KindName,

    /// The package: a reference with a tag or digest
    #[arg(value_name = "REF")]
    package: String,

    /// The name of the object; by default made of the repository
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindName {
    Provider,
    Configuration,
    Function,
}

impl KindName {
    fn kind(self) -> PackageKind {
        match self {
            Self::Provider => PackageKind::Provider,
            Self::Configuration => PackageKind::Configuration,
            Self::Function => PackageKind::Function,
        }
    }
}

/// A package object in a control plane.
struct Installed {
    gvk: GroupVersionKind,
    package: String,
    name: String,
    cluster: Cluster,
}

impl Target {
    async fn open(&self) -> Result<Installed, Failure> {
        let reference = origin::reference(&self.package)?;
        let name = self.name.clone().unwrap_or_else(|| reference.package_name());
        let gvk = GroupVersionKind::new(group::PKG, "v1", self.kind.kind().kind());
        let cluster = self.control_plane.open().await?;
        Ok(Installed { gvk, package: reference.to_string(), name, cluster })
    }

    /// Name and version, if they are given in the form of the original up to v1.13: `KIND NAME VERSION`.
    fn former_update(&self) -> Option<(&str, &str)> {
        let version = self.name.as_deref()?;
        (Reference::parse(&self.package).is_err() && !self.package.contains('/'))
            .then_some((&self.package, version))
    }

    /// An installed package with another version of its image.
    async fn open_version(&self, name: &str, version: &str) -> Result<Installed, Failure> {
        let gvk = GroupVersionKind::new(group::PKG, "v1", self.kind.kind().kind());
        let cluster = self.control_plane.open().await?;
        let mut installed = Installed { gvk, package: String::new(), name: name.to_owned(), cluster };
        let Some(object) = installed.get().await? else { return Ok(installed) };
        let image = object.pointer("/spec/package").and_then(Value::as_str).unwrap_or_default();
        let next = Reference::parse(image).and_then(|image| image.at_version(version));
        installed.package =
            next.map_err(|e| Failure::new(format!("{}: {e}", installed.title())))?.to_string();
        Ok(installed)
    }
}

impl Installed {
    /// `configuration/acme-platform`.
    fn title(&self) -> String {
        format!("{}/{}", self.gvk.kind.to_lowercase(), self.name)
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, transom_engine::Error>>,
    ) -> Result<Result<T, transom_engine::Error>, Failure> {
        control_plane::within(&self.title(), request).await
    }

    fn failed(&self, error: &transom_engine::Error) -> Failure {
        control_plane::explain(&self.title(), error)
    }

    /// Prints what was done, or the object.
    fn print(&self, object: &Value, done: &str, how: &How) -> Result<ExitCode, Failure> {
        let suffix = if how.dry_run { " (dry run)" } else { "" };
        let text = |_: &Value| format!("{} {done}{suffix}\n", self.title());
        transom_console::print(how.output.write(object, text).as_bytes())
    }

    async fn get(&self) -> Result<Option<Value>, Failure> {
        let read = self.within(self.cluster.get(&self.gvk, "", &self.name)).await?;
        read.map_err(|e| self.failed(&e))
    }

    /// Waits until the package is healthy.
    async fn healthy_within(&self, limit: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        loop {
            let object = self.get().await?.unwrap_or_default();
            let healthy = condition(&object, "Healthy");
            if healthy.is_some_and(|condition| condition["status"] == "True") {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.not_healthy(&object, limit));
            }
            let said = unmet(&object);
            let said = if said.is_empty() { "no conditions yet".to_owned() } else { said.join("; ") };
            progress::waiting(&format!("waiting for {}: {said}", self.title()));
            tokio::time::sleep(POLL_INTERVAL.min(deadline - Instant::now())).await;
        }
    }

    fn not_healthy(&self, object: &Value, limit: Duration) -> Failure {
        let said = unmet(object);
        let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
        let plural = self.gvk.kind.to_lowercase();
        Failure::new(format!("{} is not healthy after {limit:?}{said}", self.title()))
            .remedy(format!("see `kubectl describe {plural}.pkg.crossplane.io {}`", self.name))
    }
}

/// What the conditions say that are not true.
fn unmet(object: &Value) -> Vec<String> {
    let said = |name: &&str| {
        let condition = condition(object, name).filter(|condition| condition["status"] != "True")?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Some(format!("{name}: {} {}", text("reason"), text("message")).trim_end().to_owned())
    };
    ["Installed", "Healthy"].iter().filter_map(said).collect()
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}

pub(crate) async fn install(options: Install) -> Result<ExitCode, Failure> {
    let package_kind = options.target.kind.kind();
    if package_kind == PackageKind::Configuration && options.runtime_config.is_some() {
        return Err(Failure::new("a Configuration runs nothing, so it has no runtime configuration")
            .remedy("leave out --runtime-config"));
    }
    let installed = options.target.open().await?;
    let object = object(&options, &installed);
    let (stored, done) = match options.server_side {
        true => apply(&installed, &object, options.how.dry_run).await?,
        false => (create(&installed, &object, options.how.dry_run).await?, "created"),
    };
    if !options.wait.is_zero() && !options.how.dry_run {
        installed.healthy_within(options.wait).await?;
    }
    installed.print(&stored, done, &options.how)
}

async fn create(installed: &Installed, object: &Value, dry_run: bool) -> Result<Value, Failure> {
    let cluster = &installed.cluster;
    let created = match dry_run {
        true => installed.within(cluster.try_create(object, FIELD_MANAGER)).await?,
        false => installed.within(cluster.create(object, FIELD_MANAGER)).await?,
    };
    created.map_err(|e| match e.is_already_exists() {
        true => Failure::new(format!("{} exists already", installed.title()))
            .remedy("change its version with `transom xpkg update`, add --server-side, or give another name"),
        false => installed.failed(&e),
    })
}

/// Creates or changes the object, and says which.
async fn apply(
    installed: &Installed,
    object: &Value,
    dry_run: bool,
) -> Result<(Value, &'static str), Failure> {
    let before = installed.get().await?;
    let cluster = &installed.cluster;
    let applied = match dry_run {
        true => installed.within(cluster.try_apply(object, FIELD_MANAGER)).await?,
        false => installed.within(cluster.apply(object, FIELD_MANAGER)).await?,
    };
    let applied = applied.map_err(|e| installed.failed(&e))?;
    let done = match before {
        None => "created",
        Some(before) if before.get("spec") == applied.get("spec") => "unchanged",
        Some(_) => "configured",
    };
    Ok((applied, done))
}

fn object(options: &Install, installed: &Installed) -> Value {
    let policy = if options.manual_activation { "Manual" } else { "Automatic" };
    let mut spec = json!({"package": installed.package, "revisionActivationPolicy": policy});
    // Without the flag, nothing is sent: a zero would keep all revisions.
    if let Some(limit) = options.revision_history_limit {
        spec["revisionHistoryLimit"] = limit.into();
    }
    if !options.package_pull_secrets.is_empty() {
        let secrets = options.package_pull_secrets.iter().map(|name| json!({"name": name}));
        spec["packagePullSecrets"] = secrets.collect();
    }
    if let Some(name) = &options.runtime_config {
        spec["runtimeConfigRef"] = json!({"name": name});
    }
    json!({
        "apiVersion": kind::PKG_V1, "kind": installed.gvk.kind, "metadata": {"name": installed.name}, "spec": spec,
    })
}

pub(crate) async fn update(options: Update) -> Result<ExitCode, Failure> {
    let installed = match options.target.former_update() {
        Some((name, version)) => options.target.open_version(name, version).await?,
        None => options.target.open().await?,
    };
    let stored = set_package(&installed, options.how.dry_run).await?;
    installed.print(&stored, "updated", &options.how)
}

/// Sets the image of an installed package, whatever other clients change of the object at the same time. A patch has no
/// precondition, yet a server may refuse one that came in the middle of other writes.
async fn set_package(installed: &Installed, dry_run: bool) -> Result<Value, Failure> {
    let mut attempt = 1;
    loop {
        let Some(object) = installed.get().await? else {
            return Err(Failure::new(format!("{} is not installed", installed.title()))
                .remedy("install it with `transom xpkg install`, or give the name that it has"));
        };
        // Of the object, only what names it: the patch must not fail because another field changed.
        let named = json!({
            "apiVersion": kind::PKG_V1, "kind": installed.gvk.kind, "metadata": {"name": meta::name(&object)},
        });
        let patch = json!({"spec": {"package": installed.package}});
        let cluster = &installed.cluster;
        let stored = match dry_run {
            true => installed.within(cluster.try_merge_patch(&named, &patch, FIELD_MANAGER)).await?,
            false => installed.within(cluster.merge_patch(&named, &patch, FIELD_MANAGER)).await?,
        };
        match stored {
            Err(error) if error.is_conflict() && attempt < UPDATE_ATTEMPTS => attempt += 1,
            stored => return stored.map_err(|e| installed.failed(&e)),
        }
    }
}
