//! Go's package time as templates need it: instants with a location, durations, layouts.
//!
//! The local zone is UTC: functions run in containers without one, and a render must not depend on the machine.

pub mod duration;
mod format;
mod layout;
mod parse;

use std::fmt;
use std::rc::Rc;

use jiff::tz::TimeZone;

pub use parse::parse;

#[derive(Clone, Debug)]
pub enum Location {
    Utc,
    Fixed(Rc<str>, i32),
    Zone(TimeZone),
}

/// An instant, and the location it is shown in.
#[derive(Clone, Debug)]
pub struct Time {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    pub nanos: u32,
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
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

const DAY: i64 = 86_400;

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

pub fn month_name(month: i64) -> String {
    let index = usize::try_from(month - 1).ok();
    index
        .and_then(|index| MONTHS.get(index))
        .map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
}

pub fn weekday_name(day: i64) -> String {
    let index = usize::try_from(day).ok();
    index
        .and_then(|index| WEEKDAYS.get(index))
        .map_or_else(|| format!("%!Weekday({day})"), |name| (*name).to_owned())
}

/// Days since the epoch of a date; months and days out of range carry over.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
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
const FARTHEST: i64 = 1 << 55;

impl Time {
    /// The first instant of year 1, Go's zero time.
    pub const ZERO_SECONDS: i64 = -62_135_596_800;

    pub fn zero() -> Time {
        Time { seconds: Time::ZERO_SECONDS, nanos: 0, location: Location::Utc }
    }

    pub fn from_unix(seconds: i64, nanos: u32) -> Time {
        Time { seconds: seconds.clamp(-FARTHEST, FARTHEST), nanos, location: Location::Utc }
    }

    pub fn from_nanos(nanos: i128) -> Time {
        let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or(0);
        Time::from_unix(seconds, u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0))
    }

    /// The instant a clock in `location` shows as this date and time.
    pub fn from_civil(civil: Civil, nanos: u32, location: Location) -> Time {
        let days = days_from_civil(civil.year, civil.month, civil.day);
        let local = days * DAY + civil.hour * 3600 + civil.minute * 60 + civil.second;
        let mut time = Time { seconds: local, nanos, location };
        // The offset depends on the instant, which depends on the offset: two rounds settle it as Go does.
        let first = i64::from(time.offset());
        time.seconds = local - first;
        let second = i64::from(time.offset());
        time.seconds = local - second;
        time
    }

    pub fn unix_nanos(&self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// `time.LoadLocation` and `In`; unknown names leave UTC.
    #[must_use]
    pub fn in_zone(&self, name: &str) -> Time {
        let location = match name {
            "" | "UTC" | "Local" => Location::Utc,
            _ => TimeZone::get(name).map_or(Location::Utc, Location::Zone),
        };
        Time { location, ..self.clone() }
    }

    /// Seconds east of UTC, and the zone's abbreviation.
    fn zone(&self) -> (i32, String) {
        match &self.location {
            Location::Utc => (0, "UTC".to_owned()),
            Location::Fixed(name, offset) => (*offset, name.to_string()),
            Location::Zone(zone) => match jiff::Timestamp::from_second(self.seconds) {
                Ok(timestamp) => {
                    let info = zone.to_offset_info(timestamp);
                    (info.offset().seconds(), info.abbreviation().to_owned())
                }
                Err(_) => (0, "UTC".to_owned()),
            },
        }
    }

    pub fn offset(&self) -> i32 {
        self.zone().0
    }

    pub fn civil(&self) -> Civil {
        let local = self.seconds + i64::from(self.offset());
        let (year, month, day) = civil_from_days(local.div_euclid(DAY));
        let clock = local.rem_euclid(DAY);
        Civil { year, month, day, hour: clock / 3600, minute: clock / 60 % 60, second: clock % 60 }
    }

    pub fn weekday(&self) -> i64 {
        let days = (self.seconds + i64::from(self.offset())).div_euclid(DAY);
        (days + 4).rem_euclid(7)
    }

    pub fn year_day(&self) -> i64 {
        let civil = self.civil();
        days_from_civil(civil.year, civil.month, civil.day) - days_from_civil(civil.year, 1, 1) + 1
    }

    #[must_use]
    pub fn plus(&self, nanos: i64) -> Time {
        let total = self.unix_nanos() + i128::from(nanos);
        Time { location: self.location.clone(), ..Time::from_nanos(total) }
    }

    #[must_use]
    pub fn plus_date(&self, years: i64, months: i64, days: i64) -> Time {
        const MOST: i64 = 1_000_000;
        let mut civil = self.civil();
        civil.year += years.clamp(-MOST, MOST);
        civil.month += months.clamp(-MOST, MOST);
        civil.day += days.clamp(-MOST, MOST);
        Time::from_civil(civil, self.nanos, self.location.clone())
    }

    /// The duration since `earlier`, saturating as Go's `Sub`.
    pub fn since(&self, earlier: &Time) -> i64 {
        let nanos = self.unix_nanos() - earlier.unix_nanos();
        i64::try_from(nanos).unwrap_or(if nanos > 0 { i64::MAX } else { i64::MIN })
    }

    pub fn format(&self, layout: &str) -> String {
        String::from_utf8_lossy(&format::format(self, layout.as_bytes())).into_owned()
    }

    pub fn format_bytes(&self, layout: &[u8]) -> Vec<u8> {
        format::format(self, layout)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}
