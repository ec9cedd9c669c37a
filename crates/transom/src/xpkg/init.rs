//! `transom xpkg init`: a new package from a template, which is a Git repository. The program `git` clones it.

use clap::Args;
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use transom_console::Failure;

/// Short names of templates.
const TEMPLATES: [(&str, &str); 5] = [
    ("provider-template", "https://github.com/crossplane/provider-template"),
    ("provider-template-upjet", "https://github.com/crossplane/upjet-provider-template"),
    ("function-template-go", "https://github.com/crossplane/function-template-go"),
    ("function-template-python", "https://github.com/crossplane/function-template-python"),
    ("configuration-template", "https://github.com/crossplane/configuration-template"),
];
const NOTES: &str = "NOTES.txt";
const SCRIPT: &str = "init.sh";

/// Begin a package from a template
///
/// The template is a Git repository, or one of provider-template, provider-template-upjet, function-template-go,
/// function-template-python and configuration-template. Its NOTES.txt is printed, and its init.sh is run if you agree.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg init function-example function-template-go -d function-example
  transom xpkg init platform https://git.example.org/acme/template -b v2 --run-init-script")]
pub(crate) struct Init {
    /// The name of the package
    #[arg(value_name = "NAME")]
    name: String,

    /// The name of a template, or the URL or path of a Git repository
    #[arg(value_name = "TEMPLATE")]
    template: String,

    /// The folder; it must be empty, and is created if it does not exist
    #[arg(short = 'd', long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,

    /// The branch or tag of the template
    #[arg(short = 'b', long, value_name = "NAME")]
    ref_name: Option<String>,

    /// Run init.sh without asking
    #[arg(short = 'r', long)]
    run_init_script: bool,
}

pub(crate) fn run(options: &Init) -> Result<ExitCode, Failure> {
    let directory = std::path::absolute(&options.directory)
        .map_err(|e| Failure::new(format!("{}: {e}", options.directory.display())))?;
    prepare(&directory)?;
    let known = TEMPLATES.iter().find(|(name, _)| *name == options.template);
    let address = known.map_or(options.template.as_str(), |(_, address)| address);
    let cloned = clone(address, options.ref_name.as_deref(), &directory)?;
    let tree = format!("{}/tree/{}", address.trim_end_matches('/'), cloned.commit);
    let (name, folder) = (&options.name, directory.display().to_string());
    say(&format!("Initialized package {name:?} in directory {folder:?} from {tree} ({})\n", cloned.branch))?;
    if directory.join(NOTES).is_file() {
        say(&format!("\n{}\n", read(&directory.join(NOTES))?))?;
    }
    let script = directory.join(SCRIPT);
    if script.is_file() && (options.run_init_script || agreed(&script)?) {
        run_script(&script, name, &directory)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> Result<(), Failure> {
    transom_console::print(text.as_bytes())?;
    // A question must be seen before it is answered.
    std::io::stdout().flush().map_err(|e| Failure::new(format!("cannot write to stdout: {e}")))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))
}

/// The folder exists, and has nothing but perhaps a Git repository in it.
fn prepare(directory: &Path) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot use {}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(cannot)?;
    let mut names = Vec::new();
    for item in std::fs::read_dir(directory).map_err(cannot)? {
        let name = item.map_err(cannot)?.file_name();
        if name != ".git" {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    let names = names.join(", ");
    Err(Failure::new(format!("{} is not empty: {names}", directory.display()))
        .remedy("give an empty folder, or one that does not exist, with -d"))
}

struct Cloned {
    commit: String,
    branch: String,
}

/// Puts the files of a repository into a folder, without its history.
fn clone(address: &str, ref_name: Option<&str>, directory: &Path) -> Result<Cloned, Failure> {
    let scratch = Scratch(directory.join(format!(".xpkg-init-{}", std::process::id())));
    let mut arguments: Vec<&OsStr> = ["clone", "--quiet", "--depth", "1"].map(OsStr::new).into();
    if let Some(name) = ref_name {
        let short = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/"));
        arguments.extend([OsStr::new("--branch"), OsStr::new(short.unwrap_or(name))]);
    }
    arguments.extend([OsStr::new("--"), OsStr::new(address), scratch.0.as_os_str()]);
    git(&arguments).map_err(|problem| {
        let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        Failure::new(format!("cannot clone {address}: {problem}"))
            .remedy(format!("give the URL or path of a Git repository, or one of {}", names.join(", ")))
    })?;
    let ask = |question: &[&str]| {
        let mut arguments = vec![OsStr::new("-C"), scratch.0.as_os_str()];
        arguments.extend(question.iter().map(OsStr::new));
        git(&arguments).map_err(|problem| Failure::new(format!("{address}: {problem}")))
    };
    let commit = ask(&["rev-parse", "HEAD"])?;
    let branch = ask(&["rev-parse", "--abbrev-ref", "HEAD"])?;
    let branch = if branch == "HEAD" { ref_name.unwrap_or("HEAD").to_owned() } else { branch };
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write to {}: {e}", directory.display()));
    std::fs::remove_dir_all(scratch.0.join(".git")).map_err(cannot)?;
    for item in std::fs::read_dir(&scratch.0).map_err(cannot)? {
        let item = item.map_err(cannot)?;
        std::fs::rename(item.path(), directory.join(item.file_name())).map_err(cannot)?;
    }
    Ok(Cloned { commit, branch })
}

/// What git prints, or why it fails.
fn git(arguments: &[&OsStr]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).output();
    let output = output.map_err(|e| format!("the program git cannot be run: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr).replace('\n', "; ")),
    }
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A clone that failed has removed it already.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Whether the user wants the script to be run. Without an answer, it is not.
fn agreed(script: &Path) -> Result<bool, Failure> {
    say("\nFound init.sh script!\n")?;
    loop {
        say("Do you want to run it? [y]es/[n]o/[v]iew: ")?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.map_err(|e| Failure::new(format!("cannot read the answer: {e}")))?;
        match answer.trim() {
            "y" | "yes" => return Ok(true),
            "v" | "view" => say(&format!("\n{}\n", self::read(script)?))?,
            other => {
                if other.is_empty() {
                    anstream::eprintln!("init.sh was not run; -r runs it without asking");
                }
                return Ok(false);
            }
        }
    }
}

fn run_script(script: &Path, name: &str, directory: &Path) -> Result<(), Failure> {
    let failed = |problem: String| Failure::new(format!("{} {problem}", script.display()));
    let status = Command::new(script).arg(name).arg(directory).status();
    let status = status.map_err(|e| failed(format!("cannot be run: {e}")).remedy("make it executable"))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(format!("failed: {status}"))),
    }
}
