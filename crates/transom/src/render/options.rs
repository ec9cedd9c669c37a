//! The flags of `transom render`: those of `crossplane composition render`.

use super::runtime::pair;
use crate::containers::ContainerArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use transom_console::duration;

/// Show what a composition makes of a composite resource, without a control plane.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom render xr.yaml composition.yaml                        every function of the pipeline is built in
  transom render xr.yaml composition.yaml functions.yaml -r      and show results and events
  transom render xr.yaml composition.yaml -o observed.yaml       as if these resources existed already
  transom render xr.yaml composition.yaml -e environment.yaml    with resources that functions may require

Functions whose package is built in run in this process, all others from their packages, in containers on this machine. To
call one that is running already, with --insecure, annotate its Function with render.crossplane.io/runtime: Development.")]
pub(crate) struct Render {
    /// The composite resources: a file, a directory of YAML files, or - for stdin
    #[arg(value_name = "XR")]
    pub(crate) composite: PathBuf,

    /// The Composition
    #[arg(value_name = "COMPOSITION")]
    pub(crate) composition: PathBuf,

    /// The Functions that the Composition calls; not needed when all of them are built in
    #[arg(value_name = "FUNCTIONS")]
    pub(crate) functions: Option<PathBuf>,

    /// A key of the pipeline's context and a file with its value in JSON or YAML; may be repeated
    #[arg(long, value_name = "KEY=FILE", value_parser = pair)]
    pub(crate) context_files: Vec<(String, String)>,

    /// A key of the pipeline's context and its value in JSON or YAML; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) context_values: Vec<(String, String)>,

    /// Append the results of functions and the events of the reconciler, as documents of kind Result
    #[arg(short = 'r', long)]
    pub(crate) include_function_results: bool,

    /// Merge the input XR into the rendered one
    #[arg(short = 'x', long)]
    pub(crate) include_full_xr: bool,

    /// Append the pipeline's final context, as a document of kind Context
    #[arg(short = 'c', long)]
    pub(crate) include_context: bool,

    /// Composed resources that exist already: a file or a directory. Also takes json or yaml, like --output
    #[arg(short = 'o', long, value_name = "PATH")]
    pub(crate) observed_resources: Vec<PathBuf>,

    /// Resources that functions may require: a file or a directory; may be repeated
    #[arg(short = 'e', long, visible_alias = "extra-resources", value_name = "PATH")]
    pub(crate) required_resources: Vec<PathBuf>,

    /// A directory of OpenAPI v3 documents with the schemas that functions may require
    #[arg(short = 's', long, value_name = "DIR")]
    pub(crate) required_schemas: Option<PathBuf>,

    /// The Secrets that pipeline steps use as credentials: a file or a directory
    #[arg(long, value_name = "PATH")]
    pub(crate) function_credentials: Option<PathBuf>,

    /// An annotation to set on all Functions; may be repeated
    #[arg(short = 'a', long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) function_annotations: Vec<(String, String)>,

    /// The XR's CompositeResourceDefinition: applies its defaults, and distinguishes legacy XRs from modern ones
    #[arg(long, value_name = "FILE")]
    pub(crate) xrd: Option<PathBuf>,

    /// How long the whole run may take
    #[arg(long, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) timeout: Duration,

    /// How documents are printed
    #[arg(long, default_value = "yaml", value_name = "FORMAT")]
    pub(crate) output: Format,

    /// Print what `crossplane render` printed up to v2.2
    #[arg(long)]
    pub(crate) classic_output: bool,

    /// Directory for the images of functions that run from their packages [default: $XDG_CACHE_HOME/transom or ~/.cache/transom]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) containers: ContainerArgs,

    #[command(flatten)]
    pub(crate) ignored: Ignored,
}

/// Flags for how Crossplane downloads and runs functions and itself. They have no effect here.
#[derive(Args)]
pub(crate) struct Ignored {
    #[arg(long, hide = true)]
    max_concurrency: Option<u32>,
    #[arg(short = 'f', long, hide = true)]
    project_file: Option<PathBuf>,
    #[arg(long, hide = true)]
    crossplane_version: Option<String>,
    #[arg(long, hide = true)]
    crossplane_image: Option<String>,
    #[arg(long, hide = true)]
    crossplane_binary: Option<PathBuf>,
    #[arg(long, hide = true)]
    crossplane_docker_network: Option<String>,
    #[arg(long, hide = true)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Yaml,
    Json,
}

impl Render {
    /// `-o` names observed resources in Crossplane and the output format everywhere else; both are understood.
    pub(crate) fn normalise(mut self) -> Self {
        self.observed_resources.retain(|path| {
            let format = match path.to_str() {
                Some("json") => Format::Json,
                Some("yaml") => Format::Yaml,
                _ => return true,
            };
            let is_format = !path.exists();
            if is_format {
                self.output = format;
            }
            !is_format
        });
        self
    }
}
