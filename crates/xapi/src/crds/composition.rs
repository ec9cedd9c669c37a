//! Compositions and their revisions.

use super::inline;
use super::schema::{
    Crd, IMMUTABLE, Version, anything, atomic, choice, column, integer, list, list_by, name_reference,
    object, ruled, text, texts_by_name, with,
};
use super::{age_column, conditioned_status};
use crate::constants::group;
use serde_json::{Value, json};

pub(super) fn composition() -> Value {
    let spec = object("How to compose.", &["compositeTypeRef"], spec(true));
    let spec = ruled(
        spec,
        &[
            (
                "self.mode != 'Pipeline' || has(self.pipeline) || has(self.resources) || has(self.functions)",
                "an array of pipeline steps is required in Pipeline mode",
            ),
            (
                "self.mode != 'Resources' || has(self.resources) || has(self.functions)",
                "an array of resources is required in Resources mode",
            ),
            (
                "!has(self.pipeline) || !has(self.resources) || size(self.resources) == 0",
                "pipeline and resources are mutually exclusive: resources become a step of the pipeline that calls \
                 function-patch-and-transform",
            ),
        ],
    );
    let version = Version {
        name: "v1",
        columns: vec![xr_kind(), xr_api_version(), age_column()],
        description: "A Composition lists the functions that compose a type of composite resource, in the order of their calls.",
        properties: json!({"spec": spec}),
        required: &[],
        status: false,
        deprecated: None,
    };
    crd("Composition", "compositions", &["comp"], version)
}

pub(super) fn revision() -> Value {
    let mut fields = spec(false);
    fields["revision"] = integer(
        "The number of the revision; the latest has the highest. A Composition that returns to an earlier state gets \
         the earlier revision back, with a new number.",
    );
    let spec = object(
        "The spec of the Composition when the revision was created.",
        &["compositeTypeRef", "revision"],
        fields,
    );
    let version = Version {
        name: "v1",
        columns: vec![
            column("REVISION", "string", ".spec.revision"),
            xr_kind(),
            xr_api_version(),
            age_column(),
        ],
        description: "A CompositionRevision is an earlier or the current state of a Composition. The control plane creates \
                      and updates it: do not edit it.",
        properties: json!({"spec": spec, "status": conditioned_status()}),
        required: &[],
        status: true,
        deprecated: None,
    };
    crd("CompositionRevision", "compositionrevisions", &["comprev"], version)
}

