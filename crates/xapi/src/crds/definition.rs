//! CompositeResourceDefinitions.

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
        names("Names of the claims, if there are to be any. Can be added later, but not changed or removed."),
        &[IMMUTABLE, LOWER_PLURAL, LOWER_SINGULAR],
    );
    fields["defaultCompositeDeletePolicy"] = with(delete_policy(), json!({"default": "Background"}));
    fields["conversion"] = ruled(
        conversion(CONVERSION),
        &[(
            "self.strategy == 'Webhook' && has(self.webhook)",
            "Webhook configuration is required when conversion strategy is Webhook",
        )],
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
        ],
    )
}

fn v2_spec() -> Value {
    let mut fields = fields();
    fields["scope"] = scope(&["Namespaced", "Cluster"], "Namespaced");
    fields["claimNames"] = names("Not supported in this version: claims.");
    fields["defaultCompositeDeletePolicy"] = delete_policy();
    fields["conversion"] = conversion(CONVERSION);
    ruled(
        object("What to define.", &["group", "names", "versions"], fields),
        &[
            ("!has(self.claimNames)", "Claims aren't supported in apiextensions.crossplane.io/v2"),
            (
                "!has(self.connectionSecretKeys)",
                "XR connection secrets aren't supported in apiextensions.crossplane.io/v2",
            ),
            CLAIMS_STAY,
        ],
    )
}

/// What is the same in both versions.
fn fields() -> Value {
    let policy = choice(
        "Whether composite resources that do not say take up new revisions of their Composition by themselves.",
        &["Automatic", "Manual"],
    );
    let metadata = object(
        "Metadata of the derived CRDs.",
        &[],
        json!({
            "labels": texts_by_name("Labels beside those of this definition."),
            "annotations": texts_by_name("All annotations."),
        }),
    );
    json!({
        "group": ruled(text("API group of the composite resources."), &[IMMUTABLE]),
        "names": ruled(names("Names of the composite resources."), &[IMMUTABLE, LOWER_PLURAL, LOWER_SINGULAR]),
        "connectionSecretKeys": texts("Keys that connection secrets may have. An empty list allows all."),
        "defaultCompositionRef":
            name_reference("The Composition of composite resources that do not choose.", "Composition"),
        "defaultCompositionRevisionSelector": revision_selector(),
        "enforcedCompositionRef": ruled(
            name_reference("The Composition of all composite resources, whatever they choose.", "Composition"),
            &[IMMUTABLE],
        ),
        "defaultCompositionUpdatePolicy": with(policy, json!({"default": "Automatic"})),
        "versions": ruled(
            list("Versions of the composite resources. Exactly one is referenceable.", resource_version()),
            &[ONE_REFERENCEABLE, EVERY_VERSION_HAS_A_SCHEMA],
        ),
        "metadata": metadata,
    })
}

fn scope(values: &[&str], default: &str) -> Value {
    let scope = choice("Where composite resources live.", values);
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
        "Whether claims that do not say wait for their composite resource to be gone when they are deleted.",
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
        "Which revisions serve composite resources that do not say.",
        &[],
        json!({
            "matchExpressions": atomic(list("Conditions on labels.", expression)),
            "matchLabels": texts_by_name("Labels the revision must have."),
        }),
    );
    with(selector, json!({"x-kubernetes-map-type": "atomic"}))
}

fn resource_version() -> Value {
    let schema = object(
        "What the composite resources look like. Crossplane's own fields are added to it.",
        &[],
        json!({"openAPIV3Schema": anything("An OpenAPI v3 schema.")}),
    );
    object(
        "A version.",
        &["name", "referenceable", "served"],
        json!({
            "name": text("Name of the version, such as v1 or v1alpha1."),
            "referenceable": flag("Whether Compositions are written for this version. It is also the one stored."),
            "served": flag("Whether the API serves this version."),
            "deprecated": flag("Whether those who use this version are warned."),
            "deprecationWarning": with(text("The warning."), json!({"maxLength": 256})),
            "schema": schema,
            "additionalPrinterColumns": list("Columns of tables, before Crossplane's own.", printer_column()),
            "subresources": object("Subresources beside the status.", &[], json!({"scale": scale()})),
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
            "jsonPath": text("Where the cells come from."),
            "priority": with(integer("0 for columns that are always shown."), json!({"format": "int32"})),
        }),
    )
}

pub(super) fn scale() -> Value {
    object(
        "Serves the scale subresource.",
        &["specReplicasPath", "statusReplicasPath"],
        json!({
            "specReplicasPath": text("Where the wanted number is."),
            "statusReplicasPath": text("Where the actual number is."),
            "labelSelectorPath": text("Where the selector of what is counted is."),
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
            "url": text("Where the webhook is, unless it is a service."),
            "service": service,
            "caBundle": with(text("Certificates to trust, in PEM."), json!({"format": "byte"})),
        }),
    );
    let webhook = object(
        "The webhook that converts.",
        &["conversionReviewVersions"],
        json!({
            "clientConfig": client,
            "conversionReviewVersions": atomic(texts("Versions of ConversionReview the webhook understands.")),
        }),
    );
    object(description, &["strategy"], json!({"strategy": text("None or Webhook."), "webhook": webhook}))
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
        "What the controllers of this definition work on.",
        &[],
        json!({
            "compositeResourceType": kind("The type of composite resource that is being reconciled."),
            "compositeResourceClaimType": kind("The type of claim that is being reconciled."),
        }),
    );
    object("What was observed.", &[], json!({"conditions": conditions(), "controllers": controllers}))
}
