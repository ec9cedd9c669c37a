//! `transom convert`: the kinds of the first design of composition, written as today's.
//!
//! The translation is `transom_xapi::first_design`. Here files are read, what is wrong is shown where it was written, and the
//! result is checked as an API server would ([`check`]), so that what is printed can be applied.

mod check;

use crate::render::manifests::{self, Manifest};
use crate::render::{Format, documents};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use transom_console::Failure;
use transom_xapi::first_design::{self, Field};

/// Print the kinds of the first design of composition as today's
///
/// ApplicationDefinition, InfrastructureDefinition, InfrastructurePublication, Composition of version v1alpha1, and their instances
/// become definitions, Compositions, composite resources and claims, in the order in which they can be applied. Other objects are
/// printed as they are. Warnings on stderr name what today's kinds do not have.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom convert platform.yaml > today.yaml       definitions, Compositions and instances that belong together
  transom convert definitions compositions -o json
  cat platform.yaml | transom convert -

docs/design-004.md says how each part of the design is written today.")]
pub(crate) struct Convert {
    /// Files, directories of YAML files, or - for stdin. What refers to each other is given together
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// How objects are printed
    #[arg(short = 'o', long, default_value = "yaml", value_name = "FORMAT")]
    output: Format,
}

pub(crate) fn run(options: &Convert) -> Result<ExitCode, Failure> {
    let mut given = Vec::new();
    for path in &options.files {
        given.extend(manifests::load(path, "the objects to convert")?);
    }
    if given.is_empty() {
        return Err(Failure::new("there is nothing to convert: the files hold no object"));
    }
    let objects: Vec<Value> = given.iter().map(|manifest| manifest.object.clone()).collect();
    let translation = first_design::translate(&objects);
    let at = |input: usize, field: &Field, what: String| match given.get(input) {
        Some(manifest) => manifest.wrong(field.pointer(), what),
        None => Failure::new(what),
    };
    for remark in &translation.remarks {
        at(remark.input, &remark.field, remark.to_string()).warn();
    }
    let mistakes = translation.mistakes.iter();
    Failure::all(mistakes.map(|mistake| at(mistake.input, &mistake.field, mistake.to_string())))?;
    let changed =
        |translated: &&first_design::Translated| objects.get(translated.input) != Some(&translated.object);
    let refused = translation.objects.iter().filter(changed).flat_map(|translated| {
        let manifest: Option<&Manifest> = given.get(translated.input);
        manifest.map(|manifest| check::refusals(manifest, &translated.object)).unwrap_or_default()
    });
    Failure::all(refused)?;
    let objects: Vec<Value> = translation.objects.into_iter().map(|translated| translated.object).collect();
    transom_console::print(documents::print(&objects, options.output).as_bytes())
}
