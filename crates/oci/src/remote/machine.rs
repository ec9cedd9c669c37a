//! Credentials of the machine, from Docker's configuration and the programs that it names, as those of clouds are. They are the
//! last resort: looked up only after a registry refused what was given, so a program that does not work keeps no public
//! package from being pulled. What was found is kept for a while, in memory only, and tried before there is another look.

use super::auth::Access;
use crate::credentials::{CredentialsError, MachineConfig};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use transom_packages::{Credentials, Reference};

/// How long credentials are used without a new look. Those of clouds are valid for hours.
const KEPT_FOR: Duration = Duration::from_secs(300);
const KEPT_MAX: usize = 1000;

/// What was found for repositories.
#[derive(Default)]
pub(super) struct MachineCredentials {
    kept: Mutex<HashMap<Access, (Instant, Vec<Credentials>)>>,
}

impl MachineCredentials {
    /// What was found a short time ago.
    pub(super) fn kept(&self, access: &Access) -> Vec<Credentials> {
        let kept = self.kept.lock().ok();
        let found = kept.as_ref().and_then(|kept| kept.get(access));
        let recent = found.filter(|(since, _)| since.elapsed() < KEPT_FOR);
        recent.map(|(_, credentials)| credentials.clone()).unwrap_or_default()
    }

    /// Looks, and keeps what is found.
    pub(super) async fn find(
        &self,
        config: &MachineConfig,
        access: &Access,
        reference: &Reference,
    ) -> Result<Vec<Credentials>, CredentialsError> {
        let found = config.lookup(reference).await?;
        if let Ok(mut kept) = self.kept.lock() {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(access.clone(), (Instant::now(), found.clone()));
        }
        Ok(found)
    }
}
