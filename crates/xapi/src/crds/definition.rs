//! The CRD of CompositeResourceDefinitions: its versions, and the rules that a definition must keep to work.

use super::schema::{
    Crd, IMMUTABLE, Version, anything, atomic, choice, condition_column, conditions, flag, integer, list,
    name_reference, object, ruled, text, texts, texts_by_name, with,
};
use super::{age_column, schema};
use crate::constants::group;
use serde_json::{Value, json};

pub(super) const LOWER_PLURAL: (&str, &str) =
    ("self.plural == self.plural.lowerAscii()", "Plural name must be lowercase");
pub(super) const LOWER_SINGULAR: (&str, &str) =
    ("!has(self.singular) || self.singular == self.singular.lowerAscii()", "Singular name must be lowercase");

/// Accepts an XRD that exists, so that an XRD that was stored before this rule existed can still be deleted.
const NAMED_AFTER_ITS_KIND: &str = "oldSelf.hasValue() || !has(self.spec) || \
                                    self.metadata.name == self.spec.names.plural + '.' + self.spec.group";

/// Two referenceable versions, or none, would give the CRD two storage versions, or none.
const ONE_REFERENCEABLE: (&str, &str) =
    ("self.exists_one(v, v.referenceable)", "exactly one version must be referenceable");
const EVERY_VERSION_HAS_A_SCHEMA: (&str, &str) = (
    "self.all(v, has(v.schema) && has(v.schema.openAPIV3Schema))",
    "every version needs a schema.openAPIV3Schema",
);
const CLAIMS_HAVE_OTHER_NAMES: (&str, &str) = (
    "!has(self.claimNames) || (self.claimNames.kind != self.names.kind && \
     self.claimNames.plural != self.names.plural && \
     (!has(self.claimNames.singular) || !has(self.names.singular) || \
     self.claimNames.singular != self.names.singular) && \
     (!has(self.claimNames.listKind) || !has(self.names.listKind) || \
     self.claimNames.listKind != self.names.listKind))",
    "claimNames must differ from names",
);
/// Crossplane documents this, and a claim CRD that no definition offers would live on.
const CLAIMS_STAY: (&str, &str) =
    ("!has(oldSelf.claimNames) || has(self.claimNames)", "claimNames cannot be removed once they are set");

/// Cluster-scoped composite resources have no namespace to look for the account in.
const ACCOUNT_HAS_NAMESPACE: (&str, &str) = (
    "self.scope == 'Namespaced' || !has(self.serviceAccountRef) || has(self.serviceAccountRef.__namespace__)",
    "serviceAccountRef.namespace is required unless the scope is Namespaced",
);

const RULES_ARE_GIVEN: (&str, &str) = (
    "self.strategy != 'Declarative' || has(self.rules)",
    "rules are required when conversion strategy is Declarative",
);

const CONVERSION: &str = "How versions of composite resources are converted into each other.";

pub(super) fn definition() -> Value {
    let mut crd = Crd {
        group: group::APIEXTENSIONS,
        kind: "CompositeResourceDefinition",
        plural: "compositeresourcedefinitions",
        short_names: &["xrd", "xrds"],
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![
            version(
                "v1",
                v1_spec(),
                Some(
                    "CompositeResourceDefinition v1 is deprecated and will be removed in a future release; consider \
                     migrating to v2",
                ),
            ),
            version("v2", v2_spec(), None),
        ],
    }
    .build();
    let named = json!([{
        "rule": NAMED_AFTER_ITS_KIND,
        "message": "metadata.name must be <spec.names.plural>.<spec.group>",
        "messageExpression": "'metadata.name must be ' + self.spec.names.plural + '.' + self.spec.group",
        "optionalOldSelf": true,
    }]);
    for version in crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = named.clone();
    }
    crd
}

