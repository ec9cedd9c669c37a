//! From the claims of a token to a user.

use crate::config::{ConfigError, Issuer, known_fields, wrong};
use crate::jwt::{KeySet, Refused};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use transom_cel::{Bindings, Env, Program, Type, Value};
use transom_object::json::strings;

/// How much one evaluation may cost.
const MAX_COST: u64 = 1_000_000;
/// How much the clock of an issuer may be ahead, in seconds.
const NOT_BEFORE_LEEWAY: i64 = 300;

/// Whom a token stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known about the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
enum Source {
    Claim { name: String, prefix: String },
    Expression(Program),
}

#[derive(Debug)]
pub(crate) struct Mappings {
    username: Source,
    username_text: String,
    groups: Option<Source>,
    uid: Option<Source>,
    extra: Vec<(String, Program)>,
    extra_text: String,
}

#[derive(Debug)]
struct Rule {
    expression: Program,
    text: String,
    message: String,
}

#[derive(Debug, Default)]
pub(crate) struct Rules {
    required: Vec<(String, String)>,
    claims: Vec<Rule>,
    user: Vec<Rule>,
}

fn compile(text: &str, variable: &str, at: &str, wanted: &[Type]) -> Result<Program, ConfigError> {
    let env = Env::new().with(variable, Type::map(Type::String, Type::Dyn));
    let program = Program::compile(text, &env).map_err(|e| wrong(at, e.to_string()))?;
    let ty = program.result_type();
    if *ty != Type::Dyn && !wanted.contains(ty) {
        let names: Vec<String> = wanted.iter().map(|ty| format!("{ty:?}").to_lowercase()).collect();
        return Err(wrong(at, format!("must give {}", names.join(" or "))));
    }
    Ok(program)
}

fn read_source(
    value: &Json,
    at: &str,
    needs_prefix: bool,
    wanted: &[Type],
) -> Result<Option<Source>, ConfigError> {
    if value.is_null() {
        return Ok(None);
    }
    known_fields(value, at, &["claim", "prefix", "expression"])?;
    let text = |key: &str| value[key].as_str().filter(|text| !text.is_empty());
    match (text("claim"), text("expression")) {
        (Some(claim), None) => {
            let prefix = value["prefix"].as_str();
            if needs_prefix && prefix.is_none() {
                return Err(wrong(format!("{at}.prefix"), "must be given with a claim; it can be empty"));
            }
            Ok(Some(Source::Claim { name: claim.to_owned(), prefix: prefix.unwrap_or_default().to_owned() }))
        }
        (None, Some(expression)) if value.get("prefix").is_none() => {
            compile(expression, "claims", &format!("{at}.expression"), wanted)
                .map(|e| Some(Source::Expression(e)))
        }
        _ => Err(wrong(at, "must have either a claim, with its prefix, or an expression")),
    }
}

impl Mappings {
    pub(crate) fn read(value: &Json, at: &str) -> Result<Self, ConfigError> {
        known_fields(value, at, &["username", "groups", "uid", "extra"])?;
        let place = |field: &str| format!("{at}.{field}");
        let username = read_source(&value["username"], &place("username"), true, &[Type::String])?;
        let lists = [Type::String, Type::list(Type::String), Type::list(Type::Dyn)];
        let mut extra = Vec::new();
        for (i, item) in value["extra"].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.extra[{i}]");
            let key = item["key"].as_str().unwrap_or_default();
            if !key.contains('/')
                || key.to_lowercase() != key
                || key.contains("kubernetes.io")
                || key.contains("k8s.io")
            {
                return Err(wrong(
                    format!("{at}.key"),
                    "must be lower case, like example.org/team, and not Kubernetes' own",
                ));
            }
            let expression = item["valueExpression"].as_str().unwrap_or_default();
            extra.push((
                key.to_owned(),
                compile(expression, "claims", &format!("{at}.valueExpression"), &lists)?,
            ));
        }
        Ok(Self {
            username: username.ok_or_else(|| wrong(place("username"), "must be given"))?,
            username_text: value["username"]["expression"].as_str().unwrap_or_default().to_owned(),
            groups: read_source(&value["groups"], &place("groups"), true, &lists)?,
            uid: read_source(&value["uid"], &place("uid"), false, &[Type::String])?,
            extra,
            extra_text: value["extra"].to_string(),
        })
    }

    /// An address that the issuer did not verify may be that of another person.
    pub(crate) fn check_email(&self, rules: &Rules, at: &str) -> Result<(), ConfigError> {
        let verified = |text: &str| text.contains("email_verified");
        let uses = self.username_text.replace("email_verified", "").contains("email");
        let checked = verified(&self.username_text)
            || verified(&self.extra_text)
            || rules.claims.iter().any(|rule| verified(&rule.text));
        if uses && !checked {
            let why = "uses claims.email, so claims.email_verified must be used there, in extra or in claimValidationRules";
            return Err(wrong(format!("{at}.claimMappings.username.expression"), why));
        }
        Ok(())
    }
}

