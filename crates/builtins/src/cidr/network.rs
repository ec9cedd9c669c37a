//! Networks: an address and how many of its leading bits are the network's, and the arithmetic of Terraform's
//! `cidrhost`, `cidrnetmask`, `cidrsubnet` and `cidrsubnets`.

use std::fmt;
use std::net::IpAddr;

/// Extending a prefix by more would need numbers that not every machine has.
const MAX_NEW_BITS: i64 = 32;

/// A network. Its address has no bit set beyond its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: u128,
    length: u32,
    /// 32 or 128.
    bits: u32,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.ip_address(self.address);
        // Go takes an IPv4 address in IPv6's clothes for what it is.
        let mapped = if address.is_ipv4() { self.bits - 32 } else { 0 };
        write!(f, "{address}/{}", self.length.saturating_sub(mapped))
    }
}

impl Network {
    /// Reads `10.0.0.0/8`. Bits beyond the length are ignored.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        if length.is_empty() || !length.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let length: u32 = length.parse().ok()?;
        let (address, bits) = match address.parse().ok()? {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        (length <= bits).then(|| Self { address, length, bits }.cut(length))
    }

    /// The network of a length that holds this one's address.
    fn cut(self, length: u32) -> Self {
        let mask = !(Self { length, ..self }.highest_host());
        Self { address: self.address & mask, length, bits: self.bits }
    }

    /// The number of the last host: as many ones as there are bits beyond the length.
    fn highest_host(self) -> u128 {
        u128::MAX.checked_shr(128 - (self.bits - self.length)).unwrap_or(0)
    }

    fn last(self) -> u128 {
        self.address | self.highest_host()
    }

    fn ip_address(self, address: u128) -> IpAddr {
        match u32::try_from(address) {
            Ok(address) if self.bits == 32 => IpAddr::V4(address.into()),
            _ => IpAddr::V6(address.into()).to_canonical(),
        }
    }

    pub(super) fn netmask(self) -> String {
        let all = u128::MAX >> (128 - self.bits);
        self.ip_address(all & !self.highest_host()).to_string()
    }

    /// The address of a host; negative numbers count from the end.
    pub(super) fn host(self, number: i64) -> Result<String, String> {
        let highest = self.highest_host();
        let distance = u128::from(if number < 0 { number.unsigned_abs() - 1 } else { number.unsigned_abs() });
        if distance > highest {
            return Err(format!("prefix of {} does not accommodate a host numbered {number}", self.length));
        }
        let host = if number < 0 { highest - distance } else { distance };
        Ok(self.ip_address(self.address | host).to_string())
    }

    /// The subnet of a number when the prefix is extended by some bits.
    pub(super) fn subnet(self, new_bits: i64, number: i64) -> Result<Self, String> {
        let length = u32::try_from(new_bits).ok().and_then(|new| self.length.checked_add(new));
        let Some(length) = length.filter(|length| *length <= self.bits) else {
            return Err(format!(
                "insufficient address space to extend prefix of {} by {new_bits}",
                self.length
            ));
        };
        let fits = |number: &u128| (number.checked_shr(length - self.length)).unwrap_or(0) == 0;
        let Some(number) = u128::try_from(number).ok().filter(fits) else {
            return Err(format!(
                "prefix extension of {new_bits} does not accommodate a subnet numbered {number}"
            ));
        };
        let shifted = number.checked_shl(self.bits - length).unwrap_or(0);
        Ok(Self { address: self.address | shifted, length, bits: self.bits })
    }

    /// Consecutive subnets, each of a prefix extended by some bits.
    pub(super) fn subnets(self, new_bits: &[i64]) -> Result<Vec<Self>, String> {
        let mut subnets = Vec::with_capacity(new_bits.len());
        // The last address taken. A network at the very start of all addresses has none before it, and the original
        // then finds no room.
        let mut taken = self.address.checked_sub(1);
        for new in new_bits {
            let length = self.extended(*new)?;
            let highest = Self { length, ..self }.highest_host();
            let next = taken.and_then(|taken| (taken | highest).checked_add(1));
            let next =
                next.filter(|next| *next & !self.highest_host() == self.address && *next <= self.last());
            let Some(address) = next else {
                let before = match subnets.last() {
                    Some(subnet) => *subnet,
                    None => self.before_first(length),
                };
                return Err(format!(
                    "not enough remaining address space for a subnet with a prefix of {length} bits after {before}"
                ));
            };
            let subnet = Self { address, length, bits: self.bits };
            taken = Some(subnet.last());
            subnets.push(subnet);
        }
        Ok(subnets)
    }

    /// The last network of a length before the start, round the end of all addresses.
    fn before_first(self, length: u32) -> Self {
        let all = u128::MAX >> (128 - self.bits);
        Self { address: self.address.wrapping_sub(1) & all, ..self }.cut(length)
    }

