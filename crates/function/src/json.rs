//! The protocol's JSON form, for fixtures, rendering and inspection: camelCase names (the `.proto` file's own are
//! read too), enumerations by name, bytes in base64, durations such as `60s`, unset fields left out, unknown fields
//! refused. Messages implement `Serialize` and `Deserialize` with what is here.

use crate::proto::v1::credentials::Source;
use crate::proto::v1::resource_selector::Match;
use crate::proto::v1::{
    Capability, CredentialData, Credentials, MatchLabels, Ready, ResourceSelector, Severity, Status, Target,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// Whether a field is unset, and so left out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An enumeration of the protocol.
pub trait Named: Sized {
    /// The name of a number, unless it is unknown here.
    fn name(number: i32) -> Option<&'static str>;
    /// The number of a name.
    fn number(name: &str) -> Option<i32>;
}

macro_rules! named {
    ($($enumeration:ty),*) => {$(
        impl Named for $enumeration {
            fn name(number: i32) -> Option<&'static str> {
                Self::try_from(number).ok().map(|value| value.as_str_name())
            }

            fn number(name: &str) -> Option<i32> {
                Self::from_str_name(name).map(|value| value as i32)
            }
        }
    )*};
}
named!(Capability, Ready, Severity, Status, Target);

/// One value of an enumeration: its name, or its number when the name is unknown.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected an enumeration's name or number")]
enum NameOrNumber {
    Name(String),
    Number(i32),
}

impl NameOrNumber {
    fn from_number<E: Named>(number: i32) -> Self {
        E::name(number).map_or(Self::Number(number), |name| Self::Name(name.to_owned()))
    }

    fn number<'de, E: Named, D: Deserializer<'de>>(self) -> Result<i32, D::Error> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Name(name) => E::number(&name)
                .ok_or_else(|| D::Error::custom(format!("unknown enumeration value {name:?}"))),
        }
    }
}

/// Serializes an enumeration's field.
pub struct Enumeration<E>(PhantomData<E>);

impl<E: Named> Enumeration<E> {
    /// Writes the name.
    pub fn serialize<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        NameOrNumber::from_number::<E>(*number).serialize(serializer)
    }

    /// Reads a name or a number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        NameOrNumber::deserialize(deserializer)?.number::<E, D>()
    }
}

/// Serializes an enumeration's field that may be unset.
pub struct OptionalEnumeration<E>(PhantomData<E>);

impl<E: Named> OptionalEnumeration<E> {
    /// Writes the name.
    pub fn serialize<S: Serializer>(number: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
        number.map(NameOrNumber::from_number::<E>).serialize(serializer)
    }

    /// Reads a name or a number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
        Option::<NameOrNumber>::deserialize(deserializer)?.map(|value| value.number::<E, D>()).transpose()
    }
}

/// Serializes a field of several values of an enumeration.
pub struct Enumerations<E>(PhantomData<E>);

impl<E: Named> Enumerations<E> {
    /// Writes the names.
    pub fn serialize<S: Serializer>(numbers: &[i32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(numbers.iter().map(|number| NameOrNumber::from_number::<E>(*number)))
    }

    /// Reads names or numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<i32>, D::Error> {
        let values = Vec::<NameOrNumber>::deserialize(deserializer)?;
        values.into_iter().map(|value| value.number::<E, D>()).collect()
    }
}

/// Serializes maps of bytes in base64.
pub mod bytes_by_key {
    use base64::DecodeError;
    use base64::alphabet::{STANDARD, URL_SAFE};
    use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig, general_purpose};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    // As Go's protojson: the last symbol may have bits that stand for nothing, line breaks are skipped, and padding is
    // required of texts whose length four divides and refused in others.
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    const PADDED: GeneralPurposeConfig =
        LENIENT.with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
    const BARE: GeneralPurposeConfig = LENIENT.with_decode_padding_mode(DecodePaddingMode::RequireNone);

    fn decode(text: &str) -> Result<Vec<u8>, DecodeError> {
        let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
        let config = if text.len().is_multiple_of(4) { PADDED } else { BARE };
        let engine = GeneralPurpose::new(alphabet, config);
        if text.contains(['\r', '\n']) {
            engine.decode(text.replace(['\r', '\n'], ""))
        } else {
            engine.decode(text)
        }
    }

    /// Writes standard base64.
    pub fn serialize<S: Serializer>(
        map: &BTreeMap<String, Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(key, bytes)| (key, general_purpose::STANDARD.encode(bytes))))
    }

    /// Reads either alphabet, padded or not, as Go does.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
        let decoded = |(key, text): (String, String)| {
            decode(&text).map_or_else(
                |e| Err(D::Error::custom(format!("{key}: {e}"))),
                |bytes| Ok((key.clone(), bytes)),
            )
        };
        BTreeMap::<String, String>::deserialize(deserializer)?.into_iter().map(decoded).collect()
    }
}

/// Serializes durations such as `1.500s`.
pub mod duration {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes seconds with no, three, six or nine decimals.
    pub fn serialize<S: Serializer>(
        duration: &Option<prost_types::Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.collect_str(duration),
            None => serializer.serialize_none(),
        }
    }

    /// Reads seconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<prost_types::Duration>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| D::Error::custom(format!("{text:?} is not a duration such as \"60s\"")))
    }
}

