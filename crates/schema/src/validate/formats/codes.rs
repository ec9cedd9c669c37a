//! Identifiers, colours and encodings: fixed alphabets, some with a check digit.

/// A UUID with or without dashes. `version` fixes the version digit; `variant` requires an RFC 4122 variant.
pub(super) fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    let mut digits = [0u8; 32];
    let mut at = 0;
    for (i, group) in [8usize, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0
            && let Some(after) = rest.strip_prefix(b"-")
        {
            rest = after;
        }
        let Some((head, tail)) = rest.split_at_checked(group) else { return false };
        digits[at..at + group].copy_from_slice(head);
        at += group;
        rest = tail;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|v| digits[12] == v)
        && (!variant || matches!(digits[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'))
}

/// The text without white space and dashes, as ISBNs are written.
fn compact(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-')).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let code = compact(text);
    if code.len() != 10 {
        return false;
    }
    let mut sum = 0u32;
    for (i, b) in (1u32..).zip(&code) {
        sum += i * match b {
            b'0'..=b'9' => u32::from(b - b'0'),
            b'X' if i == 10 => 10,
            _ => return false,
        };
    }
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let code = compact(text);
    if code.len() != 13 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        code[..12].iter().zip([1u32, 3].into_iter().cycle()).map(|(b, f)| f * u32::from(b - b'0')).sum();
    u32::from(code[12] - b'0') == (10 - sum % 10) % 10
}

/// Digits with anything between them, of a known issuer, passing the Luhn check.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    let (len, start) =
        (digits.len(), |n: usize| digits.iter().take(n).fold(0u32, |a, d| a * 10 + u32::from(*d)));
    let issuer = match len {
        13 => start(1) == 4,
        14 => matches!(start(3), 300..=305) || matches!(start(2), 36 | 38),
        15 => matches!(start(2), 34 | 37) || matches!(start(4), 2131 | 1800),
        16 => start(1) == 4 || matches!(start(2), 51..=55 | 35 | 65) || start(4) == 6011,
        _ => false,
    };
    let luhn: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match (i % 2, u32::from(*d) * 2) {
            (0, _) => u32::from(*d),
            (_, double) if double >= 10 => double % 10 + 1,
            (_, double) => double,
        })
        .sum();
    issuer && luhn.is_multiple_of(10)
}

/// `ddd-dd-dddd`, a dash or a blank at both places.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(i, b)| match i {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `rgb(r, g, b)` with each part from 0 to 255.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(body) = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')')) else { return false };
    let parts: Vec<&str> =
        body.split(',').map(|p| p.trim_matches(['\t', '\n', '\u{c}', '\r', ' '])).collect();
    parts.len() == 3
        && parts.iter().all(|p| {
            let plain =
                !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) && (*p == "0" || !p.starts_with('0'));
            plain && p.parse::<u8>().is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids() {
        let id = "a8098c1a-f86e-11da-bd1a-00112444be1e";
        assert!(is_uuid(id, None, false) && is_uuid(&id.replace('-', ""), None, false));
        assert!(is_uuid(&id.to_uppercase(), None, false));
        assert!(!is_uuid(id, Some(b'4'), true) && !is_uuid(&id[1..], None, false));
        assert!(is_uuid("025b0d74-00a2-4048-bf57-227c5111bb34", Some(b'4'), true));
        assert!(!is_uuid("025b0d74-00a2-4048-7f57-227c5111bb34", Some(b'4'), true));
        assert!(!is_uuid("025b0d74--00a2-4048-bf57-227c5111bb34", None, false));
    }

    #[test]
    fn isbns() {
        assert!(is_isbn10("3836221195") && is_isbn10("1-61729-085-8") && is_isbn10("3 401 01319 X"));
        assert!(!is_isbn10("3423214121") && !is_isbn10("978-3836221191") && !is_isbn10("X836221195"));
        assert!(is_isbn13("9784873113685") && is_isbn13("978-4-87311-368-5") && is_isbn13("978 3401013190"));
        assert!(
            !is_isbn13("3-8362-2119-5") && !is_isbn13("01234567890ab") && !is_isbn13("978 3 8362 2119 0")
        );
    }

    #[test]
    fn credit_cards() {
        for good in [
            "4220855426222389",
            "4220 8554-2622 2389",
            "5139288802098206",
            "374953669708156",
            "6011464355444102",
            "3548209662790989",
        ] {
            assert!(is_credit_card(good), "{good}");
        }
        for bad in [
            "",
            "credit card",
            "4220855426213389",
            "30190239451016",
            "6521674451993089",
            "2204151414444676",
            "624356436327468104",
        ] {
            assert!(!is_credit_card(bad), "{bad}");
        }
    }

    #[test]
    fn colours_and_encodings() {
        assert!(
            is_hex_color("#f00")
                && is_hex_color("CCccCC")
                && !is_hex_color("#ff12FG")
                && !is_hex_color("fff0")
        );
        assert!(is_rgb_color("rgb(0,31,255)") && is_rgb_color("rgb(0,  31, 255)"));
        for bad in [
            "rgb(1,349,275)",
            "rgb(01,31,255)",
            "rgb(0.6,31,255)",
            "rgba(0,31,255)",
            "rgb(1,2)",
            "rgb(1,2,+3)",
        ] {
            assert!(!is_rgb_color(bad), "{bad}");
        }
        assert!(
            is_ssn("00-000 0000".replace("00-000", "000-00").as_str())
                && !is_ssn("000000000")
                && !is_ssn("000-00-000a")
        );
    }
}
