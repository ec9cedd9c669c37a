//! Whether the controllers of a provider are needed yet.

use super::objects::SAFE_START;
use serde_json::Value;
use transom_object::meta;
use transom_xapi::Condition;
use transom_xapi::constants::{kind, reason};
use transom_xapi::function::is_capable;
use transom_xapi::package::ACTIVE;

/// `RuntimeActive` of a revision of a provider, from its capabilities, that condition as it was, and whether each of its
/// definitions of managed resources is active. A provider that is capable of starting without its managed resources is
/// not run before the first of them is active. Once it was to run, it stays so.
pub fn runtime_activity(
    capabilities: &[String],
    was: &Condition,
    active: impl IntoIterator<Item = bool>,
) -> Condition {
    let mut definitions = active.into_iter().peekable();
    let waits = is_capable(capabilities, SAFE_START)
        && was.reason != reason::ACTIVE_RUNTIME
        && definitions.peek().is_some()
        && !definitions.any(|active| active);
    if waits { Condition::runtime_awaiting_activation() } else { Condition::runtime_active() }
}

/// Whether each of the definitions of managed resources among these objects is active.
pub fn active_definitions<'o>(objects: impl IntoIterator<Item = &'o Value>) -> impl Iterator<Item = bool> {
    let definitions = objects.into_iter().filter(|object| meta::kind(object) == kind::MRD);
    definitions.map(|definition| definition["spec"]["state"] == ACTIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_capable_provider_waits_for_its_first_active_definition() {
        let safe = ["SafeStart".to_owned()];
        let (new, waits, runs) =
            (Condition::default(), Condition::runtime_awaiting_activation(), Condition::runtime_active());
        for (capabilities, was, definitions, expected) in [
            (&safe[..], &new, &[false, false][..], &waits),
            (&safe, &waits, &[false], &waits),
            (&safe, &waits, &[false, true], &runs),
            (&safe, &runs, &[false], &runs),
            (&safe, &new, &[], &runs),
            (&[], &new, &[false], &runs),
        ] {
            assert_eq!(runtime_activity(capabilities, was, definitions.iter().copied()), *expected);
        }
    }

    #[test]
    fn only_definitions_count() {
        let object = |kind: &str, state: &str| json!({"kind": kind, "spec": {"state": state}});
        let objects = [object(kind::MRD, "Active"), object(kind::MRD, ""), object("Other", "Active")];
        assert_eq!(active_definitions(&objects).collect::<Vec<_>>(), [true, false]);
    }
}
