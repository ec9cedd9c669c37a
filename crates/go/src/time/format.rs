//! Writes an instant by a layout, as `time.Time.Format` does.

use super::layout::{self, Element};
use super::{Civil, Time, month_name, weekday_name};

pub(super) fn format(time: &Time, mut layout: &[u8]) -> Vec<u8> {
    let civil = time.civil();
    let mut out = Vec::new();
    while let Some((start, end, element)) = layout::next(layout) {
        out.extend_from_slice(&layout[..start]);
        layout = &layout[end..];
        out.extend_from_slice(show(time, &civil, element).as_bytes());
    }
    out.extend_from_slice(layout);
    out
}

fn show(time: &Time, civil: &Civil, element: Element) -> String {
    let hour12 = if civil.hour % 12 == 0 { 12 } else { civil.hour % 12 };
    match element {
        Element::LongMonth => month_name(civil.month),
        Element::Month => month_name(civil.month)[..3].to_owned(),
        Element::NumMonth => civil.month.to_string(),
        Element::ZeroMonth => format!("{:02}", civil.month),
        Element::LongWeekday => weekday_name(time.weekday()),
        Element::Weekday => weekday_name(time.weekday())[..3].to_owned(),
        Element::Day => civil.day.to_string(),
        Element::UnderDay => format!("{:2}", civil.day),
        Element::ZeroDay => format!("{:02}", civil.day),
        Element::UnderYearDay => format!("{:3}", time.year_day()),
        Element::ZeroYearDay => format!("{:03}", time.year_day()),
        Element::Hour => format!("{:02}", civil.hour),
        Element::Hour12 => hour12.to_string(),
        Element::ZeroHour12 => format!("{hour12:02}"),
        Element::Minute => civil.minute.to_string(),
        Element::ZeroMinute => format!("{:02}", civil.minute),
        Element::Second => civil.second.to_string(),
        Element::ZeroSecond => format!("{:02}", civil.second),
        Element::LongYear if civil.year < 0 => format!("-{:04}", -civil.year),
        Element::LongYear => format!("{:04}", civil.year),
        Element::Year => format!("{:02}", civil.year.max(0) % 100),
        Element::UpperPm => if civil.hour >= 12 { "PM" } else { "AM" }.to_owned(),
        Element::LowerPm => if civil.hour >= 12 { "pm" } else { "am" }.to_owned(),
        Element::ZoneName => match time.zone() {
            (offset, name) if name.is_empty() => show_offset(offset, false, false, 2),
            (_, name) => name,
        },
        Element::Offset { iso, colon, parts } => show_offset(time.offset(), iso, colon, parts),
        Element::Fraction { trimmed, digits, separator } => fraction(time.nanos, trimmed, digits, separator),
    }
}

fn show_offset(offset: i32, iso: bool, colon: bool, parts: u8) -> String {
    if iso && offset == 0 {
        return "Z".to_owned();
    }
    let sign = if offset / 60 < 0 { '-' } else { '+' };
    let seconds = offset.abs();
    let separator = if colon { ":" } else { "" };
    let mut text = format!("{sign}{:02}", seconds / 3600);
    if parts > 1 {
        text.push_str(&format!("{separator}{:02}", seconds / 60 % 60));
    }
    if parts > 2 {
        text.push_str(&format!("{separator}{:02}", seconds % 60));
    }
    text
}

fn fraction(nanos: u32, trimmed: bool, digits: usize, separator: u8) -> String {
    let all = format!("{nanos:09}");
    let mut shown: String = all.chars().take(digits).collect();
    shown.extend(std::iter::repeat_n('0', digits.saturating_sub(9)));
    if trimmed {
        shown.truncate(shown.trim_end_matches('0').len());
        if shown.is_empty() {
            return shown;
        }
    }
    format!("{}{shown}", char::from(separator))
}
