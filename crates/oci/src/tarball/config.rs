//! An image's configuration as go-containerregistry writes it: the same fields in the same order, others dropped. The
//! digest of a package's configuration depends on every byte.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The zero of Go's time, which it writes for times that are not set.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The configuration of an image.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct GoConfigFile {
    pub(super) architecture: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    author: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    container: String,
    created: GoTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    docker_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub(super) history: Vec<History>,
    pub(super) os: String,
    pub(super) rootfs: RootFs,
    #[serde(deserialize_with = "or_default")]
    pub(super) config: RunConfig,
    #[serde(rename = "os.version", skip_serializing_if = "String::is_empty")]
    os_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    variant: String,
    #[serde(rename = "os.features", skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    os_features: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct History {
    #[serde(skip_serializing_if = "String::is_empty")]
    author: String,
    created: GoTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    created_by: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    #[serde(skip_serializing_if = "is_false")]
    empty_layer: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RootFs {
    r#type: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) diff_ids: Vec<String>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { r#type: "layers".to_owned(), diff_ids: Vec::new() }
    }
}

/// How containers run. Fields that are absent, empty or false are not written, as in Go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct RunConfig(BTreeMap<String, Value>);

/// The fields of Go's type, in its order.
const RUN_CONFIG_FIELDS: [&str; 24] = [
    "AttachStderr",
    "AttachStdin",
    "AttachStdout",
    "Cmd",
    "Healthcheck",
    "Domainname",
    "Entrypoint",
    "Env",
    "Hostname",
    "Image",
    "Labels",
    "OnBuild",
    "OpenStdin",
    "StdinOnce",
    "Tty",
    "User",
    "Volumes",
    "WorkingDir",
    "ExposedPorts",
    "ArgsEscaped",
    "NetworkDisabled",
    "MacAddress",
    "StopSignal",
    "Shell",
];
const HEALTHCHECK_FIELDS: [&str; 5] = ["Test", "Interval", "Timeout", "StartPeriod", "Retries"];

impl RunConfig {
    /// Sets a field by its name in the configuration.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The words of a field that is a list.
    pub(super) fn words(&self, name: &str) -> Vec<String> {
        let words = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(|word| word.as_str().map(ToOwned::to_owned)).collect()
    }

    /// Adds a label.
    pub(super) fn label(&mut self, name: String, value: &str) {
        let labels = self.0.entry("Labels".to_owned()).or_insert(Value::Null);
        match labels {
            Value::Object(labels) => drop(labels.insert(name, value.into())),
            other => *other = Value::Object([(name, value.into())].into_iter().collect()),
        }
    }
}

impl Serialize for RunConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        for name in RUN_CONFIG_FIELDS {
            let Some(value) = self.0.get(name).filter(|value| !is_empty(value)) else { continue };
            match value {
                Value::Object(fields) if name == "Healthcheck" => {
                    map.serialize_entry(name, &Ordered { fields, order: &HEALTHCHECK_FIELDS })?;
                }
                value => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct Ordered<'a> {
    fields: &'a serde_json::Map<String, Value>,
    order: &'a [&'a str],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let present = self.order.iter().filter_map(|name| Some((*name, self.fields.get(*name)?)));
        serializer.collect_map(present.filter(|(_, value)| !is_empty(value)))
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A time in the form that Go writes: without the zeros at the end of its fraction.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
struct GoTime(String);

impl Default for GoTime {
    fn default() -> Self {
        Self(ZERO_TIME.to_owned())
    }
}

impl<'de> Deserialize<'de> for GoTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(Self::default()) };
        let Some((seconds, rest)) = text.split_once('.') else { return Ok(Self(text)) };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let fraction = rest[..end].trim_end_matches('0');
        let dot = if fraction.is_empty() { "" } else { "." };
        Ok(Self(format!("{seconds}{dot}{fraction}{}", &rest[end..])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tarball::go_json;

    #[test]
    fn a_configuration_is_written_as_go_writes_it() {
        let read = r#"{"os":"linux","architecture":"amd64","created":"2024-05-01T10:00:00.120Z","unknown":1,"rootfs":{"type":"layers","diff_ids":["sha256:a"]},
          "config":{"User":"65532","Env":["A=<b>"],"Cmd":null,"Tty":false,"ExposedPorts":{"80/tcp":{}},"Entrypoint":["/run"],"Unknown":true,
          "Healthcheck":{"Retries":3,"Test":["NONE"],"Interval":0}},"history":[{"created_by":"x","created":"2024-05-01T10:00:00.000Z","empty_layer":true}]}"#;
        let mut config: GoConfigFile = serde_json::from_str(read).unwrap();
        config.config.label("b".to_owned(), "1");
        config.config.label("a".to_owned(), "2");
        let expected = r#"{"architecture":"amd64","created":"2024-05-01T10:00:00.12Z","history":[{"created":"2024-05-01T10:00:00Z","created_by":"x","empty_layer":true}],"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:a"]},"config":{"Healthcheck":{"Test":["NONE"],"Retries":3},"Entrypoint":["/run"],"Env":["A=\u003cb\u003e"],"Labels":{"a":"2","b":"1"},"User":"65532","ExposedPorts":{"80/tcp":{}}}}"#;
        assert_eq!(String::from_utf8(go_json(&config).unwrap()).unwrap(), expected);
    }
}
