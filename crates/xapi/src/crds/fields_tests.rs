//! The types of Compositions have exactly the fields of their CRDs: a field that only the type has is pruned before it is read, and
//! one that only the CRD has is accepted and ignored.

use super::crds;
use crate::composition::{
    AllowedResource, CompositionSpec, Credentials, Environment, InputReference, LabelMatch, NameReference,
    PipelineStep, RequiredResource, RequiredSchema, Requirements, SecretReference, TypeReference,
};
use crate::inline::{
    ContainerFunction, InlineFunction, Network, Resources, Runner, SecretName, WebhookFunction,
};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads nothing: a derived `Deserialize` passes the names of its fields, aliases included.
struct FieldNames<'a>(&'a mut BTreeSet<&'static str>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(fields);
        Err(Error::custom("the names are known"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("it is not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields_of<T: DeserializeOwned>() -> BTreeSet<&'static str> {
    let mut fields = BTreeSet::new();
    let outcome: Result<T, Error> = T::deserialize(FieldNames(&mut fields));
    assert!(
        outcome.is_err() && !fields.is_empty(),
        "{}: its fields are not known",
        std::any::type_name::<T>()
    );
    fields
}

/// The schema at a path such as `pipeline[].input`, below `spec`.
fn at<'a>(spec: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|part| !part.is_empty()).fold(spec, |schema, part| {
        let (name, is_list) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        let field = &schema["properties"][name];
        if is_list { &field["items"] } else { field }
    })
}

/// What differs between the fields of a type and the properties of a schema.
fn difference<'a>(fields: &BTreeSet<&'a str>, schema: &'a Value) -> Vec<&'a str> {
    let properties = schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
    let properties: BTreeSet<&str> = properties.map(String::as_str).collect();
    fields.symmetric_difference(&properties).copied().collect()
}

#[test]
fn fields_of_one_side_are_noticed() {
    let schema = serde_json::json!({"properties": {"apiVersion": {}, "kind": {}}});
    let fields = fields_of::<TypeReference>();
    assert_eq!(difference(&fields, &schema), Vec::<&str>::new());
    assert_eq!(difference(&fields_of::<NameReference>(), &schema), ["apiVersion", "kind", "name"]);
    assert_eq!(difference(&fields, &Value::Null), ["apiVersion", "kind"], "there is no such schema");
}

#[test]
fn the_types_of_compositions_have_the_fields_of_their_crds() {
    let step = |field: &str| format!("pipeline[].{field}");
    let inline = |field: &str| ["pipeline[].inline.", "functions[]."].map(|of| format!("{of}{field}"));
    let cases: Vec<(BTreeSet<&str>, Vec<String>)> = vec![
        (fields_of::<CompositionSpec>(), vec![String::new()]),
        (fields_of::<TypeReference>(), vec!["compositeTypeRef".to_owned()]),
        (fields_of::<Environment>(), vec!["environment".to_owned()]),
        (fields_of::<PipelineStep>(), vec!["pipeline[]".to_owned()]),
        (fields_of::<NameReference>(), ["functionRef", "functionRevisionRef"].map(step).into()),
        (fields_of::<LabelMatch>(), vec![step("functionRevisionSelector")]),
        (fields_of::<InputReference>(), vec![step("inputRef")]),
        (fields_of::<Credentials>(), vec![step("credentials[]")]),
        (fields_of::<SecretReference>(), vec![step("credentials[].secretRef")]),
        (fields_of::<Requirements>(), vec![step("requirements")]),
        (fields_of::<RequiredResource>(), vec![step("requirements.requiredResources[]")]),
        (fields_of::<RequiredSchema>(), vec![step("requirements.requiredSchemas[]")]),
        (fields_of::<AllowedResource>(), vec![step("allowedExtraResources[]")]),
        (fields_of::<InlineFunction>(), vec![step("inline")]),
        (fields_of::<ContainerFunction>(), inline("container").into()),
        (fields_of::<SecretName>(), inline("container.imagePullSecrets[]").into()),
        (fields_of::<Network>(), inline("container.network").into()),
        (fields_of::<Resources>(), inline("container.resources").into()),
        (fields_of::<Runner>(), inline("container.runner").into()),
        (fields_of::<WebhookFunction>(), inline("webhook").into()),
        (fields_of::<SecretName>(), inline("webhook.tlsSecretRef").into()),
    ];
    let mut problems = Vec::new();
    for (kind, own) in [("Composition", None), ("CompositionRevision", Some("revision"))] {
        let crd = crds().find(|crd| crd["spec"]["names"]["kind"] == kind).expect("the CRD");
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            for (fields, paths) in &cases {
                for path in paths {
                    let mut differs = difference(fields, at(spec, path));
                    differs.retain(|field| !path.is_empty() || own != Some(*field));
                    problems.extend(
                        differs
                            .iter()
                            .map(|field| format!("{kind} {}: spec.{path}: {field}", version["name"])),
                    );
                }
            }
        }
    }
    assert!(problems.is_empty(), "only the type or only the CRD has the field: {problems:#?}");
}
