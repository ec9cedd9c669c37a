//! IP addresses and CIDRs in API fields.
//!
//! Old fields accept a *sloppy* notation (leading zeros, any number of hex digits), new ones only the canonical
//! form. Both notations go through one parser that remembers whether it had to be lenient.

use crate::field::{Error, Path};
use crate::quote::quote;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const FUTURE: &str = "will be considered invalid in a future Kubernetes release";

#[derive(Clone, Copy, Debug)]
struct Address {
    ip: IpAddr,
    /// Accepted by today's strict parsers too.
    strict: bool,
}

#[derive(Clone, Copy, Debug)]
struct Cidr {
    address: Address,
    prefix: u8,
    /// The prefix length was written without needless zeros.
    strict_prefix: bool,
}

impl Address {
    fn parse(s: &str) -> Option<Self> {
        if let Some((octets, strict)) = parse_v4(s) {
            return Some(Self { ip: IpAddr::V4(octets), strict });
        }
        parse_v6(s).map(|(ip, strict)| Self { ip: IpAddr::V6(ip), strict })
    }

    /// The mapped form `::ffff:1.2.3.4`, which some software reads as IPv4 and some as IPv6.
    fn is_mapped(&self) -> bool {
        matches!(self.ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
    }

    /// As Go prints an address: mapped ones as IPv4.
    fn canonical(&self) -> String {
        self.ip.to_canonical().to_string()
    }
}

/// Digits with any number of leading zeros; the flag is whether there were none.
fn decimal(digits: &str, max: u32) -> Option<(u8, bool)> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let n = if significant.is_empty() { 0 } else { significant.parse::<u32>().ok()? };
    let plain = digits.len() == 1 || digits.len() == significant.len();
    u8::try_from(n).ok().filter(|_| n <= max).map(|n| (n, plain))
}

fn parse_v4(s: &str) -> Option<(Ipv4Addr, bool)> {
    let mut octets = [0; 4];
    let mut parts = s.split('.');
    let mut strict = true;
    for octet in &mut octets {
        let (n, plain) = decimal(parts.next()?, 255)?;
        *octet = n;
        strict &= plain;
    }
    parts.next().is_none().then_some((Ipv4Addr::from(octets), strict))
}

fn parse_v6(s: &str) -> Option<(Ipv6Addr, bool)> {
    let mut strict = true;
    let (head, tail) = match s.split_once("::") {
        None => (groups(s, &mut strict)?, None),
        Some((head, tail)) => {
            // An embedded IPv4 address ends an address; it cannot stand before the gap.
            if head.contains('.') {
                return None;
            }
            let side = |part: &str, strict: &mut bool| {
                if part.is_empty() { Some(Vec::new()) } else { groups(part, strict) }
            };
            (side(head, &mut strict)?, Some(side(tail, &mut strict)?))
        }
    };
    let mut all = [0_u16; 8];
    match tail {
        None if head.len() == 8 => all.copy_from_slice(&head),
        // The gap is at least one group.
        Some(tail) if head.len() + tail.len() < 8 => {
            all[..head.len()].copy_from_slice(&head);
            all[8 - tail.len()..].copy_from_slice(&tail);
        }
        _ => return None,
    }
    Some((Ipv6Addr::from(all), strict))
}

fn groups(s: &str, strict: &mut bool) -> Option<Vec<u16>> {
    let mut out = Vec::with_capacity(8);
    let mut parts = s.split(':').peekable();
    while let Some(part) = parts.next() {
        if out.len() >= 8 {
            return None;
        }
        if part.contains('.') && parts.peek().is_none() {
            let (v4, plain) = parse_v4(part)?;
            *strict &= plain;
            let [a, b, c, d] = v4.octets();
            out.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            continue;
        }
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *strict &= part.len() <= 4;
        let significant = part.trim_start_matches('0');
        out.push(if significant.is_empty() { 0 } else { u16::from_str_radix(significant, 16).ok()? });
    }
    Some(out)
}

impl Cidr {
    fn parse(s: &str) -> Option<Self> {
        let (address, prefix) = s.split_once('/')?;
        let address = Address::parse(address)?;
        let (prefix, strict_prefix) = decimal(prefix, if address.ip.is_ipv4() { 32 } else { 128 })?;
        Some(Self { address, prefix, strict_prefix })
    }

    fn is_strict(&self) -> bool {
        self.address.strict && self.strict_prefix
    }

    fn width(&self) -> u8 {
        if self.address.ip.is_ipv4() { 32 } else { 128 }
    }

    /// The address with every bit after the prefix cleared.
    fn network(&self) -> IpAddr {
        match self.address.ip {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        }
    }

    fn has_host_bits(&self) -> bool {
        self.network() != self.address.ip
    }

    /// As Go prints a network: a mapped one as IPv4, with a prefix that fits.
    fn canonical(&self) -> String {
        with_prefix(self.network(), self.prefix)
    }
}

