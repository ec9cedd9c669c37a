//! What is wrong with an input, for the person who wrote it: its fields and names, and then the first rule that it breaks.

use serde_json::{Map, Value};
use transom_object::field::{Error, Kind};
use transom_object::quote::quote;

use super::input::Resources;
use super::validate;
use crate::review::{Mistake, Review, Unsupported};
use crate::strict::{self, Problem};

pub(super) fn review(input: &Map<String, Value>) -> Review {
    let (decoded, errors) = strict::review::<Resources>(input);
    let mut review = Review::of(&errors, Unsupported::Ignored);
    let checked = decoded.map_or(Ok(()), |decoded| validate::resources(&decoded, validate::Sets::Numbered));
    let Err(violation) = checked else { return review };
    // A field that is misspelt is missing, too, which is not reported a second time.
    if !review.refused && !is_among(&violation, &errors) {
        review.mistakes.push(mistake(&violation));
    }
    review.refused = true;
    review
}

/// Whether a rule is broken by a name that was found to mean nothing.
fn is_among(violation: &Error, errors: &[strict::Error]) -> bool {
    violation.kind == Kind::Invalid
        && errors.iter().any(|error| match &error.problem {
            Problem::Unsupported { found, .. } => violation.value == found.as_str(),
            _ => false,
        })
}

fn mistake(violation: &Error) -> Mistake {
    let pointer = pointer(&violation.field);
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let detail = Some(violation.detail.clone()).filter(|detail| *detail != format!("{name} is required"));
    let (what, remedy) = match (violation.kind, violation.value.as_str()) {
        (Kind::Required, _) => (format!("required field {} is missing", quote(name)), detail),
        (_, Some("PatchSet")) => (
            "a patch of type \"PatchSet\" cannot be used here".to_owned(),
            Some("only the patches of resources can name a patch set".to_owned()),
        ),
        (_, value) => (format!("invalid value {}", quote(value.unwrap_or_default())), detail),
    };
    Mistake { pointer, what, remedy }
}

/// The JSON pointer of a path such as `resources[0].patches[1].type`. None of the names in an input has a dot.
fn pointer(path: &str) -> String {
    let tokens = path.split(['.', '[', ']']).filter(|token| !token.is_empty());
    tokens.map(|token| format!("/{token}")).collect()
}
