//! The kind `Grant`: privileges of a role on objects of a database, and memberships of roles. `parameters` reads what is wanted
//! and writes the statements, `catalog` asks the server what is granted.
//!
//! Statements quote every name; what PUBLIC may do is revoked only where that is asked for.

mod catalog;
mod parameters;

use super::Generation;
use super::pool::{Answer, Pools, Session};
use super::privileges::{Granted, Target, compare};
use super::statement::{failed, identifiers};
use catalog::select;
use parameters::{Parameters, Subject};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use transom_provider::schema::{choice, flag, list, object, ruled, text, with};
use transom_provider::{Creation, Error, External, ManagedKind, Observation, Resource, Result, Update};

pub(super) struct Grants(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let names = |what: &str| {
        let name = with(text("A name."), json!({"pattern": "^[a-zA-Z_][a-zA-Z0-9_$]*$"}));
        with(list(what, name), json!({"minItems": 1}))
    };
    let privilege = with(text("A privilege."), json!({"pattern": "^[A-Z]+( [A-Z]+)*$"}));
    let routine = object(
        "A function or procedure.",
        &["name"],
        json!({"name": text("Its name."), "args": list("The types of its arguments.", text("A type."))}),
    );
    let parameters = object(
        "The privileges, and the role that they are granted to.",
        &[],
        json!({
            "privileges": with(list("What the role may do.", privilege), json!({"minItems": 1})),
            "withOption": choice("Whether the role may grant it to others.", &["ADMIN", "GRANT"]),
            "role": text("The role that it is granted to."),
            "database": text("The database."),
            "schema": text("The schema."),
            "memberOf": text("The role that the role becomes a member of."),
            "revokePublicOnDb": flag("Whether everybody loses all privileges on the database."),
            "tables": names("The tables."),
            "columns": names("The columns of the tables."),
            "sequences": names("The sequences."),
            "foreignDataWrappers": names("The foreign data wrappers."),
            "foreignServers": names("The foreign servers."),
            "routines": with(list("The functions and procedures.", routine), json!({"minItems": 1})),
            "withInherit": flag("Whether the role has the privileges of the role that it is a member of."),
        }),
    );
    let rule =
        "!has(self.withInherit) || has(self.memberOf) || has(self.memberOfRef) || has(self.memberOfSelector)";
    let parameters = ruled(parameters, &[(rule, "withInherit is only valid for memberOf grants")]);
    let granted = list("The privileges that were granted.", text("A privilege."));
    ManagedKind {
        references: vec![
            generation.reference("database", "Database"),
            generation.reference("schema", "Schema"),
            generation.reference("role", "Role"),
            generation.reference("memberOf", "Role"),
        ],
        at_provider: Some(object("What was granted.", &[], json!({"privileges": granted}))),
        ..generation.kind("Grant", "grants", parameters)
    }
}

const ATTEMPTED: &str = "cannot select grant";

impl Grants {
    /// What the role was granted; none if the database does not exist.
    async fn granted(session: &Session, wanted: &Parameters, target: Target) -> Result<Option<Granted>> {
        let (role, objects) = (wanted.role()?, wanted.objects(target));
        let schema = wanted.schema.as_deref().unwrap_or_default();
        let values: [&(dyn ToSql + Sync); 3] = [&role, &objects, &schema];
        let Answer::Rows(rows) = session.query(ATTEMPTED, select(target), &values).await? else {
            return Ok(None);
        };
        let mut granted = Granted::new();
        for row in rows {
            let unreadable = |e: tokio_postgres::Error| failed(ATTEMPTED, &e);
            let object: String = row.try_get(0).map_err(unreadable)?;
            let privilege: String = row.try_get(1).map_err(unreadable)?;
            let grantable: bool = row.try_get(2).map_err(unreadable)?;
            let held = granted.entry(object).or_default().entry(privilege).or_default();
            *held |= grantable;
        }
        Ok(Some(granted))
    }

    /// Whether everybody has privileges on the database that they shall not have.
    async fn public_has_privileges(session: &Session, wanted: &Parameters) -> Result<bool> {
        if wanted.revoke_public_on_db != Some(true) {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a \
                   WHERE d.datname = $1 AND a.grantee = 0";
        let answer =
            session.query(ATTEMPTED, sql, &[&wanted.database.as_deref().unwrap_or_default()]).await?;
        Ok(matches!(answer, Answer::Rows(rows) if !rows.is_empty()))
    }

    async fn observe_membership(session: &Session, wanted: &Parameters) -> Result<Observation<Parameters>> {
        let group = wanted.member_of.as_deref().unwrap_or_default();
        let version = session.server_version().await?;
        if wanted.with_inherit.is_some() && version < 160_000 {
            return Err(Error::permanent(format!(
                "withInherit requires PostgreSQL 16 or later (server version {version})"
            )));
        }
        let inherit = if version >= 160_000 { "m.inherit_option" } else { "true" };
        let sql = format!(
            "SELECT m.admin_option, {inherit} FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid \
             JOIN pg_roles r ON r.oid = m.member WHERE g.rolname = $1 AND r.rolname = $2"
        );
        let answer = session.query(ATTEMPTED, &sql, &[&group, &wanted.role()?]).await?;
        let Answer::Rows(rows) = answer else { return Ok(Observation::missing()) };
        let mut exists = false;
        for row in &rows {
            let unreadable = |e: tokio_postgres::Error| failed(ATTEMPTED, &e);
            let admin: bool = row.try_get(0).map_err(unreadable)?;
            let inherits: bool = row.try_get(1).map_err(unreadable)?;
            let same = admin == (wanted.with_option.as_deref() == Some("ADMIN"));
            if same && wanted.with_inherit.is_none_or(|wanted| wanted == inherits) {
                return Ok(Observation::up_to_date());
            }
            exists = true;
        }
        Ok(if exists {
            Observation::differs("the options of the membership differ")
        } else {
            Observation::missing()
        })
    }

    /// The signatures of routines as statements need them.
    async fn signatures(session: &Session, wanted: &Parameters, target: Target) -> Result<Vec<String>> {
        if target != Target::Routine {
            return Ok(Vec::new());
        }
        let sql = "SELECT format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) \
                   FROM unnest($1::text[]) s(signature) JOIN pg_proc p ON p.oid = to_regprocedure(s.signature) \
                   JOIN pg_namespace n ON n.oid = p.pronamespace";
        let objects = wanted.objects(target);
        let Answer::Rows(rows) = session.query(ATTEMPTED, sql, &[&objects]).await? else {
            return Ok(Vec::new());
        };
        let found: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get(0)).collect();
        let found = found.map_err(|e| failed(ATTEMPTED, &e))?;
        if found.len() < objects.len() {
            return Err(Error::domain(format!("not all of these routines exist: {}", objects.join(", "))));
        }
        Ok(found)
    }

