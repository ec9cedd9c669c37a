//! The kind `Database`: creates, changes and drops databases. What PostgreSQL cannot change later is reported as a difference.

use super::Generation;
use super::pool::{Answer, Pools, Session};
use super::statement::{failed, identifier, literal, or_default};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use tokio_postgres::Row;
use transom_provider::schema::{choice, flag, integer, object, ruled, text};
use transom_provider::{
    Creation, Error, External, ManagedKind, Observation, Resource, Result, Update, late_initialize,
};

pub(super) struct Databases(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let parameters = object(
        "The database.",
        &[],
        json!({
            "owner": text("The role that owns the database."),
            "template": text("The database that it is a copy of, or DEFAULT."),
            "strategy": choice("How it is copied; needs PostgreSQL 15.", &["WAL_LOG", "FILE_COPY"]),
            "encoding": text("The encoding of characters, or DEFAULT."),
            "lcCollate": text("LC_COLLATE, or DEFAULT."),
            "lcCType": text("LC_CTYPE, or DEFAULT."),
            "tablespace": text("The tablespace, or DEFAULT."),
            "allowConnections": flag("Whether clients can connect."),
            "connectionLimit": integer("How many connections there can be; -1 for no limit."),
            "isTemplate": flag("Whether others can copy it."),
        }),
    );
    let fixed = "has(self.strategy) == has(oldSelf.strategy) && (!has(self.strategy) || self.strategy == oldSelf.strategy)";
    let parameters = ruled(parameters, &[(fixed, "strategy is immutable")]);
    ManagedKind {
        references: vec![generation.reference("owner", "Role")],
        ..generation.kind("Database", "databases", parameters)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    owner: Option<String>,
    template: Option<String>,
    strategy: Option<String>,
    encoding: Option<String>,
    lc_collate: Option<String>,
    #[serde(rename = "lcCType")]
    lc_ctype: Option<String>,
    tablespace: Option<String>,
    allow_connections: Option<bool>,
    connection_limit: Option<i32>,
    is_template: Option<bool>,
}

/// A database as it is.
struct Observed {
    owner: String,
    encoding: String,
    lc_collate: String,
    lc_ctype: String,
    allow_connections: bool,
    connection_limit: i32,
    is_template: bool,
    tablespace: String,
}

const SELECT: &str = "SELECT pg_get_userbyid(d.datdba)::text, pg_encoding_to_char(d.encoding)::text, \
     d.datcollate::text, d.datctype::text, d.datallowconn, d.datconnlimit, d.datistemplate, t.spcname::text \
     FROM pg_catalog.pg_database d JOIN pg_catalog.pg_tablespace t ON t.oid = d.dattablespace WHERE d.datname = $1";

impl Observed {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            owner: row.try_get(0)?,
            encoding: row.try_get(1)?,
            lc_collate: row.try_get(2)?,
            lc_ctype: row.try_get(3)?,
            allow_connections: row.try_get(4)?,
            connection_limit: row.try_get(5)?,
            is_template: row.try_get(6)?,
            tablespace: row.try_get(7)?,
        })
    }
}

/// The changes that make a database as it should be, and the differences that cannot be changed.
fn changes(
    name: &str,
    wanted: &Parameters,
    observed: &Observed,
) -> (Vec<(&'static str, String)>, Vec<String>) {
    let name = identifier(name);
    let mut statements = Vec::new();
    if let Some(owner) = wanted.owner.as_ref().filter(|owner| **owner != observed.owner) {
        let sql = format!("ALTER DATABASE {name} OWNER TO {}", identifier(owner));
        statements.push(("owner", sql));
    }
    if let Some(limit) = wanted.connection_limit.filter(|limit| *limit != observed.connection_limit) {
        statements.push(("connection limit", format!("ALTER DATABASE {name} CONNECTION LIMIT = {limit}")));
    }
    if let Some(allow) = wanted.allow_connections.filter(|allow| *allow != observed.allow_connections) {
        statements.push(("allow connections", format!("ALTER DATABASE {name} ALLOW_CONNECTIONS = {allow}")));
    }
    if let Some(is) = wanted.is_template.filter(|is| *is != observed.is_template) {
        statements.push(("is template", format!("ALTER DATABASE {name} IS_TEMPLATE = {is}")));
    }
    let fixed = [
        ("encoding", &wanted.encoding, &observed.encoding),
        ("lcCollate", &wanted.lc_collate, &observed.lc_collate),
        ("lcCType", &wanted.lc_ctype, &observed.lc_ctype),
        ("tablespace", &wanted.tablespace, &observed.tablespace),
    ];
    let differs = |(field, wanted, is): (&str, &Option<String>, &String)| {
        let wanted = wanted.as_ref().filter(|wanted| *wanted != is && *wanted != "DEFAULT")?;
        Some(format!("{field} is {is:?} and cannot be changed to {wanted:?}"))
    };
    (statements, fixed.into_iter().filter_map(differs).collect())
}

/// The statement that creates a database.
fn create(name: &str, wanted: &Parameters) -> String {
    let mut sql = format!("CREATE DATABASE {}", identifier(name));
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value {
            sql.push_str(&format!(" {word} {value}"));
        }
    };
    let named =
        |value: &Option<String>, quote: fn(&str) -> String| value.as_ref().map(|v| or_default(v, quote));
    add("OWNER", wanted.owner.as_deref().map(identifier));
    add("TEMPLATE", named(&wanted.template, identifier));
    add("STRATEGY", wanted.strategy.as_deref().map(literal));
    add("ENCODING", named(&wanted.encoding, literal));
    add("LC_COLLATE", named(&wanted.lc_collate, literal));
    add("LC_CTYPE", named(&wanted.lc_ctype, literal));
    add("TABLESPACE", named(&wanted.tablespace, identifier));
    add("ALLOW_CONNECTIONS", wanted.allow_connections.map(|value| value.to_string()));
    add("CONNECTION LIMIT", wanted.connection_limit.map(|value| value.to_string()));
    add("IS_TEMPLATE", wanted.is_template.map(|value| value.to_string()));
    sql
}

