//! What went wrong in a pipeline, and where in the Composition.

use super::{Job, documents};
use serde_json::Value;
use transom_builtins::Review;
use transom_compose::{Cause, environment};
use transom_console::Failure;
use transom_object::error_chain::chain;
use transom_object::{fieldpath, meta};

/// The input of a step, and what is wrong with it.
struct Reviewed {
    /// Where the input is in the Composition, as a JSON pointer.
    pointer: String,
    /// What the input belongs to.
    title: String,
    review: Review,
}

impl Job<'_> {
    /// Warns of what built-in functions ignore in their input. What they refuse is reported when they do.
    pub(super) fn warn(&self) {
        let steps = (0..self.composition.spec.pipeline.len()).filter_map(|index| self.review(index));
        for reviewed in steps.chain(self.review_templates()).filter(|reviewed| !reviewed.review.refused) {
            self.mistakes(&reviewed).iter().for_each(Failure::warn);
        }
    }

    /// Shows on stderr what was wanted before a pipeline failed, and points at what did.
    pub(super) fn explain(&self, failure: &transom_compose::Failure) -> Failure {
        self.show_progress(failure);
        let index = failure.step().and_then(|name| self.step(name));
        let refused = match (&failure.cause, index) {
            (Cause::Fatal { .. }, Some(index)) => self.review(index),
            (Cause::Fatal { .. }, None) => self.review_templates(),
            _ => None,
        };
        let mistakes =
            refused.filter(|reviewed| reviewed.review.refused).map(|reviewed| self.mistakes(&reviewed));
        let mistakes = mistakes.unwrap_or_default();
        // The classic form has the wording of the original.
        if self.options.classic_output || mistakes.is_empty() {
            return self.at_step(failure, index).and(mistakes);
        }
        Failure::all(mistakes).err().unwrap_or_else(|| self.at_step(failure, index))
    }

    fn show_progress(&self, failure: &transom_compose::Failure) {
        let mut so_far = Vec::new();
        for (name, resource) in failure.desired.iter().flat_map(|state| &state.resources) {
            let mut object = resource.object().clone();
            meta::set_annotation(&mut object, "crossplane.io/composition-resource-name", name);
            so_far.push(object);
        }
        if !so_far.is_empty() {
            let so_far = documents::print(&so_far, self.options.output);
            transom_console::print_to_stderr(&format!(
                "{so_far}---\n# wanted before the pipeline failed; not applied\n"
            ));
        }
        for event in &failure.events {
            transom_console::print_to_stderr(&format!("{}: {}\n", event.r#type.as_str(), event.text()));
        }
    }

    /// A failure that points at a step, or at the part of it that is to blame.
    fn at_step(&self, failure: &transom_compose::Failure, index: Option<usize>) -> Failure {
        let what = format!("cannot render {}: {}", meta::name(self.xr), chain(failure));
        if failure.step() == Some(environment::STEP) {
            let remedy = "give the EnvironmentConfigs with --required-resources";
            return self.manifest.wrong("/spec/environment", what).remedy(remedy);
        }
        let Some(index) = index else { return Failure::new(what) };
        let pointer = format!("/spec/pipeline/{index}");
        let input = format!("{pointer}/input");
        let bad_path = || bad_path(self.manifest.object.pointer(&input)?, &input);
        let pointer = match &failure.cause {
            Cause::Fatal { .. } => bad_path().unwrap_or_else(|| format!("{pointer}/step")),
            Cause::NotAllowed { .. } | Cause::BadPattern { .. } => format!("{pointer}/allowedExtraResources"),
            Cause::InputRef { .. } => format!("{pointer}/inputRef"),
            Cause::Unstable { .. } => format!("{pointer}/maxIterations"),
            Cause::Credentials { .. } => format!("{pointer}/credentials"),
            Cause::RequiredResources { .. } | Cause::RequiredSchema { .. } => {
                format!("{pointer}/requirements")
            }
            _ => format!("{pointer}/step"),
        };
        self.manifest.wrong(&pointer, what).remedy(remedy(&failure.cause))
    }

    fn step(&self, name: &str) -> Option<usize> {
        self.composition.spec.pipeline.iter().position(|step| step.step == name)
    }

    /// What is wrong with the input of a step, if it is in the Composition and the function is built in.
    fn review(&self, index: usize) -> Option<Reviewed> {
        let step = self.composition.spec.pipeline.get(index)?;
        let built_in = self.runtime.built_in(step.function_name())?;
        let pointer = format!("/spec/pipeline/{index}/input");
        let input = self.manifest.object.pointer(&pointer)?.as_object()?;
        let title = format!("the input of pipeline step {:?}", step.step);
        Some(Reviewed { pointer, title, review: transom_builtins::review_input(built_in, input) })
    }

    /// What is wrong with the templates of a Composition of mode Resources.
    fn review_templates(&self) -> Option<Reviewed> {
        let spec = self.manifest.object.get("spec")?.as_object()?;
        self.composition.spec.is_resources_mode().then(|| Reviewed {
            pointer: "/spec".to_owned(),
            title: "the templates".to_owned(),
            review: transom_builtins::review_templates(spec),
        })
    }

    fn mistakes(&self, Reviewed { pointer, title, review }: &Reviewed) -> Vec<Failure> {
        let mistakes = review.mistakes.iter().map(|mistake| {
            let what = format!("in {title}: {}", mistake.what);
            let failure = self.manifest.wrong(&format!("{pointer}{}", mistake.pointer), what);
            mistake.remedy.iter().fold(failure, |failure, remedy| failure.remedy(remedy))
        });
        mistakes.collect()
    }
}

fn remedy(cause: &Cause) -> &'static str {
    match cause {
        Cause::Run { .. } => "is the function running, with --insecure, at the address in its annotation?",
        Cause::Credentials { .. } => "give the Secret with --function-credentials",
        Cause::InputRef { .. } => "give the object with --required-resources",
        Cause::Input { .. } => "the input must be an object",
        Cause::RequiredResources { .. } | Cause::Requirement { .. } => {
            "give the resources with --required-resources"
        }
        Cause::RequiredSchema { .. } => "give the schemas with --required-schemas",
        Cause::NotAllowed { .. } => {
            "the step limits what its function may require: add this to allowedExtraResources to allow it"
        }
        Cause::BadPattern { .. } => "correct the pattern; * alone matches everything",
        Cause::ResourceName { .. } => "the function must give every composed resource a name",
        Cause::Unstable { .. } => {
            "the function keeps requiring something else; that is a bug of the function, or maxIterations is too low"
        }
        _ => "the function reports this; its message says why",
    }
}

/// A field path in a function's input that does not parse, as a JSON pointer.
fn bad_path(input: &Value, pointer: &str) -> Option<String> {
    match input {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let inner = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            match value {
                Value::String(path)
                    if ["fromFieldPath", "toFieldPath", "fieldPath"].contains(&key.as_str()) =>
                {
                    fieldpath::parse(path).is_err().then_some(inner)
                }
                value => bad_path(value, &inner),
            }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| bad_path(item, &format!("{pointer}/{i}")))
        }
        _ => None,
    }
}
