//! String formats that schemas and expressions both check, as go-openapi's `strfmt` does.

/// `YYYY-MM-DD`, a day that exists.
pub fn is_date(text: &str) -> bool {
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
pub fn is_date_time(text: &str) -> bool {
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

/// Standard base64 with padding. The empty text is not base64.
pub fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let padding = bytes.iter().rev().take(2).take_while(|b| **b == b'=').count();
    bytes[..bytes.len() - padding].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
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
    fn base64() {
        assert!(
            is_base64("Vml2YW11cw==")
                && is_base64("YWJj")
                && !is_base64("")
                && !is_base64("YWJ")
                && !is_base64("Y===")
        );
    }
}
