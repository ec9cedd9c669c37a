//! The CRDs are Crossplane's, save for what is added on purpose.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The start of the SHA-256 of the spec of each CRD as Crossplane ships it, without descriptions, in
/// compact JSON with sorted keys. They are those of v2.3 and of v2.4, except for the columns of Provider and Function
/// revisions, which are those of v2.4. Of DeploymentRuntimeConfigs, the schema of the Deployment's spec was replaced by
/// an object with unknown fields.
const SHIPPED: &[(&str, &str)] = &[
    ("compositeresourcedefinitions.apiextensions.crossplane.io", "490ab2defa67ca78"),
    ("compositionrevisions.apiextensions.crossplane.io", "406f8497e49984fc"),
    ("compositions.apiextensions.crossplane.io", "8459b0cf4ad58d17"),
    ("environmentconfigs.apiextensions.crossplane.io", "2d671431f45ff9d1"),
    ("managedresourceactivationpolicies.apiextensions.crossplane.io", "b4af5219e54ffc47"),
    ("managedresourcedefinitions.apiextensions.crossplane.io", "9b34e880a6084191"),
    ("usages.apiextensions.crossplane.io", "36caabfe59f5b971"),
    ("configurationrevisions.pkg.crossplane.io", "66b3b535c6f591e3"),
    ("configurations.pkg.crossplane.io", "1c982f0229079c98"),
    ("deploymentruntimeconfigs.pkg.crossplane.io", "9064048b3136b601"),
    ("functionrevisions.pkg.crossplane.io", "993b941dc3608636"),
    ("functions.pkg.crossplane.io", "6b9b1d1dcf734d8e"),
    ("imageconfigs.pkg.crossplane.io", "7d493d9cd013ae77"),
    ("locks.pkg.crossplane.io", "2a64350a458674f6"),
    ("providerrevisions.pkg.crossplane.io", "daa90367d1d225d1"),
    ("providers.pkg.crossplane.io", "e3ee1bfdcc6af212"),
    ("clusterusages.protection.crossplane.io", "64a316c5c92d22d6"),
    ("usages.protection.crossplane.io", "d1e7537519bc8b7b"),
];

