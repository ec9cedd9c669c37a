//! The step's input, `Resources` of `pt.fn.crossplane.io/v1beta1`: what to compose and which fields to copy.
//!
//! Nothing is defaulted by a schema here; what is left out keeps the meaning the function itself gives it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::named::{Names, OneOf};

/// Declares a field that should hold one of some names. What it holds is kept when it is another one, because
/// validation reports it; `| ""` names the variant of an empty text.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal $(| $alias:literal)?),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant,)*
            Unknown(String),
        }

        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl Names for $name {
            const ALL: &'static [&'static str] = &[$($text),*];
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = OneOf::<Self>::deserialize(deserializer)?;
                Ok(Self::from(Cow::Owned(text.into_text())))
            }
        }

        impl From<Cow<'_, str>> for $name {
            fn from(text: Cow<'_, str>) -> Self {
                match &*text {
                    $($text $(| $alias)? => Self::$variant,)*
                    _ => Self::Unknown(text.into_owned()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from(Cow::Borrowed(""))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named! {
    /// Where a patch reads and where it writes.
    PatchType {
        FromComposite = "FromCompositeFieldPath" | "",
        ToComposite = "ToCompositeFieldPath",
        CombineFromComposite = "CombineFromComposite",
        CombineToComposite = "CombineToComposite",
        FromEnvironment = "FromEnvironmentFieldPath",
        ToEnvironment = "ToEnvironmentFieldPath",
        CombineFromEnvironment = "CombineFromEnvironment",
        CombineToEnvironment = "CombineToEnvironment",
        PatchSet = "PatchSet",
    }
}

named! {
    /// What a source that is not there means.
    FromPolicy { Optional = "Optional" | "", Required = "Required" }
}

named! {
    /// How a value is merged with the existing one.
    ToPolicy {
        Replace = "Replace",
        MergeObjects = "MergeObjects",
        MergeObjectsAppendArrays = "MergeObjectsAppendArrays",
        ForceMergeObjects = "ForceMergeObjects",
        ForceMergeObjectsAppendArrays = "ForceMergeObjectsAppendArrays",
        MergeObject = "MergeObject",
        AppendArray = "AppendArray",
    }
}

named! {
    CombineStrategy { String = "string" }
}

named! {
    TransformType { Map = "map", Match = "match", Math = "math", String = "string", Convert = "convert" }
}

named! {
    MathType { Multiply = "Multiply", ClampMin = "ClampMin", ClampMax = "ClampMax" }
}

named! {
    PatternType { Literal = "literal", Regexp = "regexp" }
}

named! {
    FallbackTo { Value = "Value", Input = "Input" }
}

named! {
    StringType {
        Format = "Format",
        Convert = "Convert",
        TrimPrefix = "TrimPrefix",
        TrimSuffix = "TrimSuffix",
        Regexp = "Regexp",
        Join = "Join",
        Replace = "Replace",
    }
}

named! {
    /// What a string transform of type `Convert` does.
    StringConversion {
        ToUpper = "ToUpper",
        ToLower = "ToLower",
        ToJson = "ToJson",
        ToBase64 = "ToBase64",
        FromBase64 = "FromBase64",
        ToSha1 = "ToSha1",
        ToSha256 = "ToSha256",
        ToSha512 = "ToSha512",
        ToAdler32 = "ToAdler32",
    }
}

named! {
    /// What a value is converted to.
    ConvertTo {
        String = "string",
        Bool = "bool",
        Int = "int",
        Int64 = "int64",
        Float64 = "float64",
        Object = "object",
        Array = "array",
    }
}

named! {
    /// How the text that is converted is written.
    ConvertFormat { None = "none", Quantity = "quantity", Json = "json" }
}

named! {
    ConnectionDetailType {
        FromConnectionSecretKey = "FromConnectionSecretKey",
        FromFieldPath = "FromFieldPath",
        FromValue = "FromValue",
    }
}

named! {
    ReadinessCheckType {
        NonEmpty = "NonEmpty",
        MatchString = "MatchString",
        MatchInteger = "MatchInteger",
        MatchTrue = "MatchTrue",
        MatchFalse = "MatchFalse",
        MatchCondition = "MatchCondition",
        None = "None",
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Resources {
    pub patch_sets: Vec<PatchSet>,
    pub environment: Option<Environment>,
    pub resources: Vec<ComposedTemplate>,
    pub write_connection_secret_to_ref: Option<SecretRef>,
}

/// Patches under a name, to be used by several resources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PatchSet {
    pub name: String,
    #[serde(deserialize_with = "own_patches")]
    pub patches: Vec<Patch>,
}

/// What the environment is made from, and patches between it and the composite resource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Environment {
    /// Sources as in the input of function-environment-configs. The original has neither them nor what goes with them.
    pub environment_configs: Option<Vec<Value>>,
    pub default_data: Option<Map<String, Value>>,
    pub policy: Option<Map<String, Value>>,
    #[serde(deserialize_with = "own_patches")]
    pub patches: Vec<Patch>,
}

/// One resource to compose.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ComposedTemplate {
    pub name: String,
    /// Without it the resource is a desired resource of an earlier step.
    pub base: Option<Value>,
    pub patches: Vec<Patch>,
    pub connection_details: Vec<ConnectionDetail>,
    pub readiness_checks: Vec<ReadinessCheck>,
}

/// Where the secret with the connection details goes, when the composite resource has none of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct SecretRef {
    pub name: String,
    pub namespace: String,
    #[serde(deserialize_with = "own_patches")]
    pub patches: Vec<Patch>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Patch {
    #[serde(rename = "type")]
    pub kind: PatchType,
    pub from_field_path: Option<String>,
    pub combine: Option<Combine>,
    pub to_field_path: Option<String>,
    pub patch_set_name: Option<String>,
    pub transforms: Vec<Transform>,
    pub policy: Option<Policy>,
}

impl Patch {
    pub(crate) fn source_path(&self) -> &str {
        self.from_field_path.as_deref().unwrap_or_default()
    }

    /// By default the path that is read from.
    pub(crate) fn target_path(&self) -> &str {
        self.to_field_path.as_deref().unwrap_or_else(|| self.source_path())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.from_field_path == FromPolicy::Required)
    }

    /// Only what neither requires nor forbids a source counts as optional; that differs from not required when the
    /// policy is unknown, which validation does not see in every patch.
    pub(crate) fn is_optional(&self) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.from_field_path == FromPolicy::Optional)
    }
}

