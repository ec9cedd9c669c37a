//! One reconcile of a claim.

use super::Claims;
use crate::catalog::kinds;
use serde_json::{Value, json};
use transom_compose::upgrade;
use transom_engine::{
    DeleteOptions, Error, ErrorContext, Key, Next, Result, RunLog, existing, is_settled, same,
};
use transom_object::meta;
use transom_xapi::claim::{self, CompositeName, Deletion};
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::conditions::{self, Condition};
use transom_xapi::connection;
use transom_xapi::constants::{condition, event, finalizer, message, owner};
use transom_xapi::metadata as notes;

/// How often a generated name may turn out to be taken.
const NAMES: usize = 10;

impl Claims {
    pub(super) async fn run(&self, key: &Key, log: &RunLog) -> Result<Next> {
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
            Err((_, error)) if error.is_conflict() => Err(error),
            Err((reason, error)) => {
                self.plane.events.warning(&self.name, &claim, reason, error.to_string());
                self.mark(&mut claim, [Condition::reconcile_error(error.to_string())]);
                if let Err(e) = self.write_status(log, &mut claim, &before).await {
                    tracing::debug!(controller = self.name, %key, error = %e, "cannot update status");
                }
                // Bound to another claim: only a human can help.
                if matches!(error, Error::Unfit(_)) { Ok(Next::Wait) } else { Err(error) }
            }
            Ok(next) => Ok(next),
        }
    }

    async fn advance(
        &self,
        log: &RunLog,
        claim: &mut Value,
        before: &Value,
    ) -> Result<Next, (&'static str, Error)> {
        let bind = |e: Error| (event::claim::BIND, e);
        let xr = self
            .composite_of(log, claim)
            .await
            .context("cannot get bound composite resource")
            .map_err(bind)?;
        claim::must_be_bindable(claim, &xr).map_err(|e| bind(Error::unfit(e.to_string())))?;
        self.upgrade(log, &xr.object).await.map_err(bind)?;
        if meta::is_deleting(claim) {
            return self.delete(log, claim, &xr, before).await;
        }
        if notes::add_finalizer(claim, finalizer::CLAIM) {
            self.update(log, claim).await.context("cannot add finalizer to claim").map_err(bind)?;
        }
        let was_bound = claim::is_bound(claim, &xr);
        let xr =
            self.sync(log, claim, xr).await.context("cannot bind and sync claim with composite resource");
        let xr = xr.map_err(|e| match e {
            // What the objects hold is no reason to wait for a human.
            Error::During { context, source } => bind(Error::During { context, source }),
            other => bind(other),
        })?;
        if !was_bound && claim::is_bound(claim, &xr) {
            self.plane.events.normal(&self.name, claim, event::claim::BIND, message::CLAIM_BOUND);
        }
        let ready = conditions::get(&conditions::of(&xr.object), condition::READY).is_true();
        if ready {
            self.explain_missing_secret(claim, &xr);
            let propagated = self.propagate(log, claim, &xr).await;
            let propagated =
                propagated.context("cannot propagate connection details from composite resource");
            if propagated.map_err(|e| (event::claim::PROPAGATE, e))? {
                // Claims keep the time where legacy composite resources do.
                let mut published = Composite::new(claim.take(), Schema::Legacy);
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
        self.write_status(log, claim, before).await.map_err(bind)?;
        Ok(Next::Wait)
    }

    /// The composite resource that the claim names; empty when there is none.
    async fn composite_of(&self, log: &RunLog, claim: &Value) -> Result<Composite> {
        let object = match claim::composite_name(claim) {
            CompositeName::Bound(name) => {
                let read = self.plane.read(log, &self.offer.composite, "", &name).await;
                // With its definition the kind of the composite resource may go before the claim does.
                if meta::is_deleting(claim) { existing(read)? } else { read? }
            }
            CompositeName::Generate(_) => None,
        };
        Ok(Composite::new(object.unwrap_or_else(|| json!({})), Schema::Legacy))
    }

    /// A composite resource that was once written without server-side apply is migrated.
    async fn upgrade(&self, log: &RunLog, xr: &Value) -> Result<()> {
        let ours = |manager: &str| manager == owner::CLAIM;
        // One that no claim was bound to yet was applied by someone else altogether.
        let bound = xr.pointer("/spec/claimRef").is_some();
        let Some(patch) = upgrade(xr, ours).filter(|_| bound) else { return Ok(()) };
        let upgraded = self.plane.cluster.json_patch(xr, &patch, owner::DEFAULT).await;
        let words =
            "cannot upgrade composite resource's managed fields from client-side to server-side apply";
        log.wrote(&upgraded.context(words)?);
        Ok(())
    }

    async fn delete(
        &self,
        log: &RunLog,
        claim: &mut Value,
        xr: &Composite,
        before: &Value,
    ) -> Result<Next, (&'static str, Error)> {
        let failed = |e: Error| (event::claim::DELETE, e);
        self.mark(claim, [Condition::deleting()]);
        let plan = claim::deletion(claim, &xr.object);
        match plan {
            Deletion::Wait => {
                self.write_status(log, claim, before).await.map_err(failed)?;
                return Ok(Next::Backoff);
            }
            Deletion::Background | Deletion::Foreground => {
                let propagation = (plan == Deletion::Foreground).then_some("Foreground");
                let options = DeleteOptions { propagation, uid: Some(meta::uid(&xr.object)) };
                let name = meta::name(&xr.object);
                let deleted = self.plane.cluster.delete(&self.offer.composite, "", name, options).await;
                log.changed();
                deleted.context("cannot delete bound composite resource").map_err(failed)?;
                if plan == Deletion::Foreground {
                    self.write_status(log, claim, before).await.map_err(failed)?;
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
                removed => removed.map_err(failed)?,
            }
        }
        if !meta::finalizers(claim).is_empty() {
            self.mark(claim, [Condition::deleting(), Condition::reconcile_success()]);
            self.write_status(log, claim, before).await.map_err(failed)?;
        }
        Ok(Next::Wait)
    }

    /// Lets each tell the other what it must: the claim is written first, then its composite resource.
    async fn sync(&self, log: &RunLog, claim: &mut Value, xr: Composite) -> Result<Composite> {
        let name = match claim::composite_name(claim) {
            CompositeName::Bound(name) => name,
            CompositeName::Generate(prefix) => self.unused_name(&prefix).await?,
        };
        let binding = claim::bind(claim, &xr, &self.offer.composite, &name, self.offer.enforced);
        let binding = binding.map_err(|e| Error::Transport(e.to_string()))?;
        if !same(&binding.claim, claim) {
            *claim = binding.claim;
            self.update(log, claim).await.context("cannot update composite resource claim")?;
        }
        let mut xr = xr;
        if !is_settled(&xr.object, &binding.composite, owner::CLAIM, "") {
            let applied = self.plane.cluster.apply(&binding.composite, owner::CLAIM).await;
            xr.object = applied.context("cannot apply composite resource")?;
            log.wrote(&xr.object);
        }
        claim::copy_status(claim, &xr.object).map_err(|e| Error::Transport(e.to_string()))?;
        Ok(xr)
    }

    /// A generated name that is not taken, as far as one can tell.
    async fn unused_name(&self, prefix: &str) -> Result<String> {
        for _ in 0..NAMES {
            let name = meta::generate_name(prefix, &mut || self.plane.rng.draw());
            if self.plane.cluster.get(&self.offer.composite, "", &name).await?.is_none() {
                return Ok(name);
            }
        }
        Err(Error::Transport("cannot generate a name that is not taken".to_owned()))
    }

    /// A claim that asks for connection details gets none when its composite resource publishes none.
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

    /// Copies the connection secret. Says whether that is news: it was written, or whoever wrote it died before it could
    /// say so.
    async fn propagate(&self, log: &RunLog, claim: &Value, xr: &Composite) -> Result<bool> {
        let key = Key::of(claim);
        let Some((namespace, name)) = connection::source(claim, xr) else {
            self.concern(&key, []);
            return Ok(false);
        };
        let copy = claim::connection_secret_name(claim).unwrap_or_default();
        let copy = (meta::namespace(claim).to_owned(), copy.to_owned());
        self.concern(&key, [copy, (namespace.clone(), name.clone())]);
        let from = self.plane.read(log, &kinds::secret(), &namespace, &name).await?;
        let from = from.ok_or_else(|| {
            Error::Transport(format!(
                "cannot get composite resource's connection secret: secrets {name:?} not found"
            ))
        })?;
        let wanted = connection::propagated(claim, xr, &from).map_err(|e| Error::Transport(e.to_string()))?;
        let Some(mut wanted) = wanted else { return Ok(false) };
        let live =
            self.plane.read(log, &kinds::secret(), meta::namespace(&wanted), meta::name(&wanted)).await?;
        let written = match live {
            None => self.plane.cluster.create(&wanted, owner::DEFAULT).await,
            Some(live) => {
                connection::must_be_controllable_by(&live, meta::uid(claim))
                    .map_err(|e| Error::Transport(e.to_string()))?;
                if connection::same_data(&live, &wanted) {
                    return Ok(claim.pointer("/status/connectionDetails/lastPublishedTime").is_none());
                }
                meta::set_resource_version(&mut wanted, meta::resource_version(&live));
                self.plane.cluster.update(&wanted, owner::DEFAULT).await
            }
        };
        log.wrote(&written.context("cannot create or update connection secret")?);
        Ok(true)
    }

    fn mark(&self, claim: &mut Value, new: impl IntoIterator<Item = Condition>) {
        conditions::mark_observed(claim, new, self.plane.clock.now());
    }

    /// Replaces the claim, keeping the status known so far in memory.
    async fn update(&self, log: &RunLog, claim: &mut Value) -> Result<()> {
        let status = claim.get("status").cloned();
        self.plane.update(log, claim).await?;
        if let Some(status) = status {
            claim["status"] = status;
        }
        Ok(())
    }

    async fn write_status(&self, log: &RunLog, claim: &mut Value, before: &Value) -> Result<()> {
        if claim.get("status").is_none_or(|status| same(status, before)) {
            return Ok(());
        }
        self.plane.update_status(log, claim).await.context("cannot update claim status")
    }
}
