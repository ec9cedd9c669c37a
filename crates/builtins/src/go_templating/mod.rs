//! `function-go-templating`: resources written as Go templates.
//!
//! The path of a call: [`input`] is read, [`source`] finds the template's text, [`cache`] parses it once, [`data`]
//! turns the request into what the template sees, the engine renders with our [`functions`], [`manifests`] reads the
//! rendered text as Kubernetes would, and [`desired`] turns each manifest into a part of the answer. [`diagnosis`]
//! writes the messages of errors in templates.
//!
//! Everything that goes wrong because of the input is a fatal result whose first line is worded as the original
//! words it; lines below it show the place in the template and what was found there.

mod cache;
mod conditions;
mod data;
mod desired;
mod diagnosis;
mod functions;
mod input;
mod manifests;
mod requirements;
mod source;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Map, Value};
use transom_function::{DEFAULT_TTL, RunFunctionRequest, RunFunctionResponse};
use transom_gotemplate::{Context, Functions, Limits, Options, System};

use cache::Cache;
use input::Input;
use source::{Files, Source};

use crate::review::{self, Builtin, Review, Unsupported};
use crate::ttl;

/// The most text a template may render. A response over gRPC holds no more by default, and reading more takes
/// longer than a hostile template should.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// Go templates as a composition function.
pub struct GoTemplating {
    functions: Functions,
    limits: Limits,
    files: Files,
    default_source: Option<String>,
    default_options: Vec<String>,
    ttl: Duration,
    cache: Cache,
}

impl Default for GoTemplating {
    fn default() -> Self {
        Self {
            functions: functions::functions(Arc::new(System::default())),
            limits: Limits { output: MAX_OUTPUT_BYTES, ..Limits::default() },
            files: Files::default(),
            default_source: None,
            default_options: Vec::new(),
            ttl: DEFAULT_TTL,
            cache: Cache::default(),
        }
    }
}

impl GoTemplating {
    /// The instance every caller in this process shares, and with it what has been parsed.
    pub fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<GoTemplating>> = LazyLock::new(Arc::default);
        SHARED.clone()
    }

    /// The clock and the randomness templates see.
    #[must_use]
    pub fn with_context(mut self, context: Arc<dyn Context>) -> Self {
        self.functions = functions::functions(context);
        self
    }

    /// Reads the source `FileSystem` below a folder only: it is the root of the paths in an input, and nothing
    /// outside of it is read, whatever links point to.
    #[must_use]
    pub fn with_files_below(mut self, root: impl Into<PathBuf>) -> Self {
        self.files = Files::below(root.into());
        self
    }

    /// The folder to read templates from when an input names no source.
    #[must_use]
    pub fn with_default_source(mut self, folder: impl Into<String>) -> Self {
        self.default_source = Some(folder.into()).filter(|folder| !folder.is_empty());
        self
    }

    /// The options that hold when an input has none, separated by commas, such as `missingkey=error`. An empty text
    /// means no options; commas alone mean empty options, which are refused, as upstream does.
    #[must_use]
    pub fn with_default_options(mut self, options: &str) -> Self {
        self.default_options = match options {
            "" => Vec::new(),
            options => options.split(',').map(str::to_owned).collect(),
        };
        self
    }

    /// The documents the request's template renders.
    fn render(
        &self,
        request: &RunFunctionRequest,
        input: &Input,
    ) -> Result<Vec<manifests::Manifest>, String> {
        let source = Source::find(input, request, &self.files, self.default_source.as_deref())
            .map_err(|problem| format!("invalid function input: {problem}"))?;
        let composed = request.observed.as_ref().is_some_and(|observed| !observed.resources.is_empty());
        let absent = diagnosis::Absent { observed_resources: !composed };
        let mut options = Options::default();
        if let Some((left, right)) = input.delimiters() {
            (options.left_delimiter, options.right_delimiter) = (left.to_owned(), right.to_owned());
        }
        let set = input.options.as_deref().unwrap_or(&self.default_options);
        // A template that cannot be parsed is reported before an option that does not exist.
        let refused = set.iter().try_for_each(|option| options.set(option)).err();
        let template = self.cache.parse(&source.text, options, &self.functions).map_err(|error| {
            let shown = diagnosis::show(&error, &source, &absent);
            format!("invalid function input: cannot parse the provided templates: {shown}")
        })?;
        if let Some(problem) = refused {
            return Err(format!(
                "cannot apply template options: panic occurred while applying template options: {problem}"
            ));
        }
        let data = data::of(request);
        let rendered = template.execute(&data, &self.functions, &self.limits).map_err(|error| {
            format!("cannot execute template: {}", diagnosis::show(&error, &source, &absent))
        })?;
        manifests::read(&rendered).map_err(|problem| match problem {
            manifests::Problem::Text(problem) => format!("cannot decode manifest: {problem}"),
            manifests::Problem::Annotations(problem) => problem,
        })
    }

    fn apply(
        &self,
        request: &mut RunFunctionRequest,
        response: &mut RunFunctionResponse,
    ) -> Result<(), String> {
        let input = Input::read(request)?;
        // An invalid duration is ignored, as in the original.
        let _ = ttl::set(response, &input.ttl);
        let manifests = self.render(request, &input)?;
        desired::apply(manifests, request, response)
    }
}

impl Builtin for GoTemplating {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        // What the template sees includes what was desired, so the answer takes that over only afterwards.
        let mut response = RunFunctionResponse::default();
        response.meta.get_or_insert_default().tag = request.tag().to_owned();
        response.set_ttl(self.ttl);
        if let Err(problem) = self.apply(request, &mut response) {
            desired::pass_on(request, &mut response);
            response.fatal(diagnosis::bounded(problem));
        }
        response
    }

    fn input_kind(&self) -> &'static str {
        "GoTemplate"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Refused)
    }
}

review::function!(GoTemplating);
