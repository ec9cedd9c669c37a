//! The objects that a package establishes.

use crate::content::established;
use crate::stream::{Package, PackageObject};
use serde_json::{Value, json};
use transom_object::meta;
use transom_xapi::PackageKind;
use transom_xapi::constants::group;
use transom_xapi::function::is_capable;
use transom_xapi::package::ACTIVE;

/// The capability of providers whose managed resources are defined when they are needed.
pub(super) const SAFE_START: &str = "safe-start";
/// Kinds in the packages of providers that are not managed resources.
const NOT_MANAGED: [&str; 4] =
    ["ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage", "ClusterProviderConfigUsage"];

/// The objects that an active revision of a package controls, in the order of the package. The CRDs of a provider's managed
/// resources become ManagedResourceDefinitions; they are active unless the provider is capable of starting without them.
pub fn objects(package: &Package) -> Vec<Value> {
    let converts = package.kind == PackageKind::Provider;
    let active = !is_capable(&package.meta.capabilities, SAFE_START);
    let ours = package.objects.iter().filter(|object| established(package.kind, &object.gvk.group_kind()));
    let object = |object: &PackageObject| {
        let definition = converts.then(|| managed_definition(&object.value, active)).flatten();
        definition.unwrap_or_else(|| object.value.clone())
    };
    ours.map(object).collect()
}

/// The ManagedResourceDefinition of a CRD; `None` for all that is not the CRD of a managed resource.
pub fn managed_definition(crd: &Value, active: bool) -> Option<Value> {
    let is_crd =
        meta::api_version(crd) == "apiextensions.k8s.io/v1" && meta::kind(crd) == "CustomResourceDefinition";
    let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    if !is_crd || NOT_MANAGED.contains(&kind) {
        return None;
    }
    let mut definition = crd.clone();
    let fields = definition.as_object_mut()?;
    fields.insert("apiVersion".to_owned(), format!("{}/v1alpha1", group::APIEXTENSIONS).into());
    fields.insert("kind".to_owned(), "ManagedResourceDefinition".into());
    fields.remove("status");
    if active {
        let spec = fields.entry("spec").or_insert_with(|| json!({}));
        spec.as_object_mut()?.insert("state".to_owned(), ACTIVE.into());
    }
    Some(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::parse;

    fn package(kind: &str, capabilities: &str) -> Package {
        let crd = |version: &str, kind: &str| {
            format!(
                "---\napiVersion: apiextensions.k8s.io/{version}\nkind: CustomResourceDefinition\n\
                 spec: {{names: {{kind: {kind}}}}}\nstatus: {{}}\n"
            )
        };
        let meta = format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nspec: {{capabilities: [{capabilities}]}}\n"
        );
        let secret = "---\napiVersion: apiextensions.crossplane.io/v1\nkind: Composition\n";
        let all = [meta, crd("v1", "Bucket"), crd("v1", "ProviderConfig"), crd("v1beta1", "Old")].concat();
        parse((all + secret).as_bytes()).unwrap()
    }

    fn kinds(objects: &[Value]) -> Vec<(&str, Option<&str>)> {
        let state = |object| Value::pointer(object, "/spec/state").and_then(Value::as_str);
        objects.iter().map(|object| (meta::kind(object), state(object))).collect()
    }

    #[test]
    fn managed_resources_are_defined_by_their_own_kind() {
        let (crd, mrd) = ("CustomResourceDefinition", "ManagedResourceDefinition");
        let converted = objects(&package("Provider", ""));
        assert_eq!(kinds(&converted), [(mrd, Some("Active")), (crd, None), (crd, None)]);
        assert_eq!(meta::api_version(&converted[0]), "apiextensions.crossplane.io/v1alpha1");
        assert!(converted[0].get("status").is_none() && converted[1].get("status").is_some());
        let safe = objects(&package("Provider", "SafeStart"));
        assert_eq!(kinds(&safe), [(mrd, None), (crd, None), (crd, None)]);
    }

    #[test]
    fn only_what_belongs_to_the_kind_of_package_is_established() {
        assert_eq!(kinds(&objects(&package("Configuration", ""))), [("Composition", None)]);
        assert!(objects(&package("Function", "")).is_empty());
    }
}
