//! Addresses and URIs as Go's `net` and `net/url` read them.

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

/// Go's `url.ParseRequestURI`: an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let path_and_query = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !path_and_query.starts_with('/') {
        // An opaque part, such as the address after `mailto:`, is not looked into.
        return !scheme.is_empty();
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let after = after.split_once('?').map_or(after, |(head, _)| head);
            after.find('/').map_or((after, ""), |at| after.split_at(at))
        }
        _ => ("", path_and_query),
    };
    is_authority(authority) && escapes_are_valid(path)
}

/// `None` when the text starts with a colon; an empty scheme when there is none.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return None,
            b':' => return Some((&text[..i], &text[i + 1..])),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
            if !user.bytes().all(plain) || !escapes_are_valid(user) {
                return false;
            }
            host
        }
        None => authority,
    };
    if host.starts_with('[') {
        let Some(close) = host.rfind(']') else { return false };
        return is_port(&host[close + 1..]) && host[1..close].bytes().all(is_host_byte);
    }
    let port = host.rfind(':').map_or("", |at| &host[at..]);
    is_port(port) && host.bytes().all(is_host_byte) && escapes_are_valid(host) && escapes_are_foreign(host)
}

/// What Go leaves unescaped in a host: everything outside ASCII, and these inside it.
fn is_host_byte(b: u8) -> bool {
    !b.is_ascii() || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&b)
}

fn is_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn escapes_are_valid(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

/// A host may escape bytes outside ASCII and the percent sign, nothing else.
fn escapes_are_foreign(host: &str) -> bool {
    host.split('%')
        .skip(1)
        .all(|after| after.starts_with("25") || !after.starts_with(|c| ('0'..='7').contains(&c)))
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

    #[test]
    fn uris() {
        for good in [
            "http://foo.bar/#com",
            "http://foobar.中文网/",
            "http://user:pass@www.foobar.com/",
            "ftp://foobar.ru/",
            "http://duckduckgo.com/?q=%2F",
            "http://foobar.com?foo=bar",
            "xyz://foobar.com",
            "http://localhost:3000/",
            "http://foobar.com/t$-_.+!*\\'(),",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "*",
            "http://[::1]:80/",
            "a:b",
        ] {
            assert!(is_request_uri(good), "{good}");
        }
        for bad in [
            "",
            "foobar.com",
            "invalid.",
            ".com",
            "./rel/test/dir",
            ":x",
            "http://a b/",
            "http://x:port/",
            "/a%2",
            "http://x%41/",
            "http://[::1/",
            "1http://x",
            "/a\nb",
        ] {
            assert!(!is_request_uri(bad), "{bad}");
        }
    }
}
