//! Durations.

/// A Go duration (`1h30m`), or a text in which at least one number is followed by a unit (`2 days`).
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_loose_duration(text)
}

/// Go's `time.ParseDuration`, with its range of 64-bit nanoseconds.
fn is_go_duration(text: &str) -> bool {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    const LIMIT: u64 = 1 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let whole_len = digits(rest);
        let (whole, mut after) = rest.split_at(whole_len);
        let mut fraction = "";
        if let Some(decimals) = after.strip_prefix('.') {
            let len = digits(decimals);
            (fraction, after) = decimals.split_at(len);
        }
        if whole.is_empty() && fraction.is_empty() {
            return false;
        }
        let unit_len = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_len);
        let Some(unit) = nanoseconds(unit) else { return false };
        let whole =
            if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok().filter(|w| *w <= LIMIT) };
        let Some(mut part) = whole.and_then(|w| w.checked_mul(unit)).filter(|p| *p <= LIMIT) else {
            return false;
        };
        if !fraction.is_empty() {
            let share = format!("0.{fraction}").parse::<f64>().unwrap_or_default();
            part += (share * unit as f64) as u64;
        }
        total = match total.checked_add(part) {
            Some(sum) if sum <= LIMIT => sum,
            _ => return false,
        };
        rest = next;
    }
    negative || total < LIMIT
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
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
        assert!(!is_go_duration("2562048h") && is_go_duration("-2562047h47m16.854775808s"));
    }
}
