//! The Service with the name of a package: it leads to the newest revision that is ready, and until there is one, to the newest.

use crate::following::Attempt;
use crate::objects::Workload;
use crate::runtime::{ClusterRuntime, gvk};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_engine::Result;
use transom_xapi::constants::label;

/// The revisions of a package that run, by name.
#[derive(Default)]
pub(crate) struct Running(BTreeMap<String, Candidate>);

/// A revision that the Service of its package can lead to.
struct Candidate {
    is_ready: bool,
    number: i64,
    /// The Service that leads to it; none while it is the stored one, made by a process before this one.
    service: Option<Value>,
}

impl Running {
    /// The Service as it should be; none if it stays as it is stored.
    fn service(&self) -> Option<&Value> {
        let newest = self.0.values().max_by_key(|candidate| (candidate.is_ready, candidate.number));
        newest?.service.as_ref()
    }
}

impl ClusterRuntime {
    /// Records whether a revision is ready, and leads the Service of its package to the newest that is.
    pub(crate) async fn note(
        &self,
        attempt: &Attempt,
        workload: &Workload<'_>,
        number: i64,
        is_ready: bool,
    ) -> Result<()> {
        let (name, alias) = (&workload.revision.metadata.name, workload.names().alias);
        attempt.depends_on(&gvk("", "v1", "Service"), &alias);
        if !self.running().contains_key(&alias) {
            let recalled = self.recall(attempt, workload, &alias).await?;
            self.running().entry(alias.clone()).or_insert(recalled);
        }
        let service = {
            let mut all = self.running();
            let running = all.entry(alias).or_default();
            let candidate = Candidate { is_ready, number, service: Some(workload.alias()) };
            running.0.insert(name.clone(), candidate);
            running.service().cloned()
        };
        self.lead(attempt, service).await
    }

    /// What a process before this one left: the Service of the package leads to a revision that was ready, and that is
    /// reconciled later than this one.
    async fn recall(&self, attempt: &Attempt, workload: &Workload<'_>, alias: &str) -> Result<Running> {
        let mut running = Running::default();
        let Some(service) = self.stored(attempt, &gvk("", "v1", "Service"), alias).await? else {
            return Ok(running);
        };
        let name = service["spec"]["selector"][label::REVISION].as_str().unwrap_or_default().to_owned();
        if name.is_empty() || name == workload.revision.metadata.name {
            return Ok(running);
        }
        let led_to = self.revision(workload.kind, &name).await?;
        if let Some(other) = led_to.filter(|other| other.is_active() && !other.metadata.is_deleting()) {
            let candidate = Candidate { is_ready: true, number: other.spec.revision, service: None };
            running.0.insert(name, candidate);
        }
        Ok(running)
    }

    async fn lead(&self, attempt: &Attempt, service: Option<Value>) -> Result<()> {
        let Some(service) = service else { return Ok(()) };
        self.apply(attempt, &service, "cannot apply the service of the package").await.map(drop)
    }

    /// Leads the Service of a revision's package to another one.
    pub(crate) async fn withdraw(&self, revision: &str) -> Result<()> {
        let changed: Vec<Option<Value>> = {
            let mut all = self.running();
            let mut changed = Vec::new();
            for running in all.values_mut() {
                if running.0.remove(revision).is_some() {
                    changed.push(running.service().cloned());
                }
            }
            all.retain(|_, running| !running.0.is_empty());
            changed
        };
        for service in changed {
            self.lead(&Attempt::unfollowed(), service).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_service_of_the_package_leads_to_the_newest_that_is_ready() {
        let mut running = Running::default();
        let mut is_led_to = |name: &str, number: i64, is_ready: bool| {
            let candidate = Candidate { is_ready, number, service: Some(json!(name)) };
            running.0.insert(name.to_owned(), candidate);
            running.service().cloned().unwrap()
        };
        assert_eq!(is_led_to("a", 1, false), "a", "until there is one, the newest");
        assert_eq!(is_led_to("b", 2, false), "b");
        assert_eq!(is_led_to("a", 1, true), "a");
        assert_eq!(is_led_to("b", 2, true), "b", "a new one when it is ready");
        assert_eq!(is_led_to("b", 2, false), "a");
        running.0.insert("c".to_owned(), Candidate { is_ready: true, number: 3, service: None });
        assert_eq!(running.service(), None, "what a process before this one made stays");
    }
}
