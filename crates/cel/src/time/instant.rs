//! Moments as Go's `time.Time` holds them: a point in time, and the offset it was written with.

use super::NANOS;
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::fmt;

const MIN_SECONDS: i128 = -62_135_596_800;
const MAX_SECONDS: i128 = 253_402_300_799;
const DAY: i64 = 86_400;

/// A moment at some offset from UTC. Equal moments are equal at every offset.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    /// Since the epoch.
    nanos: i128,
    /// In seconds.
    offset: i64,
}

/// The parts of a moment at its offset.
pub(crate) struct Civil {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    /// From 0.
    pub day_of_year: i64,
    /// From 0, Sunday.
    pub weekday: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub nanosecond: i64,
}

/// How far a place is from UTC.
pub(crate) enum Zone {
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// A zone by name (`America/New_York`, `UTC`) or offset (`+01:00`, `01:00`).
    pub(crate) fn get(name: &str) -> Option<Self> {
        if let Some((hours, minutes)) = name.split_once(':') {
            let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
            let minutes = if name.starts_with('-') { -i64::from(minutes) } else { i64::from(minutes) };
            return Some(Self::Fixed(i64::from(hours) * 3600 + minutes * 60));
        }
        if matches!(name, "" | "UTC") {
            return Some(Self::UTC);
        }
        // Unlike jiff's, Go's names are case-sensitive.
        let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))?;
        Some(Self::Named(zone))
    }
}

impl Instant {
    /// Go's zero time.
    pub(crate) const FIRST: Self = Self { nanos: MIN_SECONDS * NANOS, offset: 0 };

    /// RFC 3339 as Go's `time.Parse` reads it: the hour may have one digit, and a comma may stand for the point.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (local, rest) = local(text)?;
        let offset = if rest == "Z" { 0 } else { offset(rest)? };
        Some(Self { nanos: local - i128::from(offset) * NANOS, offset })
    }

    /// What OpenAPI calls `date-time`: the offset may be missing, and so may all of it.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        match local(text) {
            Some((nanos, "")) => Some(Self { nanos, offset: 0 }),
            None if text.is_empty() => Some(Self { nanos: 0, offset: 0 }),
            _ => Self::parse(text),
        }
    }

    /// A day, `2006-01-02`, at midnight UTC.
    pub fn parse_date(text: &str) -> Option<Self> {
        match date(text)? {
            (days, "") => Some(Self { nanos: i128::from(days * DAY) * NANOS, offset: 0 }),
            _ => None,
        }
    }

    pub(crate) fn from_seconds(seconds: i64) -> Option<Self> {
        Self { nanos: i128::from(seconds) * NANOS, offset: 0 }.in_range()
    }

    /// The moment if CEL can hold it.
    pub(crate) fn in_range(self) -> Option<Self> {
        (MIN_SECONDS..=MAX_SECONDS).contains(&self.nanos.div_euclid(NANOS)).then_some(self)
    }

    pub(crate) fn plus(self, nanos: i64) -> Option<Self> {
        Self { nanos: self.nanos + i128::from(nanos), ..self }.in_range()
    }

    /// The distance to an earlier moment, if a duration can hold it.
    pub(crate) fn since(self, other: Self) -> Option<i64> {
        i64::try_from(self.nanos - other.nanos).ok()
    }

    /// Whole seconds since the epoch.
    pub(crate) fn seconds(self) -> i64 {
        i64::try_from(self.nanos.div_euclid(NANOS)).unwrap_or_default()
    }

    /// The same moment elsewhere.
    pub(crate) fn at(self, zone: &Zone) -> Self {
        let offset = match zone {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                // The last days of the year 9999 are beyond what the database of zones can be asked about.
                let moment = jiff::Timestamp::from_nanosecond(self.nanos).unwrap_or(jiff::Timestamp::MAX);
                zone.to_offset(moment).seconds().into()
            }
        };
        Self { offset, ..self }
    }

    pub(crate) fn civil(self) -> Civil {
        let seconds = self.seconds() + self.offset;
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let year = year_of(days);
        let day_of_year = days - first_day(year);
        let lengths = month_lengths(year);
        let (mut month, mut day) = (0, day_of_year);
        while day >= lengths[month] {
            day -= lengths[month];
            month += 1;
        }
        Civil {
            year,
            month: i64::try_from(month).unwrap_or_default() + 1,
            day: day + 1,
            day_of_year,
            // The epoch was a Thursday.
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            nanosecond: i64::try_from(self.nanos.rem_euclid(NANOS)).unwrap_or_default(),
        }
    }
}

