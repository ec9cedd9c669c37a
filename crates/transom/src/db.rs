//! `transom db`: looking after a store while no server uses it.

use crate::cli::{Db, DbPlace};
use crate::failure::Failure;
use crate::up::{default_data_dir, explain};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn run(command: Db) -> Result<ExitCode, Failure> {
    let (place, repair) = match command {
        Db::Verify(place) => (place, false),
        Db::Repair(place) => (place, true),
    };
    let dir = data_dir(place)?;
    // The hint of a damaged store names its own directory; users name the data directory.
    let store = Some(dir.join("store")).filter(|d| d.is_dir()).unwrap_or_else(|| dir.clone());
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

fn data_dir(place: DbPlace) -> Result<PathBuf, Failure> {
    place.data_dir.map_or_else(default_data_dir, Ok)
}
