//! Query parameters and option bodies.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_object::field::{Error as FieldError, Path};
use transom_object::{GroupKind, Status, meta};

/// The decoded query string. Repeated keys keep their first value, as Go's `url.Values.Get` does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let mut map = BTreeMap::new();
        for (k, v) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            map.entry(k.into_owned()).or_insert_with(|| v.into_owned());
        }
        Self(map)
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Kubernetes' booleans in queries: absent, `0` and `false` are false, everything else is true.
    pub(crate) fn flag(&self, key: &str) -> bool {
        !matches!(self.get(key), "" | "0" | "false") || (self.has(key) && self.get(key).is_empty())
    }

    pub(crate) fn seconds(&self, key: &str) -> Result<Option<u64>, Status> {
        match self.get(key) {
            "" => Ok(None),
            s => s
                .parse::<i64>()
                .map(|n| u64::try_from(n).ok())
                .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {s:?}: invalid syntax"))),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Unset,
    Exact,
    NotOlderThan,
}

#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    pub limit: usize,
    pub continue_token: String,
    pub resource_version: String,
    pub version_match: VersionMatch,
    pub send_initial_events: Option<bool>,
    pub allow_bookmarks: bool,
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Status> {
        let limit = match query.get("limit") {
            "" => 0,
            s => s.parse::<i64>().map(|n| usize::try_from(n).unwrap_or(0)).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing {s:?}: invalid syntax"))
            })?,
        };
        let options = Self {
            label_selector: query.get("labelSelector").to_owned(),
            field_selector: query.get("fieldSelector").to_owned(),
            limit,
            continue_token: query.get("continue").to_owned(),
            resource_version: query.get("resourceVersion").to_owned(),
            version_match: match query.get("resourceVersionMatch") {
                "Exact" => VersionMatch::Exact,
                "NotOlderThan" => VersionMatch::NotOlderThan,
                _ => VersionMatch::Unset,
            },
            send_initial_events: query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents")),
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            timeout_seconds: query.seconds("timeoutSeconds")?,
        };
        let errors = options.check(query.get("resourceVersionMatch"), watch);
        if errors.is_empty() {
            return Ok(options);
        }
        Err(Status::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", &errors))
    }

    fn check(&self, raw_match: &str, watch: bool) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let rv_match = Path::new("resourceVersionMatch");
        let known = ["", "Exact", "NotOlderThan"].contains(&raw_match);
        if watch {
            self.check_watch(raw_match, &mut errors);
            return errors;
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        if raw_match.is_empty() {
            return errors;
        }
        if self.resource_version.is_empty() {
            errors.push(FieldError::forbidden(
                &rv_match,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !self.continue_token.is_empty() {
            errors.push(FieldError::forbidden(
                &rv_match,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !known {
            errors.push(FieldError::not_supported(&rv_match, raw_match, &["Exact", "NotOlderThan", ""]));
        }
        if raw_match == "Exact" && self.resource_version == "0" {
            errors.push(FieldError::forbidden(
                &rv_match,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        errors
    }

    fn check_watch(&self, raw_match: &str, errors: &mut Vec<FieldError>) {
        let rv_match = Path::new("resourceVersionMatch");
        if self.send_initial_events.is_some() {
            if raw_match.is_empty() {
                errors.push(FieldError::forbidden(
                    &rv_match,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            } else if raw_match != "NotOlderThan" {
                errors.push(FieldError::not_supported(&rv_match, raw_match, &["NotOlderThan"]));
            }
            return;
        }
        if !raw_match.is_empty() {
            errors.push(FieldError::forbidden(
                &rv_match,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
            if raw_match != "NotOlderThan" {
                errors.push(FieldError::not_supported(&rv_match, raw_match, &["NotOlderThan"]));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options common to create, update and patch.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
}

impl WriteOptions {
    /// `kind` is the options kind errors are about (`CreateOptions`, …); `apply` is whether it is an apply patch.
    pub(crate) fn parse(query: &Query, kind: &str, user_agent: &str, apply: bool) -> Result<Self, Status> {
        let dry_run: Vec<&str> = Some(query.get("dryRun")).filter(|d| !d.is_empty()).into_iter().collect();
        let force = query.has("force").then(|| query.flag("force"));
        let (manager, validation) = (query.get("fieldManager"), query.get("fieldValidation"));
        let errors = match kind {
            "PatchOptions" => {
                meta::options::validate_patch_options(apply, force, manager, &dry_run, validation)
            }
            _ => meta::options::validate_write_options(manager, &dry_run, validation),
        };
        if !errors.is_empty() {
            return Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors));
        }
        let field_validation = match validation {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        };
        let field_manager =
            if manager.is_empty() { manager_from_user_agent(user_agent) } else { manager.to_owned() };
        Ok(Self { dry_run: !dry_run.is_empty(), field_manager, field_validation, force })
    }

    /// The options of a write that the server makes on its own.
    pub(crate) fn of_manager(manager: &str) -> Self {
        Self {
            dry_run: false,
            field_manager: manager.to_owned(),
            field_validation: FieldValidation::Ignore,
            force: None,
        }
    }

    /// As an object of `meta.k8s.io/v1`, for admission.
    pub(crate) fn to_value(&self, kind: &str) -> Value {
        let mut options = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": kind,
            "fieldValidation": match self.field_validation {
                FieldValidation::Ignore => "Ignore",
                FieldValidation::Warn => "Warn",
                FieldValidation::Strict => "Strict",
            },
        });
        if !self.field_manager.is_empty() {
            options["fieldManager"] = self.field_manager.as_str().into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }
}

/// The part of the user agent before the slash, at most 128 printable characters.
fn manager_from_user_agent(user_agent: &str) -> String {
    user_agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(128).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl Propagation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub preconditions: Preconditions,
    pub dry_run: bool,
}

impl DeleteOptions {
    /// A body overrides the query as a whole, as upstream reads one or the other.
    pub(crate) fn parse(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let from_query;
        let source = match body {
            Some(body) => body,
            None => {
                from_query = query_as_body(query)?;
                &from_query
            }
        };
        let errors = meta::options::validate_delete_options(source);
        if !errors.is_empty() {
            return Err(Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &errors));
        }
        let text = |v: &Value| v.as_str().map(str::to_owned);
        Ok(Self {
            propagation: propagation_of(source),
            preconditions: Preconditions {
                uid: text(&source["preconditions"]["uid"]),
                resource_version: text(&source["preconditions"]["resourceVersion"]),
            },
            dry_run: source["dryRun"].as_array().is_some_and(|d| !d.is_empty()),
        })
    }
}

impl DeleteOptions {
    /// The options of a deletion that the server makes on its own.
    pub(crate) fn with_propagation(propagation: Propagation) -> Self {
        Self { propagation: Some(propagation), ..Self::default() }
    }

    /// As an object of `meta.k8s.io/v1`, for admission.
    pub(crate) fn to_value(&self) -> Value {
        let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"});
        if let Some(propagation) = self.propagation {
            options["propagationPolicy"] = propagation.as_str().into();
        }
        if let Some(uid) = &self.preconditions.uid {
            options["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.preconditions.resource_version {
            options["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }
}

fn query_as_body(query: &Query) -> Result<Value, Status> {
    let mut body = serde_json::Map::new();
    if query.has("propagationPolicy") {
        body.insert("propagationPolicy".into(), query.get("propagationPolicy").into());
    }
    if query.has("orphanDependents") {
        body.insert("orphanDependents".into(), query.flag("orphanDependents").into());
    }
    if let Some(n) = query.seconds("gracePeriodSeconds")? {
        body.insert("gracePeriodSeconds".into(), n.into());
    }
    if query.has("dryRun") {
        body.insert("dryRun".into(), json!([query.get("dryRun")]));
    }
    Ok(Value::Object(body))
}

fn propagation_of(source: &Value) -> Option<Propagation> {
    match source["propagationPolicy"].as_str() {
        Some("Orphan") => Some(Propagation::Orphan),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        _ => source["orphanDependents"]
            .as_bool()
            .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
    }
}
