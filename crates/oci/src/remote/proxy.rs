//! Which proxy a request goes through, by the rules of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` as Go reads them.

use super::options::is_loopback;
use base64::Engine as _;
use http::{HeaderValue, Uri};
use std::fmt;
use std::net::IpAddr;

/// The proxies of a client.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    except: Vec<Exception>,
}

/// One proxy.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
    pub(super) authorization: Option<HeaderValue>,
}

/// Passwords never reach a log.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Hosts without a proxy.
#[derive(Clone, Debug)]
enum Exception {
    All,
    /// A host and all below it, perhaps only one port.
    Domain {
        suffix: String,
        itself: bool,
        port: Option<u16>,
    },
    Network {
        address: IpAddr,
        bits: u8,
        port: Option<u16>,
    },
}

/// The setting of a proxy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the proxy for {scheme} addresses is not valid: {problem}; it must be http://[USER:PASSWORD@]HOST[:PORT]"
)]
pub struct ProxyError {
    /// The addresses that it is for.
    pub scheme: &'static str,
    /// What is wrong.
    pub problem: &'static str,
}

impl Proxies {
    /// Reads the values of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    pub fn new(http: Option<&str>, https: Option<&str>, except: Option<&str>) -> Result<Self, ProxyError> {
        let read = |value: Option<&str>, scheme| match value.map(str::trim).filter(|value| !value.is_empty())
        {
            None => Ok(None),
            Some(value) => Proxy::parse(value).map(Some).map_err(|problem| ProxyError { scheme, problem }),
        };
        let except = except.unwrap_or_default().split(',').filter_map(exception).collect();
        Ok(Self { http: read(http, "http")?, https: read(https, "https")?, except })
    }

    /// The proxy for an address. This machine is never reached through one.
    pub(super) fn choose(&self, uri: &Uri) -> Option<&Proxy> {
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        let tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        if is_loopback(host) || self.except.iter().any(|exception| exception.covers(host, port)) {
            return None;
        }
        if tls { self.https.as_ref() } else { self.http.as_ref() }
    }
}

impl Proxy {
    fn parse(value: &str) -> Result<Self, &'static str> {
        let full = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let uri: Uri = full.parse().map_err(|_| "it is not an address")?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("only proxies of HTTP are supported"),
        };
        let authority = uri.authority().ok_or("it has no host")?;
        let authorization = match authority.as_str().rsplit_once('@') {
            None => None,
            Some((user, _)) => {
                let user = percent_encoding::percent_decode_str(user).decode_utf8_lossy().into_owned();
                let user = if user.contains(':') { user } else { format!("{user}:") };
                let encoded = base64::engine::general_purpose::STANDARD.encode(user);
                let mut header = HeaderValue::from_str(&format!("Basic {encoded}"))
                    .map_err(|_| "its user is not valid")?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("it has no host");
        }
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            authorization,
        })
    }
}

fn exception(text: &str) -> Option<Exception> {
    let text = text.trim().to_ascii_lowercase();
    if text.is_empty() {
        return None;
    }
    if text == "*" {
        return Some(Exception::All);
    }
    if let Some((address, bits)) = text.split_once('/') {
        let (address, bits) = (address.parse().ok()?, bits.parse().ok()?);
        return Some(Exception::Network { address, bits, port: None });
    }
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Some(Exception::Network { address, bits: 128, port: None });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), Some(port.parse().ok()?)),
        None => (text, None),
    };
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse() {
        return Some(Exception::Network { address, bits: 128, port });
    }
    let host = host.strip_prefix('*').unwrap_or(&host);
    // With a leading dot, only what is below.
    let itself = !host.starts_with('.');
    Some(Exception::Domain { suffix: host.trim_start_matches('.').to_owned(), itself, port })
}

impl Exception {
    fn covers(&self, host: &str, port: u16) -> bool {
        match self {
            Self::All => true,
            Self::Domain { suffix, itself, port: only } => {
                let host = host.to_ascii_lowercase();
                let below = host.strip_suffix(suffix.as_str());
                only.is_none_or(|only| only == port)
                    && below.is_some_and(|rest| rest.ends_with('.') || rest.is_empty() && *itself)
            }
            Self::Network { address, bits, port: only } => {
                only.is_none_or(|only| only == port)
                    && host.parse().is_ok_and(|host| within(host, *address, *bits))
            }
        }
    }
}

fn within(host: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (host, network, width) = match (host, network) {
        (IpAddr::V4(host), IpAddr::V4(network)) => {
            (u128::from(host.to_bits()), u128::from(network.to_bits()), 32)
        }
        (IpAddr::V6(host), IpAddr::V6(network)) => (host.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    let ignored = width - u32::from(bits).min(width);
    host.checked_shr(ignored) == network.checked_shr(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_through_the_right_proxy() {
        let except = "direct.example, .below.example,10.0.0.0/8,192.168.1.1,port.example:5000,*.star.example";
        let proxies = Proxies::new(Some("http://u:p%40s@one:3128"), Some("two"), Some(except)).unwrap();
        for (address, expected) in [
            ("http://reg.example/v2/", Some(("one", 3128))),
            ("https://reg.example/v2/", Some(("two", 80))),
            ("https://direct.example/", None),
            ("https://a.direct.example/", None),
            ("https://indirect.example/", Some(("two", 80))),
            ("https://below.example/", Some(("two", 80))),
            ("https://a.below.example/", None),
            ("https://a.star.example/", None),
            ("https://10.1.2.3:5000/", None),
            ("https://11.1.2.3/", Some(("two", 80))),
            ("https://192.168.1.1/", None),
            ("https://192.168.1.2/", Some(("two", 80))),
            ("https://port.example:5000/", None),
            ("https://port.example/", Some(("two", 80))),
            ("http://127.0.0.1:5000/", None),
            ("http://[::1]:5000/", None),
            ("http://localhost/", None),
        ] {
            let found = proxies.choose(&address.parse().unwrap()).map(|proxy| (&*proxy.host, proxy.port));
            assert_eq!(found, expected, "{address}");
        }
        let proxy = proxies.choose(&"http://reg.example/".parse().unwrap()).unwrap();
        // u:p@s
        assert_eq!(proxy.authorization.as_ref().unwrap(), "Basic dTpwQHM=");
        assert_eq!(format!("{proxy:?}"), "one:3128");
        let all = Proxies::new(None, Some("two"), Some("*")).unwrap();
        assert!(all.choose(&"https://reg.example/".parse().unwrap()).is_none());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused() {
        for value in ["socks5://host", "http://", "http://u:secret@"] {
            let error = Proxies::new(None, Some(value), None).unwrap_err().to_string();
            assert!(error.contains("https addresses") && !error.contains("secret"), "{error}");
        }
    }
}