fn late_initialized(wanted: &Parameters, observed: &Observed) -> Option<Parameters> {
    let mut filled = wanted.clone();
    let any = [
        late_initialize(&mut filled.owner, &observed.owner),
        late_initialize(&mut filled.encoding, &observed.encoding),
        late_initialize(&mut filled.lc_collate, &observed.lc_collate),
        late_initialize(&mut filled.lc_ctype, &observed.lc_ctype),
        late_initialize(&mut filled.allow_connections, &observed.allow_connections),
        late_initialize(&mut filled.connection_limit, &observed.connection_limit),
        late_initialize(&mut filled.is_template, &observed.is_template),
        late_initialize(&mut filled.tablespace, &observed.tablespace),
    ];
    any.contains(&true).then_some(filled)
}

impl Databases {
    async fn find(session: &Session, name: &str) -> Result<Option<Observed>> {
        let attempted = "cannot select database";
        match session.query(attempted, SELECT, &[&name]).await? {
            Answer::NoDatabase => Err(Error::domain("the default database does not exist")),
            Answer::Rows(rows) => {
                rows.first().map(Observed::read).transpose().map_err(|e| failed(attempted, &e))
            }
        }
    }
}

impl External for Databases {
    type Parameters = Parameters;
    type Session = Session;

    async fn connect(&self, resource: &Resource<'_, Parameters>) -> Result<Session> {
        self.0.session(resource, None).await
    }

    async fn observe(
        &self,
        session: &Session,
        resource: &Resource<'_, Parameters>,
    ) -> Result<Observation<Parameters>> {
        let name = resource.external_name();
        let Some(observed) = Self::find(session, name).await? else { return Ok(Observation::missing()) };
        let (statements, fixed) = changes(name, &resource.parameters, &observed);
        let differing = statements.iter().map(|(what, _)| format!("{what} differs"));
        let difference = differing.chain(fixed).collect::<Vec<_>>().join("; ");
        Ok(Observation {
            up_to_date: statements.is_empty(),
            difference,
            late_initialized: late_initialized(&resource.parameters, &observed),
            ..Observation::up_to_date()
        })
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        if resource.parameters.strategy.is_some() {
            let version = session.server_version().await?;
            if version < 150_000 {
                return Err(Error::permanent(format!(
                    "database strategy requires PostgreSQL 15+; found server_version_num={version}"
                )));
            }
        }
        let sql = create(resource.external_name(), &resource.parameters);
        session.execute("cannot create database", &sql).await?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        let name = resource.external_name();
        if let Some(observed) = Self::find(session, name).await? {
            for (what, sql) in changes(name, &resource.parameters, &observed).0 {
                session.execute(&format!("cannot alter database {what}"), &sql).await?;
            }
        }
        Ok(Update::default())
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let sql = format!("DROP DATABASE IF EXISTS {}", identifier(resource.external_name()));
        session.leave(resource.external_name());
        session.execute("cannot drop database", &sql).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        let text = |text: &str| text.to_owned();
        Observed {
            owner: text("o"),
            encoding: text("UTF8"),
            lc_collate: text("C"),
            lc_ctype: text("C"),
            allow_connections: true,
            connection_limit: -1,
            is_template: false,
            tablespace: text("pg_default"),
        }
    }

    #[test]
    fn clauses_are_in_order_and_quoted() {
        let wanted =
            Parameters { owner: Some("o".to_owned()), connection_limit: Some(5), ..Parameters::default() };
        assert_eq!(
            create("a\"b", &wanted),
            "CREATE DATABASE \"a\"\"b\" OWNER \"o\" CONNECTION LIMIT 5",
            "P1"
        );
        let wanted = Parameters {
            template: Some("DEFAULT".to_owned()),
            encoding: Some("it's".to_owned()),
            strategy: Some("WAL_LOG".to_owned()),
            ..Parameters::default()
        };
        let expected = "CREATE DATABASE \"d\" TEMPLATE DEFAULT STRATEGY 'WAL_LOG' ENCODING 'it''s'";
        assert_eq!(create("d", &wanted), expected);
    }

    #[test]
    fn unset_fields_are_filled_and_set_ones_compared() {
        let filled = late_initialized(&Parameters::default(), &observed()).unwrap();
        assert!(late_initialized(&filled, &observed()).is_none(), "P2");
        assert_eq!(changes("d", &filled, &observed()), (vec![], vec![]));
        let wanted = Parameters {
            owner: Some("p".to_owned()),
            connection_limit: Some(3),
            encoding: Some("LATIN1".to_owned()),
            lc_collate: Some("DEFAULT".to_owned()),
            ..Parameters::default()
        };
        let (statements, fixed) = changes("d", &wanted, &observed());
        let statements: Vec<String> = statements.into_iter().map(|(_, sql)| sql).collect();
        assert_eq!(
            statements,
            ["ALTER DATABASE \"d\" OWNER TO \"p\"", "ALTER DATABASE \"d\" CONNECTION LIMIT = 3"]
        );
        assert_eq!(fixed, ["encoding is \"UTF8\" and cannot be changed to \"LATIN1\""]);
    }
}