/// The JSON form of [`ResourceSelector`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectorJson {
    #[serde(default, alias = "api_version", skip_serializing_if = "is_default")]
    api_version: String,
    #[serde(default, skip_serializing_if = "is_default")]
    kind: String,
    #[serde(alias = "match_name", skip_serializing_if = "Option::is_none")]
    match_name: Option<String>,
    #[serde(alias = "match_labels", skip_serializing_if = "Option::is_none")]
    match_labels: Option<MatchLabels>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

impl From<ResourceSelector> for SelectorJson {
    fn from(selector: ResourceSelector) -> Self {
        let (match_name, match_labels) = match selector.r#match {
            Some(Match::MatchName(name)) => (Some(name), None),
            Some(Match::MatchLabels(labels)) => (None, Some(labels)),
            None => (None, None),
        };
        let ResourceSelector { api_version, kind, namespace, .. } = selector;
        Self { api_version, kind, match_name, match_labels, namespace }
    }
}

impl TryFrom<SelectorJson> for ResourceSelector {
    type Error = &'static str;

    fn try_from(json: SelectorJson) -> Result<Self, &'static str> {
        let r#match = match (json.match_name, json.match_labels) {
            (Some(_), Some(_)) => return Err("matchName and matchLabels exclude each other"),
            (Some(name), None) => Some(Match::MatchName(name)),
            (None, labels) => labels.map(Match::MatchLabels),
        };
        Ok(Self { api_version: json.api_version, kind: json.kind, r#match, namespace: json.namespace })
    }
}

/// The JSON form of [`Credentials`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CredentialsJson {
    #[serde(alias = "credential_data", skip_serializing_if = "Option::is_none")]
    credential_data: Option<CredentialData>,
}

impl From<Credentials> for CredentialsJson {
    fn from(credentials: Credentials) -> Self {
        Self { credential_data: credentials.source.map(|Source::CredentialData(data)| data) }
    }
}

impl From<CredentialsJson> for Credentials {
    fn from(json: CredentialsJson) -> Self {
        Self { source: json.credential_data.map(Source::CredentialData) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{RunFunctionRequest, RunFunctionResponse};
    use serde_json::{Value, json};

    fn response(json: Value) -> Result<Value, String> {
        let message: RunFunctionResponse = serde_json::from_value(json).map_err(|e| e.to_string())?;
        serde_json::to_value(message).map_err(|e| e.to_string())
    }

    #[test]
    fn names_of_the_proto_file_are_read() {
        let request: RunFunctionRequest = serde_json::from_value(json!({
            "required_resources": {"a": {"items": [{"connection_details": {"k": "_-8"}}]}},
            "credentials": {"c": {"credential_data": {"data": {"k": "dg=="}}}},
            "required_schemas": {"s": {"openapi_v3": {}}},
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({
                "requiredResources": {"a": {"items": [{"connectionDetails": {"k": "/+8="}}]}},
                "credentials": {"c": {"credentialData": {"data": {"k": "dg=="}}}},
                "requiredSchemas": {"s": {"openapiV3": {}}},
            })
        );
    }

    #[test]
    fn bytes_are_read_as_go_reads_them() {
        let read = |text: &str| {
            response(json!({"desired": {"composite": {"connectionDetails": {"k": text}}}}))
                .map(|read| read["desired"]["composite"]["connectionDetails"]["k"].clone())
        };
        for (text, canonical) in [
            ("", ""),
            ("dg==", "dg=="),
            ("dg", "dg=="),
            // Bits of the last symbol that stand for nothing.
            ("dh==", "dg=="),
            ("dh", "dg=="),
            ("dmb", "dmY="),
            ("__", "/w=="),
            ("_-8=", "/+8="),
            ("dm\n9\r2\n\n", "dm92"),
        ] {
            assert_eq!(read(text), Ok(json!(canonical)), "{text:?}");
        }
        for bad in
            ["d", "dg=", "dg===", "d===", "=", "====", "dg==dg==", "_/8=", "dg\n\n", "dg==\n", "dm9 ", "?"]
        {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn absent_is_not_empty() {
        for json in [json!({}), json!({"context": {}}), json!({"meta": {}, "desired": {"composite": {}}})] {
            assert_eq!(response(json.clone()), Ok(json));
        }
    }

    #[test]
    fn unknown_values_of_enumerations_stay_numbers() {
        let json = json!({"results": [{"severity": 9, "target": 1}]});
        assert_eq!(response(json), Ok(json!({"results": [{"severity": 9, "target": "TARGET_COMPOSITE"}]})));
    }

    #[test]
    fn mistakes_are_named() {
        for (json, expected) in [
            (json!({"desird": {}}), "unknown field `desird`"),
            (json!({"meta": {"ttl": "soon"}}), "\"soon\" is not a duration"),
            (json!({"results": [{"severity": "BAD"}]}), "unknown enumeration value \"BAD\""),
            (json!({"desired": {"composite": {"connectionDetails": {"k": "?"}}}}), "k: Invalid symbol"),
            (json!({"context": []}), "invalid type: sequence"),
            (
                json!({"requirements": {"resources": {"a": {"matchName": "x", "matchLabels": {}}}}}),
                "matchName and matchLabels exclude each other",
            ),
            (
                json!({"requirements": {"resources": {"a": {"matchNames": "x"}}}}),
                "unknown field `matchNames`",
            ),
        ] {
            let error = response(json).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
