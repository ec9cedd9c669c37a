//! `transom function logs`: what functions that run from their packages printed.

use crate::failure::Failure;
use crate::plane::default_data_dir;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use transom_container::LogReader;
use transom_object::suggest;
use transom_runner::RevisionId;

/// The folder of logs, in that of containers.
const LOGS: &str = "logs";
/// How often a log is looked at that is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Where containers of a plane keep their files, in its data directory.
pub(crate) const CONTAINERS: &str = "containers";

/// The log of a revision.
pub(super) fn file(dir: &Path, id: &RevisionId) -> PathBuf {
    let revision = if id.revision.is_empty() { &id.function } else { &id.revision };
    dir.join(LOGS).join(plain(&id.function)).join(format!("{}.log", plain(revision)))
}

/// A name as that of a file: names in files need not be those of objects in a plane.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.starts_with('.') || plain.is_empty() { format!("_{plain}") } else { plain }
}

/// Print what a function that runs from its package has printed
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function logs function-status              of the revision that printed last
  transom function logs function-status -f           and what it prints from now on
  transom function logs function-status --revision function-status-1a2b3c4d5e6f")]
pub(crate) struct Logs {
    /// The Function
    #[arg(value_name = "NAME")]
    name: String,

    /// Print what the function prints from now on, too, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// The FunctionRevision [default: the one that printed last]
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,

    /// The data directory of the plane [default: that of `transom up`]
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Logs) -> Result<ExitCode, Failure> {
    let data = options.data_dir.clone().map_or_else(default_data_dir, Ok)?;
    let mut reader = LogReader::new(options.log(&data.join(CONTAINERS))?);
    let mut stdout = std::io::stdout().lock();
    loop {
        let copied = reader.copy_to(&mut stdout).and_then(|copied| stdout.flush().map(|()| copied));
        match copied {
            // The reader of the pipe has read enough.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(e) => return Err(Failure::new(format!("cannot print the log of {:?}: {e}", options.name))),
            Ok(_) if !options.follow => return Ok(ExitCode::SUCCESS),
            Ok(_) => std::thread::sleep(FOLLOW_INTERVAL),
        }
    }
}

impl Logs {
    /// The file to print.
    fn log(&self, dir: &Path) -> Result<PathBuf, Failure> {
        let folder = dir.join(LOGS).join(plain(&self.name));
        if let Some(revision) = &self.revision {
            let id = RevisionId { function: self.name.clone(), revision: revision.clone() };
            let path = file(dir, &id);
            return if path.exists() { Ok(path) } else { Err(self.no_log(&folder, revision)) };
        }
        let mut logs: Vec<(SystemTime, PathBuf)> = Vec::new();
        for path in files(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")) {
            let modified = path.metadata().and_then(|found| found.modified());
            logs.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
        logs.into_iter().max().map(|(_, path)| path).ok_or_else(|| {
            let known = files(&dir.join(LOGS));
            let known = known.iter().filter_map(|path| path.file_name()?.to_str());
            let meant = suggest::did_you_mean(&self.name, known);
            let otherwise = || {
                "functions that are built in or have an endpoint have none; --data-dir names the data of another plane".to_owned()
            };
            Failure::new(format!("there is no log of Function {:?} in {}", self.name, dir.display()))
                .remedy(meant.unwrap_or_else(otherwise))
        })
    }

    fn no_log(&self, folder: &Path, revision: &str) -> Failure {
        let known = files(folder);
        let known: Vec<&str> =
            known.iter().filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".log")).collect();
        let remedy = if known.is_empty() {
            "no revision has one".to_owned()
        } else {
            format!("there are logs of {}", known.join(", "))
        };
        Failure::new(format!("there is no log of revision {revision:?} of Function {:?}", self.name))
            .remedy(remedy)
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_below_the_folder_whatever_names_are() {
        for (function, revision, path) in [
            ("function-x", "function-x-abc", "d/logs/function-x/function-x-abc.log"),
            ("function-x", "", "d/logs/function-x/function-x.log"),
            ("../up", "a/b", "d/logs/_.._up/a_b.log"),
        ] {
            let id = RevisionId { function: function.into(), revision: revision.into() };
            assert_eq!(file(Path::new("d"), &id), Path::new(path), "{function}");
        }
    }
}
