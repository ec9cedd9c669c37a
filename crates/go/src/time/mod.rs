//! Package time: instants with a location, durations, layouts. Nothing here reads a clock.
//!
//! The local zone is UTC: functions run in containers without one, and results must not depend on the machine.

pub mod duration;
mod format;
mod layout;
mod parse;

use std::fmt::{self, Write};
use std::sync::Arc;

use jiff::tz::TimeZone;

pub use parse::parse;

/// Why a text is not a time or duration, worded as Go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

impl ParseError {
    /// A time that Go reads and that is out of the range of years of another representation.
    pub fn year_out_of_range(text: &str) -> Self {
        Self(format!("parsing time {}: year out of range", quote(text.as_bytes())))
    }
}

/// `time.RFC3339`.
pub const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// `time.RFC3339Nano`.
pub const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";

/// What decides the offset from UTC.
#[derive(Clone, Debug)]
pub enum Location {
    /// UTC.
    Utc,
    /// An offset in seconds that is always the same, and its name.
    Fixed(Arc<str>, i32),
    /// A zone of the database.
    Zone(TimeZone),
}

impl Location {
    /// `time.LoadLocation`: a zone by its name, which is case-sensitive.
    pub fn load(name: &str) -> Option<Location> {
        if matches!(name, "" | "UTC" | "Local") {
            return Some(Location::Utc);
        }
        let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))?;
        Some(Location::Zone(zone))
    }
}

/// An instant, and the location it is shown in.
#[derive(Clone, Debug)]
pub struct Time {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Where date and clock are read.
    pub location: Location,
}

impl PartialEq for Time {
    fn eq(&self, other: &Time) -> bool {
        self.seconds == other.seconds && self.nanos == other.nanos && self.offset() == other.offset()
    }
}

/// Date and clock in a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year, which may be before 1.
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    /// From 0.
    pub hour: i64,
    /// From 0.
    pub minute: i64,
    /// From 0.
    pub second: i64,
}

const SECONDS_PER_DAY: i64 = 86_400;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// `Month.String`.
pub fn month_name(month: i64) -> String {
    let index = usize::try_from(month - 1).ok();
    index
        .and_then(|index| MONTHS.get(index))
        .map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
}

/// `Weekday.String`; Sunday is 0.
pub fn weekday_name(day: i64) -> String {
    let index = usize::try_from(day).ok();
    index
        .and_then(|index| WEEKDAYS.get(index))
        .map_or_else(|| format!("%!Weekday({day})"), |name| (*name).to_owned())
}

/// Days since the epoch of a date; months and days out of range carry over.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468 + day - 1
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Bounds within which arithmetic on seconds cannot overflow; far outside what any date needs.
const MAX_ABSOLUTE_SECONDS: i64 = 1 << 55;

impl Time {
    /// The first instant of year 1, Go's zero time.
    pub const ZERO_SECONDS: i64 = -62_135_596_800;

    /// Go's zero time.
    pub fn zero() -> Time {
        Time { seconds: Time::ZERO_SECONDS, nanos: 0, location: Location::Utc }
    }

    /// `time.Unix`, in UTC.
    pub fn from_unix(seconds: i64, nanos: u32) -> Time {
        Time {
            seconds: seconds.clamp(-MAX_ABSOLUTE_SECONDS, MAX_ABSOLUTE_SECONDS),
            nanos,
            location: Location::Utc,
        }
    }

    /// Nanoseconds since the epoch, in UTC.
    pub fn from_nanos(nanos: i128) -> Time {
        let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or(0);
        Time::from_unix(seconds, u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0))
    }

    /// The instant a clock in `location` shows as this date and time.
    pub fn from_civil(civil: Civil, nanos: u32, location: Location) -> Time {
        let days = days_from_civil(civil.year, civil.month, civil.day);
        let local = days * SECONDS_PER_DAY + civil.hour * 3600 + civil.minute * 60 + civil.second;
        let mut time = Time { seconds: local, nanos, location };
        // The offset depends on the instant, which depends on the offset: Go stops after two rounds.
        let first = i64::from(time.offset());
        time.seconds = local - first;
        let second = i64::from(time.offset());
        time.seconds = local - second;
        time
    }

    /// Nanoseconds since the epoch.
    pub fn unix_nanos(&self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// `time.LoadLocation` and `In`; unknown names leave UTC.
    #[must_use]
    pub fn in_zone(&self, name: &str) -> Time {
        Time { location: Location::load(name).unwrap_or(Location::Utc), ..self.clone() }
    }

    /// Seconds east of UTC, and the zone's abbreviation.
    fn zone(&self) -> (i32, String) {
        match &self.location {
            Location::Utc => (0, "UTC".to_owned()),
            Location::Fixed(name, offset) => (*offset, name.to_string()),
            Location::Zone(zone) => {
                // The database does not cover the last days of the year 9999 and later.
                let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
                let nearest = if self.seconds < 0 { first } else { last };
                let moment = jiff::Timestamp::from_second(self.seconds).unwrap_or(nearest);
                let info = zone.to_offset_info(moment);
                (info.offset().seconds(), info.abbreviation().to_owned())
            }
        }
    }

    /// Seconds east of UTC.
    pub fn offset(&self) -> i32 {
        self.zone().0
    }

    /// Date and clock in the time's location.
    pub fn civil(&self) -> Civil {
        let local = self.seconds + i64::from(self.offset());
        let (year, month, day) = civil_from_days(local.div_euclid(SECONDS_PER_DAY));
        let clock = local.rem_euclid(SECONDS_PER_DAY);
        Civil { year, month, day, hour: clock / 3600, minute: clock / 60 % 60, second: clock % 60 }
    }

    /// The day of the week, from Sunday as 0.
    pub fn weekday(&self) -> i64 {
        let days = (self.seconds + i64::from(self.offset())).div_euclid(SECONDS_PER_DAY);
        (days + 4).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        let civil = self.civil();
        days_from_civil(civil.year, civil.month, civil.day) - days_from_civil(civil.year, 1, 1) + 1
    }

    /// `Time.Add`.
    #[must_use]
    pub fn plus(&self, nanos: i64) -> Time {
        let total = self.unix_nanos() + i128::from(nanos);
        Time { location: self.location.clone(), ..Time::from_nanos(total) }
    }

    /// `Time.AddDate`.
    #[must_use]
    pub fn plus_date(&self, years: i64, months: i64, days: i64) -> Time {
        const MAX_UNITS: i64 = 1_000_000;
        let mut civil = self.civil();
        civil.year += years.clamp(-MAX_UNITS, MAX_UNITS);
        civil.month += months.clamp(-MAX_UNITS, MAX_UNITS);
        civil.day += days.clamp(-MAX_UNITS, MAX_UNITS);
        Time::from_civil(civil, self.nanos, self.location.clone())
    }

    /// The duration since `earlier`, saturating as Go's `Sub`.
    pub fn since(&self, earlier: &Time) -> i64 {
        let nanos = self.unix_nanos() - earlier.unix_nanos();
        i64::try_from(nanos).unwrap_or(if nanos > 0 { i64::MAX } else { i64::MIN })
    }

    /// `Time.Format`.
    pub fn format(&self, layout: &str) -> String {
        String::from_utf8_lossy(&format::format(self, layout.as_bytes())).into_owned()
    }

    /// `Time.Format` by a layout that need not be UTF-8.
    pub fn format_bytes(&self, layout: &[u8]) -> Vec<u8> {
        format::format(self, layout)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Quotes as package time does in its errors, which is not strconv's way: bytes outside printable ASCII as `\x..`.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..0x80 => out.push(char::from(*byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