fn crd(
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    version: Version,
) -> Value {
    let group = group::APIEXTENSIONS;
    Crd {
        group,
        kind,
        plural,
        short_names,
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

fn xr_kind() -> Value {
    column("XR-KIND", "string", ".spec.compositeTypeRef.kind")
}

fn xr_api_version() -> Value {
    column("XR-APIVERSION", "string", ".spec.compositeTypeRef.apiVersion")
}

/// What a Composition and its revisions have in common. Only the Composition limits the number of steps.
fn spec(limited: bool) -> Value {
    let of = object(
        "The type of composite resource this composes.",
        &["apiVersion", "kind"],
        json!({"apiVersion": text("Group and version of the type."), "kind": text("Kind of the type.")}),
    );
    let mode = choice(
        "Pipeline runs the functions of the pipeline. Resources patches and transforms the resources as \
         function-patch-and-transform would, as Crossplane did before its second version.",
        &["Pipeline", "Resources"],
    );
    let mut pipeline = list_by("step", list("The functions to run, in this order.", step(limited)));
    if limited {
        pipeline = with(pipeline, json!({"minItems": 1, "maxItems": 99}));
    }
    json!({
        "compositeTypeRef": ruled(of, &[IMMUTABLE]),
        "mode": with(mode, json!({"default": "Pipeline"})),
        "pipeline": pipeline,
        "resources": list("Templates of the composed resources, in Resources mode.", anything("A template.")),
        "patchSets": list("Patches that several templates share, in Resources mode.", anything("A set of patches.")),
        "functions": inline::functions(limited),
        "environment": environment(),
        "writeConnectionSecretsToNamespace": text(
            "The namespace of the connection secrets of LegacyCluster composite resources that do not set one.",
        ),
        "publishConnectionDetailsWithStoreConfigRef": ruled(
            name_reference(
                "Without effect. Crossplane v1 sets it to default in every Composition; external secret stores do not \
                 exist.",
                "store configuration; only default is accepted",
            ),
            &[("self.name == 'default'", STORES)],
        ),
    })
}

const STORES: &str = "external secret stores are not supported: use writeConnectionSecretsToNamespace";

/// The environment of Crossplane v1, which function-environment-configs replaced.
fn environment() -> Value {
    let policy = object(
        "How EnvironmentConfigs are selected.",
        &[],
        json!({
            "resolve": choice("Accepted without effect: EnvironmentConfigs are selected at every reconcile.", &["Always", "IfNotPresent"]),
            "resolution":
                choice("Whether a referenced EnvironmentConfig must exist; Required by default.", &["Required", "Optional"]),
        }),
    );
    object(
        "Data that resources are composed from in addition to the composite resource, as in Crossplane v1: patches of mode \
         Resources read it, and functions get it in their context.",
        &[],
        json!({
            "defaultData": anything("The initial data of the environment, which EnvironmentConfigs are merged into."),
            "environmentConfigs": list("EnvironmentConfigs; later ones take precedence.", environment_source()),
            "patches": list(
                "Patches between the composite resource and the environment, in mode Resources.",
                anything("A patch."),
            ),
            "policy": policy,
        }),
    )
}

/// EnvironmentConfigs that are merged into the environment of Crossplane v1.
fn environment_source() -> Value {
    let matcher = object(
        "A label that the EnvironmentConfigs must have.",
        &["key"],
        json!({
            "type": choice("Where the value comes from; FromCompositeFieldPath by default.", &["FromCompositeFieldPath", "Value"]),
            "key": text("The label."),
            "valueFromFieldPath": text("The field of the composite resource that has the value."),
            "fromFieldPathPolicy":
                choice("Whether that field must exist; Required by default.", &["Optional", "Required"]),
            "value": text("The value itself."),
        }),
    );
    let selector = object(
        "Selects EnvironmentConfigs by their labels.",
        &[],
        json!({
            "mode": choice("Single (the default) selects exactly one, Multiple any number.", &["Single", "Multiple"]),
            "maxMatch": integer("How many to use at most, with mode Multiple."),
            "minMatch": integer("How many must match at least, with mode Multiple."),
            "sortByFieldPath": text("The field to sort them by; metadata.name by default."),
            "matchLabels": list("Labels they must have.", matcher),
        }),
    );
    ruled(
        object(
            "EnvironmentConfigs by name or labels.",
            &[],
            json!({
                "type": choice("Reference (the default) or Selector.", &["Reference", "Selector"]),
                "ref": name_reference("The EnvironmentConfig.", "EnvironmentConfig"),
                "selector": selector,
            }),
        ),
        &[(
            "has(self.type) && self.type == 'Selector' ? has(self.selector) : has(self.ref)",
            "type Reference needs ref, type Selector needs selector",
        )],
    )
}

const IMAGE: &str = "Instead of functionRef: the image of the function to call, as REPOSITORY@sha256:DIGEST. The active \
                     FunctionRevision with this image is called, regardless of the name of its Function.";
const IMAGE_PATTERN: &str = "^[^/:@]+(:[0-9]+)?(/[^/:@]+)+@sha256:[a-f0-9]{64}$";

fn step(limited: bool) -> Value {
    let input = with(
        anything("The input of the function: an object with apiVersion and kind."),
        json!({"x-kubernetes-embedded-resource": true}),
    );
    let input_ref = object(
        "The object that is the input of the function, so that Compositions can share it.",
        &["apiVersion", "kind", "name"],
        json!({
            "apiVersion": text("Group and version of the object."),
            "kind": text("Kind of the object."),
            "name": text("Name of the object."),
            "namespace": text("Namespace of the object, if it has one."),
        }),
    );
    let labels = json!({"matchLabels": texts_by_name("Labels the revision must have.")});
    let step = object(
        "One call of a function.",
        &["step"],
        json!({
            "step": text("Name of the step; no two steps have the same."),
            "functionRef": name_reference("The function to call.", "Function"),
            "function": with(text(IMAGE), json!({"maxLength": 512, "pattern": IMAGE_PATTERN})),
            "inline": inline::function(),
            "functionRevisionRef": name_reference(
                "The revision of the function to call, which must be active, instead of the newest active one.",
                "FunctionRevision",
            ),
            "functionRevisionSelector": object(
                "Calls the newest active revision of the function with these labels. Ignored if functionRevisionRef is set.",
                &["matchLabels"],
                labels,
            ),
            "input": input,
            "inputRef": input_ref,
            "credentials": credentials(),
            "requirements": requirements(),
            "allowedExtraResources": allowed(limited),
            "maxIterations": ruled(
                with(
                    integer(
                        "How often the function may be called in one reconcile before what it requires must no longer \
                         change. With -1 any number of times, within the time that a reconcile may take.",
                    ),
                    json!({"minimum": -1, "maximum": 100}),
                ),
                &[("self != 0", "must be at least 1, or -1 for no limit")],
            ),
        }),
    );
    ruled(
        step,
        &[
            ("!(has(self.input) && has(self.inputRef))", "input and inputRef are mutually exclusive"),
            (
                "(has(self.functionRef) ? 1 : 0) + (has(self.function) ? 1 : 0) + (has(self.inline) ? 1 : 0) == 1",
                "exactly one of functionRef, function and inline is required",
            ),
            (
                "!(has(self.function) || has(self.inline)) || !(has(self.functionRevisionRef) || has(self.functionRevisionSelector))",
                "functionRevisionRef and functionRevisionSelector need functionRef",
            ),
        ],
    )
}

fn credentials() -> Value {
    let secret = object(
        "The Secret.",
        &["name", "namespace"],
        json!({"name": text("Name of the Secret."), "namespace": text("Namespace of the Secret.")}),
    );
    let item = object(
        "Credentials under a name.",
        &["name", "source"],
        json!({
            "name": text("The key of the credentials in the request to the function."),
            "source": choice("Where the credentials are.", &["None", "Secret"]),
            "secretRef": secret,
        }),
    );
    let item = ruled(
        item,
        &[("self.source == 'Secret' && has(self.secretRef)", "the Secret source requires a secretRef")],
    );
    list_by("name", list("Credentials that the function gets.", item))
}

fn requirements() -> Value {
    let name = text("The key of the resources or the schema in the request to the function.");
    let resource = object(
        "Objects by name or labels; neither means all of the kind.",
        &["apiVersion", "kind", "requirementName"],
        json!({
            "requirementName": name,
            "apiVersion": text("Group and version of the objects."),
            "kind": text("Kind of the objects."),
            "namespace": text("Namespace of the objects, if they have one."),
            "name": text("Name of the one object."),
            "matchLabels": texts_by_name("Labels the objects must have."),
        }),
    );
    let resource = ruled(
        resource,
        &[("!(has(self.name) && has(self.matchLabels))", "name and matchLabels are mutually exclusive")],
    );
    let schema = object(
        "The OpenAPI schema of a kind.",
        &["apiVersion", "kind", "requirementName"],
        json!({
            "requirementName": name,
            "apiVersion": text("Group and version of the kind."),
            "kind": text("The kind."),
        }),
    );
    object(
        "Objects and schemas that the function gets with its first request.",
        &[],
        json!({
            "requiredResources": list_by("requirementName", list("Objects that the function gets.", resource)),
            "requiredSchemas": list_by("requirementName", list("Schemas that the function gets.", schema)),
        }),
    )
}

/// A pattern that is refused when it is written unless it is a regular expression. The
/// result of the match is ignored: an invalid expression is an error of the rule. The length is limited so that
/// Kubernetes can compute an upper bound of the rule's cost.
fn pattern(schema: Value, longest: u32) -> Value {
    let rule =
        ("self == '*' || (''.matches(self) ? true : true)", "must be a regular expression, or * for any");
    ruled(with(schema, json!({"maxLength": longest})), &[rule])
}

/// Revisions hold Compositions as they were, also those that were written before their patterns were checked.
fn allowed(limited: bool) -> Value {
    let checked = |schema, longest| if limited { pattern(schema, longest) } else { schema };
    let mut labels = texts_by_name("Regular expressions for the whole values of labels; * allows any value.");
    labels["additionalProperties"] = checked(labels["additionalProperties"].take(), 128);
    if limited {
        labels = with(labels, json!({"maxProperties": 8}));
    }
    let item = object(
        "Objects that the function may require: all of the kind, or those that match. Without matchNamespace, an entry \
         applies to all namespaces.",
        &["apiVersion", "kind"],
        json!({
            "apiVersion": text("Group and version of the objects."),
            "kind": text("Kind of the objects."),
            "name": checked(text("The same as matchName."), 512),
            "matchName": checked(text("A regular expression for the whole name; * allows any name."), 512),
            "matchLabels": labels,
            "matchNamespace": checked(
                text("A regular expression for the whole namespace; * allows any, and objects without one."),
                128,
            ),
        }),
    );
    let item = ruled(
        item,
        &[(
            "!(has(self.name) && has(self.matchName)) && !(has(self.matchLabels) && (has(self.name) || has(self.matchName)))",
            "name, matchName and matchLabels are mutually exclusive",
        )],
    );
    let list = list(
        "The resources that the function may require in its responses. Without this list, all; with it, only these.",
        item,
    );
    atomic(if limited { with(list, json!({"maxItems": 64})) } else { list })
}
