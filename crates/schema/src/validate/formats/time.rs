//! The string format `duration`: Go's durations, and looser ones such as `2 days`.

use transom_go::time::duration;

/// A Go duration (`1h30m`), or a text in which at least one number is followed by a unit (`2 days`).
pub(super) fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || is_loose_duration(text)
}

/// Number, optional blanks, unit word; anything around it is ignored. A number too large for a machine
/// integer spoils the text.
fn is_loose_duration(text: &str) -> bool {
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = rest[digits..].trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        if letters > 0 {
            if rest[..digits].parse::<i64>().is_err() {
                return false;
            }
            found |= is_unit_word(&after[..letters].to_lowercase());
        }
        rest = &after[letters..];
    }
    found
}

fn is_unit_word(word: &str) -> bool {
    const WORDS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const STEMS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    WORDS.contains(&word) || STEMS.iter().any(|stem| word.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for good in [
            "1h30m",
            "-1.5h",
            "0",
            "+5s",
            "1µs",
            "2 days",
            "22 ns",
            "1 week",
            "3hours",
            "4wk",
            "2562047h47m16.854775807s",
        ] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["", "abc", "1", "10 foos", "99999999999999999999 days", "h"] {
            assert!(!is_duration(bad), "{bad}");
        }
        // A number with a unit is enough for the loose form.
        assert!(duration::parse("2562048h").is_err() && is_duration("2562048h"));
        assert!(duration::parse("-2562047h47m16.854775808s").is_ok());
    }
}
