//! One reconcile of a claim: finds, makes or takes over its composite resource, copies what each takes from the other, and
//! publishes the secret. The claim is written first.

use super::{Claims, secret};
use crate::catalog::kinds;
use serde_json::{Value, json};
use transom_compose::upgrade;
use transom_engine::{
    DeleteOptions, Error, ErrorContext, Key, Next, Reconciler, ReportedError, Result, RunLog, apply_is_noop,
    existing, same,
};
use transom_object::meta;
use transom_xapi::claim::{self, CompositeName, Deletion};
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::conditions::{self, Condition};
use transom_xapi::connection;
use transom_xapi::constants::{condition, event, finalizer, message, owner};
use transom_xapi::metadata as notes;

/// How many generated names are tried until one is not taken.
const MAX_NAMES: usize = 10;

impl Reconciler for Claims {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &self.offer.gvk, &key.namespace, &key.name).await;
        let Some(mut claim) = read.context("cannot get claim")? else {
            self.secrets.forget(key);
            return Ok(Next::Gone);
        };
        let before = claim.get("status").cloned().unwrap_or_default();
        if notes::is_paused(&claim) {
            self.plane.events.normal(&self.name, &claim, event::claim::PAUSED, message::PAUSED);
            self.mark(&mut claim, [Condition::reconcile_paused()]);
            self.write_status(log, &mut claim, &before).await?;
            return Ok(Next::Wait);
        }
        match self.advance(log, &mut claim, &before).await {
            Ok(next) => Ok(next),
            Err(failure) => match self.plane.fail(&self.name, log, &mut claim, &before, failure).await {
                // Bound to another claim: only a change of one of them helps, and that wakes the claim.
                Error::Permanent(_) => Ok(Next::Wait),
                error => Err(error),
            },
        }
    }
}

impl Claims {
    async fn advance(&self, log: &RunLog, claim: &mut Value, before: &Value) -> Result<Next, ReportedError> {
        let bind = event::claim::BIND;
        let xr = self.composite_of(log, claim).await.context("cannot get bound composite resource");
        let xr = xr.with_event_reason(bind)?;
        claim::must_be_bindable(claim, &xr).map_err(Error::permanent).with_event_reason(bind)?;
        self.upgrade(log, &xr.object).await.with_event_reason(bind)?;
        if meta::is_deleting(claim) {
            return self.delete(log, claim, &xr, before).await.with_event_reason(event::claim::DELETE);
        }
        if notes::add_finalizer(claim, finalizer::CLAIM) {
            let updated = self.update(log, claim).await.context("cannot add finalizer to claim");
            updated.with_event_reason(bind)?;
        }
        let was_bound = claim::is_bound(claim, &xr);
        let xr = self.sync(log, claim, xr).await;
        let xr = xr.context("cannot bind and sync claim with composite resource").with_event_reason(bind)?;
        if !was_bound && claim::is_bound(claim, &xr) {
            self.plane.events.normal(&self.name, claim, event::claim::BIND, message::CLAIM_BOUND);
        }
        let ready = conditions::get(&conditions::of(&xr.object), condition::READY).is_true();
        if ready {
            self.explain_missing_secret(claim, &xr);
            let propagated = self.propagate(log, claim, &xr).await;
            let propagated =
                propagated.context("cannot propagate connection details from composite resource");
            if propagated.with_event_reason(event::claim::PROPAGATE)? {
                // The field is the same as in legacy composite resources.
                let mut published = Composite::new(claim.take(), Layout::Legacy);
                published.set_last_published_time(&transom_object::time::format(self.plane.clock.now()));
                *claim = published.object;
                let words = message::CLAIM_PROPAGATED;
                self.plane.events.normal(&self.name, claim, event::claim::PROPAGATE, words);
            }
        } else {
            let words = message::CLAIM_COMPOSITE_NOT_READY;
            self.plane.events.normal(&self.name, claim, event::claim::BIND, words);
        }
        self.mark(claim, claim::conditions_of(&xr));
        self.write_status(log, claim, before).await.with_event_reason(bind)?;
        Ok(Next::Wait)
    }

    /// The composite resource of the claim; an empty object if it does not exist.
    async fn composite_of(&self, log: &RunLog, claim: &Value) -> Result<Composite> {
        let object = match claim::composite_name(claim) {
            CompositeName::Bound(name) => {
                let read = self.plane.read(log, &self.offer.composite, "", &name).await;
                // When a definition is deleted, the kind of the composite resource may be deleted before the claim.
                if meta::is_deleting(claim) { existing(read)? } else { read? }
            }
            CompositeName::Generate(_) => None,
        };
        Ok(Composite::new(object.unwrap_or_else(|| json!({})), Layout::Legacy))
    }

    /// Migrates the managed fields of a composite resource that was written without server-side apply.
    async fn upgrade(&self, log: &RunLog, xr: &Value) -> Result<()> {
        let ours = |manager: &str| manager == owner::CLAIM;
        // A composite resource that no claim was bound to yet was applied by another client.
        let bound = xr.pointer("/spec/claimRef").is_some();
        let Some(patch) = upgrade(xr, ours).filter(|_| bound) else { return Ok(()) };
        let upgraded = self.plane.cluster.json_patch(xr, &patch, owner::DEFAULT).await;
        let words =
            "cannot upgrade composite resource's managed fields from client-side to server-side apply";
        log.wrote(&upgraded.context(words)?);
        Ok(())
    }

