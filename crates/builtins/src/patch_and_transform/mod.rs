//! `function-patch-and-transform`: resources from templates, with fields patched between them, the composite resource
//! and the environment.
//!
//! [`run`] is the whole of it, over a request whose input has been decoded ([`input::Resources`]) and validated. Its
//! [`Profile`] distinguishes the function from compositions of mode `Resources`, which have the same language and differ in
//! what numbers are, in how texts are joined and in what a patch that fails costs.

mod connection;
mod document;
pub(crate) mod input;
pub(crate) mod native;
mod patches;
mod readiness;
#[cfg(test)]
mod tables;
mod transforms;
mod validate;
mod violations;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use transom_function::{
    ENVIRONMENT, Error, Ready, Resource, RunFunctionRequest, RunFunctionResponse, Struct,
};
use transom_object::quote::quote;
use transom_object::{GroupVersion, GroupVersionKind, meta};

use crate::review::{self, Builtin, Review};
use crate::{desired, environment_configs, strict};
use connection::Details;
use document::{Document, Numbers};
use input::{ComposedTemplate, Patch, PatchType, Resources};
use patches::{PatchError, Patcher};
use transforms::Join;

/// The function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PatchAndTransform;

impl Builtin for PatchAndTransform {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        let input = strict::input::<Resources>(request, "v1beta1.Resources")
            .map_err(|e| e.context("cannot get Function input"));
        let mut response = request.start_response();
        let input = match input.and_then(|input| validate(&input).map(|()| input)) {
            Ok(input) => input,
            Err(error) => return fatal(response, error.to_string()),
        };
        match make_environment(&input, request, &mut response) {
            Ok(true) => run(&input, request, response, Profile::Function),
            Ok(false) => response,
            Err(error) => fatal(response, format!("cannot make the environment: {error}")),
        }
    }

    fn input_kind(&self) -> &'static str {
        "Resources"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        violations::review(input)
    }
}

review::function!(PatchAndTransform);

/// Which of the two users of this language it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A step of a pipeline, with the original's quirks.
    Function,
    /// A composition of mode `Resources`: numbers are what they are, texts are joined with separators between them,
    /// and a patch that fails leaves out its resource rather than stopping all. A resource that is left out and exists
    /// stays as it is: the caller must not treat it as unwanted.
    Native,
}

/// Checks that an input makes sense.
pub(crate) fn validate(input: &Resources) -> Result<(), Error> {
    validate::resources(input, validate::Sets::Unnumbered)
        .map_err(|e| Error::fatal(format!("invalid Function input: {e}")))
}

/// Makes the environment from the EnvironmentConfigs that the input names, if it names any, and puts it into the context.
/// Returns whether all of them were there; if not, the response requires them.
fn make_environment(
    input: &Resources,
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
) -> Result<bool, String> {
    let Some(environment) = &input.environment else { return Ok(true) };
    let mut spec = Map::new();
    if let Some(sources) = &environment.environment_configs {
        spec.insert("environmentConfigs".to_owned(), sources.clone().into());
    }
    let parts = [("defaultData", &environment.default_data), ("policy", &environment.policy)];
    for (field, value) in parts {
        spec.extend(value.clone().map(|value| (field.to_owned(), value.into())));
    }
    if spec.is_empty() { Ok(true) } else { environment_configs::native::make(spec.into(), request, response) }
}

fn fatal(mut response: RunFunctionResponse, message: impl Into<String>) -> RunFunctionResponse {
    response.fatal(message);
    response
}

/// Composes resources. The desired state and the context of the earlier steps have moved from the request to the
/// response; when something is fatal, they come back as they are.
pub(crate) fn run(
    input: &Resources,
    request: &RunFunctionRequest,
    response: RunFunctionResponse,
    profile: Profile,
) -> RunFunctionResponse {
    let mut run = Run::new(request, response, profile);
    match run.all(input) {
        Ok(()) => run.finish(),
        Err(message) => run.fail(message),
    }
}

