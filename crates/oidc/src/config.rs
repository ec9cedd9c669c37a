//! `AuthenticationConfiguration` of `apiserver.config.k8s.io/v1`.

use crate::mapping::{Mappings, Rules};
use serde_json::Value;
use std::fmt;
use transom_object::json::strings;

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The path of the field.
    pub field: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for ConfigError {}

pub(crate) fn wrong(field: impl Into<String>, why: impl Into<String>) -> ConfigError {
    ConfigError { field: field.into(), why: why.into() }
}

/// The issuers whose tokens are accepted.
#[derive(Debug, Default)]
pub struct Configuration {
    /// In the order of the file; each has another URL.
    pub issuers: Vec<Issuer>,
}

/// One issuer.
#[derive(Debug)]
pub struct Issuer {
    /// What its tokens name as their issuer.
    pub url: String,
    /// Where its keys are described, if not below its URL.
    pub discovery_url: Option<String>,
    /// The authorities of its server's certificate, in PEM; otherwise those of the system.
    pub certificate_authority: Option<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) mappings: Mappings,
}

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1"];

impl Configuration {
    /// Reads the content of a configuration file; expressions are compiled.
    pub fn parse(value: &Value) -> Result<Self, ConfigError> {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) || value["kind"] != "AuthenticationConfiguration" {
            let why = format!("must be {} and AuthenticationConfiguration", VERSIONS[0]);
            return Err(wrong("apiVersion, kind", why));
        }
        known_fields(value, "", &["apiVersion", "kind", "jwt"])?;
        let mut issuers: Vec<Issuer> = Vec::new();
        for (i, jwt) in value["jwt"].as_array().into_iter().flatten().enumerate() {
            let issuer = read_issuer(jwt, &format!("jwt[{i}]"))?;
            if issuers.iter().any(|other| other.url == issuer.url) {
                return Err(wrong(format!("jwt[{i}].issuer.url"), "is that of another issuer, too"));
            }
            issuers.push(issuer);
        }
        Ok(Self { issuers })
    }

    /// The issuer of a token that names this one.
    pub fn issuer(&self, url: &str) -> Option<&Issuer> {
        self.issuers.iter().find(|issuer| issuer.url == url)
    }
}

fn read_issuer(jwt: &Value, at: &str) -> Result<Issuer, ConfigError> {
    known_fields(jwt, at, &["issuer", "claimValidationRules", "claimMappings", "userValidationRules"])?;
    let (issuer, at_issuer) = (&jwt["issuer"], format!("{at}.issuer"));
    let fields = ["url", "discoveryURL", "certificateAuthority", "audiences", "audienceMatchPolicy"];
    known_fields(issuer, &at_issuer, &fields)?;
    let text = |key: &str| issuer[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let url = text("url").filter(|url| url.starts_with("https://"));
    let url =
        url.ok_or_else(|| wrong(format!("{at_issuer}.url"), "must be a URL that begins with https://"))?;
    let discovery_url = text("discoveryURL");
    if discovery_url.as_ref().is_some_and(|url| !url.starts_with("https://")) {
        return Err(wrong(format!("{at_issuer}.discoveryURL"), "must begin with https://"));
    }
    let audiences = strings(&issuer["audiences"]);
    if audiences.is_empty() || audiences.iter().any(String::is_empty) {
        return Err(wrong(format!("{at_issuer}.audiences"), "must name at least one audience"));
    }
    let policy = issuer["audienceMatchPolicy"].as_str().unwrap_or_default();
    if (audiences.len() > 1 || !policy.is_empty()) && policy != "MatchAny" {
        return Err(wrong(format!("{at_issuer}.audienceMatchPolicy"), "must be MatchAny"));
    }
    let mappings = Mappings::read(&jwt["claimMappings"], &format!("{at}.claimMappings"))?;
    let rules = Rules::read(jwt, at)?;
    mappings.check_email(&rules, at)?;
    let certificate_authority = text("certificateAuthority");
    Ok(Issuer { url, discovery_url, certificate_authority, audiences, rules, mappings })
}

/// A field that is not known could be a restriction that would not count.
pub(crate) fn known_fields(value: &Value, at: &str, known: &[&str]) -> Result<(), ConfigError> {
    let fields = value.as_object().ok_or_else(|| wrong(at, "must be an object"))?;
    let separator = if at.is_empty() { "" } else { "." };
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) => Err(wrong(format!("{at}{separator}{unknown}"), "is not supported here")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(change: impl FnOnce(&mut Value)) -> Result<Configuration, String> {
        let mut config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": "https://issuer.example.org", "audiences": ["transom"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}},
            }],
        });
        change(&mut config);
        Configuration::parse(&config).map_err(|e| e.to_string())
    }

    #[test]
    fn mistakes_name_their_field() {
        assert!(parse(|_| {}).is_ok());
        for (pointer, value, why) in [
            ("/kind", json!("Other"), "apiVersion, kind: must be"),
            (
                "/jwt/0/issuer/url",
                json!("http://issuer"),
                "jwt[0].issuer.url: must be a URL that begins with https://",
            ),
            ("/jwt/0/issuer/audiences", json!([]), "jwt[0].issuer.audiences: must name"),
            (
                "/jwt/0/issuer/audiences",
                json!(["a", "b"]),
                "jwt[0].issuer.audienceMatchPolicy: must be MatchAny",
            ),
            (
                "/jwt/0/claimMappings/username",
                json!({"claim": "sub"}),
                "jwt[0].claimMappings.username.prefix: ",
            ),
            ("/jwt/0/claimMappings/username", json!({}), "jwt[0].claimMappings.username: "),
            (
                "/jwt/0/claimMappings/username",
                json!({"expression": "claims.sub +"}),
                "jwt[0].claimMappings.username.expression: ",
            ),
            (
                "/jwt/0/claimMappings/username",
                json!({"expression": "1"}),
                "jwt[0].claimMappings.username.expression: must ",
            ),
            (
                "/jwt/0/claimMappings/username",
                json!({"expression": "claims.email"}),
                "jwt[0].claimMappings.username.expression: ",
            ),
            (
                "/jwt/0/claimMappings",
                json!({"username": {"claim": "sub", "prefix": ""}, "mail": 1}),
                "jwt[0].claimMappings.mail: is not supported here",
            ),
        ] {
            let error = parse(|config| *config.pointer_mut(pointer).unwrap() = value.clone()).unwrap_err();
            assert!(error.starts_with(why), "{pointer} {value}: {error}");
        }
        let twice = parse(|config| {
            let first = config["jwt"][0].clone();
            config["jwt"] = json!([first, first]);
        });
        assert_eq!(twice.unwrap_err(), "jwt[1].issuer.url: is that of another issuer, too");
        let rules = |rules: Value| parse(|config| config["jwt"][0]["claimValidationRules"] = rules);
        assert!(
            rules(json!([{"claim": "hd"}])).unwrap_err().contains("claimValidationRules[0].requiredValue")
        );
        assert!(rules(json!([{"expression": "claims.x == 1", "claim": "x"}])).is_err());
    }
}
