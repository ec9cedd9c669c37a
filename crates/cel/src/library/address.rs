//! Addresses and prefixes as Go's `net/netip` reads them, with its reasons for refusing one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use transom_object::quote::quote;

/// What is wrong, and the rest of the text from there on, where the message names it.
type Problem<'t> = (&'static str, &'t str);

/// An address, and whether it has a zone.
pub(super) fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => ipv4(text).map(|octets| (IpAddr::V4(octets.into()), false)),
        Some(b':') => ipv6(text).map(|(address, zone)| (IpAddr::V6(address), zone)),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    parsed.map_err(|(problem, at)| {
        let place = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
        format!("ParseAddr({}): {problem}{place}", quote(text))
    })
}

/// An address and a number of bits.
pub(super) fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let fail = |why: &str| format!("netip.ParsePrefix({}): {why}", quote(text));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| fail("no '/'"))?;
    let (address, zone) = parse_address(address).map_err(|why| fail(&why))?;
    if zone {
        return Err(fail("IPv6 zones cannot be present in a prefix"));
    }
    let number: i64 = match bits.parse() {
        Ok(number) if bits.len() == 1 || bits.starts_with(|c: char| ('1'..='9').contains(&c)) => number,
        _ => return Err(fail(&format!("bad bits after slash: {}", quote(bits)))),
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(number).ok().filter(|bits| *bits <= most);
    bits.map(|bits| (address, bits)).ok_or_else(|| fail("prefix length out of range"))
}

fn ipv4(text: &str) -> Result<[u8; 4], Problem<'_>> {
    let mut octets = [0; 4];
    let (mut value, mut digits, mut place) = (0_u32, 0, 0);
    let bytes = text.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                octets[place] = u8::try_from(value).map_err(|_| ("IPv4 field has value >255", ""))?;
            }
            b'.' if i == 0 || i + 1 == bytes.len() || bytes[i - 1] == b'.' => {
                return Err(("IPv4 field must have at least one digit", &text[i..]));
            }
            b'.' if place == 3 => return Err(("IPv4 address too long", "")),
            b'.' => (value, digits, place) = (0, 0, place + 1),
            _ => return Err(("unexpected character", &text[i..])),
        }
    }
    if place < 3 { Err(("IPv4 address too short", "")) } else { Ok(octets) }
}

fn ipv6(text: &str) -> Result<(Ipv6Addr, bool), Problem<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut octets = Vec::with_capacity(16);
    let mut gap = None;
    let mut rest = address;
    if let Some(after) = rest.strip_prefix("::") {
        if after.is_empty() {
            return Ok((Ipv6Addr::UNSPECIFIED, zone));
        }
        (gap, rest) = (Some(0), after);
    }
    while octets.len() < 16 {
        let (group, after) = field(rest)?;
        if after.starts_with('.') {
            octets.extend(embedded(rest, octets.len(), gap.is_some())?);
            rest = "";
            break;
        }
        octets.extend(group.to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(':').ok_or(("unexpected character, want colon", rest))?;
        if rest.is_empty() {
            return Err(("colon must be followed by more characters", after));
        }
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", rest));
            }
            (gap, rest) = (Some(octets.len()), after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    let missing = 16 - octets.len();
    match gap {
        Some(at) if missing > 0 => drop(octets.splice(at..at, vec![0; missing])),
        Some(_) => return Err(("the :: must expand to at least one field of zeros", "")),
        None if missing > 0 => return Err(("address string too short", "")),
        None => {}
    }
    let octets: [u8; 16] = octets.try_into().map_err(|_| ("address string too short", ""))?;
    Ok((octets.into(), zone))
}

/// A group of up to four hexadecimal digits, and what follows.
fn field(text: &str) -> Result<(u16, &str), Problem<'_>> {
    let digits = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    match digits {
        0 => Err(("each colon-separated field must have at least one digit", text)),
        1..=4 => Ok((u16::from_str_radix(&text[..digits], 16).unwrap_or_default(), &text[digits..])),
        _ => Err(("each group must have 4 or less digits", text)),
    }
}

/// An IPv4 address in the last two groups of an IPv6 address.
fn embedded(text: &str, at: usize, gap: bool) -> Result<[u8; 4], Problem<'_>> {
    if !gap && at != 12 {
        return Err(("embedded IPv4 address must replace the final 2 fields of the address", text));
    }
    if at + 4 > 16 {
        return Err(("too many hex fields to fit an embedded IPv4 at the end of the address", text));
    }
    ipv4(text).map(|octets| Ipv4Addr::from(octets).octets())
}

#[cfg(test)]
mod tests {
    use super::{parse_address, parse_prefix};

    #[test]
    fn reasons_are_those_of_go() {
        for (text, why) in [
            ("", "unable to parse IP"),
            ("%eth0", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            ("1.2.3.", "IPv4 field must have at least one digit (at \".\")"),
            ("1..2.3", "IPv4 field must have at least one digit (at \".2.3\")"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1.2.3.x", "unexpected character (at \"x\")"),
            ("::1%", "zone must be a non-empty string"),
            ("1:2:3:4:5:6:7", "address string too short"),
            ("1:2:3:4:5:6:7:8:9", "trailing garbage after address (at \"9\")"),
            ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("12345::", "each group must have 4 or less digits (at \"12345::\")"),
            (":1", "each colon-separated field must have at least one digit (at \":1\")"),
            ("1:", "colon must be followed by more characters (at \":\")"),
            ("1:g::", "each colon-separated field must have at least one digit (at \"g::\")"),
            ("1:2g::", "unexpected character, want colon (at \"g::\")"),
            (
                "1:1.2.3.4",
                "embedded IPv4 address must replace the final 2 fields of the address (at \"1.2.3.4\")",
            ),
            ("::1.2.3.400", "IPv4 field has value >255"),
        ] {
            let wanted = format!("ParseAddr({text:?}): {why}");
            assert_eq!(parse_address(text).unwrap_err(), wanted);
        }
        for (text, why) in [
            ("1.2.3.4", "no '/'"),
            ("1.2.3.4/", "bad bits after slash: \"\""),
            ("1.2.3.4/+8", "bad bits after slash: \"+8\""),
            ("1.2.3.4/08", "bad bits after slash: \"08\""),
            ("1.2.3.4/33", "prefix length out of range"),
            ("fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix"),
            ("x/8", "ParseAddr(\"x\"): unable to parse IP"),
        ] {
            assert_eq!(parse_prefix(text).unwrap_err(), format!("netip.ParsePrefix({text:?}): {why}"));
        }
    }

    #[test]
    fn addresses_are_read() {
        for text in [
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1::2:0:0:3",
        ] {
            let (address, zone) = parse_address(text).unwrap();
            assert_eq!((address.to_string().as_str(), zone), (text, false));
        }
        assert!(parse_address("fe80::1%eth0").unwrap().1);
        assert_eq!(parse_address("1:2:3:4:5:6:1.2.3.4").unwrap().0.to_string(), "1:2:3:4:5:6:102:304");
    }
}
