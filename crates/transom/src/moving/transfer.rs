//! `transom export` and `transom import`: a whole control plane as a file.

use crate::plane::write_private;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use transom_chart::installation::documents;
use transom_console::control_plane::{ControlPlaneArgs, explain};
use transom_console::{Failure, block_on, print};
use transom_migrate::Imported;

/// Write everything of a control plane to a file: definitions, Compositions, packages, composite resources, claims and what they are composed of.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom export plane.yaml
  transom export plane.yaml --kubeconfig ~/.local/share/transom/kubeconfig

The file has the Secrets of connection details in it: only its owner can read it.")]
pub(crate) struct Export {
    /// The file to write
    file: PathBuf,

    #[command(flatten)]
    cluster: ControlPlaneArgs,
}

/// Make everything of an exported control plane on another one. Composite resources and claims stay paused until --release.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom import plane.yaml --kubeconfig ./cluster             make what is missing, paused; can be repeated
  transom import plane.yaml --kubeconfig ./cluster --verify    compare every object with the file
  transom import plane.yaml --kubeconfig ./cluster --release   let the controllers work on it")]
pub(crate) struct Import {
    /// The file of `transom export`
    file: PathBuf,

    /// Compare only: nothing is made
    #[arg(long)]
    verify: bool,

    /// Compare, and if nothing differs let the controllers work on what the import paused
    #[arg(long)]
    release: bool,

    #[command(flatten)]
    cluster: ControlPlaneArgs,
}

pub(crate) fn export(options: &Export) -> Result<ExitCode, Failure> {
    block_on(async {
        let cluster = options.cluster.open().await?;
        let objects = transom_migrate::export(&cluster).await.map_err(|e| explain("export", &e))?;
        let text = documents(&objects);
        write_private(&options.file, text)
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", options.file.display())))?;
        print(format!("{} objects in {}\n", objects.len(), options.file.display()).as_bytes())
    })
}

pub(crate) fn import(options: &Import) -> Result<ExitCode, Failure> {
    let text = std::fs::read_to_string(&options.file);
    let text = text.map_err(|e| Failure::new(format!("cannot read {}: {e}", options.file.display())))?;
    let documents = transom_object::yaml::read_documents(&text);
    let documents = documents.map_err(|e| Failure::new(format!("{}: {e}", options.file.display())))?;
    let objects: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    block_on(transfer(options, &objects))
}

async fn transfer(options: &Import, objects: &[Value]) -> Result<ExitCode, Failure> {
    let cluster = options.cluster.open().await?;
    let failed = |e: transom_engine::Error| {
        explain("import", &e)
            .remedy("remove the cause and run the command again: it continues where it stopped")
    };
    if !options.verify && !options.release {
        let Imported { created, present } =
            transom_migrate::import(&cluster, objects).await.map_err(failed)?;
        return print(format!("{created} objects made, {present} were there\n").as_bytes());
    }
    let differences = transom_migrate::verify(&cluster, objects).await.map_err(failed)?;
    if !differences.is_empty() {
        print(format!("{}\n", differences.join("\n")).as_bytes())?;
        return Err(Failure::new(format!(
            "{} objects differ from {}",
            differences.len(),
            options.file.display()
        )));
    }
    print(format!("{} objects are as in {}\n", objects.len(), options.file.display()).as_bytes())?;
    if options.release {
        let released = transom_migrate::release(&cluster, objects).await.map_err(failed)?;
        print(format!("{released} objects released\n").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