/// Takes descriptions away. A property may be called `description`, too.
fn without_descriptions(value: &mut Value, properties: bool) {
    match value {
        Value::Object(map) => {
            if !properties && map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            for (key, value) in map {
                without_descriptions(value, key == "properties");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| without_descriptions(item, false)),
        _ => {}
    }
}

fn remove(value: &mut Value, keys: &[&str]) {
    let map = value.as_object_mut().unwrap();
    keys.iter().for_each(|key| assert!(map.remove(*key).is_some(), "{key}"));
}

/// Takes validation rules away, each of which must be there.
fn remove_rules(schema: &mut Value, messages: &[&str]) {
    let rules = schema["x-kubernetes-validations"].as_array_mut().unwrap();
    let before = rules.len();
    rules.retain(|rule| !messages.contains(&rule["message"].as_str().unwrap()));
    assert_eq!(before - rules.len(), messages.len(), "{messages:?}");
}

/// The rule of Crossplane's v1 for conversions.
const WEBHOOK_ONLY: &str = "self.strategy == 'Webhook' && has(self.webhook)";

/// Takes away what is added on purpose.
fn without_additions(name: &str, spec: &mut Value) {
    if name.starts_with("environmentconfigs.") {
        spec["versions"].as_array_mut().unwrap().retain(|version| version["name"] != "v1alpha1");
    }
    for version in spec["versions"].as_array_mut().unwrap() {
        let is_first = version["name"] == "v1";
        if name.starts_with("compositeresourcedefinitions.") {
            let schema = &mut version["schema"]["openAPIV3Schema"];
            remove(schema, &["x-kubernetes-validations"]);
            remove(&mut schema["properties"]["status"]["properties"], &["storedVersions", "migration"]);
        }
        let fields = version.pointer_mut("/schema/openAPIV3Schema/properties/spec");
        match name.split('.').next().unwrap() {
            "functionrevisions" => {
                let columns = version["additionalPrinterColumns"].as_array_mut().unwrap();
                columns.retain(|column| column["name"] != "ENDPOINT");
            }
            "providers" | "configurations" => {
                remove(&mut fields.unwrap()["properties"], &["activeRevisionLimit"]);
            }
            "functions" => {
                let fields = fields.unwrap();
                remove(fields, &["x-kubernetes-validations"]);
                remove(&mut fields["properties"], &["activeRevisionLimit"]);
            }
            kind @ ("compositions" | "compositionrevisions") => {
                let fields = fields.unwrap();
                remove(&mut fields["properties"], &["resources", "patchSets", "environment", "functions"]);
                remove(&mut fields["properties"], &["publishConnectionDetailsWithStoreConfigRef"]);
                fields["properties"]["mode"]["enum"] = json!(["Pipeline"]);
                let step = &mut fields["properties"]["pipeline"]["items"];
                remove(step, &["x-kubernetes-validations"]);
                let added = ["functionRevisionRef", "functionRevisionSelector", "inputRef", "maxIterations"];
                remove(&mut step["properties"], &added);
                remove(&mut step["properties"], &["allowedExtraResources", "function", "inline"]);
                step["required"] = json!(["functionRef", "step"]);
                if kind == "compositions" {
                    fields["x-kubernetes-validations"] = json!([{
                        "rule": "self.mode == 'Pipeline' && has(self.pipeline)",
                        "message": "an array of pipeline steps is required in Pipeline mode",
                    }]);
                }
            }
            "compositeresourcedefinitions" => {
                let fields = fields.unwrap();
                remove_rules(fields, &["claimNames cannot be removed once they are set"]);
                remove_rules(
                    fields,
                    &["serviceAccountRef.namespace is required unless the scope is Namespaced"],
                );
                remove(&mut fields["properties"], &["serviceAccountRef"]);
                let conversion = &mut fields["properties"]["conversion"];
                remove(&mut conversion["properties"], &["rules", "examples"]);
                remove_rules(conversion, &["rules are required when conversion strategy is Declarative"]);
                if is_first {
                    let rule = &mut conversion["x-kubernetes-validations"][0]["rule"];
                    assert_eq!(
                        rule.as_str().unwrap().strip_prefix("self.strategy == 'Declarative' || "),
                        Some(WEBHOOK_ONLY)
                    );
                    *rule = WEBHOOK_ONLY.into();
                } else {
                    remove(conversion, &["x-kubernetes-validations"]);
                }
                if is_first {
                    remove_rules(fields, &["claimNames must differ from names"]);
                }
                remove(&mut fields["properties"]["versions"], &["x-kubernetes-validations"]);
            }
            _ => {}
        }
    }
}

#[test]
fn every_crd_is_the_one_crossplane_ships() {
    let mut seen = Vec::new();
    for mut crd in transom_xapi::crds() {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        let mut spec = crd["spec"].take();
        without_descriptions(&mut spec, false);
        without_additions(&name, &mut spec);
        let hash: String =
            Sha256::digest(spec.to_string()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let shipped = SHIPPED.iter().find(|(n, _)| *n == name).map(|(_, hash)| *hash);
        assert_eq!(shipped, Some(hash.as_str()), "{name}");
        seen.push(name);
    }
    assert_eq!(seen.len(), SHIPPED.len());
}

#[test]
fn every_property_is_described() {
    fn check(schema: &Value, path: &str, missing: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if name != "metadata" && !property["description"].is_string() {
                missing.push(path.clone());
            }
            check(property, &path, missing);
        }
        if schema["items"].is_object() {
            check(&schema["items"], &format!("{path}[]"), missing);
        }
    }
    let mut missing = Vec::new();
    for crd in transom_xapi::crds() {
        for version in crd["spec"]["versions"].as_array().unwrap() {
            check(
                &version["schema"]["openAPIV3Schema"],
                crd["metadata"]["name"].as_str().unwrap(),
                &mut missing,
            );
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
