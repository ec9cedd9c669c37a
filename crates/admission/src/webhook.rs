//! Webhooks: their configuration, and the meaning of their responses.

use crate::rules::Rule;
use crate::selection::{Conditions, LabelSelector, variables};
use serde_json::Value;
use std::time::Duration;
use transom_go::encoding::{DecodeError, base64_decode};
use transom_object::{Status, status};
use transom_schema::patch::{PatchError, json_patch};

/// The version of AdmissionReview that is sent and expected back.
pub const API_VERSION: &str = "admission.k8s.io/v1";

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An URL as the configuration has it.
    Url(String),
    /// A Service of the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// Its name.
        name: String,
        /// A port of it.
        port: i64,
        /// The path of the request; empty for the root.
        path: String,
    },
}

/// How a webhook is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where it is.
    pub address: Address,
    /// The authorities that may sign its certificate, as PEM in base64; empty for those of the system.
    pub ca_bundle: String,
}

impl ClientConfig {
    /// Reads `WebhookClientConfig`.
    pub fn parse(config: &Value) -> Self {
        let service = &config["service"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let address = match config["url"].as_str() {
            Some(url) => Address::Url(url.to_owned()),
            None => Address::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"].as_i64().unwrap_or(443),
                path: text(&service["path"]),
            },
        };
        Self { address, ca_bundle: text(&config["caBundle"]) }
    }
}

/// One webhook of a configuration.
#[derive(Debug)]
pub struct Webhook {
    /// Its name in errors.
    pub name: String,
    /// The name of its configuration.
    pub configuration: String,
    /// Which requests it is for.
    pub rules: Vec<Rule>,
    /// Whether requests in equivalent versions count.
    pub equivalent: bool,
    /// Namespaces of the objects that it is for.
    pub namespaces: LabelSelector,
    /// Objects that it is for.
    pub objects: LabelSelector,
    /// Further conditions.
    pub conditions: Conditions,
    /// Whether a failed call is ignored.
    pub ignores_failure: bool,
    /// Whether it may be called for a dry run.
    pub supports_dry_run: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// Whether a mutating webhook is called again when others changed the object after it.
    pub reinvoked: bool,
    /// How it is reached.
    pub client: ClientConfig,
}

impl Webhook {
    /// Reads the webhooks of a configuration.
    pub fn parse_all(configuration: &Value) -> Vec<Self> {
        let of = configuration["metadata"]["name"].as_str().unwrap_or_default();
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        webhooks.map(|webhook| Self::parse(webhook, of)).collect()
    }

    fn parse(webhook: &Value, configuration: &str) -> Self {
        let text = |key: &str| webhook[key].as_str().unwrap_or_default();
        let seconds = webhook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30);
        Self {
            name: text("name").to_owned(),
            configuration: configuration.to_owned(),
            rules: Rule::parse_all(&webhook["rules"]),
            equivalent: text("matchPolicy") != "Exact",
            namespaces: LabelSelector::parse(&webhook["namespaceSelector"]),
            objects: LabelSelector::parse(&webhook["objectSelector"]),
            conditions: Conditions::compile(&webhook["matchConditions"], &variables()),
            ignores_failure: text("failurePolicy") == "Ignore",
            supports_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            timeout: Duration::from_secs(seconds),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            client: ClientConfig::parse(&webhook["clientConfig"]),
        }
    }
}

/// What a webhook answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// The response to the client, if the webhook refused.
    pub refusal: Option<Box<Status>>,
    /// A JSON patch of the object.
    pub patch: Option<Value>,
    /// For the client.
    pub warnings: Vec<String>,
    /// For the audit log: keys without the name of the webhook.
    pub audit_annotations: Vec<(String, String)>,
}

/// Why the body of a response is not the answer of a webhook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is not JSON.
    #[error("it is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is an object of another kind.
    #[error(
        "expected webhook response of {}, Kind=AdmissionReview, got {api_version}, Kind={kind}",
        API_VERSION
    )]
    OtherKind {
        /// The API version of the object.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// The review has no response.
    #[error("webhook response was absent")]
    NoResponse,
    /// The response is for another request.
    #[error("expected response.uid={expected:?}, got {found:?}")]
    OtherUid {
        /// The uid of the request.
        expected: String,
        /// The uid in the response.
        found: String,
    },
    /// There is a patch without its type.
    #[error("webhook returned response.patch but not response.patchType")]
    NoPatchType,
    /// The patch is of a type that does not exist.
    #[error("invalid response.patchType: expected \"JSONPatch\", got {0:?}")]
    OtherPatchType(String),
    /// The patch is not base64.
    #[error(transparent)]
    PatchNotBase64(#[from] DecodeError),
    /// The patch is not JSON.
    #[error("response.patch is not JSON")]
    PatchNotJson(#[source] serde_json::Error),
}

/// Reads a response.
pub fn read_answer(webhook: &str, uid: &str, body: &[u8], mutating: bool) -> Result<Answer, AnswerError> {
    let review: Value = serde_json::from_slice(body).map_err(AnswerError::NotJson)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    if api_version != API_VERSION || kind != "AdmissionReview" {
        return Err(AnswerError::OtherKind { api_version, kind });
    }
    let response = &review["response"];
    if !response.is_object() {
        return Err(AnswerError::NoResponse);
    }
    if response["uid"] != uid {
        return Err(AnswerError::OtherUid { expected: uid.to_owned(), found: text(&response["uid"]) });
    }
    let patch = match (mutating, response["patch"].as_str()) {
        (true, Some(encoded)) if !encoded.is_empty() => Some(read_patch(encoded, &response["patchType"])?),
        _ => None,
    };
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    let allowed = response["allowed"] == true;
    Ok(Answer {
        refusal: (!allowed).then(|| Box::new(denied(webhook, &response["status"]))),
        patch,
        warnings: transom_object::json::strings(&response["warnings"]),
        audit_annotations: annotations.map(|(key, value)| (key.clone(), text(value))).collect(),
    })
}

fn read_patch(encoded: &str, kind: &Value) -> Result<Value, AnswerError> {
    match kind.as_str() {
        None => return Err(AnswerError::NoPatchType),
        Some("JSONPatch") => {}
        Some(other) => return Err(AnswerError::OtherPatchType(other.to_owned())),
    }
    let bytes = base64_decode(encoded.as_bytes())?;
    serde_json::from_slice(&bytes).map_err(AnswerError::PatchNotJson)
}

/// Applies the patch of a webhook.
pub fn apply_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    json_patch(object, patch)
}

/// The response to the client for a refusal, as Kubernetes words it.
fn denied(webhook: &str, result: &Value) -> Status {
    let by = format!("admission webhook {webhook:?} denied the request");
    let text = |key: &str| result[key].as_str().unwrap_or_default();
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = result["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let code = if (400..600).contains(&code) { code } else { 400 };
    let mut refusal = Status::new(code, text("reason").to_owned(), message);
    let causes = result["details"]["causes"].as_array().into_iter().flatten();
    let causes: Vec<status::Cause> = causes
        .map(|cause| {
            let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
            status::Cause { reason: text("reason"), message: text("message"), field: text("field") }
        })
        .collect();
    if !causes.is_empty() {
        refusal = refusal.with_details(status::Details { causes, ..status::Details::default() });
    }
    refusal
}
