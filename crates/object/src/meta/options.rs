//! The rules for the options of requests: field managers, dry run, patches and deletions.

use crate::field::{Error, Path};
use crate::quote::is_print;
use serde_json::Value;

const MAX_FIELD_MANAGER_BYTES: usize = 128;

/// The rules for the name of a field manager.
pub fn validate_field_manager(manager: &str, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    if manager.len() > MAX_FIELD_MANAGER_BYTES {
        errors.push(Error::too_long(path, 128));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
        let why = format!("invalid character U+{:04X} (at position {i})", u32::from(c));
        errors.push(Error::invalid(path, manager, why));
    }
    errors
}

/// Only `All` is a dry run.
pub fn validate_dry_run(values: &[&str], path: &Path) -> Vec<Error> {
    if values.iter().all(|v| *v == "All") {
        return Vec::new();
    }
    vec![Error::not_supported(path, values.to_vec(), &["All"])]
}

/// The rules for the `fieldValidation` of a request.
pub fn validate_field_validation(value: &str, path: &Path) -> Vec<Error> {
    match value {
        "" | "Ignore" | "Warn" | "Strict" => Vec::new(),
        other => vec![Error::not_supported(path, other, &["", "Ignore", "Strict", "Warn"])],
    }
}

/// The options of a create or update.
pub fn validate_write_options(field_manager: &str, dry_run: &[&str], field_validation: &str) -> Vec<Error> {
    let mut errors = validate_field_manager(field_manager, &Path::new("fieldManager"));
    errors.extend(validate_dry_run(dry_run, &Path::new("dryRun")));
    errors.extend(validate_field_validation(field_validation, &Path::new("fieldValidation")));
    errors
}

/// The options of a patch; `apply` is whether it is a server-side apply.
pub fn validate_patch_options(
    apply: bool,
    force: Option<bool>,
    field_manager: &str,
    dry_run: &[&str],
    field_validation: &str,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if apply && field_manager.is_empty() {
        errors.push(Error::required(&Path::new("fieldManager"), "is required for apply patch"));
    }
    if !apply && force.is_some() {
        errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
    }
    errors.extend(validate_write_options(field_manager, dry_run, field_validation));
    errors
}

/// Checks a `DeleteOptions` object.
pub fn validate_delete_options(options: &Value) -> Vec<Error> {
    let field = |name: &str| options.get(name).filter(|v| !v.is_null());
    let mut errors = Vec::new();
    let at = Path::new("propagationPolicy");
    if let Some(policy) = field("propagationPolicy") {
        if field("orphanDependents").is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(Error::invalid(&at, policy.clone(), why));
        }
        if !matches!(policy.as_str(), Some("Foreground" | "Background" | "Orphan")) {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(Error::not_supported(&at, policy.clone(), &supported));
        }
    }
    let dry_run = field("dryRun").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let dry_run: Vec<&str> = dry_run.iter().map(|v| v.as_str().unwrap_or_default()).collect();
    errors.extend(validate_dry_run(&dry_run, &Path::new("dryRun")));
    let ignore = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if field(ignore).and_then(Value::as_bool) == Some(true) {
        for other in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"] {
            if field(other).is_some() {
                let why = format!("cannot be set together with .{other}");
                errors.push(Error::invalid(&Path::new(ignore), true, why));
            }
        }
    }
    errors
}
