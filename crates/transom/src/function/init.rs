//! `transom function init`: a new project.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_authoring::language::Language;
use transom_authoring::template::{self, Sdk};
use transom_console::Failure;

/// Create a project for a new function
///
/// It builds, has a passing unit test, an input with its CRD, examples, and requests with expected responses.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function init function-hello --language go
  transom function init function-hello --language python --directory hello
  transom function init function-hello --language rust
  transom function init function-hello --language rust --sdk ../transom    with the SDK of a copy of Transom")]
pub(crate) struct Init {
    /// The name of the function
    #[arg(value_name = "NAME")]
    name: String,

    /// The language
    #[arg(short = 'l', long)]
    language: LanguageName,

    /// The folder to create, or an empty one; by default named after the function
    #[arg(short = 'd', long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Rust only: use the crate transom-function, which is here: a folder with a copy of Transom, or the URL of its Git
    /// repository [default: Crossplane's crate function-sdk-rust]
    #[arg(long, value_name = "DIR|URL")]
    sdk: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LanguageName {
    Rust,
    Go,
    Python,
    Typescript,
}

impl LanguageName {
    fn language(self) -> Language {
        match self {
            Self::Rust => Language::Rust,
            Self::Go => Language::Go,
            Self::Python => Language::Python,
            Self::Typescript => Language::TypeScript,
        }
    }
}

pub(crate) fn run(options: &Init) -> Result<ExitCode, Failure> {
    let language = options.language.language();
    let sdk = options.sdk.as_deref().map(sdk).transpose()?;
    let files = template::project(language, &options.name, sdk.as_ref())
        .map_err(|e| Failure::new(e.to_string()).remedy("write it like function-hello"))?;
    let folder = options.directory.clone().unwrap_or_else(|| PathBuf::from(&options.name));
    check_empty(&folder)?;
    for file in files {
        let path = folder.join(&file.path);
        let created = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = created.and_then(|()| std::fs::write(&path, &file.content));
        written.map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
    }
    let steps = language.first_steps().join("\n  ");
    anstream::eprintln!("Next:\n  cd {}\n  {steps}\n  transom function test . cases", folder.display());
    transom_console::print(format!("{}\n", folder.display()).as_bytes())
}

/// Where the SDK is. A folder may be that of the crate, or that of a copy of Transom.
fn sdk(named: &str) -> Result<Sdk, Failure> {
    let path = Path::new(named);
    if !path.is_dir() {
        return Ok(Sdk::Git(named.to_owned()));
    }
    let inside = path.join("crates/function");
    let path = if inside.is_dir() { inside } else { path.to_owned() };
    let path = path.canonicalize().map_err(|e| Failure::new(format!("cannot read {named}: {e}")))?;
    Ok(Sdk::Path(path.display().to_string()))
}

/// An empty folder may exist already, also one with a Git repository.
fn check_empty(folder: &Path) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return match folder.exists() {
            true => Err(Failure::new(format!("{} is not a folder", folder.display()))
                .remedy("--directory names another")),
            false => Ok(()),
        };
    };
    match entries.flatten().find(|entry| entry.file_name() != ".git") {
        Some(entry) => {
            let found = entry.file_name().to_string_lossy().into_owned();
            Err(Failure::new(format!("{} is not empty: it holds {found}", folder.display()))
                .remedy("--directory names another folder"))
        }
        None => Ok(()),
    }
}
