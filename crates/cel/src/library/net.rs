//! `ip`, `cidr` and what they offer.

use super::address::{parse_address, parse_prefix};
use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use transom_object::quote::quote;

/// An address and how many of its leading bits name the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address, bits beyond the mask included.
    pub addr: IpAddr,
    /// The length of the mask.
    pub bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

impl Cidr {
    pub(crate) fn masked(self) -> Self {
        let addr = match self.addr {
            IpAddr::V4(a) => {
                let masked = mask(u128::from(u32::from(a)), 32, self.bits);
                IpAddr::V4(Ipv4Addr::from(u32::try_from(masked).unwrap_or(0)))
            }
            IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from(mask(u128::from(a), 128, self.bits))),
        };
        Self { addr, bits: self.bits }
    }

    pub(crate) fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.addr.is_ipv4() && Self { addr: ip, bits: self.bits }.masked() == self.masked()
    }
}

fn mask(value: u128, width: u8, bits: u8) -> u128 {
    let drop = u32::from(width.saturating_sub(bits));
    value.checked_shr(drop).unwrap_or(0).checked_shl(drop).unwrap_or(0)
}

pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let (address, zone) = parse_address(text).map_err(|why| {
        format!("IP Address {} parse error during conversion from string: {why}", quote(text))
    })?;
    if zone {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    refuse_mapped(address, text)?;
    Ok(address)
}

pub(crate) fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let (addr, bits) = parse_prefix(text)
        .map_err(|why| format!("network address parse error during conversion from string: {why}"))?;
    refuse_mapped(addr, text)?;
    Ok(Cidr { addr, bits })
}

fn refuse_mapped(address: IpAddr, text: &str) -> Result<(), String> {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        _ => Ok(()),
    }
}

fn ip_of(v: &Value<'_>) -> Result<IpAddr, EvalError> {
    match v {
        Value::Opaque(o) => match &**o {
            Opaque::Ip(ip) => Ok(*ip),
            _ => Err(EvalError::overload()),
        },
        Value::String(s) => parse_ip(s).map_err(EvalError::Failed),
        _ => Err(EvalError::overload()),
    }
}

fn cidr_of(v: &Value<'_>) -> Result<Cidr, EvalError> {
    match v {
        Value::Opaque(o) => match &**o {
            Opaque::Cidr(cidr) => Ok(*cidr),
            _ => Err(EvalError::overload()),
        },
        Value::String(s) => parse_cidr(s).map_err(|e| {
            EvalError::failed(format!("network address parse error during conversion from string: {e}"))
        }),
        _ => Err(EvalError::overload()),
    }
}

fn to_ip<'a>(args: Args<'_, 'a>) -> Out<'a> {
    ip_of(args.get(0)?).map(|ip| Value::opaque(Opaque::Ip(ip)))
}

fn is_canonical<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let ip = parse_ip(text).map_err(EvalError::Failed)?;
    Ok(Value::Bool(ip.to_string() == text))
}

fn test<'a>(args: Args<'_, 'a>, check: fn(IpAddr) -> bool) -> Out<'a> {
    ip_of(args.get(0)?).map(|ip| Value::Bool(check(ip)))
}

fn link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(a) => a.octets()[..3] == [224, 0, 0],
        IpAddr::V6(a) => a.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(a) if a.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || link_local_unicast(ip))
}

fn contains_cidr<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let outer = cidr_of(args.get(0)?)?;
    let inner = cidr_of(args.get(1)?)?;
    Ok(Value::Bool(outer.bits <= inner.bits && outer.contains(inner.addr)))
}

pub(super) fn declare(t: &mut Table) {
    t.global("ip", "string_to_ip", "string", "net.IP", |_, a| to_ip(a));
    t.member("ip", "cidr_ip", "net.CIDR", "net.IP", |_, a| {
        Ok(Value::opaque(Opaque::Ip(cidr_of(a.get(0)?)?.addr)))
    });
    t.member("family", "ip_family", "net.IP", "int", |_, a| {
        Ok(Value::Int(if ip_of(a.get(0)?)?.is_ipv4() { 4 } else { 6 }))
    });
    t.global("ip.isCanonical", "ip_is_canonical", "string", "bool", |_, a| is_canonical(a));
    t.member("isUnspecified", "ip_is_unspecified", "net.IP", "bool", |_, a| {
        test(a, |ip| ip.is_unspecified())
    });
    t.member("isLoopback", "ip_is_loopback", "net.IP", "bool", |_, a| test(a, |ip| ip.is_loopback()));
    t.member("isLinkLocalMulticast", "ip_is_link_local_multicast", "net.IP", "bool", |_, a| {
        test(a, link_local_multicast)
    });
    t.member("isLinkLocalUnicast", "ip_is_link_local_unicast", "net.IP", "bool", |_, a| {
        test(a, link_local_unicast)
    });
    t.member("isGlobalUnicast", "ip_is_global_unicast", "net.IP", "bool", |_, a| test(a, global_unicast));
    t.global("isIP", "is_ip", "string", "bool", |_, a| Ok(Value::Bool(parse_ip(string(a.get(0)?)?).is_ok())));
    t.global("cidr", "string_to_cidr", "string", "net.CIDR", |_, a| {
        cidr_of(a.get(0)?).map(|c| Value::opaque(Opaque::Cidr(c)))
    });
    t.global("isCIDR", "is_cidr", "string", "bool", |_, a| {
        Ok(Value::Bool(parse_cidr(string(a.get(0)?)?).is_ok()))
    });
    for (id, other) in [("cidr_contains_ip_string", "string"), ("cidr_contains_ip_ip", "net.IP")] {
        t.member("containsIP", id, &format!("net.CIDR, {other}"), "bool", |_, a| {
            let cidr = cidr_of(a.get(0)?)?;
            // As upstream, which loses what is wrong with the text of an address.
            let ip = ip_of(a.get(1)?).map_err(|_| EvalError::overload())?;
            Ok(Value::Bool(cidr.contains(ip)))
        });
    }
    for (id, other) in [("cidr_contains_cidr_string", "string"), ("cidr_contains_cidr", "net.CIDR")] {
        t.member("containsCIDR", id, &format!("net.CIDR, {other}"), "bool", |_, a| contains_cidr(a));
    }
    t.member("prefixLength", "cidr_prefix_length", "net.CIDR", "int", |_, a| {
        Ok(Value::Int(i64::from(cidr_of(a.get(0)?)?.bits)))
    });
    t.member("masked", "cidr_masked", "net.CIDR", "net.CIDR", |_, a| {
        Ok(Value::opaque(Opaque::Cidr(cidr_of(a.get(0)?)?.masked())))
    });
}
