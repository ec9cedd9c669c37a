//! Go layouts: the reference time `Mon Jan 2 15:04:05 MST 2006` cut into elements.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    /// A numeric zone; `iso` shows zero as `Z`.
    Offset {
        iso: bool,
        colon: bool,
        parts: u8,
    },
    /// `.000` (fixed) or `.999` (trimmed), with its number of digits and separator.
    Fraction {
        trimmed: bool,
        digits: usize,
        separator: u8,
    },
}

/// The first element in `layout`, with where it starts and ends.
pub(super) fn next(layout: &[u8]) -> Option<(usize, usize, Element)> {
    (0..layout.len()).find_map(|at| {
        let (skip, length, element) = element_at(&layout[at..])?;
        Some((at + skip, at + skip + length, element))
    })
}

fn element_at(rest: &[u8]) -> Option<(usize, usize, Element)> {
    let found = |length: usize, element: Element| Some((0, length, element));
    let lower_follows = |at: usize| rest.get(at).is_some_and(u8::is_ascii_lowercase);
    let has = |prefix: &str| rest.starts_with(prefix.as_bytes());
    match rest[0] {
        b'J' if has("January") => found(7, Element::LongMonth),
        b'J' if has("Jan") && !lower_follows(3) => found(3, Element::Month),
        b'M' if has("Monday") => found(6, Element::LongWeekday),
        b'M' if has("Mon") && !lower_follows(3) => found(3, Element::Weekday),
        b'M' if has("MST") => found(3, Element::ZoneName),
        b'0' => match rest.get(1)? {
            b'1' => found(2, Element::ZeroMonth),
            b'2' => found(2, Element::ZeroDay),
            b'3' => found(2, Element::ZeroHour12),
            b'4' => found(2, Element::ZeroMinute),
            b'5' => found(2, Element::ZeroSecond),
            b'6' => found(2, Element::Year),
            b'0' if has("002") => found(3, Element::ZeroYearDay),
            _ => None,
        },
        b'1' if has("15") => found(2, Element::Hour),
        b'1' => found(1, Element::NumMonth),
        b'2' if has("2006") => found(4, Element::LongYear),
        b'2' => found(1, Element::Day),
        b'_' if has("_2006") => Some((1, 4, Element::LongYear)),
        b'_' if has("_2") => found(2, Element::UnderDay),
        b'_' if has("__2") => found(3, Element::UnderYearDay),
        b'3' => found(1, Element::Hour12),
        b'4' => found(1, Element::Minute),
        b'5' => found(1, Element::Second),
        b'P' if has("PM") => found(2, Element::UpperPm),
        b'p' if has("pm") => found(2, Element::LowerPm),
        b'-' | b'Z' => offset_at(rest),
        b'.' | b',' => fraction_at(rest),
        _ => None,
    }
}

fn offset_at(rest: &[u8]) -> Option<(usize, usize, Element)> {
    const FORMS: [(&[u8], bool, u8); 5] = [
        (b"070000", false, 3),
        (b"07:00:00", true, 3),
        (b"0700", false, 2),
        (b"07:00", true, 2),
        (b"07", false, 1),
    ];
    let (form, colon, parts) = FORMS.iter().find(|(form, _, _)| rest[1..].starts_with(form))?;
    Some((0, form.len() + 1, Element::Offset { iso: rest[0] == b'Z', colon: *colon, parts: *parts }))
}

fn fraction_at(rest: &[u8]) -> Option<(usize, usize, Element)> {
    let digit = *rest.get(1).filter(|byte| matches!(byte, b'0' | b'9'))?;
    let digits = rest[1..].iter().take_while(|byte| **byte == digit).count();
    if rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let element = Element::Fraction { trimmed: digit == b'9', digits, separator: rest[0] };
    Some((0, 1 + digits, element))
}