    async fn apply(
        session: &Session,
        resource: &Resource<'_, Parameters>,
        attempted: &str,
    ) -> Result<Map<String, Value>> {
        let wanted = &resource.parameters;
        let Subject::Objects(target) = wanted.subject()? else {
            let group = wanted.member_of.as_deref().unwrap_or_default();
            session.transaction(attempted, &wanted.membership(group)?).await?;
            return Ok(Map::new());
        };
        let version = session.server_version().await?;
        let privileges = target.expand(&wanted.privileges, version)?;
        let signatures = Self::signatures(session, wanted, target).await?;
        let before: BTreeSet<String> =
            recorded(resource).into_iter().chain(privileges.iter().cloned()).collect();
        let mut statements = vec![wanted.revoke(target, &before, &signatures)?];
        if target == Target::Database && wanted.revoke_public_on_db == Some(true) {
            let database = identifiers(&wanted.objects(target));
            statements.push(format!("REVOKE ALL ON DATABASE {database} FROM PUBLIC"));
        }
        statements.push(wanted.grant(target, &privileges, &signatures)?);
        session.transaction(attempted, &statements).await?;
        Ok(Map::from_iter([("privileges".to_owned(), json!(privileges))]))
    }
}

/// What was granted before.
fn recorded(resource: &Resource<'_, Parameters>) -> Vec<String> {
    let list = resource.at_provider("privileges").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl External for Grants {
    type Parameters = Parameters;
    type Session = Session;

    async fn connect(&self, resource: &Resource<'_, Parameters>) -> Result<Session> {
        self.0.session(resource, resource.parameters.database.as_deref()).await
    }

    async fn observe(
        &self,
        session: &Session,
        resource: &Resource<'_, Parameters>,
    ) -> Result<Observation<Parameters>> {
        let wanted = &resource.parameters;
        // A grant that was never resolved was never made.
        if resource.is_deleting() && (wanted.role().is_err() || wanted.subject().is_err()) {
            return Ok(Observation::missing());
        }
        wanted.role()?;
        let Subject::Objects(target) = wanted.subject()? else {
            return Self::observe_membership(session, wanted).await;
        };
        let Some(granted) = Self::granted(session, wanted, target).await? else {
            return Ok(Observation::missing());
        };
        let version = session.server_version().await?;
        let privileges = target.expand(&wanted.privileges, version)?;
        let objects = wanted.objects(target);
        let found = compare(&objects, &privileges, wanted.is_grantable(), &granted);
        let extra: BTreeSet<String> =
            recorded(resource).into_iter().filter(|p| !privileges.contains(p)).collect();
        let unwanted: Vec<String> = extra
            .into_iter()
            .filter(|privilege| {
                objects.iter().any(|o| granted.get(o).is_some_and(|held| held.contains_key(privilege)))
            })
            .collect();
        if !found.any && unwanted.is_empty() {
            return Ok(Observation::missing());
        }
        let mut differences = Vec::new();
        if !found.missing.is_empty() {
            differences.push(format!("not granted: {}", found.missing.join(", ")));
        }
        if !unwanted.is_empty() {
            differences.push(format!("no longer wanted: {}", unwanted.join(", ")));
        }
        if target == Target::Database && Self::public_has_privileges(session, wanted).await? {
            differences.push("PUBLIC has privileges".to_owned());
        }
        if !differences.is_empty() {
            return Ok(Observation::differs(differences.join("; ")));
        }
        Ok(Observation { at_provider: Some(json!({"privileges": privileges})), ..Observation::up_to_date() })
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        Self::apply(session, resource, "cannot create grant").await?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        let at_provider = Self::apply(session, resource, "cannot update grant").await?;
        Ok(Update { at_provider, ..Update::default() })
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let (wanted, attempted) = (&resource.parameters, "cannot revoke grant");
        let Subject::Objects(target) = wanted.subject()? else {
            let group = wanted.member_of.as_deref().unwrap_or_default();
            let revoke = wanted.membership(group)?.into_iter().take(1).collect::<Vec<_>>();
            return session.transaction(attempted, &revoke).await;
        };
        let version = session.server_version().await?;
        let mut privileges = target.expand(&wanted.privileges, version)?;
        privileges.extend(recorded(resource));
        let signatures = Self::signatures(session, wanted, target).await?;
        session.execute(attempted, &wanted.revoke(target, &privileges, &signatures)?).await
    }
}
