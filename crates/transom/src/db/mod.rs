//! `transom db`: verifies and repairs a store that no server uses, and backs up one that may be in use.
//!
//! What is damage and how it is repaired is decided in `transom_store`; here are the flags, and what is printed.

mod backup;

use crate::plane::{default_data_dir, explain};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::Failure;

/// Back up and restore a data directory, and check and repair one that no server uses.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom db backup ./backup-1 --data-dir ./plane     while the plane runs
  transom db restore ./backup-1 --data-dir ./plane2
  transom db verify --data-dir ./plane
  transom db repair --data-dir ./plane")]
pub(crate) enum Db {
    /// Copy everything into a new directory and verify the copy; the plane may be running
    #[command(after_help = "\
Examples:
  transom db backup ./backup-1 --data-dir ./plane")]
    Backup(backup::Backup),
    /// Make a data directory from a backup, after checking every file of it
    #[command(after_help = "\
Examples:
  transom db restore ./backup-1 --data-dir ./plane2")]
    Restore(backup::Restore),
    /// Read everything and report damage; fails if there is any
    #[command(after_help = "\
Examples:
  transom db verify --data-dir ./plane")]
    Verify(DataDir),
    /// Rewrite a damaged store: without loss where it still opens, otherwise up to the first damage. Keeps the old files
    #[command(after_help = "\
Examples:
  transom db repair --data-dir ./plane")]
    Repair(DataDir),
}

#[derive(Args)]
pub(crate) struct DataDir {
    /// The data directory of `transom up`
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDir {
    fn resolve(&self) -> Result<PathBuf, Failure> {
        self.data_dir.clone().map_or_else(default_data_dir, Ok)
    }
}

/// The hint of a damaged store names its own directory; users name the data directory.
fn store_of(dir: &Path) -> PathBuf {
    Some(dir.join("store")).filter(|d| d.is_dir()).unwrap_or_else(|| dir.to_owned())
}

pub(crate) fn run(command: Db) -> Result<ExitCode, Failure> {
    match command {
        Db::Backup(options) => backup::backup(&options),
        Db::Restore(options) => backup::restore(&options),
        Db::Verify(dir) => check(&dir, false),
        Db::Repair(dir) => check(&dir, true),
    }
}

fn check(dir: &DataDir, repair: bool) -> Result<ExitCode, Failure> {
    let store = store_of(&dir.resolve()?);
    let report = if repair { transom_store::repair(&store) } else { transom_store::verify(&store) }
        .map_err(|e| explain(&e))?;
    let torn = if report.torn_bytes > 0 {
        format!(", {} torn bytes at the end (harmless)", report.torn_bytes)
    } else {
        String::new()
    };
    anstream::println!(
        "revision {}, {} objects, {} segments, {} snapshots{torn}",
        report.revision,
        report.objects,
        report.segments,
        report.snapshots
    );
    for damage in &report.damage {
        anstream::println!("damage: {damage}");
    }
    if let Some(aside) = &report.set_aside {
        anstream::println!("repaired; the files from before are in {}", aside.display());
    }
    // The report is of what was found; a repair leaves an intact store.
    let intact = report.damage.is_empty() || report.set_aside.is_some();
    let opens = match (intact, report.opens) {
        (true, _) => "the store opens",
        (false, true) => "the store opens in spite of the damage",
        (false, false) => "the store does not open",
    };
    anstream::println!("{opens}");
    Ok(if intact { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
