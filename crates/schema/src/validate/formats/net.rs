//! Addresses as Go's `net` reads them.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a decimal part of an IPv4 address may start with a zero. Kubernetes still accepts that in places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadingZeros {
    Allowed,
    Refused,
}

/// An address without a zone.
pub(super) fn parse_ip(text: &str, zeros: LeadingZeros) -> Option<IpAddr> {
    if !text.contains(':') {
        return parse_ipv4(text, zeros).map(IpAddr::from);
    }
    // The last part of an IPv6 address may be an IPv4 address; write it as two groups.
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            let [a, b, c, d] = parse_ipv4(tail, zeros)?;
            format!("{head}:{a:02x}{b:02x}:{c:02x}{d:02x}").parse::<Ipv6Addr>().ok().map(IpAddr::from)
        }
        _ => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
    }
}

fn parse_ipv4(text: &str, zeros: LeadingZeros) -> Option<[u8; 4]> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits || (zeros == LeadingZeros::Refused && part.len() > 1 && part.starts_with('0')) {
            return None;
        }
        *octet = part.bytes().try_fold(0u8, |n, b| n.checked_mul(10)?.checked_add(b - b'0'))?;
    }
    parts.next().is_none().then_some(octets)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = match parse_ip(address, LeadingZeros::Allowed) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= max)
}

/// EUI-48, EUI-64 and 20-octet addresses, with colons, dashes, or dots between groups of four digits.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize| -> Option<usize> {
        let parts: Vec<&str> = text.split(separator).collect();
        let shaped = parts.iter().all(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_hexdigit()));
        shaped.then_some(parts.len() * digits / 2)
    };
    let octets = match text.as_bytes().get(2) {
        Some(b':') => groups(':', 2),
        Some(b'-') => groups('-', 2),
        _ => groups('.', 4),
    };
    matches!(octets, Some(6 | 8 | 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let ip = |s| parse_ip(s, LeadingZeros::Refused).is_some();
        assert!(ip("192.168.0.1") && ip("::1") && ip("::ffff:1.2.3.4") && ip("0.0.0.0"));
        assert!(
            !ip("192.168.0.01")
                && !ip("1.2.3")
                && !ip("1.2.3.4.5")
                && !ip("256.1.1.1")
                && !ip("fe80::1%eth0")
                && !ip("")
        );
        assert!(parse_ip("192.168.000.01", LeadingZeros::Allowed).is_some());
    }

    #[test]
    fn ranges() {
        assert!(is_cidr("10.0.0.0/8") && is_cidr("fd00::/64") && is_cidr("010.0.0.1/32"));
        assert!(
            !is_cidr("10.0.0.0")
                && !is_cidr("10.0.0.0/33")
                && !is_cidr("10.0.0.0/")
                && !is_cidr("::/129")
                && !is_cidr("10.0.0.0/+8")
        );
    }

    #[test]
    fn hardware_addresses() {
        for good in ["01:02:03:04:05:06", "01-23-45-67-89-ab-cd-ef", "0123.4567.89ab", "0123.4567.89AB.cdef"]
        {
            assert!(is_mac(good), "{good}");
        }
        for bad in ["", "01:02:03", "01:02-03:04:05:06", "0123.4567", "01:02:03:04:05:0g"] {
            assert!(!is_mac(bad), "{bad}");
        }
    }
}