/// One run: the observed state, and the desired state that it changes.
struct Run<'r> {
    request: &'r RunFunctionRequest,
    response: RunFunctionResponse,
    profile: Profile,
    patcher: Patcher,
    composite: Document<'r>,
    desired_composite: Document<'static>,
    environment: Document<'static>,
    details: Details,
    /// Which template each connection detail comes from.
    publishers: BTreeMap<String, String>,
    composed: BTreeMap<String, Composed>,
    /// Whether a resource was left out that is to come later.
    skipped: bool,
}

struct Composed {
    document: Document<'static>,
    ready: Ready,
}

impl<'r> Run<'r> {
    fn new(request: &'r RunFunctionRequest, response: RunFunctionResponse, profile: Profile) -> Self {
        let (numbers, join) = match profile {
            Profile::Function => (Numbers::Floats, Join::Function),
            Profile::Native => (Numbers::Integers, Join::Native),
        };
        let composite = Document::of(request.observed_composite().object(), numbers);
        let desired = response.desired.as_ref().and_then(|desired| desired.composite.as_ref());
        let details = desired.map(|desired| desired.connection_details.clone()).unwrap_or_default();
        let desired = desired.map_or(Value::Null, |desired| desired.object().clone());
        let mut desired_composite = Document::new(desired, numbers);
        // Patches can be made only to what has a kind.
        desired_composite.set_text("apiVersion", composite.text("apiVersion"));
        desired_composite.set_text("kind", composite.text("kind"));
        let context = response.context.as_ref().map(Struct::fields);
        let environment = context.and_then(|context| context.get(ENVIRONMENT));
        let mut environment = Document::new(environment.cloned().unwrap_or_default(), numbers);
        if environment.is_anonymous() {
            environment.set_text("apiVersion", "internal.crossplane.io/v1alpha1");
            environment.set_text("kind", "Environment");
        }
        Self {
            request,
            response,
            profile,
            patcher: Patcher::new(join),
            composite,
            desired_composite,
            environment,
            details,
            publishers: BTreeMap::new(),
            composed: BTreeMap::new(),
            skipped: false,
        }
    }

    fn all(&mut self, input: &Resources) -> Result<(), String> {
        let patches = patches::inlined(input).map_err(|e| format!("cannot resolve PatchSets: {e}"))?;
        let environment = input.environment.iter().flat_map(|environment| &environment.patches);
        for (i, patch) in environment.enumerate() {
            match self.patch_environment(patch) {
                Err(error) if !(error.is_not_found() && patch.is_optional()) => {
                    let kind = quote(patch.kind.as_str());
                    return Err(format!("cannot apply the {kind} environment patch at index {i}: {error}"));
                }
                _ => {}
            }
        }
        for (template, patches) in input.resources.iter().zip(&patches) {
            self.compose(template, patches)?;
        }
        if !self.details.is_empty() && !connection::is_supported(&self.composite) {
            let to = input.write_connection_secret_to_ref.as_ref();
            let secret = connection::secret(&self.composite, &self.details, to, &mut self.patcher);
            let document = secret.map_err(|e| format!("cannot compose connection secret: {e}"))?;
            let name = format!("{}-connection-secret", self.composite.metadata("name"));
            self.composed.insert(name, Composed { document, ready: Ready::True });
        }
        Ok(())
    }

    /// Between the observed composite resource and the environment, or the environment and the desired one.
    fn patch_environment(&mut self, patch: &Patch) -> Result<(), PatchError> {
        match patch.kind {
            PatchType::FromComposite | PatchType::ToEnvironment | PatchType::CombineFromComposite => {
                self.patcher.apply(patch, &self.composite, &mut self.environment)
            }
            PatchType::ToComposite | PatchType::FromEnvironment | PatchType::CombineToComposite => {
                self.patcher.apply(patch, &self.environment, &mut self.desired_composite)
            }
            _ => Ok(()),
        }
    }

