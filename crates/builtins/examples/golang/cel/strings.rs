//! Values of every type, converted to text.

use super::{addresses, argument, asked, duration, moment, quoted, scalar};
use crate::Case;
use crate::dice::Dice;
use std::fmt::Write;

pub(crate) fn case(dice: &mut Dice) -> Case {
    let value = value(dice);
    asked(&match dice.below(9) {
        0..4 => format!("string({value})"),
        4 => format!("string(dyn({value}))"),
        5 => format!("string(string({value}))"),
        6 => format!("string({value}) + 'x'"),
        7 => format!("size(string({value}))"),
        _ => format!("[{value}].map(x, string(x))[0]"),
    })
}

fn value(dice: &mut Dice) -> String {
    match dice.below(16) {
        0 | 1 => scalar(dice),
        2 => integer(dice).to_string(),
        3 => format!("{}u", integer(dice).cast_unsigned()),
        4..7 => double(dice),
        7 => format!("double({})", integer(dice)),
        8 => bytes(dice),
        9 => text(dice),
        10 | 11 => length(dice),
        12..14 => instant(dice),
        14 => format!("ip({})", quoted(&addresses::address(dice))),
        _ => dice
            .pick(&[
                "null",
                "[1]",
                "{}",
                "type(1)",
                "cidr('10.0.0.0/8')",
                "quantity('1Ki')",
                "dyn(1)",
                "optional.of(1)",
            ])
            .to_owned(),
    }
}

/// A number of any length.
fn integer(dice: &mut Dice) -> i64 {
    let length = dice.below(64);
    dice.next().cast_signed() >> length
}

fn double(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => {
            let number = f64::from_bits(dice.next());
            if number.is_finite() { format!("{number:?}") } else { "(1.0 / 0.0)".to_owned() }
        }
        1 => format!("({}.0 / {}.0)", integer(dice), dice.below(1000)),
        2 => format!("{}.{}e{}", dice.below(10), dice.below(100_000), dice.below(44) as i64 - 22),
        3 => format!("-{}.{}", dice.below(2_000_000), dice.below(1000)),
        _ => format!("{}e{}", dice.below(1000), dice.below(700) as i64 - 350),
    }
}

fn bytes(dice: &mut Dice) -> String {
    if dice.percent(30) {
        return format!("bytes({})", text(dice));
    }
    let mut out = "b'".to_owned();
    for _ in 0..dice.below(7) {
        let byte = match dice.below(3) {
            0 => dice.below(128) as u64,
            1 => dice.one(&[
                0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0xc0, 0xff, 0xf4, 0x90,
            ]),
            _ => dice.next() & 0xff,
        };
        let _ = write!(out, "\\x{byte:02x}");
    }
    out + "'"
}

fn text(dice: &mut Dice) -> String {
    let chars = ['a', 'Z', '0', ' ', '\'', '"', '\\', '\n', '\0', 'é', '世', '😀', '\u{feff}', '\u{7f}', '<'];
    let text: String = (0..dice.below(6)).map(|_| dice.one(&chars)).collect();
    argument(dice, &text)
}

fn length(dice: &mut Dice) -> String {
    let text = match dice.below(4) {
        0 => duration(dice),
        1 => format!("{}ns", integer(dice)),
        2 => format!("{}.{}s", dice.below(100_000), dice.below(1_000_000)),
        _ => format!("{}h{}m{}ms", dice.below(3000), dice.below(100), dice.below(2000)),
    };
    format!("duration({})", argument(dice, &text))
}

fn instant(dice: &mut Dice) -> String {
    let seconds = integer(dice) % 253_402_300_800;
    match dice.below(4) {
        0 => {
            let text = moment(dice);
            format!("timestamp({})", argument(dice, &text))
        }
        1 => format!("timestamp({seconds})"),
        2 => format!("timestamp({seconds}) + {}", length(dice)),
        _ => {
            let (year, month, day) = (dice.below(10_000), 1 + dice.below(12), 1 + dice.below(31));
            let (hour, minute, second) = (dice.below(24), dice.below(60), dice.below(60));
            let fraction = dice.pick(&["", ".1", ".12", ".123456", ".100000000", ".000000007", ".0"]);
            let zone = dice.pick(&["Z", "Z", "+02:00", "-11:30"]);
            let text =
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}");
            format!("timestamp({})", argument(dice, &text))
        }
    }
}
