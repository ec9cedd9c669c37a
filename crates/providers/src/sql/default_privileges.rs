//! Default privileges: what a role is granted on the objects that another role will create.

use super::Generation;
use super::pool::{Answer, Pools, Session};
use super::privileges::{Granted, Target, compare};
use super::statement::{failed, identifier};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use transom_provider::schema::{choice, list, object, ruled, text, with};
use transom_provider::{Creation, Error, External, ManagedKind, Observation, Resource, Result, Update};

pub(super) struct Defaults(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let privilege = with(text("A privilege."), json!({"pattern": "^[A-Z]+( [A-Z]+)*$"}));
    let parameters = object(
        "What is granted on which future objects.",
        &["objectType", "targetRole"],
        json!({
            "privileges": with(list("What the role may do.", privilege), json!({"minItems": 1})),
            "targetRole": text("The role that will create the objects."),
            "objectType": choice("What the objects are.", &["table", "sequence", "function", "schema", "type"]),
            "withOption": choice("Whether the role may grant it to others.", &["ADMIN", "GRANT"]),
            "role": text("The role that it is granted to."),
            "database": text("The database."),
            "schema": text("The schema that the objects will be in."),
        }),
    );
    let parameters = ruled(
        parameters,
        &[
            (
                "self.objectType == 'schema' || has(self.schema)",
                "schema is required when objectType is not schema",
            ),
            (
                "self.objectType != 'schema' || !has(self.schema)",
                "schema must not be set when objectType is schema",
            ),
        ],
    );
    ManagedKind {
        references: vec![generation.reference("role", "Role"), generation.reference("database", "Database")],
        ..generation.kind("DefaultPrivileges", "defaultprivileges", parameters)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    privileges: Vec<String>,
    target_role: Option<String>,
    object_type: Option<String>,
    with_option: Option<String>,
    role: Option<String>,
    database: Option<String>,
    schema: Option<String>,
}

/// What is checked before any query.
struct Checked<'a> {
    role: &'a str,
    target_role: &'a str,
    target: Target,
    /// The letter of the catalog for the type of objects.
    letter: &'static str,
    plural: &'static str,
    schema: &'a str,
}

fn need<'a>(value: Option<&'a str>, words: &'static str) -> Result<&'a str> {
    value.ok_or_else(|| Error::permanent(words))
}

fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

impl Parameters {
    fn check(&self) -> Result<Checked<'_>> {
        let role = need(given(&self.role), "role not passed or could not be resolved")?;
        let target_role = need(given(&self.target_role), "target role not passed or could not be resolved")?;
        let (target, letter, plural) = match need(given(&self.object_type), "object type not passed")? {
            "table" => (Target::Table, "r", "TABLES"),
            "sequence" => (Target::Sequence, "S", "SEQUENCES"),
            "function" => (Target::Routine, "f", "FUNCTIONS"),
            "schema" => (Target::Schema, "n", "SCHEMAS"),
            "type" => (Target::Type, "T", "TYPES"),
            other => {
                return Err(Error::permanent(format!(
                    "spec.forProvider.objectType: {other:?} is not supported"
                )));
            }
        };
        let schema = match (target, given(&self.schema)) {
            (Target::Schema, Some(_)) => {
                return Err(Error::permanent("schema must not be set when objectType is schema"));
            }
            (Target::Schema, None) => "",
            (_, schema) => need(schema, "schema is required when objectType is not schema")?,
        };
        Ok(Checked { role, target_role, target, letter, plural, schema })
    }

    fn statements(&self, privileges: &BTreeSet<String>) -> Result<[String; 2]> {
        let Checked { role, target_role, plural, schema, .. } = self.check()?;
        let scope =
            if schema.is_empty() { String::new() } else { format!(" IN SCHEMA {}", identifier(schema)) };
        let start = format!("ALTER DEFAULT PRIVILEGES FOR ROLE {}{scope}", identifier(target_role));
        let words: Vec<&str> = privileges.iter().map(String::as_str).collect();
        let option = if self.with_option.as_deref() == Some("GRANT") { " WITH GRANT OPTION" } else { "" };
        let role = identifier(role);
        Ok([
            format!("{start} REVOKE ALL ON {plural} FROM {role}"),
            format!("{start} GRANT {} ON {plural} TO {role}{option}", words.join(", ")),
        ])
    }
}

const ATTEMPTED: &str = "cannot select default privileges";

impl Defaults {
    async fn apply(session: &Session, wanted: &Parameters, attempted: &str) -> Result<()> {
        let version = session.server_version().await?;
        let privileges = wanted.check()?.target.expand(&wanted.privileges, version)?;
        session.transaction(attempted, &wanted.statements(&privileges)?).await
    }
}

impl External for Defaults {
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
        if resource.is_deleting() && wanted.check().is_err() {
            return Ok(Observation::missing());
        }
        let Checked { role, target_role, target, letter, schema, .. } = wanted.check()?;
        let sql = "SELECT a.privilege_type, a.is_grantable FROM pg_default_acl d \
                   JOIN pg_roles t ON t.oid = d.defaclrole LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace, \
                   aclexplode(d.defaclacl) a JOIN pg_roles r ON r.oid = a.grantee \
                   WHERE r.rolname = $1 AND t.rolname = $2 AND d.defaclobjtype::text = $3 \
                   AND coalesce(n.nspname::text, '') = $4";
        let answer = session.query(ATTEMPTED, sql, &[&role, &target_role, &letter, &schema]).await?;
        let Answer::Rows(rows) = answer else { return Ok(Observation::missing()) };
        if rows.is_empty() {
            return Ok(Observation::missing());
        }
        let mut granted = Granted::new();
        for row in &rows {
            let unreadable = |e: tokio_postgres::Error| failed(ATTEMPTED, &e);
            let privilege: String = row.try_get(0).map_err(unreadable)?;
            let grantable: bool = row.try_get(1).map_err(unreadable)?;
            granted.entry(String::new()).or_default().insert(privilege, grantable);
        }
        let version = session.server_version().await?;
        let privileges = target.expand(&wanted.privileges, version)?;
        let grantable = wanted.with_option.as_deref() == Some("GRANT");
        let found = compare(&[String::new()], &privileges, grantable, &granted);
        let more =
            granted.values().flat_map(|held| held.keys()).any(|privilege| !privileges.contains(privilege));
        if found.missing.is_empty() && !more {
            return Ok(Observation::up_to_date());
        }
        Ok(Observation::differs("the default privileges differ"))
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        Self::apply(session, &resource.parameters, "cannot create default privileges").await?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        Self::apply(session, &resource.parameters, "cannot update default privileges").await?;
        Ok(Update::default())
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let [revoke, _] = resource.parameters.statements(&BTreeSet::new())?;
        session.execute("cannot revoke default privileges", &revoke).await
    }
}