    fn extended(self, new_bits: i64) -> Result<u32, String> {
        if new_bits < 1 {
            return Err("must extend prefix by at least one bit".to_owned());
        }
        if new_bits > MAX_NEW_BITS {
            return Err("may not extend prefix by more than 32 bits".to_owned());
        }
        let length = self.length + u32::try_from(new_bits).unwrap_or_default();
        if length > self.bits {
            let protocol = if self.bits == 32 { "IPv4" } else { "IPv6" };
            return Err(format!(
                "would extend prefix to {length} bits, which is too long for an {protocol} address"
            ));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::parse(text).unwrap()
    }

    #[test]
    fn networks_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.0.0.0/024", Some("10.0.0.0/24")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("2001:DB8::1/32", Some("2001:db8::/32")),
            ("::/0", Some("::/0")),
            ("::1/128", Some("::1/128")),
            ("::ffff:10.1.2.3/120", Some("10.1.2.0/24")),
            ("10.0.0.0", None),
            ("10.0.0.0/33", None),
            ("10.0.0.0/+8", None),
            ("10.0.0.0/", None),
            ("010.0.0.0/8", None),
            ("fe80::1%eth0/64", None),
            ("10.0.0.0/99999999999", None),
        ] {
            assert_eq!(Network::parse(text).map(|n| n.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn hosts_and_masks_are_terraforms() {
        for (text, number, expected) in [
            ("10.12.112.0/20", 16, "10.12.112.16"),
            ("10.12.112.0/20", 268, "10.12.113.12"),
            ("10.12.112.0/20", -1, "10.12.127.255"),
            ("fd00:fd12:3456:7890::/72", 34, "fd00:fd12:3456:7890::22"),
            ("10.0.0.1/32", -1, "10.0.0.1"),
            ("::/80", -1, "255.255.255.255"),
        ] {
            assert_eq!(network(text).host(number).as_deref(), Ok(expected), "{text} {number}");
        }
        let refused = network("10.0.0.0/24").host(256);
        assert_eq!(refused.unwrap_err(), "prefix of 24 does not accommodate a host numbered 256");
        assert!(network("10.0.0.0/24").host(i64::MIN).is_err());
        assert_eq!(network("172.16.0.0/12").netmask(), "255.240.0.0");
        assert_eq!(network("0.0.0.0/0").netmask(), "0.0.0.0");
        assert_eq!(network("::/16").netmask(), "ffff::");
    }

    #[test]
    fn subnets_are_terraforms() {
        let subnet = |text: &str, bits, number| network(text).subnet(bits, number).map(|n| n.to_string());
        assert_eq!(subnet("172.16.0.0/12", 4, 2).as_deref(), Ok("172.18.0.0/16"));
        assert_eq!(subnet("10.1.2.0/24", 4, 15).as_deref(), Ok("10.1.2.240/28"));
        assert_eq!(
            subnet("fd00:fd12:3456:7890::/56", 16, 162).as_deref(),
            Ok("fd00:fd12:3456:7800:a200::/72")
        );
        assert_eq!(subnet("10.0.0.0/8", 0, 0).as_deref(), Ok("10.0.0.0/8"));
        for (text, bits, number, expected) in [
            ("10.0.0.0/24", 9, 0, "insufficient address space to extend prefix of 24 by 9"),
            ("10.0.0.0/24", 2, 4, "prefix extension of 2 does not accommodate a subnet numbered 4"),
            ("10.0.0.0/24", 2, -1, "prefix extension of 2 does not accommodate a subnet numbered -1"),
            ("10.0.0.0/24", -1, 0, "insufficient address space to extend prefix of 24 by -1"),
        ] {
            assert_eq!(subnet(text, bits, number).unwrap_err(), expected);
        }
    }

    #[test]
    fn consecutive_subnets_are_terraforms() {
        let subnets = |text: &str, bits: &[i64]| {
            network(text).subnets(bits).map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            subnets("10.1.0.0/16", &[4, 4, 8, 4]).unwrap(),
            ["10.1.0.0/20", "10.1.16.0/20", "10.1.32.0/24", "10.1.48.0/20"]
        );
        assert_eq!(subnets("10.0.0.0/8", &[]).unwrap(), Vec::<String>::new());
        for (text, bits, expected) in [
            (
                "10.0.0.0/30",
                vec![1, 1, 1],
                "not enough remaining address space for a subnet with a prefix of 31 bits after 10.0.0.2/31",
            ),
            (
                "0.0.0.0/8",
                vec![1],
                "not enough remaining address space for a subnet with a prefix of 9 bits after 255.128.0.0/9",
            ),
            (
                "255.255.255.0/24",
                vec![1, 1, 1],
                "not enough remaining address space for a subnet with a prefix of 25 bits after 255.255.255.128/25",
            ),
            ("10.0.0.0/8", vec![0], "must extend prefix by at least one bit"),
            ("::/8", vec![33], "may not extend prefix by more than 32 bits"),
            ("10.0.0.0/8", vec![25], "would extend prefix to 33 bits, which is too long for an IPv4 address"),
        ] {
            assert_eq!(subnets(text, &bits).unwrap_err(), expected);
        }
    }
}
