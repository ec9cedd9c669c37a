//! Calls spread over all addresses of a name, as they come and go: the Service of a function leads to each of its pods.
//!
//! A channel has a connection to each address. The name is looked up when the channel is made and every few seconds. While it
//! leads nowhere, calls fail with the error of the lookup instead of waiting.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tonic::transport::channel::Change;
use tonic::transport::{Channel, Endpoint};
use transom_function::async_trait;

/// How often a name is looked up.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(3);
/// How long a lookup may take.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);
/// How many changes of addresses wait to be taken up.
const MAX_PENDING_ADDRESS_CHANGES: usize = 64;

/// Finds the addresses that a name leads to.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    /// All addresses, in any order.
    async fn lookup(&self) -> io::Result<Vec<SocketAddr>>;
}

/// Asks the system's resolver for `host:port`.
pub(crate) struct SystemLookup(pub(crate) String);

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host(self.0.as_str()).await?.collect())
    }
}

/// What a connection leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Target {
    /// The name itself, which is looked up for each connection: used while it is not known where it leads.
    Name,
    Address(SocketAddr),
}

/// How a connection is made: to an address, or to the name itself.
pub(crate) type Connect = Box<dyn Fn(Option<SocketAddr>) -> Option<Endpoint> + Send + Sync>;

/// A channel to all addresses of a name.
pub(crate) fn channel(connect: Connect, lookup: Arc<dyn Lookup>) -> Channel {
    let (channel, changes) = Channel::balance_channel(MAX_PENDING_ADDRESS_CHANGES);
    let spreading = Spreading { connect, lookup, changes, targets: BTreeSet::new() };
    tokio::spawn(spreading.run());
    channel
}

struct Spreading {
    connect: Connect,
    lookup: Arc<dyn Lookup>,
    changes: Sender<Change<Target, Endpoint>>,
    targets: BTreeSet<Target>,
}

impl Spreading {
    /// Keeps the targets up to date until the channel is dropped.
    async fn run(mut self) {
        loop {
            let found = match tokio::time::timeout(LOOKUP_WITHIN, self.lookup.lookup()).await {
                Ok(Ok(found)) if !found.is_empty() => found.into_iter().map(Target::Address).collect(),
                // What is known is better than nothing; a name that has never led anywhere is tried as it is.
                _ if !self.targets.is_empty() => self.targets.clone(),
                _ => BTreeSet::from([Target::Name]),
            };
            if self.replace(found).await.is_none() {
                return;
            }
            tokio::select! {
                () = self.changes.closed() => return,
                () = tokio::time::sleep(LOOKUP_INTERVAL) => {}
            }
        }
    }

    /// Takes up new targets before it gives up old ones. None when the channel is dropped.
    async fn replace(&mut self, found: BTreeSet<Target>) -> Option<()> {
        for target in found.difference(&self.targets) {
            let endpoint = match target {
                Target::Name => (self.connect)(None)?,
                Target::Address(address) => (self.connect)(Some(*address))?,
            };
            self.changes.send(Change::Insert(*target, endpoint)).await.ok()?;
        }
        for target in self.targets.difference(&found) {
            self.changes.send(Change::Remove(*target)).await.ok()?;
        }
        self.targets = found;
        Some(())
    }
}
