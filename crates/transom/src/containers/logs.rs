//! `transom function logs` and `transom provider logs`: what packages that run on this machine printed.

use crate::plane::default_data_dir;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use transom_console::Failure;
use transom_container::LogReader;
use transom_machine::Printed;
use transom_object::suggest;

/// How often a log is looked at that is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Where containers of a plane keep their files, in its data directory.
pub(crate) const CONTAINERS: &str = "containers";

/// The kind of what has printed.
fn kind(of: Printed) -> &'static str {
    match of {
        Printed::Function => "Function",
        Printed::Provider => "Provider",
    }
}

/// Why there may be no log.
fn without(of: Printed) -> &'static str {
    match of {
        Printed::Function => {
            "functions that are built in or have an endpoint have none; --data-dir names the data of another plane"
        }
        Printed::Provider => "a provider has none before it runs; --data-dir names the data of another plane",
    }
}

#[derive(Args)]
pub(crate) struct Logs {
    /// The name of the Function or Provider
    #[arg(value_name = "NAME")]
    name: String,

    /// Print what it prints from now on, too, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// The revision [default: the one that printed last]
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,

    /// The data directory of the plane [default: that of `transom up`]
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Logs, of: Printed) -> Result<ExitCode, Failure> {
    let data = options.data_dir.clone().map_or_else(default_data_dir, Ok)?;
    let mut reader = LogReader::new(options.log(&data.join(CONTAINERS), of)?);
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
    fn log(&self, dir: &Path, of: Printed) -> Result<PathBuf, Failure> {
        let folder = of.folder_of(dir, &self.name);
        if let Some(revision) = &self.revision {
            let path = of.log(dir, &self.name, revision);
            return if path.exists() { Ok(path) } else { Err(self.no_log(&folder, revision, of)) };
        }
        let mut logs: Vec<(SystemTime, PathBuf)> = Vec::new();
        for path in files(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")) {
            let modified = path.metadata().and_then(|found| found.modified());
            logs.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
        logs.into_iter().max().map(|(_, path)| path).ok_or_else(|| {
            let known = files(&of.folder(dir));
            let known = known.iter().filter_map(|path| path.file_name()?.to_str());
            let meant = suggest::did_you_mean(&self.name, known);
            let (kind, name) = (kind(of), &self.name);
            Failure::new(format!("there is no log of {kind} {name:?} in {}", dir.display()))
                .remedy(meant.unwrap_or_else(|| without(of).to_owned()))
        })
    }

    fn no_log(&self, folder: &Path, revision: &str, of: Printed) -> Failure {
        let known = files(folder);
        let known: Vec<&str> =
            known.iter().filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".log")).collect();
        let remedy = if known.is_empty() {
            "no revision has one".to_owned()
        } else {
            format!("there are logs of {}", known.join(", "))
        };
        let (kind, name) = (kind(of), &self.name);
        Failure::new(format!("there is no log of revision {revision:?} of {kind} {name:?}")).remedy(remedy)
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path()).collect();
    paths.sort();
    paths
}
