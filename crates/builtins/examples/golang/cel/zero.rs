//! Moments and durations that are zero, or almost, in optionals.

use super::{argument, asked, moment, quoted};
use crate::Case;
use crate::dice::Dice;

/// The seconds from 1970 to the zero of Go's moments.
const ZERO: i64 = -62_135_596_800;

pub(crate) fn case(dice: &mut Dice) -> Case {
    let optional = optional(dice, 1);
    let value = instant(dice, 1);
    asked(&match dice.below(11) {
        0 | 1 => format!("{optional}.hasValue()"),
        2 => format!("{optional} == optional.none()"),
        3 => format!("{optional}.hasValue() ? string({optional}.value()) : 'none'"),
        4 => format!("{optional}.orValue({value})"),
        5 => format!("{optional}.optMap(t, t.getFullYear())"),
        6 => format!("size([?{optional}, {value}])"),
        7 => format!("size({{?'a': {optional}, 'b': {value}}})"),
        8 => format!("{optional} == optional.of({value})"),
        9 => format!("optional.ofNonZeroValue({}).hasValue()", length(dice)),
        _ => optional,
    })
}

/// An optional moment.
fn optional(dice: &mut Dice, depth: usize) -> String {
    let value = instant(dice, 1);
    let below = if depth == 0 { None } else { Some(optional(dice, depth - 1)) };
    match (dice.below(9), below) {
        (0, Some(below)) => format!("{below}.optFlatMap(t, optional.ofNonZeroValue(t))"),
        (1, Some(below)) => format!("{below}.optMap(t, t - {})", length(dice)),
        (2, Some(below)) => format!("{below}.or(optional.ofNonZeroValue({value}))"),
        (3, Some(below)) => format!("[?{below}][?0]"),
        (4, _) => format!("optional.of({value})"),
        (5, _) => format!("optional.ofNonZeroValue({{'a': {value}}}.a)"),
        _ => format!("optional.ofNonZeroValue({value})"),
    }
}

/// A moment, mostly at or beside zero.
fn instant(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => {
            let near = [0, 0, 0, 1, -1, 60, 86_400, -ZERO].map(|seconds: i64| ZERO + seconds);
            format!("timestamp({})", dice.one(&near))
        }
        1 => {
            let text = moment(dice);
            format!("timestamp({})", argument(dice, &text))
        }
        2..6 => {
            let text = zero_elsewhere(dice);
            format!("timestamp({})", argument(dice, &text))
        }
        6 => format!("timestamp({})", instant(dice, depth - 1)),
        7 => format!("({} + {})", instant(dice, depth - 1), length(dice)),
        _ => format!("({} - {})", instant(dice, depth - 1), length(dice)),
    }
}

/// The zero moment, or one beside it, as clocks show it elsewhere.
fn zero_elsewhere(dice: &mut Dice) -> String {
    let offset = match dice.below(4) {
        0 => 0,
        1 => dice.one(&[60, -60, 330, -1, 1, 1439, -1439]),
        _ => dice.below(2880) as i64 - 1440,
    };
    // The clocks show it exactly or, seldom, a minute off.
    let shown = offset + dice.one(&[0, 0, 0, 0, 1, -1]);
    let (date, minute) = match shown {
        0..1440 => ("0001-01-01", shown),
        1440.. => ("0001-01-02", shown - 1440),
        _ => ("0000-12-31", shown.rem_euclid(1440)),
    };
    let second = dice.pick(&["00", "00", "00", "00", "01"]);
    let fraction = dice.pick(&["", "", "", ".0", ".000000000", ".000000001", ".0000000001", ".5"]);
    let zone = match offset {
        0 if dice.percent(70) => "Z".to_owned(),
        _ => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
        }
    };
    format!("{date}T{:02}:{:02}:{second}{fraction}{zone}", minute / 60, minute % 60)
}

fn length(dice: &mut Dice) -> String {
    if dice.percent(10) {
        return format!("({0} - {0})", "timestamp('2020-01-01T00:00:00Z')");
    }
    let texts = ["0s", "0", "-0s", "+0h", "0.0s", "0.1ns", "1ns", "-1ns", "1s", "1m", "1h", "24h", "1h0.0ns"];
    format!("duration({})", quoted(dice.pick(&texts)))
}
