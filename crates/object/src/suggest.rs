//! The name that a misspelt one was probably meant to be.

/// The known name nearest to a word, whatever its case, unless all of them are too different to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // A third of the letters may be wrong: more often suggests names that have nothing to do with the word.
    let limit = word.chars().count().max(3) / 3;
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The question `did you mean "name"?`, if a known name is near enough to ask it.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|name| format!("did you mean {}?", crate::quote::quote(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["functionRef", "pipeline", "mode", "toFieldPath", "fromFieldPath"];
        for (word, expected) in [
            ("functionref", Some("functionRef")),
            ("pipelines", Some("pipeline")),
            ("toFieldPth", Some("toFieldPath")),
            ("mdoe", Some("mode")),
            ("m", None),
            ("", None),
            ("resources", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(did_you_mean("mod", known).as_deref(), Some("did you mean \"mode\"?"));
        assert_eq!(nearest("mode", []), None);
    }
}
