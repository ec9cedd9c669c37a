//! `transom function run`: serves a project, has a control plane call it there, and starts it again when a file changes.

use super::process::{Project, Served, free_address};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use transom_authoring::language::is_watched;
use transom_console::control_plane::{ControlPlaneArgs, explain};
use transom_console::{Failure, Signals};
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersion, GroupVersionKind, meta, yaml};
use transom_runner::ENDPOINT_ANNOTATION;

/// How often it is looked whether a file has changed.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);
const FIELD_MANAGER: &str = "transom-function-run";
const API_VERSION: &str = "pkg.crossplane.io/v1";

/// Serve the project of a function to a control plane, and start it again when a file changes
///
/// The Function is annotated with the address, so that the control plane calls the project instead of what is in its package.
/// A Function that does not exist is made. At the end, all is as it was before.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function run                                   the project in this folder, with the control plane of KUBECONFIG
  transom function run hello --name function-hello       another project, for the Function of this name")]
pub(crate) struct Run {
    /// The folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// The Function; by default the name in package/crossplane.yaml
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

pub(crate) async fn run(options: Run) -> Result<ExitCode, Failure> {
    let project = Project::open(&options.project)?;
    let name = options.name.clone().map_or_else(|| name_of(&options.project), Ok)?;
    let cluster = options.control_plane.open().await?;
    let mut files = files(&options.project);
    project.build().await?;
    let served = project.serve(&free_address()?).await?;
    let wired = Wired::wire(cluster, &name, &served.address).await?;
    anstream::eprintln!("Function {name} is served by this project at {}; Ctrl-C ends that", served.address);
    let ended = follow(&project, &wired, served, &mut files).await;
    wired.unwire().await?;
    anstream::eprintln!("Function {name} is as it was before");
    ended.map(|()| ExitCode::SUCCESS)
}

/// Serves the project until the command is ended.
async fn follow(
    project: &Project,
    wired: &Wired,
    mut served: Served,
    files: &mut Files,
) -> Result<(), Failure> {
    let mut signals = Signals::handle()?;
    loop {
        tokio::select! {
            () = signals.received() => break,
            () = tokio::time::sleep(WATCH_INTERVAL) => {}
        }
        let now = self::files(&project.folder);
        if now == *files {
            continue;
        }
        *files = now;
        served = match again(project, wired).await {
            Ok(new) => {
                anstream::eprintln!("the project has changed: it is now served at {}", new.address);
                served.stop().await;
                new
            }
            // What runs is called until a change can be built.
            Err(failure) => {
                failure.report();
                served
            }
        };
    }
    served.stop().await;
    Ok(())
}

/// Serves the changed project beside the one before, and has it called.
async fn again(project: &Project, wired: &Wired) -> Result<Served, Failure> {
    project.build().await?;
    let served = project.serve(&free_address()?).await?;
    wired.annotate(&served.address).await?;
    Ok(served)
}

/// A Function that is called at an address, and what it was before.
struct Wired {
    cluster: Cluster,
    function: Value,
    /// The address that it had; nothing for a Function that was made here.
    before: Option<Option<String>>,
}

impl Wired {
    async fn wire(cluster: Cluster, name: &str, address: &str) -> Result<Self, Failure> {
        let subject = format!("Function {name:?}");
        let found = cluster.get(&gvk(), "", name).await.map_err(|e| explain(&subject, &e))?;
        if let Some(function) = found {
            let before = Some(meta::annotation(&function, ENDPOINT_ANNOTATION).map(str::to_owned));
            let wired = Self { cluster, function, before };
            wired.annotate(address).await?;
            return Ok(wired);
        }
        let function = json!({
            "apiVersion": API_VERSION, "kind": "Function",
            "metadata": {"name": name, "annotations": {ENDPOINT_ANNOTATION: address}},
            // Nothing is pulled: the function is at its address.
            "spec": {"package": format!("example.org/{name}:v0.0.0")},
        });
        let function = cluster.create(&function, FIELD_MANAGER).await.map_err(|e| explain(&subject, &e))?;
        Ok(Self { cluster, function, before: None })
    }

    async fn annotate(&self, address: &str) -> Result<(), Failure> {
        self.set(address.into()).await
    }

    async fn set(&self, address: Value) -> Result<(), Failure> {
        let patch = json!({"metadata": {"annotations": {ENDPOINT_ANNOTATION: address}}});
        let subject = format!("Function {:?}", meta::name(&self.function));
        let patched = self.cluster.merge_patch(&self.function, &patch, FIELD_MANAGER).await;
        patched.map(drop).map_err(|e| explain(&subject, &e))
    }

    async fn unwire(&self) -> Result<(), Failure> {
        if let Some(before) = &self.before {
            return self.set(before.clone().into()).await;
        }
        let subject = format!("Function {:?}", meta::name(&self.function));
        let options = DeleteOptions { uid: Some(meta::uid(&self.function)), ..DeleteOptions::default() };
        let deleted = self.cluster.delete(&gvk(), "", meta::name(&self.function), options).await;
        deleted.map_err(|e| explain(&subject, &e))
    }
}

fn gvk() -> GroupVersionKind {
    GroupVersion::parse(API_VERSION).unwrap_or_default().with_kind("Function")
}

fn name_of(project: &Path) -> Result<String, Failure> {
    let path = project.join("package/crossplane.yaml");
    let cannot = |problem: String| {
        Failure::new(format!("{} does not name the function: {problem}", path.display()))
            .remedy("--name names it")
    };
    let text = std::fs::read_to_string(&path).map_err(|e| cannot(e.to_string()))?;
    let object = yaml::read(&text).map_err(|e| cannot(e.to_string()))?;
    match meta::name(&object) {
        "" => Err(cannot("it has no metadata.name".to_owned())),
        name => Ok(name.to_owned()),
    }
}

/// The files of a project, with the times of their last change.
type Files = BTreeMap<PathBuf, SystemTime>;

fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    collect(folder, &mut found);
    found
}

fn collect(folder: &Path, found: &mut Files) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // What is built from the files of a Go project.
        let is_built = name == "function" && entry.path().is_file();
        if is_built || !is_watched(&name.to_string_lossy()) {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => collect(&entry.path(), found),
            Ok(metadata) => {
                found.insert(entry.path(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_source_is_seen_and_one_of_what_is_built_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        };
        write("src/main.rs");
        let before = files(dir.path());
        assert_eq!(before.len(), 1);
        for built in ["target/debug/x", "function", ".git/HEAD"] {
            write(built);
        }
        assert_eq!(files(dir.path()), before);
        write("src/more.rs");
        assert_ne!(files(dir.path()), before);
    }
}
