//! Quoting, and what errors of the server say.

use transom_provider::Error;

/// A quoted identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A quoted literal, valid with any value of `standard_conforming_strings`.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// Something that may be the word DEFAULT, or else is quoted.
pub(super) fn or_default(text: &str, quote: fn(&str) -> String) -> String {
    if text == "DEFAULT" { text.to_owned() } else { quote(text) }
}

/// A list of identifiers.
pub(super) fn identifiers(names: &[String]) -> String {
    names.iter().map(|name| identifier(name)).collect::<Vec<_>>().join(", ")
}

/// What the server said. Never the statement: it may contain a password.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        return transom_object::error_chain::chain(error);
    };
    let mut words = format!("{} (SQLSTATE {})", db.message(), db.code().code());
    // What keeps something from being dropped.
    if db.code() == &tokio_postgres::error::SqlState::DEPENDENT_OBJECTS_STILL_EXIST
        && let Some(detail) = db.detail()
    {
        words.push_str(": ");
        words.push_str(&detail.replace('\n', "; "));
    }
    words
}

/// An error of the server, after what was attempted.
pub(super) fn failed(attempted: &str, error: &tokio_postgres::Error) -> Error {
    Error::During { context: attempted.to_owned(), source: Box::new(Error::domain(words(error))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_end_their_quotes() {
        assert_eq!(identifier("a\"; DROP TABLE x; --"), "\"a\"\"; DROP TABLE x; --\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), " E'a\\\\''b'");
        assert_eq!(or_default("DEFAULT", literal), "DEFAULT");
        assert_eq!(identifiers(&["a".to_owned(), "b c".to_owned()]), "\"a\", \"b c\"");
    }
}
