//! Extensions. What identifies one is its name in the spec, not the external name.

use super::Generation;
use super::pool::{Pools, Session};
use super::statement::{failed, identifier};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use transom_provider::schema::{object, text};
use transom_provider::{
    Creation, External, ManagedKind, Observation, Resource, Result, Update, late_initialize,
};

pub(super) struct Extensions(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let parameters = object(
        "The extension.",
        &["extension"],
        json!({
            "extension": text("Its name."),
            "version": text("Its version."),
            "schema": text("The schema that its objects are in."),
            "database": text("The database that it is in."),
        }),
    );
    ManagedKind {
        references: vec![generation.reference("database", "Database")],
        ..generation.kind("Extension", "extensions", parameters)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    extension: String,
    version: Option<String>,
    schema: Option<String>,
    database: Option<String>,
}

impl External for Extensions {
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
        let (attempted, wanted) = ("cannot select extension", &resource.parameters);
        let sql = "SELECT e.extversion, n.nspname::text FROM pg_extension e \
                   JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1";
        let answer = session.query(attempted, sql, &[&wanted.extension]).await?;
        let Some(row) = answer.first_row() else { return Ok(Observation::missing()) };
        let version: String = row.try_get(0).map_err(|e| failed(attempted, &e))?;
        let schema: String = row.try_get(1).map_err(|e| failed(attempted, &e))?;
        let mut filled = wanted.clone();
        let late = late_initialize(&mut filled.version, &version);
        let differs = |field: &str, wanted: &Option<String>, is: &str| {
            let wanted = wanted.as_deref().filter(|wanted| *wanted != is)?;
            Some(format!("{field} is {is:?}, not {wanted:?}"))
        };
        let differences: Vec<String> =
            [differs("version", &wanted.version, &version), differs("schema", &wanted.schema, &schema)]
                .into_iter()
                .flatten()
                .collect();
        Ok(Observation { late_initialized: late.then_some(filled), ..Observation::compared(&differences) })
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        let wanted = &resource.parameters;
        let mut sql = format!("CREATE EXTENSION IF NOT EXISTS {}", identifier(&wanted.extension));
        if let Some(schema) = &wanted.schema {
            sql.push_str(&format!(" SCHEMA {}", identifier(schema)));
        }
        if let Some(version) = &wanted.version {
            sql.push_str(&format!(" VERSION {}", identifier(version)));
        }
        session.execute("cannot create extension", &sql).await?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        let wanted = &resource.parameters;
        let name = identifier(&wanted.extension);
        let version =
            wanted.version.as_ref().map(|v| format!("ALTER EXTENSION {name} UPDATE TO {}", identifier(v)));
        let schema =
            wanted.schema.as_ref().map(|s| format!("ALTER EXTENSION {name} SET SCHEMA {}", identifier(s)));
        let statements: Vec<String> = version.into_iter().chain(schema).collect();
        session.transaction("cannot alter extension", &statements).await?;
        Ok(Update::default())
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let sql = format!("DROP EXTENSION IF EXISTS {}", identifier(&resource.parameters.extension));
        session.execute("cannot drop extension", &sql).await
    }
}
