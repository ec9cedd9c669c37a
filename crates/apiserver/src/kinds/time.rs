//! `metav1.Time` and `metav1.MicroTime`: RFC 3339 read with Go's rules and errors, written in UTC.

use serde_json::Value;

const DAY: i64 = 86_400;

/// Seconds of 0001-01-01T00:00:00Z, Go's zero time.
const ZERO: i64 = -62_135_596_800;

/// The text as Go writes it again (`null` for the zero time), or the error of Go's parser.
pub fn normalize(text: &str, micro: bool) -> Result<Value, String> {
    let (seconds, micros) = parse(text, micro)?;
    Ok(render(seconds, micro.then_some(micros)))
}

/// A moment as RFC 3339 in UTC, `null` for Go's zero time.
pub fn render(seconds: i64, micros: Option<u32>) -> Value {
    if seconds == ZERO && micros.unwrap_or_default() == 0 {
        return Value::Null;
    }
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let rest = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let head = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    Value::String(match micros {
        None => format!("{head}Z"),
        Some(us) => format!("{head}.{us:06}Z"),
    })
}

/// Seconds since 1970 and microseconds.
pub fn parse(text: &str, micro: bool) -> Result<(i64, u32), String> {
    let mut p = Parser { text, rest: text, micro };
    let year = p.year()?;
    p.literal("-")?;
    let month = p.number("01", true)?;
    p.within("month", (1..=12).contains(&month))?;
    p.literal("-")?;
    let day = p.number("02", true)?;
    p.literal("T")?;
    let hour = p.number("15", false)?;
    p.within("hour", hour < 24)?;
    p.literal(":")?;
    let minute = p.number("04", true)?;
    p.within("minute", minute < 60)?;
    p.literal(":")?;
    let second = p.number("05", true)?;
    p.within("second", second < 60)?;
    let micros = p.fraction()?;
    let offset = p.zone()?;
    if !p.rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {:?}", p.rest));
    }
    p.within("day", day >= 1 && day <= days_in(year, month))?;
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
    Ok((seconds, micros))
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    micro: bool,
}

impl Parser<'_> {
    fn bad(&self, element: &str) -> String {
        let layout =
            if self.micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
        format!("parsing time {:?} as {layout:?}: cannot parse {:?} as {element:?}", self.text, self.rest)
    }

    fn within(&self, what: &str, ok: bool) -> Result<(), String> {
        if ok { Ok(()) } else { Err(format!("parsing time {:?}: {what} out of range", self.text)) }
    }

    fn literal(&mut self, prefix: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(prefix).ok_or_else(|| self.bad(prefix))?;
        Ok(())
    }

    fn digit(&self, at: usize) -> Option<i64> {
        self.rest.as_bytes().get(at).filter(|b| b.is_ascii_digit()).map(|b| i64::from(b - b'0'))
    }

    fn year(&mut self) -> Result<i64, String> {
        let mut year = 0;
        for at in 0..4 {
            year = year * 10 + self.digit(at).ok_or_else(|| self.bad("2006"))?;
        }
        self.rest = &self.rest[4..];
        Ok(year)
    }

    /// Two digits; one is enough where Go's layout does not insist on two.
    fn number(&mut self, element: &str, two: bool) -> Result<i64, String> {
        let first = self.digit(0).ok_or_else(|| self.bad(element))?;
        let (value, width) = match self.digit(1) {
            Some(second) => (first * 10 + second, 2),
            None if two => return Err(self.bad(element)),
            None => (first, 1),
        };
        self.rest = &self.rest[width..];
        Ok(value)
    }

    /// Six digits for MicroTime; for Time any fraction is read and dropped.
    fn fraction(&mut self) -> Result<u32, String> {
        let separated = self.rest.starts_with(['.', ',']);
        if self.micro {
            let mut micros = 0;
            for at in 1..=6 {
                let digit = self.digit(at).filter(|_| separated);
                micros = micros * 10 + digit.ok_or_else(|| self.bad(".000000"))?;
            }
            self.rest = &self.rest[7..];
            return Ok(u32::try_from(micros).unwrap_or_default());
        }
        if separated && self.digit(1).is_some() {
            self.rest = self.rest[1..].trim_start_matches(|c: char| c.is_ascii_digit());
        }
        Ok(0)
    }

    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = self.rest.as_bytes();
        let sign = match bytes.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.bad("Z07:00")),
        };
        let digits = [1, 2, 4, 5].map(|at| self.digit(at));
        let ([Some(a), Some(b), Some(c), Some(d)], Some(b':')) = (digits, bytes.get(3)) else {
            return Err(self.bad("Z07:00"));
        };
        let (hours, minutes) = (a * 10 + b, c * 10 + d);
        self.within("time zone offset hour", hours <= 24)?;
        self.within("time zone offset minute", minutes <= 60)?;
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Years start in March here, so
/// that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
