//! What a kind of managed resources is: names, scope, references, and the CRD that follows from these.

use crate::config::ConfigKinds;
use crate::decide::Rules;
use crate::references::Reference;
use crate::schema::{
    Crd, Version, choice, condition_column, conditions, flag, integer, list, name_reference, object, text,
    texts_by_name, with,
};
use serde_json::{Map, Value, json};
use transom_object::GroupVersionKind;
use transom_xapi::crds::age_column;

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do not.
    Cluster,
    /// They do.
    Namespaced,
}

/// Which fields the spec of a managed resource has beside `forProvider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Of Crossplane v1: with a deletion policy, a ProviderConfig by name, and a connection secret in any namespace.
    Legacy,
    /// Of Crossplane v2: with a ProviderConfig by kind and name, and a connection secret in the namespace of the object.
    Modern,
}

/// A kind of managed resources.
pub struct ManagedKind {
    /// Its API group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Where its objects live.
    pub scope: Scope,
    /// Which fields they have.
    pub layout: Layout,
    /// The categories that list it, such as `crossplane`, `managed` and one for the provider.
    pub categories: &'static [&'static str],
    /// The description of the kind, which `kubectl explain` shows.
    pub description: &'static str,
    /// The schema of `spec.forProvider`. The fields of `references` are added.
    pub parameters: Value,
    /// The schemas of further fields of `spec`.
    pub more_spec: Value,
    /// The schema of `status.atProvider`, if it has any.
    pub at_provider: Option<Value>,
    /// Its references, in the order in which they are resolved.
    pub references: Vec<Reference>,
    /// The kinds of its ProviderConfigs, if it has any.
    pub configs: Option<ConfigKinds>,
    /// Whether the external resource is named after the managed resource, unless the annotation sets another name.
    pub deterministic_names: bool,
}

impl ManagedKind {
    /// A cluster scoped kind without references and ProviderConfigs, whose objects have the names of external resources.
    pub fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        parameters: Value,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            scope: Scope::Cluster,
            layout: Layout::Legacy,
            categories: &["crossplane", "managed"],
            description: "A managed resource.",
            parameters,
            more_spec: json!({}),
            at_provider: None,
            references: Vec::new(),
            configs: None,
            deterministic_names: true,
        }
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.group, self.version, self.kind)
    }

    /// The name of its controller.
    pub fn controller(&self) -> String {
        format!("managed/{}.{}", self.kind.to_lowercase(), self.group)
    }

    pub(crate) fn rules(&self, policies: bool) -> Rules {
        Rules { layout: self.layout, policies, deterministic_names: self.deterministic_names }
    }

    /// Its CustomResourceDefinition.
    pub fn crd(&self) -> Value {
        let mut status = json!({
            "conditions": conditions(),
            "observedGeneration": integer("The generation of the object that was last reconciled."),
            "lastHandledReconcileAt": text("The value of the annotation crossplane.io/reconcile-requested-at that was last handled."),
        });
        if let Some(at_provider) = &self.at_provider {
            status["atProvider"] = at_provider.clone();
        }
        let version = Version {
            name: self.version,
            columns: vec![
                condition_column("READY", "Ready"),
                condition_column("SYNCED", "Synced"),
                json!({
                    "name": "EXTERNAL-NAME", "type": "string",
                    "jsonPath": ".metadata.annotations.crossplane\\.io/external-name",
                }),
                age_column(),
            ],
            description: self.description,
            properties: json!({
                "spec": self.spec(),
                "status": object("What was observed.", &[], status),
            }),
            required: &["spec"],
            status: true,
            deprecated: None,
        };
        Crd {
            group: self.group,
            kind: self.kind,
            plural: self.plural,
            short_names: &[],
            categories: self.categories,
            namespaced: self.scope == Scope::Namespaced,
            versions: vec![version],
        }
        .build()
    }

    fn spec(&self) -> Value {
        let actions = &["Observe", "Create", "Update", "Delete", "LateInitialize", "*"];
        let policies =
            list("The actions that are allowed on the external resource.", choice("An action.", actions));
        let mut parameters = self.parameters.clone();
        for reference in &self.references {
            let fields = reference.schemas(self.scope);
            if let Some(properties) = parameters.get_mut("properties").and_then(Value::as_object_mut) {
                properties.extend(fields);
            }
        }
        let mut fields = Map::from_iter([
            ("forProvider".to_owned(), parameters),
            ("managementPolicies".to_owned(), with(policies, json!({"default": ["*"]}))),
            ("writeConnectionSecretToRef".to_owned(), self.secret()),
        ]);
        match self.layout {
            Layout::Legacy => {
                let deletion = choice(
                    "Whether the external resource is deleted with this object.",
                    &["Orphan", "Delete"],
                );
                fields.insert("deletionPolicy".to_owned(), with(deletion, json!({"default": "Delete"})));
                let mut config = name_reference("The configuration of the provider.", "ProviderConfig");
                config["properties"]["policy"] = policy_schema();
                fields.insert(
                    "providerConfigRef".to_owned(),
                    with(config, json!({"default": {"name": "default"}})),
                );
            }
            Layout::Modern => {
                let config = object(
                    "The configuration of the provider.",
                    &["kind", "name"],
                    json!({"kind": text("ProviderConfig or ClusterProviderConfig."), "name": text("Name of the configuration.")}),
                );
                let default = json!({"default": {"kind": "ClusterProviderConfig", "name": "default"}});
                fields.insert("providerConfigRef".to_owned(), with(config, default));
            }
        }
        if let Value::Object(more) = &self.more_spec {
            fields.extend(more.clone());
        }
        object("The desired state.", &["forProvider"], Value::Object(fields))
    }

    fn secret(&self) -> Value {
        let name = text("Name of the Secret.");
        let description = "The Secret to write connection details to.";
        match self.layout {
            Layout::Legacy => object(
                description,
                &["name", "namespace"],
                json!({"name": name, "namespace": text("Namespace of the Secret.")}),
            ),
            Layout::Modern => object(description, &["name"], json!({"name": name})),
        }
    }
}

/// When, and whether, a reference must be resolved.
pub(crate) fn policy_schema() -> Value {
    let resolution = choice("Whether an unresolved reference is an error.", &["Required", "Optional"]);
    object(
        "How the reference is resolved.",
        &[],
        json!({
            "resolution": with(resolution, json!({"default": "Required"})),
            "resolve": choice("When the reference is resolved.", &["Always", "IfNotPresent"]),
        }),
    )
}

/// A reference to another managed resource.
pub(crate) fn reference_schema(scope: Scope, of: &str) -> Value {
    let mut schema = name_reference(&format!("A reference to a {of}."), of);
    schema["properties"]["policy"] = policy_schema();
    if scope == Scope::Namespaced {
        schema["properties"]["namespace"] = text("Its namespace; without it, that of the object itself.");
    }
    schema
}

/// A selector of other managed resources.
pub(crate) fn selector_schema(scope: Scope, of: &str) -> Value {
    let mut properties = json!({
        "matchControllerRef": flag("Whether they must have the same controller as the object itself."),
        "matchComposite": flag("The same as matchControllerRef."),
        "matchLabels": texts_by_name("The labels that they must have."),
        "policy": policy_schema(),
    });
    if scope == Scope::Namespaced {
        properties["namespace"] = text("Their namespace; without it, that of the object itself.");
    }
    object(&format!("Selects a {of}."), &[], properties)
}
