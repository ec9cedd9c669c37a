//! The flag `--listen`: an address, a name, or a port alone.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;
use transom_console::Failure;

/// `HOST:PORT`. Without a host it is the loopback address: every machine that can reach the port can try credentials, so
/// other machines have access only where the flag names an address for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    host: String,
    port: u16,
}

impl Listen {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let hint = "write it like 127.0.0.1:6443, localhost:6443, [::1]:6443 or :6443";
        let (host, port) = text.rsplit_once(':').ok_or_else(|| format!("there is no port; {hint}"))?;
        let port = port.parse().map_err(|_| format!("{port:?} is not a port; {hint}"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(bracketed) => bracketed,
            None if host.contains([':', '[', ']']) => {
                return Err(format!("an IPv6 address stands in brackets; {hint}"));
            }
            None => host,
        };
        let host = if host.is_empty() { Ipv4Addr::LOCALHOST.to_string() } else { host.to_owned() };
        Ok(Self { host, port })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) async fn bind(&self) -> Result<TcpListener, Failure> {
        let cannot = |e: &std::io::Error| Failure::new(format!("cannot listen on {self}: {e}"));
        let elsewhere = "pass another address with --listen";
        let address = self.resolve().await.map_err(|e| cannot(&e).remedy(elsewhere))?;
        TcpListener::bind(address).await.map_err(|e| match e.kind() {
            std::io::ErrorKind::AddrInUse => cannot(&e)
                .remedy("stop what uses the port, or pass --listen 127.0.0.1:PORT (0 picks a free one)"),
            _ => cannot(&e).remedy(elsewhere),
        })
    }

    /// One address: a name with several stands for the first, and for an IPv4 address rather than another. Trying
    /// them in turn would hide that the port of the first is in use.
    async fn resolve(&self) -> std::io::Result<SocketAddr> {
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host((self.host.as_str(), self.port)).await?.collect();
        let chosen = found.iter().find(|address| address.is_ipv4()).or(found.first());
        chosen.copied().ok_or_else(|| std::io::Error::other("the name has no address"))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_be_an_address_a_name_or_left_out() {
        for (text, shown) in [
            ("127.0.0.1:6443", "127.0.0.1:6443"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:6443", "[::1]:6443"),
            ("localhost:6443", "localhost:6443"),
            ("plane.example.org:443", "plane.example.org:443"),
            (":6443", "127.0.0.1:6443"),
        ] {
            assert_eq!(Listen::parse(text).map(|listen| listen.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for (text, why) in [
            ("nowhere", "there is no port"),
            ("6443", "there is no port"),
            ("localhost:", "is not a port"),
            ("localhost:https", "is not a port"),
            ("localhost:65536", "is not a port"),
            ("::1:6443", "in brackets"),
        ] {
            let refused = Listen::parse(text).unwrap_err();
            assert!(refused.contains(why) && refused.contains("write it like"), "{text}: {refused}");
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_and_a_port_alone_is_on_loopback() {
        for text in ["localhost:0", ":0"] {
            let socket = Listen::parse(text).unwrap().bind().await.unwrap();
            assert!(socket.local_addr().unwrap().ip().is_loopback(), "{text}");
        }
    }
}
