//! Moments as Go's `time.Time` holds them: a point in time, and the offset it was written with.

use super::NANOS;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use transom_go::time::{self, Location, RFC3339, RFC3339_NANO, Time};

const MIN_SECONDS: i128 = -62_135_596_800;
const MAX_SECONDS: i128 = 253_402_300_799;

/// A moment at some offset from UTC. Equal moments are equal at every offset.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    /// Since the epoch.
    nanos: i128,
    /// In seconds.
    offset: i32,
}

/// How far a place is from UTC.
pub(crate) enum Zone {
    /// In seconds.
    Fixed(i32),
    Named(Location),
}

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// A zone by name (`America/New_York`, `UTC`) or offset (`+01:00`, `01:00`).
    pub(crate) fn get(name: &str) -> Option<Self> {
        if let Some((hours, minutes)) = name.split_once(':') {
            let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
            let minutes = if name.starts_with('-') { minutes.checked_neg()? } else { minutes };
            return Some(Self::Fixed(hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?));
        }
        Location::load(name).map(Self::Named)
    }
}

impl Instant {
    /// Go's zero time.
    pub(crate) const FIRST: Self = Self { nanos: MIN_SECONDS * NANOS, offset: 0 };

    /// By a layout of Go's.
    fn read(layout: &str, text: &str) -> Option<Self> {
        let time = time::parse(layout.as_bytes(), text.as_bytes()).ok()?;
        Some(Self { nanos: time.unix_nanos(), offset: time.offset() })
    }

    /// RFC 3339 as Go's `time.Parse` reads it: the hour may have one digit, and a comma may stand for the point.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(RFC3339, text)
    }

    /// What OpenAPI calls `date-time`: the offset may be missing, and so may all of it.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self { nanos: 0, offset: 0 });
        }
        Self::read("2006-01-02T15:04:05", text).or_else(|| Self::parse(text))
    }

    /// A day, `2006-01-02`, at midnight UTC.
    pub fn parse_date(text: &str) -> Option<Self> {
        Self::read("2006-01-02", text)
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
            Zone::Named(location) => Time { location: location.clone(), ..self.time() }.offset(),
        };
        Self { offset, ..self }
    }

    /// The moment as Go holds it, at the offset that it was written with.
    pub(crate) fn time(self) -> Time {
        let location = match self.offset {
            0 => Location::Utc,
            offset => Location::Fixed(Arc::from(""), offset),
        };
        Time { location, ..Time::from_nanos(self.nanos) }
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
        f.write_str(&self.time().format(RFC3339_NANO))
    }
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
    fn what_is_not_a_moment() {
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
        let (time, civil) = (moment.time(), moment.time().civil());
        assert_eq!(
            (civil.year, civil.month, civil.day, time.year_day(), time.weekday()),
            (2024, 12, 31, 366, 2)
        );
        assert_eq!(moment.at(&Zone::UTC).time().civil().hour, 21);
        let there = moment.at(&Zone::get("America/New_York").unwrap());
        assert_eq!(there.to_string(), "2024-12-31T16:30:00-05:00");
        assert!(Zone::get("america/new_york").is_none());
        assert_eq!(moment.at(&Zone::get("-00:30").unwrap()).time().civil().hour, 21);
    }
}
