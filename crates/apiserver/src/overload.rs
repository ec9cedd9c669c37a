//! How many requests are answered at the same time, by priority level. What does not fit waits a little, and is then
//! refused with 429.
//!
//! | level | requests | limit |
//! |---|---|---|
//! | exempt | health and version, members of `system:masters`, controllers in this process | none |
//! | leader election | Leases | a limit of their own: their holders must not lose them because others ask much |
//! | reads, writes | everything else; watches count until they begin to answer | one each |

use crate::audit::ClientAddress;
use crate::auth::Identity;
use crate::body::ApiBody;
use crate::request::{RequestInfo, Verb};
use crate::respond;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a request waits for others to be answered.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How many requests of each level are answered at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that read.
    pub reads: usize,
    /// Requests that write.
    pub writes: usize,
    /// Requests for Leases.
    pub leases: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { reads: 400, writes: 200, leases: 100 }
    }
}

pub(crate) struct Seats {
    reads: Semaphore,
    writes: Semaphore,
    leases: Semaphore,
}

impl Seats {
    pub(crate) fn new(limits: Limits) -> Self {
        let Limits { reads, writes, leases } = limits;
        let [reads, writes, leases] = [reads, writes, leases].map(Semaphore::new);
        Self { reads, writes, leases }
    }

    /// A seat for as long as the request is answered; none for an exempt request. Fails with the response.
    pub(crate) async fn take(
        &self,
        info: &RequestInfo,
        parts: &Parts,
        user: &Identity,
    ) -> Result<Option<SemaphorePermit<'_>>, Box<Response<ApiBody>>> {
        let in_process = parts.extensions.get::<ClientAddress>().is_none();
        let level = match info {
            _ if in_process || user.is_admin() => return Ok(None),
            RequestInfo::Other(segments) => match segments.first().map(String::as_str) {
                Some("healthz" | "livez" | "readyz" | "version") => return Ok(None),
                _ => &self.reads,
            },
            RequestInfo::Resource { target, .. } if target.gvr.resource == "leases" => &self.leases,
            RequestInfo::Resource { verb: Verb::Get | Verb::List | Verb::Watch, .. } => &self.reads,
            RequestInfo::Resource { .. } => &self.writes,
        };
        match tokio::time::timeout(MAX_WAIT, level.acquire()).await {
            Ok(Ok(seat)) => Ok(Some(seat)),
            _ => Err(Box::new(too_many())),
        }
    }
}

fn too_many() -> Response<ApiBody> {
    let mut response =
        respond::text(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n");
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