impl Rules {
    pub(crate) fn read(jwt: &Json, at: &str) -> Result<Self, ConfigError> {
        let mut rules = Self::default();
        for (i, rule) in jwt["claimValidationRules"].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.claimValidationRules[{i}]");
            known_fields(rule, &at, &["claim", "requiredValue", "expression", "message"])?;
            match (rule["claim"].as_str(), rule["expression"].as_str()) {
                (Some(claim), None) => {
                    let value = rule["requiredValue"].as_str();
                    let value = value
                        .ok_or_else(|| wrong(format!("{at}.requiredValue"), "must be given with a claim"))?;
                    rules.required.push((claim.to_owned(), value.to_owned()));
                }
                (None, Some(_)) => rules.claims.push(read_rule(rule, "claims", &at)?),
                _ => return Err(wrong(at, "must have either a claim or an expression")),
            }
        }
        for (i, rule) in jwt["userValidationRules"].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.userValidationRules[{i}]");
            known_fields(rule, &at, &["expression", "message"])?;
            rules.user.push(read_rule(rule, "user", &at)?);
        }
        Ok(rules)
    }
}

fn read_rule(rule: &Json, variable: &str, at: &str) -> Result<Rule, ConfigError> {
    let text = rule["expression"].as_str().unwrap_or_default().to_owned();
    let expression = compile(&text, variable, &format!("{at}.expression"), &[Type::Bool])?;
    let message = rule["message"].as_str().map_or_else(|| format!("{text} is not true"), str::to_owned);
    Ok(Rule { expression, text, message })
}

fn invalid(why: impl Into<String>) -> Refused {
    Refused::Invalid(why.into())
}

fn evaluate(program: &Program, variable: &str, value: &Json) -> Result<Json, Refused> {
    let bindings = Bindings::new().with(variable, Value::from_json(value));
    let result = program.eval(&bindings, MAX_COST).map_err(|e| invalid(e.to_string()))?;
    result.to_json().map_err(|e| invalid(e.to_string()))
}

fn holds(rules: &[Rule], variable: &str, value: &Json) -> Result<(), Refused> {
    for rule in rules {
        if evaluate(&rule.expression, variable, value)? != true {
            return Err(invalid(rule.message.clone()));
        }
    }
    Ok(())
}

/// One text or a list of them; none for an absent value.
fn texts(value: &Json, what: &str) -> Result<Vec<String>, Refused> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::String(text) if text.is_empty() => Ok(Vec::new()),
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(list) if list.iter().all(Json::is_string) => {
            Ok(strings(value).into_iter().filter(|text| !text.is_empty()).collect())
        }
        _ => Err(invalid(format!("{what} is neither a text nor a list of texts"))),
    }
}

impl Source {
    fn values(&self, claims: &Json, what: &str) -> Result<Vec<String>, Refused> {
        match self {
            Self::Claim { name, prefix } => {
                let values = texts(&claims[name], what)?;
                Ok(values.into_iter().map(|value| format!("{prefix}{value}")).collect())
            }
            Self::Expression(expression) => texts(&evaluate(expression, "claims", claims)?, what),
        }
    }

    /// Exactly one text.
    fn value(&self, claims: &Json, what: &str) -> Result<String, Refused> {
        match <[String; 1]>::try_from(self.values(claims, what)?) {
            Ok([value]) => Ok(value),
            Err(_) => Err(invalid(format!("{what} is missing or not one text"))),
        }
    }
}

