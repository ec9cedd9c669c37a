//! The name that a misspelt one was probably meant to be.

/// The known name nearest to a word, ignoring case, unless all of them are too different.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near = known.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        let (word, lower) = without_common_start(&word, &lower);
        let length = word.chars().count();
        // A third of the letters may be wrong: allowing more suggests names that have nothing to do with the word.
        let limit = length.max(3) / 3;
        // Comparing takes time by the product of the lengths, and words come from users.
        if length.abs_diff(lower.chars().count()) > limit {
            return None;
        }
        let distance = strsim::osa_distance(word, lower);
        (distance <= limit).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Names of several parts, such as `function-auto-ready`, are compared from the first part that differs: what all of them
/// have in common makes none of them nearer.
fn without_common_start<'t>(a: &'t str, b: &'t str) -> (&'t str, &'t str) {
    match (a.split_once('-'), b.split_once('-')) {
        (Some((first, a)), Some((other, b))) if first == other => without_common_start(a, b),
        _ => (a, b),
    }
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
        assert_eq!(nearest(&"m".repeat(10_000_000), known), None);
        let functions = ["function-cidr", "function-auto-ready", "function-patch-and-transform"];
        assert_eq!(nearest("function-nobody", functions), None);
        assert_eq!(nearest("function-patch-and-transfrom", functions), Some(functions[2]));
        assert_eq!(nearest("auto-redy", ["auto-ready"]), Some("auto-ready"));
    }
}
