//! Dates, times and durations.

/// `YYYY-MM-DD`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let b = text.as_bytes();
    let shaped = b.len() == 10
        && b.iter()
            .enumerate()
            .all(|(i, c)| if matches!(i, 4 | 7) { *c == b'-' } else { c.is_ascii_digit() });
    if !shaped {
        return false;
    }
    let number = |from: usize, to: usize| b[from..to].iter().fold(0u32, |n, c| n * 10 + u32::from(c - b'0'));
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// A date, `t` or `T`, `hh:mm:ss`, an optional fraction, and `z` or an offset. What follows a second `t` is not
/// looked at, and the fraction may start with any character: both as upstream.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_clock(time)
}

fn is_clock(time: &str) -> bool {
    let digits = |s: &[u8]| s.iter().all(u8::is_ascii_digit);
    let Some((clock, rest)) = time.as_bytes().split_at_checked(8) else { return false };
    let in_range = digits(&clock[..2])
        && digits(&clock[3..5])
        && digits(&clock[6..])
        && clock[2] == b':'
        && clock[5] == b':'
        && &clock[..2] <= b"23".as_slice()
        && &clock[3..5] <= b"59".as_slice()
        && &clock[6..] <= b"59".as_slice();
    if !in_range {
        return false;
    }
    let Ok(rest) = std::str::from_utf8(rest) else { return false };
    let fraction = match rest.strip_suffix('z') {
        Some(fraction) => fraction,
        None => match rest.len().checked_sub(6).and_then(|at| rest.split_at_checked(at)) {
            Some((fraction, offset)) if is_offset(offset.as_bytes()) => fraction,
            _ => return false,
        },
    };
    let mut fraction = fraction.chars();
    match fraction.next() {
        None => true,
        Some('\n') => false,
        Some(_) => !fraction.as_str().is_empty() && fraction.all(|c| c.is_ascii_digit()),
    }
}

fn is_offset(offset: &[u8]) -> bool {
    offset.len() == 6
        && matches!(offset[0], b'+' | b'-')
        && offset[3] == b':'
        && [1, 2, 4, 5].into_iter().all(|i| offset[i].is_ascii_digit())
}

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
    fn dates() {
        assert!(is_date("2024-02-29") && is_date("0000-01-01"));
        for bad in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-1-1",
            "2024-01-00",
            "2024/01/01",
            "12024-01-01",
            "",
        ] {
            assert!(!is_date(bad), "{bad}");
        }
    }

    #[test]
    fn times() {
        for good in ["2011-08-18T19:03:37.000000000+01:00", "2014-12-15T19:30:20Z", "1979-12-19t05:08:02.1z"]
        {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "",
            "2012-04-23T24:25:43.511Z",
            "2014-12-15T19:60:30Z",
            "2014-12-15T19:30:60Z",
            "yyyy-12-15T19:30:20Z",
            "2014-12-15T19:30:20",
            "2014-12-15T19:30:20.Z",
            "2014-12-15 19:30:20Z",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

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
