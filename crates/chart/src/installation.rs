//! What `transom install` prints and `transom uninstall` removes.

use crate::{ChartError, Release, defaults, merge, render};
use serde_json::{Value, json};
use std::fmt::Write as _;
use transom_object::{GroupVersionKind, meta};

/// Where an installation keeps the values that it was made with.
pub const VALUES_ANNOTATION: &str = "transom.io/values";
/// The name of the installation, as Helm calls it.
pub const RELEASE: &str = "transom";

/// The objects of an installation, the namespace first. `given` is what differs from the chart's values.
pub fn manifests(namespace: &str, given: &Value) -> Result<Vec<Value>, ChartError> {
    let mut values = defaults();
    merge(&mut values, given);
    let release = Release { name: RELEASE.to_owned(), namespace: namespace.to_owned() };
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})];
    objects.extend(render(&release, &values)?);
    for object in &mut objects {
        if meta::kind(object) == "Deployment" {
            meta::set_annotation(object, VALUES_ANNOTATION, &given.to_string());
        }
        // Helm did not make these.
        if meta::label(object, "app.kubernetes.io/managed-by").is_some() {
            meta::set_label(object, "app.kubernetes.io/managed-by", "transom");
        }
    }
    Ok(objects)
}

/// Objects as a YAML stream.
pub fn documents(objects: &[Value]) -> String {
    objects.iter().fold(String::new(), |mut text, object| {
        let _ = write!(text, "---\n{}", transom_object::yaml::write(object));
        text
    })
}

/// Whether two versions of an object differ in nothing but what a server writes itself.
pub fn same_content(stored: &Value, applied: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        for field in ["managedFields", "resourceVersion", "generation"] {
            if let Some(metadata) = meta::metadata_mut(&mut object) {
                metadata.remove(field);
            }
        }
        object
    };
    content(stored) == content(applied)
}

/// What an installation with these values made: what users added to the chart, and then the controllers first, because
/// nothing else is needed without them. The namespace stays, as it may have more in it, and so do the roles of people,
/// which definitions are aggregated to. What an installation with other values made before is removed, too.
///
/// The Deployment has the values. What users added goes before it, so that a removal that was interrupted finds it again.
pub fn removed(namespace: &str, given: &Value) -> Result<Vec<Value>, ChartError> {
    let mut objects = manifests(namespace, &json!({}))?;
    for object in manifests(namespace, given)? {
        if !objects.iter().any(|other| identity(other) == identity(&object)) {
            objects.push(object);
        }
    }
    objects.retain(|object| meta::kind(object) != "Namespace" && !is_for_people(object));
    // The Deployment is the last to be applied of the chart's own.
    objects.reverse();
    let webhooks =
        GroupVersionKind::new("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    let made = [
        // Without them, used objects could not be deleted at all.
        (webhooks.clone(), "", "crossplane-no-usages"),
        (webhooks.clone(), "", "transom-validation"),
        (webhooks, "", "transom-service-accounts"),
        (GroupVersionKind::new("", "v1", "Secret"), namespace, "transom-webhook-certificates"),
    ];
    objects.extend(made.iter().map(|(gvk, namespace, name)| {
        json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": name, "namespace": namespace}})
    }));
    Ok(objects)
}

/// What distinguishes an object from all others.
fn identity(object: &Value) -> [&str; 4] {
    [meta::api_version(object), meta::kind(object), meta::namespace(object), meta::name(object)]
}

fn is_for_people(object: &Value) -> bool {
    meta::kind(object).starts_with("ClusterRole") && meta::name(object).starts_with("crossplane")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_documents_that_are_read_as_they_were_written() {
        let given = json!({"replicas": 2});
        let objects = manifests("here", &given).unwrap();
        let read = transom_object::yaml::read_documents(&documents(&objects)).unwrap();
        assert_eq!(read.into_iter().map(|document| document.value).collect::<Vec<_>>(), objects);
        assert_eq!(meta::kind(&objects[0]), "Namespace");
        let deployment = objects.iter().find(|object| meta::kind(object) == "Deployment").unwrap();
        let kept = meta::annotation(deployment, VALUES_ANNOTATION).unwrap();
        assert_eq!(serde_json::from_str::<Value>(kept).unwrap(), given);
        assert_eq!(deployment["spec"]["replicas"], 2);
    }

    #[test]
    fn nothing_of_users_is_removed_and_the_controllers_go_first() {
        let objects = removed("here", &json!({})).unwrap();
        assert_eq!(meta::kind(&objects[0]), "Deployment");
        let kinds: Vec<&str> = objects.iter().map(meta::kind).collect();
        assert!(!kinds.contains(&"Namespace") && !kinds.contains(&"CustomResourceDefinition"));
        assert!(objects.iter().any(|object| meta::name(object) == "crossplane-no-usages"));
    }

    #[test]
    fn what_users_added_to_the_chart_is_removed_before_the_values_that_say_so() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authority", "namespace": "here"}});
        let given = json!({"extraObjects": [map], "webhooks": {"enabled": false}});
        let objects = removed("here", &given).unwrap();
        assert_eq!(objects[0], map);
        assert_eq!(meta::kind(&objects[1]), "Deployment");
        let services: Vec<&str> =
            objects.iter().filter(|o| meta::kind(o) == "Service").map(meta::name).collect();
        assert_eq!(services, ["transom-webhooks"], "of an installation with other values");
        let all: std::collections::BTreeSet<_> = objects.iter().map(identity).collect();
        assert_eq!(all.len(), objects.len(), "each once");
    }
}
