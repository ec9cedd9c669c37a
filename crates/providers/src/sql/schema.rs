//! The kind `Schema`: creates and drops schemas of a database, and changes their owners.

use super::Generation;
use super::pool::{Pools, Session};
use super::statement::{failed, identifier};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use transom_provider::schema::{choice, flag, object, text, with};
use transom_provider::{
    Creation, Error, External, ManagedKind, Observation, Resource, Result, Update, late_initialize,
};

pub(super) struct Schemas(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let behaviors =
        choice("What happens to what is in the schema when it is dropped.", &["CASCADE", "RESTRICT"]);
    let parameters = object(
        "The schema.",
        &[],
        json!({
            "role": text("The role that owns the schema."),
            "database": text("The database that it is in."),
            "revokePublicOnSchema": flag("Whether everybody loses all privileges on the schema named public."),
            "dropBehavior": with(behaviors, json!({"default": "RESTRICT"})),
        }),
    );
    ManagedKind {
        references: vec![generation.reference("role", "Role"), generation.reference("database", "Database")],
        ..generation.kind("Schema", "schemas", parameters)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    role: Option<String>,
    database: Option<String>,
    revoke_public_on_schema: Option<bool>,
    drop_behavior: Option<String>,
}

const REVOKE: &str = "REVOKE ALL ON SCHEMA PUBLIC FROM PUBLIC";

impl Schemas {
    fn revoke(wanted: &Parameters) -> Option<String> {
        (wanted.revoke_public_on_schema == Some(true)).then(|| REVOKE.to_owned())
    }
}

impl External for Schemas {
    type Parameters = Parameters;
    type Session = Session;

    async fn connect(&self, resource: &Resource<'_, Parameters>) -> Result<Session> {
        let database = resource.parameters.database.as_deref().filter(|name| !name.is_empty());
        if database.is_none() && !resource.is_deleting() {
            return Err(Error::permanent("database must be specified"));
        }
        self.0.session(resource, database).await
    }

    async fn observe(
        &self,
        session: &Session,
        resource: &Resource<'_, Parameters>,
    ) -> Result<Observation<Parameters>> {
        let attempted = "cannot select schema";
        // A schema whose database was never known was never made.
        if resource.parameters.database.is_none() {
            return Ok(Observation::missing());
        }
        let sql = "SELECT pg_get_userbyid(nspowner)::text, EXISTS (SELECT 1 FROM pg_namespace p, \
                   aclexplode(coalesce(p.nspacl, acldefault('n', p.nspowner))) a \
                   WHERE p.nspname = 'public' AND a.grantee = 0) FROM pg_namespace WHERE nspname = $1";
        let answer = session.query(attempted, sql, &[&resource.external_name()]).await?;
        let Some(row) = answer.first_row() else { return Ok(Observation::missing()) };
        let owner: String = row.try_get(0).map_err(|e| failed(attempted, &e))?;
        let public: bool = row.try_get(1).map_err(|e| failed(attempted, &e))?;
        let mut filled = resource.parameters.clone();
        let late = late_initialize(&mut filled.role, &owner);
        let mut differences = Vec::new();
        if let Some(role) = resource.parameters.role.as_ref().filter(|role| **role != owner) {
            differences.push(format!("the owner is {owner:?}, not {role:?}"));
        }
        if public && Self::revoke(&resource.parameters).is_some() {
            differences.push("PUBLIC has privileges on the schema public".to_owned());
        }
        Ok(Observation { late_initialized: late.then_some(filled), ..Observation::compared(&differences) })
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        let mut sql = format!("CREATE SCHEMA IF NOT EXISTS {}", identifier(resource.external_name()));
        if let Some(role) = &resource.parameters.role {
            sql.push_str(&format!(" AUTHORIZATION {}", identifier(role)));
        }
        let statements: Vec<String> = [sql].into_iter().chain(Self::revoke(&resource.parameters)).collect();
        session.transaction("cannot create schema", &statements).await?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        let name = identifier(resource.external_name());
        let owner = resource.parameters.role.as_ref();
        let owner = owner.map(|role| format!("ALTER SCHEMA {name} OWNER TO {}", identifier(role)));
        let statements: Vec<String> = owner.into_iter().chain(Self::revoke(&resource.parameters)).collect();
        session.transaction("cannot alter schema", &statements).await?;
        Ok(Update::default())
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let cascade = resource.parameters.drop_behavior.as_deref() == Some("CASCADE");
        let behavior = if cascade { "CASCADE" } else { "RESTRICT" };
        let sql = format!("DROP SCHEMA IF EXISTS {} {behavior}", identifier(resource.external_name()));
        session.execute("cannot drop schema", &sql).await
    }
}
