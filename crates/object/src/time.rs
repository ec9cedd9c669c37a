//! Times and durations as the API writes them: RFC 3339 in whole seconds or microseconds, Go's `1h30m`, and the ages
//! that `kubectl get` shows. Nothing here reads a clock.

mod duration;

pub use duration::{format_duration, human_duration, parse_duration};
pub use jiff::Timestamp;

use jiff::civil::Date;
use jiff::tz::Offset;
use std::fmt::Write;

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// `metav1.Time`: UTC, in seconds; fractions are cut off.
pub fn format(time: Timestamp) -> String {
    Offset::UTC.to_datetime(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime`: UTC, always with six digits of a second.
pub fn format_micro(time: Timestamp) -> String {
    Offset::UTC.to_datetime(time).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads RFC 3339 just as leniently as Go's `time.Parse` does, with its words for what is wrong.
pub fn parse(s: &str) -> Result<Timestamp, String> {
    Reader { whole: s.as_bytes(), rest: s.as_bytes(), layout: RFC3339 }.read(false)
}

/// Reads a `MicroTime`, whose six digits are not optional.
pub fn parse_micro(s: &str) -> Result<Timestamp, String> {
    Reader { whole: s.as_bytes(), rest: s.as_bytes(), layout: RFC3339_MICRO }.read(true)
}

/// The age of something in a table: `<unknown>` without a time, `<invalid>` for one in the future.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    match since {
        None => "<unknown>".to_owned(),
        // Whole seconds towards zero, so that clocks may differ by a second.
        Some(since) => human_duration(now.duration_since(since).as_secs()),
    }
}

/// Quotes as Go's package `time` does: bytes outside printable ASCII as `\x..`.
fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for b in bytes {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*b));
            }
            b' '..0x80 => out.push(char::from(*b)),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "\\x{b:02x}")),
        }
    }
    out.push('"');
    out
}

struct Reader<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
    layout: &'static str,
}

impl Reader<'_> {
    fn mismatch(&self, found: &[u8], element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.whole),
            quote(self.layout.as_bytes()),
            quote(found),
            quote(element.as_bytes())
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quote(self.whole))
    }

    fn literal(&mut self, byte: u8) -> Result<(), String> {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.mismatch(self.rest, &char::from(byte).to_string())),
        }
    }

    /// `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize, element: &str) -> Result<i16, String> {
        let digits = self.rest.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
        if digits < min {
            return Err(self.mismatch(self.rest, element));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Ok(number.iter().fold(0, |n, b| n * 10 + i16::from(b - b'0')))
    }

    fn bounded(&mut self, min: usize, element: &str, limit: i16, what: &str) -> Result<i8, String> {
        let n = self.number(min, 2, element)?;
        if n >= limit {
            return Err(self.out_of_range(what));
        }
        i8::try_from(n).map_err(|_| self.out_of_range(what))
    }

    /// Digits after a point or comma, as nanoseconds; `exactly` six or as many as there are.
    fn fraction(&mut self, exactly: bool) -> Result<i32, String> {
        let point = matches!(self.rest, [b'.' | b',', ..]);
        let digits = self.rest.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
        let taken = match (exactly, point) {
            (true, true) if digits >= 6 => 6,
            (true, _) => return Err(self.mismatch(self.rest, ".000000")),
            (false, true) => digits,
            (false, false) => 0,
        };
        if taken == 0 {
            return Ok(0);
        }
        let (fraction, rest) = self.rest.split_at(1 + taken);
        self.rest = rest;
        let nanos = fraction[1..].iter().chain(std::iter::repeat(&b'0')).take(9);
        Ok(nanos.fold(0, |n, b| n * 10 + i32::from(b - b'0')))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, String> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let two = |a: u8, b: u8| {
            (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
        };
        let &[sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, ref rest @ ..] = self.rest else {
            return Err(self.mismatch(self.rest, "Z07:00"));
        };
        let (Some(hours), Some(minutes)) = (two(h1, h2), two(m1, m2)) else {
            return Err(self.mismatch(self.rest, "Z07:00"));
        };
        // Go takes 24 hours and 60 minutes, because people write them.
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        self.rest = rest;
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }

    fn read(mut self, micro: bool) -> Result<Timestamp, String> {
        let year = self.number(4, 4, "2006")?;
        self.literal(b'-')?;
        let month = self.bounded(2, "01", 13, "month")?;
        if month == 0 {
            return Err(self.out_of_range("month"));
        }
        self.literal(b'-')?;
        let day = self.number(2, 2, "02")?;
        self.literal(b'T')?;
        let hour = self.bounded(1, "15", 24, "hour")?;
        self.literal(b':')?;
        let minute = self.bounded(2, "04", 60, "minute")?;
        self.literal(b':')?;
        let second = self.bounded(2, "05", 60, "second")?;
        let nanos = self.fraction(micro)?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {}: extra text: {}", quote(self.whole), quote(self.rest)));
        }
        let date = i8::try_from(day).ok().and_then(|day| Date::new(year, month, day).ok());
        let date = date.ok_or_else(|| self.out_of_range("day"))?;
        let local = Offset::UTC.to_timestamp(date.at(hour, minute, second, nanos));
        local
            .and_then(|t| t.checked_sub(jiff::SignedDuration::from_secs(offset)))
            .map_err(|_| self.out_of_range("year"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, want) in [
            ("2006-01-02T15:04:05+07:00", "2006-01-02T08:04:05.000000Z"),
            ("2006-01-02T15:04:05.5Z", "2006-01-02T15:04:05.500000Z"),
            ("2006-01-02T15:04:05,123456789123Z", "2006-01-02T15:04:05.123456Z"),
            ("2006-01-02T1:04:05Z", "2006-01-02T01:04:05.000000Z"),
            ("2006-01-02T15:04:05+07:60", "2006-01-02T07:04:05.000000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(parse(text).map(format_micro).as_deref(), Ok(want));
        }
        assert_eq!(format(parse("1960-01-01T00:00:00.999Z").unwrap()), "1960-01-01T00:00:00Z");
    }

    #[test]
    fn says_what_go_says() {
        let long = |text: &str, found: &str, element: &str| {
            format!(r#"parsing time "{text}" as "{RFC3339}": cannot parse "{found}" as "{element}""#)
        };
        for (text, found, element) in [
            ("hello", "hello", "2006"),
            ("", "", "2006"),
            ("2006", "", "-"),
            ("2006-1-02T15:04:05Z", "1-02T15:04:05Z", "01"),
            ("2006-01-02t15:04:05z", "t15:04:05z", "T"),
            ("2006-01-02T15:4:05Z", "4:05Z", "04"),
            ("2006-01-02T15:04:05.", ".", "Z07:00"),
            ("2006-01-02T15:04:05+0700", "+0700", "Z07:00"),
            ("02006-01-02T15:04:05Z", "6-01-02T15:04:05Z", "-"),
        ] {
            assert_eq!(parse(text), Err(long(text, found, element)));
        }
        assert_eq!(parse("é"), Err(long(r"\xc3\xa9", r"\xc3\xa9", "2006")));
        for (text, what) in [
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2020-00-01T00:00:00Z", "month out of range"),
            ("2020-02-30T00:00:00Z", "day out of range"),
            ("2020-02-20T24:00:00Z", "hour out of range"),
            ("2006-01-02T15:04:60Z", "second out of range"),
            ("2006-01-02T15:04:05+25:00", "time zone offset hour out of range"),
            ("2006-01-02T15:04:05Z ", r#"extra text: " ""#),
        ] {
            assert_eq!(parse(text), Err(format!(r#"parsing time "{text}": {what}"#)));
        }
        assert_eq!(
            parse_micro("2006-01-02T15:04:05Z"),
            Err(format!(
                r#"parsing time "2006-01-02T15:04:05Z" as "{RFC3339_MICRO}": cannot parse "Z" as ".000000""#
            ))
        );
    }

    #[test]
    fn ages() {
        let t = |s: &str| parse(s).unwrap();
        let now = t("2024-01-01T00:00:10Z");
        assert_eq!(age(None, now), "<unknown>");
        assert_eq!(age(Some(t("2024-01-01T00:00:00Z")), now), "10s");
        assert_eq!(age(Some(t("2024-01-01T00:00:11.9Z")), now), "0s");
        assert_eq!(age(Some(t("2024-01-01T00:00:12Z")), now), "<invalid>");
    }

    proptest::proptest! {
        #[test]
        fn formatted_times_read_back(seconds in -62_135_596_800_i64..253_402_300_000, micros in 0..1_000_000_i32) {
            let time = Timestamp::new(seconds, micros * 1000).unwrap();
            proptest::prop_assert_eq!(parse_micro(&format_micro(time)), Ok(time));
            proptest::prop_assert_eq!(parse(&format_micro(time)), Ok(time));
        }

        #[test]
        fn hostile_times_do_not_panic(s in "[0-9TZ:.+é-]{0,40}") {
            let _ = (parse(&s), parse_micro(&s));
        }
    }
}
