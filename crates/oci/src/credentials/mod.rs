//! Credentials for registries: from Kubernetes' pull secrets, from Docker's configuration file, from its credential
//! helpers. Which of them a reference gets is decided here. Messages never contain what was read.

mod credential_program;
mod machine_config;

use base64::Engine as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use transom_packages::{Credentials, Reference};

pub use credential_program::HelperOptions;
pub use machine_config::MachineConfig;

/// The type of a Secret with the field [`DOCKER_CONFIG_JSON_KEY`].
pub const DOCKER_CONFIG_JSON_TYPE: &str = "kubernetes.io/dockerconfigjson";
/// The field of a Secret that holds Docker's configuration.
pub const DOCKER_CONFIG_JSON_KEY: &str = ".dockerconfigjson";
/// The type of a Secret with the field [`DOCKERCFG_KEY`].
pub const DOCKERCFG_TYPE: &str = "kubernetes.io/dockercfg";
/// The field of a Secret that holds Docker's configuration in its old form.
pub const DOCKERCFG_KEY: &str = ".dockercfg";

/// Why credentials cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CredentialsError {
    /// What is wrong, and what is expected. Never a part of what was read.
    pub message: String,
}

impl CredentialsError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Docker's configuration file: credentials, and which programs return others.
#[derive(Clone, Default)]
pub struct DockerConfig {
    credentials: Vec<Credentials>,
    helpers: BTreeMap<String, String>,
    store: Option<String>,
}

#[derive(Deserialize)]
struct ConfigFile {
    auths: Option<BTreeMap<String, Entry>>,
    #[serde(rename = "credHelpers")]
    helpers: Option<BTreeMap<String, String>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

/// Credentials of one registry in Docker's configuration.
#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(rename = "identitytoken")]
    identity_token: Option<String>,
}

impl DockerConfig {
    /// Reads `config.json` or the content of a `.dockerconfigjson`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CredentialsError> {
        let file: ConfigFile = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        let credentials = entries(file.auths.unwrap_or_default())?;
        let helpers =
            file.helpers.unwrap_or_default().into_iter().map(|(key, name)| (normal(&key), name)).collect();
        Ok(Self { credentials, helpers, store: file.store.filter(|store| !store.is_empty()) })
    }

    /// The credentials that are in the file itself.
    pub fn credentials(&self) -> &[Credentials] {
        &self.credentials
    }

    /// The credentials for a reference, the most specific first: those of the helper of its registry if there is one,
    /// those of the file, and those of the credential store. Runs programs.
    pub async fn lookup(
        &self,
        reference: &Reference,
        options: &HelperOptions,
    ) -> Result<Vec<Credentials>, CredentialsError> {
        let host = canonical_host(&reference.registry);
        if let Some(name) = self.helpers.get(host) {
            return Ok(credential_program::get(name, host, options).await?.into_iter().collect());
        }
        let in_file: Vec<Credentials> = matching(&self.credentials, reference).into_iter().cloned().collect();
        match &self.store {
            Some(name) if in_file.is_empty() => {
                Ok(credential_program::get(name, host, options).await?.into_iter().collect())
            }
            _ => Ok(in_file),
        }
    }
}

/// Reads the data of a pull secret of either type. A Secret without either field has no credentials.
pub fn from_secret<'a>(
    field: impl Fn(&str) -> Option<&'a [u8]>,
) -> Result<Vec<Credentials>, CredentialsError> {
    if let Some(bytes) = field(DOCKER_CONFIG_JSON_KEY) {
        return DockerConfig::parse(bytes).map(|config| config.credentials);
    }
    match field(DOCKERCFG_KEY) {
        Some(bytes) => entries(
            serde_json::from_slice::<BTreeMap<String, Entry>>(bytes).map_err(|error| malformed(&error))?,
        ),
        None => Ok(Vec::new()),
    }
}