impl PartialEq for Instant {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Instant {}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// RFC 3339 at the offset that the moment was written with.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, nanosecond, .. } = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanosecond != 0 {
            write!(f, ".{}", format!("{nanosecond:09}").trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset.abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_lengths(year: i64) -> [i64; 12] {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// The first day of a year, counted from the epoch.
fn first_day(year: i64) -> i64 {
    let before = year - 1;
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

fn year_of(days: i64) -> i64 {
    // The mean length of a year is 365.2425 days; that is at most one year off.
    let mut year = (days * 400).div_euclid(146_097) + 1970;
    while first_day(year) > days {
        year -= 1;
    }
    while first_day(year + 1) <= days {
        year += 1;
    }
    year
}

/// A number of one or two digits below a limit, and what follows.
fn number(text: &str, two_digits: bool, limit: i64) -> Option<(i64, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if digits == 0 || (two_digits && digits == 1) {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok().filter(|n| *n < limit)?, rest))
}

/// The day that a text begins with, counted from the epoch, and what follows.
fn date(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = text.split_at_checked(4)?;
    let year: i64 = year.bytes().all(|b| b.is_ascii_digit()).then(|| year.parse().ok())??;
    let (month, rest) = number(rest.strip_prefix('-')?, true, 13)?;
    let (day, rest) = number(rest.strip_prefix('-')?, true, 32)?;
    let lengths = month_lengths(year);
    let before = usize::try_from(month).ok()?.checked_sub(1)?;
    if day < 1 || day > lengths[before] {
        return None;
    }
    let days_before: i64 = lengths.iter().take(before).sum();
    Some((first_day(year) + days_before + day - 1, rest))
}

/// Date and time that a text begins with, in nanoseconds since the epoch as if they were UTC, and what follows.
fn local(text: &str) -> Option<(i128, &str)> {
    let (days, rest) = date(text)?;
    let (hour, rest) = number(rest.strip_prefix('T')?, false, 24)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, true, 60)?;
    let (second, rest) = number(rest.strip_prefix(':')?, true, 60)?;
    let (fraction, rest) = fraction(rest);
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    Some((i128::from(seconds) * NANOS + fraction, rest))
}

/// Nanoseconds after a point or comma, and what follows. Further digits are dropped.
fn fraction(text: &str) -> (i128, &str) {
    let digits = text.strip_prefix(['.', ',']).unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return (0, text);
    }
    let nanos = digits.bytes().take(end).chain(std::iter::repeat(b'0')).take(9);
    (nanos.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0')), &digits[end..])
}

/// `+01:00`, in seconds. As in Go, a day and an hour may be written.
fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], true, 25)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, true, 61)?;
    rest.is_empty().then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_they_were_read() {
        for text in [
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999999Z",
            "2000-02-29T12:00:00.5+05:30",
            "9999-12-31T23:59:59.999999999Z",
            "0000-12-31T23:30:00-01:00",
            "2011-08-18T19:03:37.01+01:00",
        ] {
            assert_eq!(Instant::parse(text).unwrap().to_string(), text);
        }
        for (text, written) in [
            ("2020-01-01T5:00:00Z", "2020-01-01T05:00:00Z"),
            ("2020-01-01T00:00:00,25+00:00", "2020-01-01T00:00:00.25Z"),
            ("2020-01-01T00:00:00.1234567899Z", "2020-01-01T00:00:00.123456789Z"),
            ("2020-01-01T00:00:00+24:60", "2020-01-01T00:00:00+25:00"),
        ] {
            assert_eq!(Instant::parse(text).unwrap().to_string(), written);
        }
        let late = Instant::parse("9999-12-31T23:59:59Z").unwrap().at(&Zone::Fixed(3600));
        assert_eq!(late.to_string(), "10000-01-01T00:59:59+01:00");
    }

    #[test]
    fn what_is_no_moment() {
        for bad in [
            "",
            "2011-08-18",
            "2011-08-18T19:03:37",
            "1000-00-00T00:00:00Z",
            "1000-01-01T00:00:00ZZ",
            "2021-02-29T00:00:00Z",
            "2020-01-01t00:00:00Z",
            "2020-01-01T00:00:00z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:60Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00+25:00",
            "2020-01-01T00:00:00+1:00",
        ] {
            assert_eq!(Instant::parse(bad), None, "{bad}");
        }
        for far in ["0000-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(Instant::parse(far).unwrap().in_range(), None, "{far}");
        }
        assert!(Instant::parse_date("2021-02-29").is_none() && Instant::parse_date("2020-02-29").is_some());
        assert!(Instant::from_seconds(-62_135_596_801).is_none());
        assert!(
            Instant::parse_lenient("2011-08-18T19:03:37.5").is_some() && Instant::parse_lenient("").is_some()
        );
    }

    #[test]
    fn parts() {
        let moment = Instant::parse("2024-12-31T23:30:00+02:00").unwrap();
        let civil = moment.civil();
        assert_eq!(
            (civil.year, civil.month, civil.day, civil.day_of_year, civil.weekday),
            (2024, 12, 31, 365, 2)
        );
        assert_eq!(moment.at(&Zone::UTC).civil().hour, 21);
        let there = moment.at(&Zone::get("America/New_York").unwrap());
        assert_eq!(there.to_string(), "2024-12-31T16:30:00-05:00");
        assert!(Zone::get("america/new_york").is_none());
        assert_eq!(moment.at(&Zone::get("-00:30").unwrap()).civil().hour, 21);
    }
}