fn version(name: &'static str, spec: Value, deprecated: Option<&'static str>) -> Version {
    Version {
        name,
        columns: vec![
            condition_column("ESTABLISHED", "Established"),
            condition_column("OFFERED", "Offered"),
            age_column(),
        ],
        description: "A CompositeResourceDefinition defines a new kind of resource, which Compositions compose.",
        properties: schema::fields([("spec", spec), ("status", status())]),
        required: &[],
        status: true,
        deprecated,
    }
}

fn v1_spec() -> Value {
    let mut fields = fields();
    fields["scope"] = scope(&["LegacyCluster", "Namespaced", "Cluster"], "LegacyCluster");
    fields["claimNames"] = ruled(
        names("Names of the claims, if claims are offered. Can be added later, but not changed or removed."),
        &[IMMUTABLE, LOWER_PLURAL, LOWER_SINGULAR],
    );
    fields["defaultCompositeDeletePolicy"] = with(delete_policy(), json!({"default": "Background"}));
    fields["conversion"] = ruled(
        conversion_by_rules(),
        &[
            (
                "self.strategy == 'Declarative' || self.strategy == 'Webhook' && has(self.webhook)",
                "Webhook configuration is required when conversion strategy is Webhook",
            ),
            RULES_ARE_GIVEN,
        ],
    );
    ruled(
        object("What to define.", &["group", "names", "versions"], fields),
        &[
            (
                "self.scope == 'LegacyCluster' || !has(self.claimNames)",
                "Only LegacyCluster composite resources can offer claims",
            ),
            (
                "self.scope == 'LegacyCluster' || !has(self.connectionSecretKeys)",
                "Only LegacyCluster composite resources support connection secrets",
            ),
            CLAIMS_HAVE_OTHER_NAMES,
            CLAIMS_STAY,
            ACCOUNT_HAS_NAMESPACE,
        ],
    )
}

fn v2_spec() -> Value {
    let mut fields = fields();
    fields["scope"] = scope(&["Namespaced", "Cluster"], "Namespaced");
    fields["claimNames"] = names("Not supported in this version: claims.");
    fields["defaultCompositeDeletePolicy"] = delete_policy();
    fields["conversion"] = ruled(conversion_by_rules(), &[RULES_ARE_GIVEN]);
    ruled(
        object("What to define.", &["group", "names", "versions"], fields),
        &[
            ("!has(self.claimNames)", "Claims aren't supported in apiextensions.crossplane.io/v2"),
            (
                "!has(self.connectionSecretKeys)",
                "XR connection secrets aren't supported in apiextensions.crossplane.io/v2",
            ),
            CLAIMS_STAY,
            ACCOUNT_HAS_NAMESPACE,
        ],
    )
}

/// The fields that both versions have.
fn fields() -> Value {
    let policy = choice(
        "The compositionUpdatePolicy of composite resources that do not set one. With Automatic, they use the newest \
         revision of their Composition.",
        &["Automatic", "Manual"],
    );
    let metadata = object(
        "Metadata of the derived CRDs.",
        &[],
        json!({
            "labels": texts_by_name("Labels in addition to those of this definition."),
            "annotations": texts_by_name("Annotations."),
        }),
    );
    json!({
        "group": ruled(text("API group of the composite resources."), &[IMMUTABLE]),
        "names": ruled(names("Names of the composite resources."), &[IMMUTABLE, LOWER_PLURAL, LOWER_SINGULAR]),
        "connectionSecretKeys": texts("Keys that connection secrets may have. An empty list allows all."),
        "defaultCompositionRef":
            name_reference("The Composition of composite resources that do not select one.", "Composition"),
        "defaultCompositionRevisionSelector": revision_selector(),
        "enforcedCompositionRef": ruled(
            name_reference("The Composition of all composite resources, even of those that select another.", "Composition"),
            &[IMMUTABLE],
        ),
        "defaultCompositionUpdatePolicy": with(policy, json!({"default": "Automatic"})),
        "versions": ruled(
            list("Versions of the composite resources. Exactly one is referenceable.", resource_version()),
            &[ONE_REFERENCEABLE, EVERY_VERSION_HAS_A_SCHEMA],
        ),
        "metadata": metadata,
        "serviceAccountRef": account(),
    })
}

