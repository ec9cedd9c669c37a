//! `transom install` and `transom uninstall`: the manifests of the controllers on a cluster.
//!
//! `install` prints what the Helm chart applies. It reads a cluster only with `--upgrade`, which keeps the values of what
//! is installed, and with `--dry-run`, which asks the server what would change.

mod uninstall;

pub(crate) use uninstall::{Uninstall, uninstall};

use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use transom_chart::installation::{self, RELEASE, VALUES_ANNOTATION, documents, same_content};
use transom_console::control_plane::{ControlPlaneArgs, explain, within};
use transom_console::{Failure, block_on, print};
use transom_engine::Cluster;
use transom_object::{GroupVersionKind, meta};

const MANAGER: &str = "transom-install";

/// Print the manifests that install the controllers on a cluster.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom install --image registry.example.org/transom:v0.1.0
  transom install --replicas 3 --shards 12 --set metrics.enabled=true
  transom install -f values.yaml --dry-run
  transom install --upgrade --image registry.example.org/transom:v0.2.0

The manifests are applied by: transom install … | kubectl apply --server-side -f -")]
pub(crate) struct Install {
    /// The namespace of the controllers
    #[arg(long, short, default_value = "crossplane-system", value_name = "NAMESPACE")]
    namespace: String,

    /// The image of Transom, with its tag
    #[arg(long, value_name = "REF")]
    image: Option<String>,

    /// How many pods run
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,

    /// Number of shards that composite resources and claims are divided into
    #[arg(long, value_name = "N")]
    shards: Option<u32>,

    /// A file with values of the Helm chart; may be repeated
    #[arg(long, short = 'f', value_name = "FILE")]
    values: Vec<PathBuf>,

    /// A value of the Helm chart, such as metrics.enabled=true; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,

    /// Start with the values of the installation on the cluster
    #[arg(long)]
    upgrade: bool,

    /// Print what would change on the cluster, instead of the manifests
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    cluster: ControlPlaneArgs,
}

pub(crate) fn install(options: &Install) -> Result<ExitCode, Failure> {
    block_on(run(options))
}

async fn run(options: &Install) -> Result<ExitCode, Failure> {
    let needs_cluster = options.upgrade || options.dry_run;
    let cluster = if needs_cluster { Some(options.cluster.open().await?) } else { None };
    let mut given = match &cluster {
        Some(cluster) if options.upgrade => installed_values(cluster, &options.namespace).await?,
        _ => json!({}),
    };
    options.add_to(&mut given)?;
    let objects = manifests(&options.namespace, &given)?;
    match cluster.filter(|_| options.dry_run) {
        Some(cluster) => dry_run(&cluster, &objects).await,
        None => print(documents(&objects).as_bytes()),
    }
}

impl Install {
    /// The values that the flags stand for, on top of others.
    fn add_to(&self, values: &mut Value) -> Result<(), Failure> {
        for path in &self.values {
            let read = std::fs::read_to_string(path);
            let text = read.map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
            let file = transom_object::yaml::read(&text);
            let file = file.map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
            transom_chart::merge(values, &file);
        }
        let flags = [
            self.image.as_ref().map(|image| json!({"image": {"repository": image, "ignoreTag": true}})),
            self.replicas.map(|replicas| json!({"replicas": replicas})),
            self.shards.map(|shards| json!({"shards": shards})),
        ];
        flags.iter().flatten().for_each(|flag| transom_chart::merge(values, flag));
        for setting in &self.set {
            transom_chart::set(values, setting).map_err(|e| Failure::new(format!("--set: {e}")))?;
        }
        Ok(())
    }
}

fn manifests(namespace: &str, given: &Value) -> Result<Vec<Value>, Failure> {
    installation::manifests(namespace, given).map_err(|e| {
        Failure::new(e.to_string()).remedy("deploy/chart/values.yaml lists the values with their kinds")
    })
}

/// The values of what is installed, which is to be upgraded.
async fn installed_values(cluster: &Cluster, namespace: &str) -> Result<Value, Failure> {
    let subject = deployment_subject(namespace);
    let found = deployment(cluster, namespace).await?.ok_or_else(|| {
        Failure::new(format!("{subject} does not exist: there is nothing to upgrade"))
            .remedy("leave --upgrade out to install it, or name its --namespace")
    })?;
    values_of(&found, &subject)?.ok_or_else(|| {
        Failure::new(format!("{subject} was not made by `transom install`")).remedy("upgrade it with Helm")
    })
}

/// The values of what is installed, if `transom install` installed it.
async fn values_on(cluster: &Cluster, namespace: &str) -> Result<Option<Value>, Failure> {
    match deployment(cluster, namespace).await? {
        Some(found) => values_of(&found, &deployment_subject(namespace)),
        None => Ok(None),
    }
}

fn deployment_subject(namespace: &str) -> String {
    format!("Deployment {namespace}/{RELEASE}")
}

async fn deployment(cluster: &Cluster, namespace: &str) -> Result<Option<Value>, Failure> {
    let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
    let subject = deployment_subject(namespace);
    let found = within(&subject, cluster.get(&gvk, namespace, RELEASE)).await?;
    found.map_err(|e| explain(&subject, &e))
}

fn values_of(deployment: &Value, subject: &str) -> Result<Option<Value>, Failure> {
    let Some(values) = meta::annotation(deployment, VALUES_ANNOTATION) else { return Ok(None) };
    serde_json::from_str(values)
        .map(Some)
        .map_err(|e| Failure::new(format!("{subject}: annotation {VALUES_ANNOTATION}: {e}")))
}

/// Asks the server about every object. What is in a namespace that does not exist yet is new.
async fn dry_run(cluster: &Cluster, objects: &[Value]) -> Result<ExitCode, Failure> {
    let mut lines = String::new();
    for object in objects {
        let subject = format!("{} {}", meta::kind(object), meta::name(object));
        let gvk = meta::gvk(object).unwrap_or_default();
        let read = within(&subject, cluster.get(&gvk, meta::namespace(object), meta::name(object))).await?;
        let change = match read.map_err(|e| explain(&subject, &e))? {
            None => "create",
            Some(stored) => {
                let applied = within(&subject, cluster.try_apply(object, MANAGER)).await?;
                let applied = applied.map_err(|e| explain(&subject, &e))?;
                if same_content(&stored, &applied) { "unchanged" } else { "change" }
            }
        };
        let _ = writeln!(lines, "{change:10}{subject}");
    }
    print(lines.as_bytes())
}
