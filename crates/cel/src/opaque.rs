//! Values of the types that Kubernetes adds to CEL.

use super::library::authorization::{AccessCheck, AccessDecision};
use super::library::format::Format;
use super::library::net::Cidr;
use std::fmt;
use std::net::IpAddr;
use transom_go::semver::StrictVersion;
use transom_go::url::Url;
use transom_object::quantity::Quantity;

/// A value of a type that only Kubernetes' libraries know.
#[derive(Debug)]
pub enum Opaque {
    /// `net.IP`.
    Ip(IpAddr),
    /// `net.CIDR`.
    Cidr(Cidr),
    /// `kubernetes.URL`.
    Url(Url),
    /// `kubernetes.Quantity`.
    Quantity(Quantity),
    /// `kubernetes.Semver`.
    Semver(StrictVersion),
    /// `kubernetes.NamedFormat`.
    Format(&'static Format),
    /// `kubernetes.authorization.Authorizer`.
    Authorizer(AccessCheck),
    /// `kubernetes.authorization.PathCheck`.
    PathCheck(AccessCheck),
    /// `kubernetes.authorization.GroupCheck`.
    GroupCheck(AccessCheck),
    /// `kubernetes.authorization.ResourceCheck`.
    ResourceCheck(AccessCheck),
    /// `kubernetes.authorization.Decision`.
    Decision(AccessDecision),
}

impl Opaque {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Self::PathCheck(_) => "kubernetes.authorization.PathCheck",
            Self::GroupCheck(_) => "kubernetes.authorization.GroupCheck",
            Self::ResourceCheck(_) => "kubernetes.authorization.ResourceCheck",
            Self::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    /// Addresses have the size of their octets, prefixes that of their mask.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Ip(ip) => {
                if ip.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Self::Cidr(cidr) => usize::from(cidr.bits).div_ceil(8),
            _ => 1,
        }
    }
}

/// `None` when the types differ, which means "no such overload", not inequality.
pub(crate) fn equal(a: &Opaque, b: &Opaque) -> Option<bool> {
    Some(match (a, b) {
        (Opaque::Ip(a), Opaque::Ip(b)) => a == b,
        (Opaque::Cidr(a), Opaque::Cidr(b)) => a == b,
        (Opaque::Url(a), Opaque::Url(b)) => a.to_string() == b.to_string(),
        (Opaque::Quantity(a), Opaque::Quantity(b)) => a.cmp(b).is_eq(),
        (Opaque::Semver(a), Opaque::Semver(b)) => a.precedence(b).is_eq(),
        (Opaque::Format(a), Opaque::Format(b)) => a.name == b.name,
        _ => return None,
    })
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Cidr(cidr) => write!(f, "{cidr}"),
            Self::Url(url) => write!(f, "{url}"),
            Self::Quantity(q) => f.write_str(&q.canonical()),
            Self::Semver(v) => write!(f, "{v}"),
            Self::Format(format) => f.write_str(format.name),
            _ => f.write_str(self.type_name()),
        }
    }
}