fn with_prefix(ip: IpAddr, prefix: u8) -> String {
    let shown = ip.to_canonical();
    let prefix = i16::from(prefix) - if shown.is_ipv4() && prefix > 32 { 96 } else { 0 };
    format!("{shown}/{prefix}")
}

fn must_be_canonical(path: &Path, value: &str, canonical: &str) -> Vec<Error> {
    if value == canonical {
        return Vec::new();
    }
    vec![Error::invalid(path, value, format!("must be in canonical form ({})", quote(canonical)))]
}

fn parse_ip(path: &Path, value: &str, strict: bool) -> Result<Address, Vec<Error>> {
    let fail = |why: &str| vec![Error::invalid(path, value, why)];
    let address = Address::parse(value)
        .ok_or_else(|| fail("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))?;
    if strict && !address.strict {
        return Err(fail("must not have leading 0s"));
    }
    if strict && address.is_mapped() {
        return Err(fail("must not be an IPv4-mapped IPv6 address"));
    }
    Ok(address)
}

/// An IP address in canonical form.
pub fn is_ip(path: &Path, value: &str) -> Vec<Error> {
    match parse_ip(path, value, true) {
        Err(errors) => errors,
        Ok(address) => must_be_canonical(path, value, &address.canonical()),
    }
}

/// For fields older than strict validation; `strict` forbids leading zeros and mapped addresses.
pub fn is_ip_for_legacy_field(path: &Path, value: &str, strict: bool, old: &[&str]) -> Vec<Error> {
    if old.contains(&value) {
        return Vec::new();
    }
    parse_ip(path, value, strict).err().unwrap_or_default()
}

/// Warnings about a value that [`is_ip_for_legacy_field`] let through.
pub fn warnings_for_ip(path: &Path, value: &str) -> Vec<String> {
    let Some(address) = Address::parse(value) else { return Vec::new() };
    let (shown, canonical) = (quote(value), quote(&address.canonical()));
    if !address.strict || address.is_mapped() {
        return vec![format!("{path}: non-standard IP address {shown} {FUTURE}: use {canonical}")];
    }
    if address.ip.is_ipv6() && shown != canonical {
        return vec![format!(
            "{path}: IPv6 address {shown} should be in RFC 5952 canonical format ({canonical})"
        )];
    }
    Vec::new()
}

fn parse_cidr(path: &Path, value: &str, strict: bool) -> Result<Cidr, Vec<Error>> {
    let fail = |why: &str| Err(vec![Error::invalid(path, value, why)]);
    let Some(cidr) = Cidr::parse(value) else {
        return fail("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    if strict && !cidr.is_strict() {
        return fail("must not have leading 0s in IP or prefix length");
    }
    if strict && cidr.address.is_mapped() {
        return fail("must not have an IPv4-mapped IPv6 address");
    }
    if strict && cidr.has_host_bits() {
        return fail("must not have bits set beyond the prefix length");
    }
    Ok(cidr)
}

/// A network such as `192.168.1.0/24`, in canonical form.
pub fn is_cidr(path: &Path, value: &str) -> Vec<Error> {
    match parse_cidr(path, value, true) {
        Err(errors) => errors,
        Ok(cidr) => must_be_canonical(path, value, &cidr.canonical()),
    }
}

/// As `is_ip_for_legacy_field`, for a range of addresses.
pub fn is_cidr_for_legacy_field(path: &Path, value: &str, strict: bool, old: &[&str]) -> Vec<Error> {
    if old.contains(&value) {
        return Vec::new();
    }
    parse_cidr(path, value, strict).err().unwrap_or_default()
}

/// Warnings about a value that [`is_cidr_for_legacy_field`] let through.
pub fn warnings_for_cidr(path: &Path, value: &str) -> Vec<String> {
    let Some(cidr) = Cidr::parse(value) else { return Vec::new() };
    let (shown, canonical) = (quote(value), quote(&cidr.canonical()));
    let mut warnings = Vec::new();
    if cidr.has_host_bits() {
        let single = quote(&format!("{}/{}", cidr.address.canonical(), cidr.width()));
        warnings.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be {canonical} or {single}?)"
        ));
    }
    if !cidr.is_strict() || cidr.address.is_mapped() {
        warnings.push(format!("{path}: non-standard CIDR value {shown} {FUTURE}: use {canonical}"));
    }
    if warnings.is_empty() && cidr.address.ip.is_ipv6() && shown != canonical {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({canonical})"
        ));
    }
    warnings
}

/// An address with the length of its network, such as `192.168.1.5/24`, in canonical form.
pub fn is_interface_address(path: &Path, value: &str) -> Vec<Error> {
    let Some(cidr) = Cidr::parse(value) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return vec![Error::invalid(path, value, why)];
    };
    must_be_canonical(path, value, &with_prefix(cidr.address.ip, cidr.prefix))
}
