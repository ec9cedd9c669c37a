//! What a client of registries may do. Everything comes from the caller: nothing is read from the environment.

use super::proxy::Proxies;
use super::transfer::TransferListener;
use crate::credentials::MachineConfig;
use crate::layer::LayerLimits;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a client of registries may do.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// How the client names itself.
    pub user_agent: String,
    /// Whether the certificate authorities of the system are trusted.
    pub system_roots: bool,
    /// Certificate authorities that are trusted as well, each a PEM file with any number of certificates.
    pub extra_roots_pem: Vec<Vec<u8>>,
    /// Whether certificates are not verified at all. Only for `--insecure-skip-tls-verify`.
    pub insecure_skip_tls_verify: bool,
    /// Hosts (with their port if they have one) that are spoken to over plain HTTP. Loopback hosts need no entry.
    pub plain_http_hosts: BTreeSet<String>,
    /// Proxies.
    pub proxies: Proxies,
    /// Credentials of the machine, which are used where those that are given with a request are not enough.
    pub machine_config: Option<MachineConfig>,
    /// How long connecting may take, with the handshake of TLS.
    pub connect_timeout: Duration,
    /// How long a server may take to begin its response.
    pub response_timeout: Duration,
    /// How long a server may pause within a response.
    pub idle_timeout: Duration,
    /// How long one operation may take with all its requests and attempts.
    pub deadline: Duration,
    /// How long one upload may take.
    pub upload_deadline: Duration,
    /// How often a request is sent that fails by overload or a lost connection.
    pub attempts: u32,
    /// How long to wait before the second attempt; doubled for each further one.
    pub backoff: Duration,
    /// The longest wait between attempts. A server that asks for more, for all attempts of a request together, is not waited for;
    /// the error says how long.
    pub backoff_max: Duration,
    /// Varies the waits between attempts: processes should pass different numbers.
    pub jitter_seed: u64,
    /// The most pages of a list of tags.
    pub tag_pages: u32,
    /// What layers may expand to.
    pub limits: LayerLimits,
    /// Learns of the bytes of blobs on their way.
    pub transfers: TransferListener,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!("transom/", env!("CARGO_PKG_VERSION")).to_owned(),
            system_roots: true,
            extra_roots_pem: Vec::new(),
            insecure_skip_tls_verify: false,
            plain_http_hosts: BTreeSet::new(),
            proxies: Proxies::default(),
            machine_config: None,
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(20),
            deadline: Duration::from_secs(180),
            upload_deadline: Duration::from_secs(1800),
            attempts: 4,
            backoff: Duration::from_millis(250),
            backoff_max: Duration::from_secs(15),
            jitter_seed: 0,
            tag_pages: 200,
            limits: LayerLimits::default(),
            transfers: TransferListener::default(),
        }
    }
}

impl RemoteOptions {
    /// Whether plain HTTP is allowed with an authority (`host` or `host:port`).
    pub(super) fn allows_plain(&self, authority: &http::uri::Authority) -> bool {
        is_loopback(authority.host())
            || self.plain_http_hosts.contains(authority.as_str())
            || self.plain_http_hosts.contains(authority.host())
    }

    /// How long to wait after an attempt that failed: doubled each time, and half of it varied. A wait that the server asked
    /// for is kept, and up to a quarter of it added. `waits` is how often this client waited before.
    pub(super) fn wait(&self, attempt: u32, waits: u64, asked: Duration) -> Duration {
        let doubled = self.backoff.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let half = doubled.min(self.backoff_max) / 2;
        let random = mix(self.jitter_seed.wrapping_add(waits.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let share = (random >> 11) as f64 / (1u64 << 53) as f64;
        half.max(asked) + half.max(asked / 4).mul_f64(share)
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Whether a host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(jitter_seed: u64, asked: Duration) -> Vec<Duration> {
        let options = RemoteOptions { jitter_seed, ..RemoteOptions::default() };
        (0..100).map(|waits| options.wait(1, waits, asked)).collect()
    }

    #[test]
    fn waits_are_doubled_up_to_the_longest_and_half_of_each_is_varied() {
        let options = RemoteOptions::default();
        let expected_ms = [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000];
        for (attempt, most) in (1..).zip(expected_ms.map(Duration::from_millis)) {
            for waits in 0..100 {
                let wait = options.wait(attempt, waits, Duration::ZERO);
                assert!((most / 2..=most).contains(&wait), "attempt {attempt}: {wait:?} of {most:?}");
            }
        }
    }

    #[test]
    fn waits_of_one_client_and_of_several_do_not_coincide() {
        let (one, other) = (waits(1, Duration::ZERO), waits(2, Duration::ZERO));
        let distinct: BTreeSet<_> = one.iter().chain(&other).collect();
        assert_eq!(distinct.len(), one.len() + other.len());
        // They are spread over the whole half, not gathered at one end of it.
        for quarter in [125..188, 188..251] {
            let inside = one.iter().filter(|wait| quarter.contains(&wait.as_millis())).count();
            assert!(inside > 30, "{inside} of 100 in {quarter:?} ms");
        }
    }

    #[test]
    fn clients_that_are_asked_for_the_same_wait_do_not_return_together() {
        let asked = Duration::from_secs(10);
        let (one, other) = (waits(1, asked), waits(2, asked));
        let distinct: BTreeSet<_> = one.iter().chain(&other).collect();
        assert_eq!(distinct.len(), one.len() + other.len());
        assert!(distinct.iter().all(|wait| (asked..=asked * 5 / 4).contains(*wait)), "{distinct:?}");
        let early = one.iter().filter(|wait| **wait < asked * 9 / 8).count();
        assert!((30..=70).contains(&early), "{early} of 100 in the first half");
    }
}
