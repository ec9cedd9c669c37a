//! Addresses and networks as text, most of them wrong: what the errors say.

use super::{argument, asked, quoted};
use crate::Case;
use crate::dice::Dice;
use std::fmt::Write;

pub(crate) fn case(dice: &mut Dice) -> Case {
    let text = if dice.percent(25) { written(dice) } else { edited(dice) };
    let text = argument(dice, &text);
    let network = format!("({text} + {})", quoted(&bits(dice)));
    asked(&match dice.below(10) {
        0..4 => format!("ip({text})"),
        4..7 => format!("cidr({network})"),
        7 => format!("cidr({}).containsIP({text})", dice.pick(&["'10.0.0.0/8'", "'::/0'"])),
        8 => format!("cidr({}).containsCIDR({network})", dice.pick(&["'10.0.0.0/8'", "'::/0'"])),
        _ => format!("ip.isCanonical({text})"),
    })
}

fn bits(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("/{}", dice.below(140)),
        1 => dice
            .pick(&["", "/", "/ 8", "/8 ", "/8/8", "/é", "/-0", "/00", "/1e1", "/0x8", "%a/8", "/%"])
            .to_owned(),
        _ => {
            format!("/{}", dice.pick(&["0", "8", "32", "33", "128", "129", "008", "+1", "-1", "4294967297"]))
        }
    }
}

/// An address put together from groups.
fn written(dice: &mut Dice) -> String {
    let mut text = String::new();
    let groups = dice.below(10);
    for group in 0..groups {
        if group > 0 {
            text.push_str(dice.pick(&[":", ":", ":", ":", ":", "::", ".", ":::"]));
        }
        for _ in 0..dice.one(&[1, 1, 2, 4, 4, 5, 0]) {
            text.push(dice.one(&['0', '1', '9', 'a', 'f', 'A', 'F', '0', '2', 'g']));
        }
    }
    if dice.percent(25) {
        let octets: Vec<String> = (0..dice.one(&[4, 4, 4, 3, 5])).map(|_| octet(dice)).collect();
        let _ = write!(text, "{}{}", dice.pick(&[":", ":", "::", ""]), octets.join("."));
    }
    if dice.percent(10) {
        text.push_str(dice.pick(&["%", "%eth0", "%%", "%é", "% "]));
    }
    text
}

fn octet(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => format!("{:03}", dice.below(300)),
        1 => dice.below(1200).to_string(),
        _ => dice.below(256).to_string(),
    }
}

/// An address that is right or almost so.
fn edited(dice: &mut Dice) -> String {
    let mut chars: Vec<char> = address(dice).chars().collect();
    for _ in 0..dice.below(4) {
        let at = dice.below(chars.len() + 1);
        let other = dice.one(&[
            '0', '1', '5', '9', 'a', 'f', 'F', 'g', ':', '.', '%', '/', ' ', '-', '+', 'é', '"', '\\', '\n',
            '\0', '\u{7f}', '世', '\u{2028}', '😀', '\u{ad}',
        ]);
        match dice.below(4) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => chars[at] = other,
            2 if at < chars.len() => chars.insert(at, chars[at]),
            _ => chars.insert(at, other),
        }
    }
    chars.into_iter().collect()
}

pub(super) fn address(dice: &mut Dice) -> String {
    let parts = [
        "1", "0", "255", "256", "01", "", "f", "ffff", "12345", "g", "fe80", "::", ":", ".", "1.2.3.4", "%",
        "eth0", "10", "é", "\"", "x",
    ];
    match dice.below(4) {
        0 => dice
            .pick(&[
                "1.2.3.4",
                "10.0.0.1",
                "::1",
                "fe80::1",
                "::",
                "255.255.255.255",
                "::ffff:1.2.3.4",
                "2001:db8::ff00:42:8329",
                "224.0.0.1",
                "127.0.0.1",
                "1:2:3:4:5:6:7:8",
                "::1.2.3.4",
                "169.254.1.1",
                "ff02::1",
                "fe80::1%eth0",
                "2001:DB8::1",
            ])
            .to_owned(),
        1 => {
            let joint = dice.pick(&[".", ":", "::"]);
            (0..=dice.below(9)).map(|_| dice.pick(&parts).to_owned()).collect::<Vec<_>>().join(joint)
        }
        2 => (0..=dice.below(6)).map(|_| dice.pick(&parts)).collect(),
        _ => {
            let octets: Vec<String> = (0..4).map(|_| dice.below(270).to_string()).collect();
            octets.join(".")
        }
    }
}

fn prefix(dice: &mut Dice) -> String {
    if dice.percent(10) {
        return address(dice);
    }
    format!(
        "{}/{}",
        address(dice),
        dice.pick(&[
            "0",
            "8",
            "24",
            "32",
            "33",
            "64",
            "128",
            "129",
            "08",
            "+8",
            "-1",
            "",
            "x",
            "1/8",
            "99999999999999999999"
        ])
    )
}

pub(super) fn expression(dice: &mut Dice) -> String {
    let (ip, cidr, other) = (quoted(&address(dice)), quoted(&prefix(dice)), quoted(&address(dice)));
    match dice.below(14) {
        0 | 1 => format!("ip({ip})"),
        2 | 3 => format!("cidr({cidr})"),
        4 => format!("isIP({ip})"),
        5 => format!("isCIDR({cidr})"),
        6 => format!("ip.isCanonical({ip})"),
        7 => format!("string(ip({ip}))"),
        8 => format!("cidr({cidr}).containsIP({other})"),
        9 => format!("cidr({cidr}).containsIP(ip({other}))"),
        10 => format!("cidr({cidr}).containsCIDR({})", quoted(&prefix(dice))),
        11 => format!("string(cidr({cidr}).masked())"),
        12 => format!("cidr({cidr}).{}()", dice.pick(&["ip", "prefixLength", "masked"])),
        _ => format!(
            "ip({ip}).{}()",
            dice.pick(&[
                "family",
                "isUnspecified",
                "isLoopback",
                "isLinkLocalMulticast",
                "isLinkLocalUnicast",
                "isGlobalUnicast"
            ])
        ),
    }
}