fn account() -> Value {
    object(
        "The service account that composite resources are composed under. They can be composed of what it may write, and \
         functions are given what it may read. A user who names one here needs the verb use on it.",
        &["name"],
        json!({
            "name": with(text("Name of the service account."), json!({"minLength": 1, "maxLength": 253})),
            "namespace": with(
                text("Namespace of the service account. Without it, the account is in the namespace of each composite \
                      resource; only namespaced ones have one."),
                json!({"maxLength": 63}),
            ),
        }),
    )
}

fn scope(values: &[&str], default: &str) -> Value {
    let scope = choice("The scope of the composite resources.", values);
    ruled(with(scope, json!({"default": default})), &[IMMUTABLE])
}

pub(super) fn names(description: &str) -> Value {
    object(
        description,
        &["kind", "plural"],
        json!({
            "kind": text("The kind, in camel case."),
            "listKind": text("The kind of a list; by default the kind with List behind it."),
            "plural": text("The name in URLs, in lower case."),
            "singular": text("The singular of the name; by default the kind in lower case."),
            "shortNames": atomic(texts("Abbreviations for the command line.")),
            "categories": atomic(texts("Groups of resources that can be listed together.")),
        }),
    )
}

fn delete_policy() -> Value {
    choice(
        "The compositeDeletePolicy of claims that do not set one. With Foreground, a claim is deleted after its composite \
         resource.",
        &["Background", "Foreground"],
    )
}

fn revision_selector() -> Value {
    let expression = object(
        "A condition on one label.",
        &["key", "operator"],
        json!({
            "key": text("The label."),
            "operator": text("In, NotIn, Exists or DoesNotExist."),
            "values": atomic(texts("The values for In and NotIn.")),
        }),
    );
    let selector = object(
        "The compositionRevisionSelector of composite resources that do not set one.",
        &[],
        json!({
            "matchExpressions": atomic(list("Conditions on labels.", expression)),
            "matchLabels": texts_by_name("Labels that the revision must have."),
        }),
    );
    with(selector, json!({"x-kubernetes-map-type": "atomic"}))
}

fn resource_version() -> Value {
    let schema = object(
        "The schema of the composite resources. Crossplane's own fields are added to it.",
        &[],
        json!({"openAPIV3Schema": anything("An OpenAPI v3 schema.")}),
    );
    object(
        "A version.",
        &["name", "referenceable", "served"],
        json!({
            "name": text("Name of the version, such as v1 or v1alpha1."),
            "referenceable": flag("Whether Compositions refer to this version. Objects are also stored in it."),
            "served": flag("Whether the API serves this version."),
            "deprecated": flag("Whether clients that use this version get a deprecation warning."),
            "deprecationWarning": with(text("The deprecation warning; by default one that names the version."), json!({"maxLength": 256})),
            "schema": schema,
            "additionalPrinterColumns": list("Columns of `kubectl get`, before Crossplane's own.", printer_column()),
            "subresources": object("Subresources in addition to status.", &[], json!({"scale": scale()})),
        }),
    )
}

pub(super) fn printer_column() -> Value {
    object(
        "A column.",
        &["jsonPath", "name", "type"],
        json!({
            "name": text("Heading of the column."),
            "type": text("OpenAPI type of the cells."),
            "format": text("OpenAPI format of the cells."),
            "description": text("What the column shows."),
            "jsonPath": text("JSONPath of the value."),
            "priority": with(integer("0 for columns that are always shown; others are shown by `kubectl get -o wide`."), json!({"format": "int32"})),
        }),
    )
}