/// serde's messages may quote a value, which may be a password: only the position is reported.
fn malformed(error: &serde_json::Error) -> CredentialsError {
    let (line, column) = (error.line(), error.column());
    CredentialsError::new(format!("the Docker configuration is not valid at line {line}, column {column}"))
}

fn entries(auths: BTreeMap<String, Entry>) -> Result<Vec<Credentials>, CredentialsError> {
    let mut all = Vec::new();
    for (key, entry) in auths {
        let (mut username, mut password) =
            (entry.username.unwrap_or_default(), entry.password.unwrap_or_default());
        if let Some(auth) = entry.auth.filter(|auth| !auth.is_empty()) {
            (username, password) = decode(&auth).ok_or_else(|| {
                CredentialsError::new(format!(
                    "the field auth of {:?} must be USER:PASSWORD in base64",
                    normal(&key)
                ))
            })?;
        }
        let identity_token = entry.identity_token.filter(|token| !token.is_empty());
        if identity_token.is_some() || !(username.is_empty() && password.is_empty()) {
            all.push(Credentials { registry: normal(&key), username, password, identity_token });
        }
    }
    Ok(all)
}

fn decode(auth: &str) -> Option<(String, String)> {
    let standard = base64::engine::general_purpose::STANDARD.decode(auth);
    let bytes = standard.or_else(|_| base64::engine::general_purpose::STANDARD_NO_PAD.decode(auth)).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (username, password) = text.split_once(':')?;
    Some((username.to_owned(), password.trim_end_matches('\0').to_owned()))
}

/// `https://host/v1/` and `host` are the same registry. A path that remains limits credentials to repositories below.
fn normal(key: &str) -> String {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    match key.split_once('/') {
        Some((host, path)) => format!("{}/{path}", canonical_host(host)),
        None => canonical_host(key).to_owned(),
    }
}

/// Docker Hub has three names.
fn canonical_host(host: &str) -> &str {
    match host {
        "docker.io" | "index.docker.io" | "registry-1.docker.io" => "index.docker.io",
        other => other,
    }
}

/// The credentials that apply to a reference, the most specific first. As the kubelet matches: each part of a host
/// may have wildcards, ports must be equal, and a path is a prefix of the repository; unlike the kubelet's, it ends
/// at a slash, so that `registry/team` is not for `registry/teamwork`.
pub fn matching<'a>(credentials: &'a [Credentials], reference: &Reference) -> Vec<&'a Credentials> {
    let mut found: Vec<(&Credentials, Specificity)> = credentials
        .iter()
        .filter_map(|candidate| specificity(&candidate.registry, reference).map(|rank| (candidate, rank)))
        .collect();
    found.sort_by(|(_, a), (_, b)| b.cmp(a));
    found.into_iter().map(|(candidate, _)| candidate).collect()
}

/// The length of the path, and whether the host is exact.
type Specificity = (usize, bool);

fn specificity(key: &str, reference: &Reference) -> Option<Specificity> {
    let key = normal(key);
    let (host, path) = key.split_once('/').unwrap_or((&key, ""));
    let target = canonical_host(&reference.registry);
    let exact = host == target;
    let applies = exact || host_matches(host, target);
    let below = reference.repository.strip_prefix(path)?;
    let within = path.is_empty() || below.is_empty() || below.starts_with('/');
    (applies && within).then_some((path.len(), exact))
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let split = |host: &str| match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name.to_owned(), Some(port.to_owned())),
        _ => (host.to_owned(), None),
    };
    let ((pattern, pattern_port), (host, port)) = (split(pattern), split(host));
    let (patterns, parts): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    pattern_port == port
        && patterns.len() == parts.len()
        && patterns.iter().zip(&parts).all(|(pattern, part)| glob(pattern.as_bytes(), part.as_bytes()))
}

/// `*` is any number of characters, `?` is one.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        (Some((b'?', rest)), Some((_, text))) => glob(rest, text),
        (Some((wanted, rest)), Some((found, text))) => wanted == found && glob(rest, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