    fn compose(&mut self, template: &ComposedTemplate, patches: &[&Patch]) -> Result<(), String> {
        let mut desired = self.base(template)?;
        let observed = self.request.observed_composed(&template.name);
        if let (Profile::Native, Some(observed)) = (self.profile, observed) {
            stays_of_its_kind(template, observed.object(), &desired)?;
        }
        let mut ready = Ready::Unspecified;
        let exists = observed.map(|observed| {
            let document = Document::of(observed.object(), self.composite.numbers());
            desired.set_metadata("namespace", document.metadata("namespace"));
            desired.set_metadata("name", document.metadata("name"));
            self.read_connection_details(template, observed, &document);
            ready = self.readiness(template, &document);
            document
        });
        for (i, patch) in patches.iter().enumerate() {
            let Err(error) = self.patch_composed(patch, exists.as_ref(), &mut desired) else { continue };
            if self.outcome(template, (i, patch), exists.is_some(), &error)? == Outcome::SkipResource {
                self.skipped = true;
                return Ok(());
            }
        }
        self.composed.insert(template.name.clone(), Composed { document: desired, ready });
        Ok(())
    }

    /// What the resource starts from: its base, or the desired resource of an earlier step.
    fn base(&self, template: &ComposedTemplate) -> Result<Document<'static>, String> {
        let name = quote(&template.name);
        let Some(base) = &template.base else {
            // An earlier template of this step may have made it, too.
            if let Some(composed) = self.composed.get(&template.name) {
                return Ok(composed.document.clone());
            }
            let earlier =
                self.response.desired.as_ref().and_then(|desired| desired.resources.get(&template.name));
            return match earlier {
                Some(resource) => Ok(Document::new(resource.object().clone(), self.composite.numbers())),
                None => Err(format!(
                    "composed resource {name} has no base template, and was not produced by a previous Function in the pipeline"
                )),
            };
        };
        let failed = |why: String| format!("cannot parse base template of composed resource {name}: {why}");
        if !base.is_object() {
            let found = transom_object::json::kind_of(base);
            return Err(failed(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
        let document = Document::new(base.clone(), Numbers::Integers);
        document.check_kind().map_err(failed)?;
        Ok(document)
    }

    fn read_connection_details(
        &mut self,
        template: &ComposedTemplate,
        observed: &Resource,
        document: &Document<'_>,
    ) {
        match connection::extract(document, &observed.connection_details, &template.connection_details) {
            Ok(details) => {
                self.warn_of_repeated(template, &details);
                self.details.extend(details);
            }
            Err(error) => {
                let name = quote(&template.name);
                self.response.warning(format!(
                    "cannot extract composite resource connection details from composed resource {name}: {error}"
                ));
            }
        }
    }

    /// Of two templates that publish a detail of the same name the last is kept; probably a mistake of the author.
    fn warn_of_repeated(&mut self, template: &ComposedTemplate, details: &Details) {
        if self.profile == Profile::Function {
            return;
        }
        for detail in details.keys() {
            let Some(first) = self.publishers.insert(detail.clone(), template.name.clone()) else { continue };
            let (detail, first, last) = (quote(detail), quote(&first), quote(&template.name));
            self.response.warning(format!(
                "composed resources {first} and {last} both publish connection detail {detail}: that of {last} is \
                 used; give one of them another name"
            ));
        }
    }

    fn readiness(&mut self, template: &ComposedTemplate, observed: &Document<'_>) -> Ready {
        match readiness::is_ready(observed, &template.readiness_checks) {
            Ok(true) => Ready::True,
            Ok(false) => Ready::Unspecified,
            Err(error) => {
                let name = quote(&template.name);
                self.response.warning(format!("cannot check readiness of composed resource {name}: {error}"));
                Ready::Unspecified
            }
        }
    }

    /// Patches from a resource that does not exist yet wait for it.
    fn patch_composed(
        &mut self,
        patch: &Patch,
        observed: Option<&Document<'_>>,
        desired: &mut Document<'_>,
    ) -> Result<(), PatchError> {
        match (&patch.kind, observed) {
            (PatchType::FromComposite | PatchType::CombineFromComposite, _) => {
                self.patcher.apply(patch, &self.composite, desired)
            }
            (PatchType::FromEnvironment | PatchType::CombineFromEnvironment, _) => {
                self.patcher.apply(patch, &self.environment, desired)
            }
            (PatchType::ToComposite | PatchType::CombineToComposite, Some(observed)) => {
                self.patcher.apply(patch, observed, &mut self.desired_composite)
            }
            (PatchType::ToEnvironment | PatchType::CombineToEnvironment, Some(observed)) => {
                self.patcher.apply(patch, observed, &mut self.environment)
            }
            _ => Ok(()),
        }
    }

    /// What a patch that failed means for its resource and for the run.
    fn outcome(
        &mut self,
        template: &ComposedTemplate,
        (i, patch): (usize, &Patch),
        exists: bool,
        error: &PatchError,
    ) -> Result<Outcome, String> {
        let (name, kind) = (quote(&template.name), quote(patch.kind.as_str()));
        let failed = format!("cannot render composed resource {name} {kind} patch at index {i}");
        let to_composed = is_to_composed(&patch.kind);
        if error.is_not_found() && !patch.is_required() {
            return Ok(Outcome::SkipPatch);
        }
        if self.profile == Profile::Native && to_composed {
            self.response.warning(format!("{failed}: {error}"));
            return Ok(Outcome::SkipResource);
        }
        if self.profile == Profile::Native || !error.is_not_found() {
            return Err(format!("{failed}: {error}"));
        }
        // Only a resource that does not exist yet can be held back.
        let new = !exists && to_composed;
        if new {
            self.response.warning(format!(
                "not adding new composed resource {name} to desired state because {kind} patch at index {i} has 'policy.fromFieldPath: Required': {error}"
            ));
            return Ok(Outcome::SkipResource);
        }
        self.response.warning(format!(
            "{failed}: ignoring 'policy.fromFieldPath: Required' because 'to' resource already exists: {error}"
        ));
        Ok(Outcome::SkipPatch)
    }

    /// The response when something is fatal.
    fn fail(mut self, message: String) -> RunFunctionResponse {
        // The original adds details to those of the request, if it has any, which are also those of its response.
        let composite = self.response.desired.as_mut().and_then(|desired| desired.composite.as_mut());
        if let Some(composite) = composite.filter(|composite| !composite.connection_details.is_empty()) {
            composite.connection_details = self.details;
        }
        fatal(self.response, message)
    }

    /// The response with what was composed.
    fn finish(mut self) -> RunFunctionResponse {
        let composite = self.response.composite();
        composite.resource = Some(to_struct(self.desired_composite));
        composite.connection_details = self.details;
        composite.set_ready(if self.skipped { Ready::False } else { Ready::Unspecified });
        let state = desired::write_back(&mut self.response);
        for (name, Composed { document, ready }) in self.composed {
            let resource = Resource { resource: Some(to_struct(document)), ..Resource::default() };
            state.resources.insert(name, resource.with_ready(ready));
        }
        self.response.set_context(ENVIRONMENT, self.environment.into_value());
        self.response
    }
}

#[derive(PartialEq)]
enum Outcome {
    SkipPatch,
    SkipResource,
}

fn is_to_composed(kind: &PatchType) -> bool {
    use PatchType::{CombineFromComposite, CombineFromEnvironment, FromComposite, FromEnvironment};
    matches!(kind, FromComposite | FromEnvironment | CombineFromComposite | CombineFromEnvironment)
}

/// A composed resource that exists cannot become one of another kind.
fn stays_of_its_kind(
    template: &ComposedTemplate,
    observed: &Value,
    desired: &Document<'_>,
) -> Result<(), String> {
    let gvk =
        |api_version: &str, kind: &str| GroupVersion::parse(api_version).unwrap_or_default().with_kind(kind);
    let is = gvk(meta::api_version(observed), meta::kind(observed));
    let becomes = gvk(desired.text("apiVersion"), desired.text("kind"));
    if is.group_kind() == becomes.group_kind() {
        return Ok(());
    }
    let show = |gvk: &GroupVersionKind| format!("{}/{}, Kind={}", gvk.group, gvk.version, gvk.kind);
    Err(format!(
        "cannot change the kind of composed resource {} from {} to {}: is this the template it was composed from?",
        quote(&template.name),
        show(&is),
        show(&becomes),
    ))
}

/// A document is always an object.
fn to_struct(document: Document<'_>) -> Struct {
    Struct::try_from(document.into_value()).unwrap_or_default()
}