pub(super) fn scale() -> Value {
    object(
        "Serves the scale subresource.",
        &["specReplicasPath", "statusReplicasPath"],
        json!({
            "specReplicasPath": text("JSONPath of the desired number of replicas."),
            "statusReplicasPath": text("JSONPath of the actual number of replicas."),
            "labelSelectorPath": text("JSONPath of the label selector of the replicas."),
        }),
    )
}

pub(super) fn conversion(description: &str) -> Value {
    let service = object(
        "The service to call.",
        &["name", "namespace"],
        json!({
            "name": text("Name of the service."),
            "namespace": text("Namespace of the service."),
            "path": text("Path of the URL."),
            "port": with(integer("Port of the service; 443 by default."), json!({"format": "int32"})),
        }),
    );
    let client = object(
        "How to call the webhook.",
        &[],
        json!({
            "url": text("URL of the webhook, unless it is a service."),
            "service": service,
            "caBundle": with(text("Certificates to trust, in PEM."), json!({"format": "byte"})),
        }),
    );
    let webhook = object(
        "The webhook that converts.",
        &["conversionReviewVersions"],
        json!({
            "clientConfig": client,
            "conversionReviewVersions": atomic(texts("Versions of ConversionReview that the webhook supports.")),
        }),
    );
    object(description, &["strategy"], json!({"strategy": text("None or Webhook."), "webhook": webhook}))
}

/// How versions of composite resources are converted, which may be by rules.
fn conversion_by_rules() -> Value {
    let moved = object(
        "A field that has another place in the other version.",
        &["from", "to"],
        json!({
            "from": text("The place in the version `from`, such as spec.size."),
            "to": text("The place in the version `to`."),
        }),
    );
    let computed = object(
        "A field that is computed.",
        &["path", "expression"],
        json!({
            "path": text("The field, such as spec.parameters.tier."),
            "expression": text(
                "The value in CEL. `self` is the object in the version that it is converted from. Without a value the field \
                 is removed.",
            ),
            "onlyIfMissing": flag("Whether a value that the field has already is left as it is."),
        }),
    );
    let rule = object(
        "How two versions are converted into each other.",
        &["from", "to"],
        json!({
            "from": text("Name of a version, usually the older one."),
            "to": text("Name of the other version."),
            "moves": atomic(list("Fields that have another place in the other version.", moved)),
            "forward": atomic(list("Fields of `to` that are computed from an object in `from`.", computed.clone())),
            "backward": atomic(list("Fields of `from` that are computed from an object in `to`.", computed)),
        }),
    );
    let mut schema = conversion(CONVERSION);
    schema["properties"]["strategy"] = text("None, Webhook, or Declarative: by the rules.");
    schema["properties"]["rules"] =
        atomic(list("For the strategy Declarative: a rule for each pair of neighbouring versions.", rule));
    schema["properties"]["examples"] = atomic(list(
        "Objects that the rules are checked with, in addition to generated ones.",
        anything("An object in one of the versions."),
    ));
    schema
}

/// How far the objects of a definition are stored in the referenceable version.
fn migration() -> Value {
    object(
        "How far objects are written again after the referenceable version has changed.",
        &[],
        json!({
            "version": text("The version that they are stored in then."),
            "objects": integer("How many objects there are."),
            "written": integer("How many of them were written again."),
        }),
    )
}

fn status() -> Value {
    let kind = |description: &str| {
        object(
            description,
            &["apiVersion", "kind"],
            json!({"apiVersion": text("Group and version of the type."), "kind": text("Kind of the type.")}),
        )
    };
    let controllers = object(
        "The types that the controllers of this definition reconcile.",
        &[],
        json!({
            "compositeResourceType": kind("The type of composite resource that is being reconciled."),
            "compositeResourceClaimType": kind("The type of claim that is being reconciled."),
        }),
    );
    let stored =
        texts("With the conversion strategy Declarative: the versions that objects may be stored in.");
    object(
        "What was observed.",
        &[],
        json!({
            "conditions": conditions(),
            "controllers": controllers,
            "storedVersions": atomic(stored),
            "migration": migration(),
        }),
    )
}