    async fn delete(&self, log: &RunLog, claim: &mut Value, xr: &Composite, before: &Value) -> Result<Next> {
        self.mark(claim, [Condition::deleting()]);
        let plan = claim::deletion(claim, &xr.object);
        match plan {
            Deletion::Wait => {
                self.write_status(log, claim, before).await?;
                return Ok(Next::Backoff);
            }
            Deletion::Background | Deletion::Foreground => {
                let propagation = (plan == Deletion::Foreground).then_some("Foreground");
                let options = DeleteOptions { propagation, uid: Some(meta::uid(&xr.object)) };
                let name = meta::name(&xr.object);
                let deleted = self.plane.cluster.delete(&self.offer.composite, "", name, options).await;
                log.changed();
                deleted.context("cannot delete bound composite resource")?;
                if plan == Deletion::Foreground {
                    self.write_status(log, claim, before).await?;
                    return Ok(Next::Backoff);
                }
            }
            Deletion::Finish => {}
        }
        let words = message::CLAIM_DELETED_COMPOSITE;
        self.plane.events.normal(&self.name, claim, event::claim::DELETE, words);
        if notes::remove_finalizer(claim, finalizer::CLAIM) {
            let removed = self.update(log, claim).await;
            match removed.context("cannot remove finalizer from claim") {
                Err(e) if e.is_not_found() => return Ok(Next::Gone),
                removed => removed?,
            }
        }
        if !meta::finalizers(claim).is_empty() {
            self.mark(claim, [Condition::deleting(), Condition::reconcile_success()]);
            self.write_status(log, claim, before).await?;
        }
        Ok(Next::Wait)
    }

    /// Copies what the claim and its composite resource take from each other. The claim is written first.
    async fn sync(&self, log: &RunLog, claim: &mut Value, xr: Composite) -> Result<Composite> {
        let name = match claim::composite_name(claim) {
            CompositeName::Bound(name) => name,
            CompositeName::Generate(prefix) => self.unused_name(&prefix).await?,
        };
        let binding = claim::bind(claim, &xr, &self.offer.composite, &name, self.offer.enforced);
        let binding = binding.map_err(Error::domain)?;
        if !same(&binding.claim, claim) {
            *claim = binding.claim;
            self.update(log, claim).await.context("cannot update composite resource claim")?;
        }
        let mut xr = xr;
        if !apply_is_noop(&xr.object, &binding.composite, owner::CLAIM, "") {
            let applied = self.plane.cluster.apply(&binding.composite, owner::CLAIM).await;
            xr.object = applied.context("cannot apply composite resource")?;
            log.wrote(&xr.object);
        }
        claim::copy_status(claim, &xr.object).map_err(Error::domain)?;
        Ok(xr)
    }

    /// A generated name that was not taken a moment ago.
    async fn unused_name(&self, prefix: &str) -> Result<String> {
        for _ in 0..MAX_NAMES {
            let name = meta::generate_name(prefix, &mut || self.plane.rng.draw());
            if self.plane.cluster.get(&self.offer.composite, "", &name).await?.is_none() {
                return Ok(name);
            }
        }
        Err(Error::domain("cannot generate a name that is not taken"))
    }

    /// Warns that a claim asks for connection details and its composite resource publishes none.
    fn explain_missing_secret(&self, claim: &Value, xr: &Composite) {
        let Some(secret) = claim::connection_secret_name(claim) else { return };
        if xr.connection_secret_ref().is_some() {
            return;
        }
        let (kind, name) = (meta::kind(&xr.object), meta::name(&xr.object));
        let composition = xr.composition_ref().unwrap_or_default().name;
        let words = format!(
            "no connection details are copied to Secret {secret:?}, because {kind} {name:?} publishes none: set \
             spec.writeConnectionSecretsToNamespace in Composition {composition:?}"
        );
        self.plane.events.warning(&self.name, claim, event::claim::PROPAGATE, words);
    }

    /// Copies the connection secret. Returns whether the claim must say that it was published: it was written now, or
    /// before a crash that kept the claim from saying so.
    async fn propagate(&self, log: &RunLog, claim: &Value, xr: &Composite) -> Result<bool> {
        let key = Key::of(claim);
        let Some((namespace, name)) = connection::source(claim, xr) else {
            self.track_secrets(&key, []);
            return Ok(false);
        };
        let copy = claim::connection_secret_name(claim).unwrap_or_default();
        let copy = (meta::namespace(claim).to_owned(), copy.to_owned());
        self.track_secrets(&key, [copy, (namespace.clone(), name.clone())]);
        let from = self.plane.read(log, &kinds::secret(), &namespace, &name).await?;
        let from = from.ok_or_else(|| Error::domain(format!("secrets {name:?} not found")));
        let from = from.context("cannot get composite resource's connection secret")?;
        let wanted = connection::propagated(claim, xr, &from).map_err(Error::domain)?;
        let Some(wanted) = wanted else { return Ok(false) };
        let decide = |live: Option<&Value>| {
            live.iter().for_each(|live| log.read(live));
            secret::copy(&wanted, live, meta::uid(claim))
        };
        let attempted = "cannot create or update connection secret";
        let written = self.plane.publish(log, attempted, &wanted, decide).await?;
        Ok(written || claim.pointer("/status/connectionDetails/lastPublishedTime").is_none())
    }

    fn mark(&self, claim: &mut Value, new: impl IntoIterator<Item = Condition>) {
        conditions::mark_observed(claim, new, self.plane.clock.now());
    }

    /// Replaces the claim. The status that is not written yet is kept in memory.
    async fn update(&self, log: &RunLog, claim: &mut Value) -> Result<()> {
        let status = claim.get("status").cloned();
        self.plane.update(log, claim).await?;
        if let Some(status) = status {
            claim["status"] = status;
        }
        Ok(())
    }

    async fn write_status(&self, log: &RunLog, claim: &mut Value, before: &Value) -> Result<()> {
        let written = self.plane.write_status(log, claim, before).await;
        written.map(drop).context("cannot update claim status")
    }
}
