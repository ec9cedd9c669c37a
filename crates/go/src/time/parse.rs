//! Reading an instant by a layout, with the zone rules of `time.ParseInLocation` for a local zone of UTC.

use std::sync::Arc;

use super::layout::{self, Element};
use super::{Civil, Location, MONTHS, ParseError, Time, WEEKDAYS, days_from_civil, quote};

/// The values of the elements read so far.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    pm: Option<bool>,
    offset: Option<i32>,
    utc: bool,
    zone_name: Option<String>,
}

enum Bad {
    Syntax,
    Range(&'static str),
}

type Read<'a, T> = Result<(T, &'a [u8]), Bad>;

/// `time.Parse`. The error is worded as Go's.
pub fn parse(layout: &[u8], value: &[u8]) -> Result<Time, ParseError> {
    let (whole_layout, whole_value) = (layout, value);
    let cannot = |element: &[u8], rest: &[u8]| {
        ParseError(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(whole_value),
            quote(whole_layout),
            quote(rest),
            quote(element)
        ))
    };
    let about = |what: &str| ParseError(format!("parsing time {}: {what}", quote(whole_value)));
    let (mut layout, mut value) = (layout, value);
    let mut fields = Fields::default();
    while let Some((start, end, element)) = layout::next(layout) {
        let (prefix, spelled) = (&layout[..start], &layout[start..end]);
        value = skip(value, prefix).map_err(|rest| cannot(prefix, rest))?;
        layout = &layout[end..];
        let held = value;
        match fields.read(element, value, layout) {
            Ok(rest) => value = rest,
            Err(Bad::Syntax) => return Err(cannot(spelled, held)),
            Err(Bad::Range(what)) => {
                return Err(about(&format!("{what} out of range")));
            }
        }
    }
    value = skip(value, layout).map_err(|rest| cannot(layout, rest))?;
    if !value.is_empty() {
        return Err(about(&format!("extra text: {}", quote(value))));
    }
    fields.finish().map_err(about)
}

/// Matches literal text; a run of spaces matches any run. The error is what does not match.
fn skip<'a>(mut value: &'a [u8], mut prefix: &[u8]) -> Result<&'a [u8], &'a [u8]> {
    while let Some(expected) = prefix.first() {
        if *expected == b' ' {
            if value.first().is_some_and(|byte| *byte != b' ') {
                return Err(value);
            }
            prefix = &prefix[prefix.iter().take_while(|byte| **byte == b' ').count()..];
            value = &value[value.iter().take_while(|byte| **byte == b' ').count()..];
        } else {
            value = value.strip_prefix(&[*expected]).ok_or(value)?;
            prefix = &prefix[1..];
        }
    }
    Ok(value)
}

fn number(value: &[u8], digits: usize) -> Read<'_, i64> {
    let head = value.get(..digits).ok_or(Bad::Syntax)?;
    if !head.iter().all(u8::is_ascii_digit) {
        return Err(Bad::Syntax);
    }
    let number = head.iter().fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    Ok((number, &value[digits..]))
}

/// One digit or two; exactly two when `fixed`.
fn short_number(value: &[u8], fixed: bool) -> Read<'_, i64> {
    let two = value.get(1).is_some_and(u8::is_ascii_digit);
    number(value, if two || fixed { 2 } else { 1 })
}

fn name<'a>(value: &'a [u8], names: &[&str], length: Option<usize>) -> Read<'a, i64> {
    for (index, name) in names.iter().enumerate() {
        let name = &name.as_bytes()[..length.unwrap_or(name.len())];
        if value.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)) {
            return Ok((i64::try_from(index).unwrap_or(0), &value[name.len()..]));
        }
    }
    Err(Bad::Syntax)
}

fn in_range(value: i64, limit: i64, what: &'static str) -> Result<i64, Bad> {
    if value < 0 || value >= limit { Err(Bad::Range(what)) } else { Ok(value) }
}

