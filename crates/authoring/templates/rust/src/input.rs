//! What a step of a Composition says to this function. Its schema is package/input/inputs.yaml.

use serde::Deserialize;

/// The input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// The greeting that is put into the ConfigMap.
    pub message: String,
}