impl Issuer {
    /// Whom a token of this issuer stands for, at a time in seconds since 1970.
    pub fn authenticate(&self, token: &str, keys: &KeySet, now: i64) -> Result<User, Refused> {
        let claims = keys.verify(token)?;
        self.check(&claims, now)?;
        let user = self.user(&claims)?;
        let info =
            json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra});
        holds(&self.rules.user, "user", &info)?;
        let own = |name: &String| name.starts_with("system:");
        if own(&user.name) || user.groups.iter().any(own) {
            return Err(invalid("names that begin with system: are not given to users of an issuer"));
        }
        Ok(user)
    }

    fn check(&self, claims: &Json, now: i64) -> Result<(), Refused> {
        if claims["iss"] != *self.url {
            return Err(invalid("it is of another issuer"));
        }
        let audiences = texts(&claims["aud"], "aud")?;
        if !audiences.iter().any(|audience| self.audiences.contains(audience)) {
            return Err(invalid("it is for another audience"));
        }
        let time = |name: &str| claims[name].as_f64().map(|seconds| seconds as i64);
        if time("exp").is_none_or(|expires| expires <= now) {
            return Err(invalid("it has expired"));
        }
        if time("nbf").is_some_and(|from| from > now + NOT_BEFORE_LEEWAY) {
            return Err(invalid("it is not valid yet"));
        }
        for (claim, value) in &self.rules.required {
            if claims[claim] != **value {
                return Err(invalid(format!("its claim {claim} is not {value:?}")));
            }
        }
        holds(&self.rules.claims, "claims", claims)
    }

    fn user(&self, claims: &Json) -> Result<User, Refused> {
        let mappings = &self.mappings;
        if matches!(&mappings.username, Source::Claim { name, .. } if name == "email")
            && claims.get("email_verified").is_some_and(|verified| *verified != true)
        {
            return Err(invalid("its email is not verified"));
        }
        let groups = mappings.groups.as_ref().map(|source| source.values(claims, "groups"));
        let uid = mappings.uid.as_ref().map(|source| source.value(claims, "uid"));
        let mut extra = BTreeMap::new();
        for (key, expression) in &mappings.extra {
            let values = texts(&evaluate(expression, "claims", claims)?, key)?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(User {
            name: mappings.username.value(claims, "username")?,
            uid: uid.transpose()?.unwrap_or_default(),
            groups: groups.transpose()?.unwrap_or_default(),
            extra,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Configuration;
    use crate::jwt::tests::Signer;

    const NOW: i64 = 1_000_000;

    fn configuration(jwt: &Json) -> Configuration {
        let mut jwt = jwt.clone();
        jwt["issuer"] = json!({"url": "https://issuer", "audiences": ["transom"]});
        let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
        Configuration::parse(&config).unwrap()
    }

    fn authenticate(jwt: &Json, claims: &Json) -> Result<User, String> {
        let signer = Signer::new();
        let mut all = json!({"iss": "https://issuer", "aud": "transom", "exp": NOW + 60, "sub": "jane"});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let token = signer.sign(&json!({"alg": "ES256", "kid": "k"}), &all);
        let keys = KeySet::parse(&signer.keys("k")).unwrap();
        configuration(jwt).issuers[0].authenticate(&token, &keys, NOW).map_err(|refused| match refused {
            Refused::Invalid(why) => why,
            Refused::UnknownKey => "unknown key".to_owned(),
        })
    }

    fn simple() -> Json {
        json!({"claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}, "groups": {"claim": "groups", "prefix": "oidc:"}}})
    }

    #[test]
    fn claims_become_a_user() {
        let user = authenticate(&simple(), &json!({"groups": ["devs", "ops"]})).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("oidc:jane", vec!["oidc:devs".to_owned(), "oidc:ops".to_owned()])
        );
        let jwt = json!({
            "claimMappings": {
                "username": {"expression": "claims.sub + '@' + claims.team"},
                "groups": {"expression": "claims.roles.split(',')"},
                "uid": {"claim": "oid"},
                "extra": [{"key": "example.org/team", "valueExpression": "claims.team"}],
            },
            "claimValidationRules": [{"expression": "claims.team != 'none'", "message": "no team"}],
            "userValidationRules": [{"expression": "!user.username.startsWith('root')", "message": "not root"}],
        });
        let user = authenticate(&jwt, &json!({"team": "a", "roles": "x,y", "oid": "1"})).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane@a", "1"));
        assert_eq!(
            (user.groups, user.extra["example.org/team"].clone()),
            (vec!["x".to_owned(), "y".to_owned()], vec!["a".to_owned()])
        );
        let refused = |claims: Json| authenticate(&jwt, &claims).unwrap_err();
        assert_eq!(refused(json!({"team": "none", "roles": "", "oid": "1"})), "no team");
        assert_eq!(refused(json!({"sub": "root", "team": "a", "roles": "", "oid": "1"})), "not root");
        assert!(refused(json!({"team": "a", "oid": "1"})).contains("roles"), "an expression that fails");
    }

    #[test]
    fn tokens_that_are_expired_foreign_or_claim_to_be_the_system_are_refused() {
        for (claims, why) in [
            (json!({"exp": NOW}), "expired"),
            (json!({"exp": null}), "expired"),
            (json!({"exp": "later"}), "expired"),
            (json!({"nbf": NOW + 301}), "not valid yet"),
            (json!({"iss": "https://other"}), "another issuer"),
            (json!({"aud": ["vault"]}), "another audience"),
            (json!({"aud": null}), "another audience"),
            (json!({"sub": null}), "username is missing"),
            (json!({"sub": ["a", "b"]}), "username is missing"),
            (json!({"sub": {"a": 1}}), "neither a text"),
            (json!({"groups": [1]}), "groups is neither"),
        ] {
            let error = authenticate(&simple(), &claims).unwrap_err();
            assert!(error.contains(why), "{claims}: {error}");
        }
        let bare = json!({"claimMappings": {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}});
        assert!(authenticate(&bare, &json!({"groups": ["system:masters"]})).unwrap_err().contains("system:"));
        assert!(
            authenticate(&bare, &json!({"sub": "system:kube-scheduler"})).unwrap_err().contains("system:")
        );
        let email = json!({"claimMappings": {"username": {"claim": "email", "prefix": ""}}});
        assert!(
            authenticate(&email, &json!({"email": "a@b", "email_verified": false}))
                .unwrap_err()
                .contains("not verified")
        );
        assert!(authenticate(&email, &json!({"email": "a@b", "email_verified": true})).is_ok());
    }
}
