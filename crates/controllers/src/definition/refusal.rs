//! Why a kind cannot be served as defined, in terms of the definition: users write XRDs, not CRDs.
//!
//! The message of the API server is read as text. Its answer has no field of the definition, whose CRD it validates, and
//! quotes whole values of the CRD within the texts; a value of a wrong type is reported in a message alone. A message that
//! is not recognized is shown as it is.

use super::side::Side;
use serde_json::Value;
use transom_engine::Error;
use transom_object::error_chain::chain;
use transom_object::{conditions, meta};
use transom_xapi::constants::reason;
use transom_xapi::definition::Definition;
use transom_xapi::derive::{self, SchemaError};

/// A reason and a message for the condition of the definition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refusal {
    /// Errors of the definition that can be found without the server.
    pub(super) fn of_definition(definition: &Definition) -> Option<Self> {
        let problems = definition.problems();
        let refusal = Self { reason: reason::INVALID_DEFINITION, message: problems.join("; ") };
        (!problems.is_empty()).then_some(refusal)
    }

    /// Rules that do not convert versions without loss.
    pub(super) fn of_rules(problems: &[String]) -> Self {
        Self { reason: reason::INVALID_DEFINITION, message: problems.join("; ") }
    }

    /// Nothing serves the conversion of versions by rules, or not yet.
    pub(super) fn without_webhook() -> Self {
        let message = "spec.conversion: the strategy Declarative needs the webhooks of the control plane, which do not serve yet; see \
                       --enable-webhooks";
        Self { reason: reason::NO_CONVERSION_WEBHOOK, message: message.to_owned() }
    }

    /// A CRD that cannot be derived.
    pub(super) fn of_derivation(error: &derive::Error) -> Self {
        let message = match error {
            derive::Error::Version { source: SchemaError::Malformed(why), .. } => misfit(why),
            _ => None,
        };
        Self { reason: reason::INVALID_DEFINITION, message: message.unwrap_or_else(|| chain(error)) }
    }

    /// A CRD that cannot be written. `None` if a retry may succeed.
    pub(super) fn of_write(side: Side, error: &Error) -> Option<Self> {
        if !error.is_permanent() {
            return None;
        }
        let (reason, message) = match error.answer() {
            Some(answer) if error.is_invalid() => (reason::INVALID_DEFINITION, translated(side, answer)),
            Some(answer) => (reason::CANNOT_APPLY_CRD, answer.to_owned()),
            None => (reason::NAMES_NOT_ACCEPTED, format!("{}: {}", side.names(), error.chain())),
        };
        Some(Self { reason, message })
    }

    /// A CRD whose names belong to other kinds. `None` if the server has not decided yet.
    pub(super) fn of_names(side: Side, crd: &Value) -> Option<Self> {
        let list = crd.pointer("/status/conditions").and_then(Value::as_array)?;
        if !conditions::has_status(list, "NamesAccepted", "False") {
            return None;
        }
        let accepted = list.iter().find(|c| c["type"] == "NamesAccepted")?;
        let why = accepted["message"].as_str().unwrap_or("they are taken");
        Some(Self { reason: reason::NAMES_NOT_ACCEPTED, message: format!("{}: {why}", side.names()) })
    }
}

/// The CRD is controlled by another object.
pub(super) fn belongs_to_another(crd: &Value) -> Error {
    let owner = meta::controller_of(crd).map(|c| format!("{} {:?}", c.kind, c.name)).unwrap_or_default();
    Error::permanent(format!(
        "CustomResourceDefinition {:?} exists, and is controlled by {owner}",
        meta::name(crd)
    ))
}

/// A keyword of a schema with a value of the wrong type, without the Go types of the original message.
fn misfit(why: &str) -> Option<String> {
    let (found, rest) =
        why.strip_prefix("json: cannot unmarshal ")?.split_once(" into Go struct field JSONSchemaProps.")?;
    let (field, wanted) = rest.split_once(" of type ")?;
    let wanted = match wanted {
        "string" => "a string",
        "bool" => "a boolean",
        "int64" => "an integer",
        "float64" => "a number",
        list if list.starts_with("[]") => "a list",
        _ => "an object",
    };
    Some(format!("spec.versions: schema.openAPIV3Schema.{field}: must be {wanted}, not {found}"))
}

/// The server's message about a CRD, with the field paths of the definition and without values that only the CRD has.
fn translated(side: Side, answer: &str) -> String {
    let answer = answer.split_once(" is invalid: ").map_or(answer, |(_, problems)| problems);
    // A schema that all versions share is reported as one.
    let answer = answer.replace("spec.validation.openAPIV3Schema", "spec.versions[0].schema.openAPIV3Schema");
    let answer = answer.replace("spec.names.", &format!("{}.", side.names()));
    without_structures(&answer)
}

/// Leaves out objects and lists that are quoted as values.
fn without_structures(text: &str) -> String {
    const VALUE: &str = "Invalid value: ";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(VALUE) {
        out.push_str(before);
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(_) | Value::Array(_))) => {
                let after = after.get(values.byte_offset()..).unwrap_or_default();
                rest = after.strip_prefix(": ").unwrap_or(after);
            }
            _ => {
                out.push_str(VALUE);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_use_the_terms_of_the_definition() {
        let answer = "CustomResourceDefinition.apiextensions.k8s.io \"a.b\" is invalid: \
                      [spec.validation.openAPIV3Schema.properties[spec].type: Unsupported value: \"int\", \
                      spec.names.kind: Invalid value: \"a b\": must be a name, \
                      spec.versions: Invalid value: [{\"Name\":\"v1\"},{\"Name\":\"v2\"}]: must have one]";
        assert_eq!(
            translated(Side::Offered, answer),
            "[spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Unsupported value: \"int\", \
             spec.claimNames.kind: Invalid value: \"a b\": must be a name, spec.versions: must have one]"
        );
        assert_eq!(translated(Side::Defined, "odd"), "odd");
    }

    #[test]
    fn wrong_types_are_reported_without_go_types() {
        let why = "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.spec.type of type string";
        let source = SchemaError::Malformed(why.to_owned());
        let error = derive::Error::Version { what: "Composite Resource", name: "a".to_owned(), source };
        assert_eq!(
            Refusal::of_derivation(&error).message,
            "spec.versions: schema.openAPIV3Schema.properties.spec.type: must be a string, not number"
        );
    }

    #[test]
    fn only_what_cannot_succeed_later_is_a_refusal() {
        let refused =
            |code| Error::Refused { code, reason: String::new(), message: "x is invalid: spec.a: no".into() };
        let refusal = Refusal::of_write(Side::Defined, &refused(422)).unwrap();
        assert_eq!((refusal.reason, refusal.message.as_str()), (reason::INVALID_DEFINITION, "spec.a: no"));
        assert_eq!(Refusal::of_write(Side::Defined, &refused(403)).unwrap().reason, reason::CANNOT_APPLY_CRD);
        assert_eq!(Refusal::of_write(Side::Defined, &refused(500)), None);
        assert_eq!(Refusal::of_write(Side::Defined, &Error::transport("")), None);
    }
}
