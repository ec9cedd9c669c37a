//! Times and durations as the API writes them: RFC 3339 in whole seconds or microseconds, Go's `1h30m`, and the ages
//! that `kubectl get` shows. Nothing here reads a clock.

mod duration;

pub use duration::human_duration;
pub use jiff::Timestamp;
pub use transom_go::time::ParseError;
pub use transom_go::time::duration::{format as format_duration, parse as parse_duration};

use jiff::tz::Offset;
use transom_go::time::RFC3339;

const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// `metav1.Time`: UTC, in seconds; fractions are cut off.
pub fn format(time: Timestamp) -> String {
    Offset::UTC.to_datetime(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime`: UTC, always with six digits of a second.
pub fn format_micro(time: Timestamp) -> String {
    Offset::UTC.to_datetime(time).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads RFC 3339 just as leniently as Go's `time.Parse` does, with its error messages.
pub fn parse(s: &str) -> Result<Timestamp, ParseError> {
    read(RFC3339, s)
}

/// Reads a `MicroTime`, whose six digits are not optional.
pub fn parse_micro(s: &str) -> Result<Timestamp, ParseError> {
    read(RFC3339_MICRO, s)
}

fn read(layout: &str, text: &str) -> Result<Timestamp, ParseError> {
    let time = transom_go::time::parse(layout.as_bytes(), text.as_bytes())?;
    let nanos = i32::try_from(time.nanos).unwrap_or_default();
    // Years from 0 to 9999 can be written, but an offset can lead out of what a timestamp holds.
    Timestamp::new(time.seconds, nanos).map_err(|_| ParseError::year_out_of_range(text))
}

/// The age of something in a table: `<unknown>` without a time, `<invalid>` for one in the future.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    match since {
        None => "<unknown>".to_owned(),
        // Whole seconds towards zero, so that clocks may differ by a second.
        Some(since) => human_duration(now.duration_since(since).as_secs()),
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
            assert_eq!(parse(text).unwrap_err().to_string(), long(text, found, element));
        }
        assert_eq!(parse("é").unwrap_err().to_string(), long(r"\xc3\xa9", r"\xc3\xa9", "2006"));
        for (text, what) in [
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2020-00-01T00:00:00Z", "month out of range"),
            ("2020-02-30T00:00:00Z", "day out of range"),
            ("2020-02-20T24:00:00Z", "hour out of range"),
            ("2006-01-02T15:04:60Z", "second out of range"),
            ("2006-01-02T15:04:05+25:00", "time zone offset hour out of range"),
            ("2006-01-02T15:04:05Z ", r#"extra text: " ""#),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), format!(r#"parsing time "{text}": {what}"#));
        }
        assert_eq!(
            parse_micro("2006-01-02T15:04:05Z").unwrap_err().to_string(),
            format!(
                r#"parsing time "2006-01-02T15:04:05Z" as "{RFC3339_MICRO}": cannot parse "Z" as ".000000""#
            )
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