/// Only the patches of a resource can name a patch set.
fn own_patches<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Patch>, D::Error> {
    let patches = Vec::<Patch>::deserialize(deserializer)?;
    match patches.iter().any(|patch| patch.patch_set_name.is_some()) {
        true => Err(D::Error::custom("unknown object member name \"patchSetName\"")),
        false => Ok(patches),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Policy {
    #[serde(deserialize_with = "from_policy")]
    pub from_field_path: FromPolicy,
    pub to_field_path: Option<ToPolicy>,
}

/// An absent policy is `Optional`; an empty one is not.
fn from_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FromPolicy, D::Error> {
    Ok(match Option::<OneOf<FromPolicy>>::deserialize(deserializer)? {
        Some(text) if text.is_empty() => FromPolicy::Unknown(String::new()),
        Some(text) => FromPolicy::from(Cow::Owned(text.into_text())),
        None => FromPolicy::Optional,
    })
}

/// One value made of several.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Combine {
    pub variables: Vec<CombineVariable>,
    pub strategy: CombineStrategy,
    pub string: Option<CombineString>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CombineVariable {
    pub from_field_path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CombineString {
    pub fmt: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Transform {
    #[serde(rename = "type")]
    pub kind: TransformType,
    pub math: Option<Math>,
    pub map: Option<BTreeMap<String, Value>>,
    pub r#match: Option<Match>,
    pub string: Option<StringTransform>,
    pub convert: Option<Convert>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Math {
    #[serde(rename = "type")]
    pub kind: MathType,
    pub multiply: Option<i64>,
    pub clamp_min: Option<i64>,
    pub clamp_max: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Match {
    pub patterns: Vec<Pattern>,
    pub fallback_value: Option<Value>,
    pub fallback_to: FallbackTo,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Pattern {
    #[serde(rename = "type")]
    pub kind: PatternType,
    pub literal: Option<String>,
    pub regexp: Option<String>,
    pub result: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StringTransform {
    #[serde(rename = "type")]
    pub kind: StringType,
    pub fmt: Option<String>,
    pub convert: Option<StringConversion>,
    pub trim: Option<String>,
    pub regexp: Option<StringRegexp>,
    pub join: Option<StringJoin>,
    pub replace: Option<StringReplace>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StringRegexp {
    pub r#match: String,
    pub group: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StringJoin {
    pub separator: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StringReplace {
    pub search: String,
    pub replace: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Convert {
    pub to_type: ConvertTo,
    pub format: Option<ConvertFormat>,
}

impl Convert {
    pub(crate) fn format(&self) -> &ConvertFormat {
        self.format.as_ref().unwrap_or(&ConvertFormat::None)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ConnectionDetail {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ConnectionDetailType,
    pub from_connection_secret_key: Option<String>,
    pub from_field_path: Option<String>,
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReadinessCheck {
    #[serde(rename = "type")]
    pub kind: ReadinessCheckType,
    pub field_path: Option<String>,
    pub match_string: Option<String>,
    pub match_integer: Option<i64>,
    pub match_condition: Option<MatchCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct MatchCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
}
