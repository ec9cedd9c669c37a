//! Events: lenient in their old form, strict when they carry an `eventTime` or come by the new group.

use super::At;
use serde_json::{Value, json};
use transom_object::field::{Error, Path};
use transom_object::{meta, names};

/// Where the two representations keep a field. Errors name the fields of the old one.
struct Form {
    about: &'static str,
    message: &'static str,
    controller: &'static str,
    controller_name: &'static str,
}

const CORE: Form = Form {
    about: "involvedObject",
    message: "message",
    controller: "reportingComponent",
    controller_name: "reportingComponent",
};

const EVENTS: Form = Form {
    about: "regarding",
    message: "note",
    controller: "reportingController",
    controller_name: "reportingController",
};

pub(super) fn core(object: &At<'_>, errors: &mut Vec<Error>) {
    common(object, &CORE, errors);
}

pub(super) fn events(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    common(object, &EVENTS, errors);
    match old {
        None => created(object, errors),
        Some(old) => updated(object, old, errors),
    }
}

fn common(object: &At<'_>, form: &Form, errors: &mut Vec<Error>) {
    let namespace = meta::namespace(object.value);
    let about = object.get(form.about).text("namespace");
    let mut mismatch = |matches: bool| {
        if !matches {
            let path = Path::new("involvedObject").child("namespace");
            errors.push(Error::invalid(&path, about, "does not match event.namespace"));
        }
    };
    if object.text("eventTime").is_empty() {
        mismatch(if about.is_empty() { matches!(namespace, "" | "default") } else { namespace == about });
        return;
    }
    mismatch(!about.is_empty() || matches!(namespace, "default" | "kube-system"));
    let controller = At { path: Path::new(form.controller_name), ..object.get(form.controller) };
    if controller.str().is_empty() {
        errors.push(Error::required(&controller.path, ""));
    }
    let messages = names::is_qualified_name(controller.str());
    errors.extend(messages.into_iter().map(|m| Error::invalid(&controller.path, controller.str(), m)));
    for (field, name, max) in [
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
        (form.message, "message", 1024),
    ] {
        let (text, path) = (object.text(field), Path::new(name));
        if text.is_empty() && name != "message" {
            errors.push(Error::required(&path, ""));
        }
        if text.len() > max {
            errors.push(Error::invalid(&path, "", format!("can have at most {max} characters")));
        }
    }
}

fn created(object: &At<'_>, errors: &mut Vec<Error>) {
    series(object, errors);
    if object.text("eventTime").is_empty() {
        errors.push(Error::required(&Path::new("eventTime"), ""));
    }
    let kind = object.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(Error::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    for (field, name) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        let value = object.get(field);
        if !(value.is_null() || *value.value == 0 || *value.value == json!({})) {
            errors.push(Error::invalid(&Path::new(name), "", "needs to be unset"));
        }
    }
}

/// Only the series of an event changes.
fn updated(object: &At<'_>, old: &Value, errors: &mut Vec<Error>) {
    if object.value.get("series") != old.get("series") {
        series(object, errors);
    }
    for (field, name) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let new = At { path: Path::new(name), ..object.get(field) };
        new.immutable(old.get(field).unwrap_or(&Value::Null), errors);
    }
}

fn series(object: &At<'_>, errors: &mut Vec<Error>) {
    let series = object.get("series");
    if series.is_null() {
        return;
    }
    if series.int("count").unwrap_or_default() < 2 {
        errors.push(Error::invalid(&series.path.child("count"), "", "should be at least 2"));
    }
    if series.text("lastObservedTime").is_empty() {
        errors.push(Error::required(&series.path.child("lastObservedTime"), ""));
    }
}