impl Fields {
    fn read<'a>(&mut self, element: Element, value: &'a [u8], layout: &[u8]) -> Result<&'a [u8], Bad> {
        let rest;
        match element {
            Element::Year => {
                let (year, after) = number(value, 2)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
                rest = after;
            }
            Element::LongYear => (self.year, rest) = number(value, 4)?,
            Element::LongMonth | Element::Month => {
                let length = if element == Element::Month { Some(3) } else { None };
                let (month, after) = name(value, &MONTHS, length)?;
                self.month = Some(month + 1);
                rest = after;
            }
            Element::NumMonth | Element::ZeroMonth => {
                let (month, after) = short_number(value, element == Element::ZeroMonth)?;
                if month == 0 || month > 12 {
                    return Err(Bad::Range("month"));
                }
                self.month = Some(month);
                rest = after;
            }
            Element::Weekday => (_, rest) = name(value, &WEEKDAYS, Some(3))?,
            Element::LongWeekday => (_, rest) = name(value, &WEEKDAYS, None)?,
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                let value = match value {
                    [b' ', after @ ..] if element == Element::UnderDay => after,
                    _ => value,
                };
                let (day, after) = short_number(value, element == Element::ZeroDay)?;
                self.day = Some(day);
                rest = after;
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                let blank = if element == Element::UnderYearDay {
                    value.iter().take(2).take_while(|byte| **byte == b' ').count()
                } else {
                    0
                };
                let (day, after) = number(&value[blank..], 3 - blank)?;
                self.year_day = Some(day);
                rest = after;
            }
            other => return self.read_clock(other, value, layout),
        }
        Ok(rest)
    }

    fn read_clock<'a>(&mut self, element: Element, value: &'a [u8], layout: &[u8]) -> Result<&'a [u8], Bad> {
        let rest;
        match element {
            Element::Hour => {
                let (hour, after) = short_number(value, false)?;
                self.hour = in_range(hour, 24, "hour")?;
                rest = after;
            }
            Element::Hour12 | Element::ZeroHour12 => {
                let (hour, after) = short_number(value, element == Element::ZeroHour12)?;
                self.hour = in_range(hour, 13, "hour")?;
                rest = after;
            }
            Element::Minute | Element::ZeroMinute => {
                let (minute, after) = short_number(value, element == Element::ZeroMinute)?;
                self.minute = in_range(minute, 60, "minute")?;
                rest = after;
            }
            Element::Second | Element::ZeroSecond => {
                let (second, after) = short_number(value, element == Element::ZeroSecond)?;
                self.second = in_range(second, 60, "second")?;
                rest = self.unasked_fraction(after, layout);
            }
            Element::UpperPm | Element::LowerPm => {
                let (am, pm): (&[u8], &[u8]) =
                    if element == Element::UpperPm { (b"AM", b"PM") } else { (b"am", b"pm") };
                let head = value.get(..2).ok_or(Bad::Syntax)?;
                self.pm = Some(if head == pm {
                    true
                } else if head == am {
                    false
                } else {
                    return Err(Bad::Syntax);
                });
                rest = &value[2..];
            }
            Element::Fraction { trimmed: false, digits, .. } => {
                let head =
                    value.get(..=digits).filter(|head| matches!(head[0], b'.' | b',')).ok_or(Bad::Syntax)?;
                self.nanos = nanos(&head[1..]).ok_or(Bad::Syntax)?;
                rest = &value[digits + 1..];
            }
            Element::Fraction { trimmed: true, .. } => {
                let fraction = matches!(value.first(), Some(b'.' | b','))
                    && value.get(1).is_some_and(u8::is_ascii_digit);
                if !fraction {
                    return Ok(value);
                }
                let length = value[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                self.nanos = nanos(&value[1..=length]).ok_or(Bad::Syntax)?;
                rest = &value[1 + length..];
            }
            Element::Offset { iso, colon, parts } => return self.read_offset(value, iso, colon, parts),
            Element::ZoneName => return self.read_zone_name(value),
            _ => return Err(Bad::Syntax),
        }
        Ok(rest)
    }

    /// A fraction after the seconds is accepted even when the layout does not mention one.
    fn unasked_fraction<'a>(&mut self, value: &'a [u8], layout: &[u8]) -> &'a [u8] {
        let present =
            matches!(value.first(), Some(b'.' | b',')) && value.get(1).is_some_and(u8::is_ascii_digit);
        let asked = matches!(layout::next(layout), Some((_, _, Element::Fraction { .. })));
        if !present || asked {
            return value;
        }
        let length = value[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.nanos = nanos(&value[1..=length]).unwrap_or(0);
        &value[1 + length..]
    }

    fn read_offset<'a>(
        &mut self,
        value: &'a [u8],
        iso: bool,
        colon: bool,
        parts: u8,
    ) -> Result<&'a [u8], Bad> {
        if iso && let Some(rest) = value.strip_prefix(b"Z") {
            self.utc = true;
            return Ok(rest);
        }
        let sign = match value.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(Bad::Syntax),
        };
        let (mut rest, mut seconds) = (&value[1..], 0);
        for part in 0..parts {
            if part > 0 && colon {
                rest = rest.strip_prefix(b":").ok_or(Bad::Syntax)?;
            }
            let (number, after) = number(rest, 2)?;
            let (limit, what) = [
                (24, "time zone offset hour"),
                (60, "time zone offset minute"),
                (60, "time zone offset second"),
            ][usize::from(part.min(2))];
            if number > limit {
                return Err(Bad::Range(what));
            }
            seconds += number * [3600, 60, 1][usize::from(part.min(2))];
            rest = after;
        }
        self.offset = i32::try_from(sign * seconds).ok();
        Ok(rest)
    }

    fn read_zone_name<'a>(&mut self, value: &'a [u8]) -> Result<&'a [u8], Bad> {
        if let Some(rest) = value.strip_prefix(b"UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let length = zone_name_length(value).ok_or(Bad::Syntax)?;
        self.zone_name = Some(String::from_utf8_lossy(&value[..length]).into_owned());
        Ok(&value[length..])
    }

    fn finish(mut self) -> Result<Time, &'static str> {
        match self.pm {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        let leap = days_from_civil(self.year, 3, 1) - days_from_civil(self.year, 2, 1) == 29;
        let (mut month, mut day) = (self.month, self.day);
        if let Some(year_day) = self.year_day {
            if year_day < 1 || year_day > 365 + i64::from(leap) {
                return Err("day-of-year out of range");
            }
            let first = days_from_civil(self.year, 1, 1);
            let (_, found_month, found_day) = super::civil_from_days(first + year_day - 1);
            if month.is_some_and(|month| month != found_month) {
                return Err("day-of-year does not match month");
            }
            if day.is_some_and(|day| day != found_day) {
                return Err("day-of-year does not match day");
            }
            (month, day) = (Some(found_month), Some(found_day));
        }
        let (month, day) = (month.unwrap_or(1), day.unwrap_or(1));
        let length = days_from_civil(self.year, month + 1, 1) - days_from_civil(self.year, month, 1);
        if day < 1 || day > length {
            return Err("day out of range");
        }
        let civil =
            Civil { year: self.year, month, day, hour: self.hour, minute: self.minute, second: self.second };
        let location = match (self.utc, self.offset, self.zone_name) {
            (true, _, _) | (false, None, None) | (false, Some(0), None) => Location::Utc,
            (false, Some(offset), name) => Location::Fixed(Arc::from(name.unwrap_or_default()), offset),
            (false, None, Some(name)) => {
                let hours: i32 = name.strip_prefix("GMT").and_then(|hours| hours.parse().ok()).unwrap_or(0);
                Location::Fixed(Arc::from(name), hours * 3600)
            }
        };
        Ok(Time::from_civil(civil, self.nanos, location))
    }
}

fn nanos(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = &digits[..digits.len().min(9)];
    let number = digits.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    Some(number * 10u32.pow(9 - u32::try_from(digits.len()).ok()?))
}

/// How much of `value` is a zone abbreviation such as `CET`, `GMT+3` or `+03`.
fn zone_name_length(value: &[u8]) -> Option<usize> {
    if value.len() < 3 {
        return None;
    }
    if value.starts_with(b"ChST") || value.starts_with(b"MeST") {
        return Some(4);
    }
    let signed = |at: usize| {
        let rest = value.get(at..)?;
        if !matches!(rest.first(), Some(b'+' | b'-')) {
            return None;
        }
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: i32 = std::str::from_utf8(&rest[1..=digits]).ok()?.parse().ok()?;
        (number <= 23).then_some(at + 1 + digits)
    };
    if value.starts_with(b"GMT") {
        return Some(signed(3).unwrap_or(3));
    }
    if matches!(value[0], b'+' | b'-') {
        return signed(0);
    }
    let letters = value.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match letters {
        5 if value[4] == b'T' => Some(5),
        4 if value[3] == b'T' || value.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}
