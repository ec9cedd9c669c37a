//! Roles: users and groups, their attributes and passwords.
//!
//! A password never leaves the process except into the connection secret: the server is sent a SCRAM verifier, which its
//! logs may show. A crash between a change of the password and the write of the secret heals: the next reconcile finds
//! that the secret is not as it should be, and changes the password again.

use super::Generation;
use super::pool::{Answer, Pools, Session};
use super::statement::{failed, identifier, literal};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;
use transom_object::{GroupVersionKind, meta, time};
use transom_provider::schema::{flag, integer, list, object, text, with};
use transom_provider::{
    Creation, Details, Error, ErrorContext, External, Layout, ManagedKind, Observation, Resource, Result,
    Update, late_initialize, secret_data,
};

const PASSWORD_LENGTH: usize = 27;
const LAST_CHANGE: &str = "lastPasswordChange";

pub(super) struct Roles(pub(super) Arc<Pools>);

pub(super) fn kind(generation: Generation) -> ManagedKind {
    let attribute = |what: &str| flag(&format!("Whether the role {what}."));
    let privileges = object(
        "What the role may do.",
        &[],
        json!({
            "superUser": attribute("may do everything"),
            "inherit": attribute("has the privileges of the roles that it is a member of"),
            "createDb": attribute("may create databases"),
            "createRole": attribute("may create roles"),
            "login": attribute("may log in"),
            "replication": attribute("may replicate"),
            "bypassRls": attribute("is not subject to row-level security"),
        }),
    );
    let mut secret = object(
        "The Secret with the password; without it, a password is generated.",
        &["name", "key"],
        json!({"name": text("Its name."), "key": text("Its key with the password.")}),
    );
    if generation.layout == Layout::Legacy {
        secret["properties"]["namespace"] = text("Its namespace.");
        secret["required"] = json!(["name", "namespace", "key"]);
    }
    let parameter = || {
        let fields = json!({"name": text("Its name."), "value": text("Its value.")});
        list("Parameters of sessions of the role.", object("A parameter.", &[], fields))
    };
    let parameters = object(
        "The role.",
        &[],
        json!({
            "connectionLimit": integer("How many connections the role can have; -1 for no limit."),
            "privileges": privileges,
            "passwordSecretRef": secret,
            "configurationParameters": parameter(),
            "passwordRotationTrigger": with(
                text("A generated password that is older than this is changed."),
                json!({"format": "date-time"}),
            ),
        }),
    );
    let at_provider = object(
        "The role as it is.",
        &[],
        json!({
            "privilegesAsClauses": list("What the role may do.", text("An attribute.")),
            "configurationParameters": parameter(),
            "lastPasswordChange": with(text("When the password was last changed."), json!({"format": "date-time"})),
        }),
    );
    ManagedKind { at_provider: Some(at_provider), ..generation.kind("Role", "roles", parameters) }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    connection_limit: Option<i32>,
    privileges: Attributes,
    password_secret_ref: Option<SecretKey>,
    configuration_parameters: Option<Vec<Setting>>,
    password_rotation_trigger: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Attributes {
    super_user: Option<bool>,
    inherit: Option<bool>,
    create_db: Option<bool>,
    create_role: Option<bool>,
    login: Option<bool>,
    replication: Option<bool>,
    bypass_rls: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct SecretKey {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
struct Setting {
    name: String,
    value: String,
}

impl Attributes {
    /// The attributes in the order of their clauses.
    fn all(&self) -> [(&'static str, Option<bool>); 7] {
        [
            ("SUPERUSER", self.super_user),
            ("INHERIT", self.inherit),
            ("CREATEDB", self.create_db),
            ("CREATEROLE", self.create_role),
            ("LOGIN", self.login),
            ("REPLICATION", self.replication),
            ("BYPASSRLS", self.bypass_rls),
        ]
    }

    fn clauses(&self) -> Vec<String> {
        let clause = |(word, value): (&str, Option<bool>)| {
            Some(if value? { word.to_owned() } else { format!("NO{word}") })
        };
        self.all().into_iter().filter_map(clause).collect()
    }

    fn fill(&mut self, observed: &Self) -> bool {
        let mut any = false;
        for (wanted, observed) in [
            (&mut self.super_user, observed.super_user),
            (&mut self.inherit, observed.inherit),
            (&mut self.create_db, observed.create_db),
            (&mut self.create_role, observed.create_role),
            (&mut self.login, observed.login),
            (&mut self.replication, observed.replication),
            (&mut self.bypass_rls, observed.bypass_rls),
        ] {
            any |= observed.is_some_and(|observed| late_initialize(wanted, &observed));
        }
        any
    }
}

/// A role as it is.
struct Observed {
    attributes: Attributes,
    connection_limit: i32,
    settings: Vec<Setting>,
}

const SELECT: &str = "SELECT rolsuper, rolinherit, rolcreatedb, rolcreaterole, rolcanlogin, rolreplication, \
     rolbypassrls, rolconnlimit, rolconfig FROM pg_catalog.pg_roles WHERE rolname = $1";

impl Observed {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let config: Option<Vec<String>> = row.try_get(8)?;
        let setting = |text: &String| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Setting { name: name.to_owned(), value: value.to_owned() }
        };
        Ok(Self {
            attributes: Attributes {
                super_user: row.try_get(0)?,
                inherit: row.try_get(1)?,
                create_db: row.try_get(2)?,
                create_role: row.try_get(3)?,
                login: row.try_get(4)?,
                replication: row.try_get(5)?,
                bypass_rls: row.try_get(6)?,
            },
            connection_limit: row.try_get(7)?,
            settings: config.unwrap_or_default().iter().map(setting).collect(),
        })
    }
}

/// The items of a value that may be a list, without the quotes that the server adds.
fn items(value: &str) -> Vec<&str> {
    value.split(',').map(|item| item.trim().trim_matches(['"', '\''])).collect()
}

/// Settings by name, as they can be compared.
fn comparable(settings: &[Setting]) -> BTreeMap<String, Vec<&str>> {
    settings.iter().map(|setting| (setting.name.to_lowercase(), items(&setting.value))).collect()
}

/// The statement that sets a parameter: each item of a list is a literal.
fn set(role: &str, setting: &Setting) -> String {
    let values: Vec<String> = items(&setting.value).into_iter().map(literal).collect();
    format!("ALTER ROLE {role} SET {} TO {}", identifier(&setting.name), values.join(", "))
}

/// The changes that make a role as it should be, apart from its password, each with what differs.
fn changes(name: &str, wanted: &Parameters, observed: &Observed) -> Vec<(&'static str, String)> {
    let role = identifier(name);
    let mut statements = Vec::new();
    let current = observed.attributes.clauses();
    let differing: Vec<String> =
        wanted.privileges.clauses().into_iter().filter(|clause| !current.contains(clause)).collect();
    if !differing.is_empty() {
        statements.push(("privileges", format!("ALTER ROLE {role} {}", differing.join(" "))));
    }
    if let Some(settings) = &wanted.configuration_parameters
        && comparable(settings) != comparable(&observed.settings)
    {
        let all: Vec<String> = [format!("ALTER ROLE {role} RESET ALL")]
            .into_iter()
            .chain(settings.iter().map(|setting| set(&role, setting)))
            .collect();
        // One message with several statements is one transaction.
        statements.push(("configurationParameters", all.join("; ")));
    }
    if let Some(limit) = wanted.connection_limit.filter(|limit| *limit != observed.connection_limit) {
        statements.push(("connectionLimit", format!("ALTER ROLE {role} CONNECTION LIMIT {limit}")));
    }
    statements
}

/// Characters that need no escaping anywhere, each drawn with the same probability.
fn generate() -> Result<String> {
    const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let random = SystemRandom::new();
    let mut password = String::with_capacity(PASSWORD_LENGTH);
    while password.len() < PASSWORD_LENGTH {
        let mut byte = [0];
        random.fill(&mut byte).map_err(|_| Error::domain("cannot generate a password"))?;
        // Of 256 values, 248 are four times each character.
        if usize::from(byte[0]) < CHARACTERS.len() * 4 {
            password.push(char::from(CHARACTERS[usize::from(byte[0]) % CHARACTERS.len()]));
        }
    }
    Ok(password)
}

/// What the server keeps of a password.
fn verifier(password: &str) -> String {
    literal(&postgres_protocol::password::scram_sha_256(password.as_bytes()))
}

impl Roles {
    async fn find(session: &Session, name: &str) -> Result<Option<Observed>> {
        let attempted = "cannot select role";
        match session.query(attempted, SELECT, &[&name]).await? {
            Answer::NoDatabase => Err(Error::domain("the default database does not exist")),
            Answer::Rows(rows) => {
                rows.first().map(Observed::read).transpose().map_err(|e| failed(attempted, &e))
            }
        }
    }

    /// The password that a Secret of the user has.
    async fn given_password(resource: &Resource<'_, Parameters>) -> Result<Option<String>> {
        let Some(reference) = &resource.parameters.password_secret_ref else { return Ok(None) };
        let namespace = match resource.layout {
            Layout::Legacy => reference.namespace.as_deref().unwrap_or_default(),
            Layout::Modern => meta::namespace(resource.object),
        };
        let attempted = "cannot get password secret";
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let live = resource.cluster.get(&kind, namespace, &reference.name).await.context(attempted)?;
        let missing =
            || Error::domain(format!("secrets {:?} not found in namespace {namespace:?}", reference.name));
        let data = secret_data(&live.ok_or_else(missing).context(attempted)?);
        let value = data.get(&reference.key).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// Whether the password must be changed, and to which one if the user gave one.
    async fn password_change(resource: &Resource<'_, Parameters>) -> Result<Option<Option<String>>> {
        let Some(published) = resource.published().await? else { return Ok(None) };
        let published = published.get("password").filter(|password| !password.is_empty());
        if resource.parameters.password_secret_ref.is_some() {
            let given = Self::given_password(resource).await?;
            let differs = |given: &String| published.map(Vec::as_slice) != Some(given.as_bytes());
            return Ok(given.filter(differs).map(Some));
        }
        let last = resource.at_provider(LAST_CHANGE).and_then(Value::as_str).map(str::to_owned);
        let created = || {
            meta::annotation(resource.object, "crossplane.io/external-create-succeeded").map(str::to_owned)
        };
        let last = last.or_else(created).and_then(|text| time::parse(&text).ok());
        let trigger = resource.parameters.password_rotation_trigger.as_deref();
        let trigger = trigger.and_then(|text| time::parse(text).ok());
        let is_due =
            trigger.is_some_and(|trigger| last.is_none_or(|last| trigger > last) && trigger <= resource.now);
        Ok((is_due || published.is_none()).then_some(None))
    }

    fn connection(session: &Session, name: &str, password: &str) -> Details {
        let target = session.target();
        Details::from([
            ("username".to_owned(), name.as_bytes().to_vec()),
            ("password".to_owned(), password.as_bytes().to_vec()),
            ("endpoint".to_owned(), target.endpoint.as_bytes().to_vec()),
            ("port".to_owned(), target.port.as_bytes().to_vec()),
        ])
    }
}

impl External for Roles {
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
        let changes = changes(name, &resource.parameters, &observed);
        let mut differences: Vec<String> =
            changes.into_iter().map(|(what, _)| format!("{what} differs")).collect();
        if !resource.is_deleting() && Self::password_change(resource).await?.is_some() {
            differences.push("password differs".to_owned());
        }
        let mut filled = resource.parameters.clone();
        let late = filled.privileges.fill(&observed.attributes);
        let late = late_initialize(&mut filled.connection_limit, &observed.connection_limit) || late;
        let mut at_provider = json!({"privilegesAsClauses": observed.attributes.clauses()});
        if !observed.settings.is_empty() {
            at_provider["configurationParameters"] = json!(observed.settings);
        }
        if let Some(last) = resource.at_provider(LAST_CHANGE) {
            at_provider[LAST_CHANGE] = last.clone();
        }
        Ok(Observation {
            late_initialized: late.then_some(filled),
            at_provider: Some(at_provider),
            ..Observation::compared(&differences)
        })
    }

    async fn create(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Creation> {
        let name = resource.external_name();
        let password = match Self::given_password(resource).await? {
            Some(password) => password,
            None => generate()?,
        };
        let role = identifier(name);
        let wanted = &resource.parameters;
        let mut clauses = wanted.privileges.clauses();
        clauses.insert(0, format!("PASSWORD {}", verifier(&password)));
        clauses.extend(wanted.connection_limit.map(|limit| format!("CONNECTION LIMIT {limit}")));
        let settings = wanted.configuration_parameters.iter().flatten().map(|setting| set(&role, setting));
        let statements: Vec<String> =
            [format!("CREATE ROLE {role} {}", clauses.join(" "))].into_iter().chain(settings).collect();
        session.transaction("cannot create role", &statements).await?;
        Ok(Creation { connection: Self::connection(session, name, &password), external_name: None })
    }

    async fn update(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<Update> {
        let name = resource.external_name();
        let Some(observed) = Self::find(session, name).await? else { return Ok(Update::default()) };
        for (_, sql) in changes(name, &resource.parameters, &observed) {
            session.execute("cannot update role", &sql).await?;
        }
        // Last: an error of the others would lose the new password.
        let Some(given) = Self::password_change(resource).await? else { return Ok(Update::default()) };
        let password = match given {
            Some(password) => password,
            None => generate()?,
        };
        let sql = format!("ALTER ROLE {} PASSWORD {}", identifier(name), verifier(&password));
        session.execute("cannot update role password", &sql).await?;
        let changed = Map::from_iter([(LAST_CHANGE.to_owned(), time::format(resource.now).into())]);
        Ok(Update {
            connection: Self::connection(session, name, &password),
            at_provider: changed,
            ..Update::default()
        })
    }

    async fn delete(&self, session: &Session, resource: &Resource<'_, Parameters>) -> Result<()> {
        let sql = format!("DROP ROLE IF EXISTS {}", identifier(resource.external_name()));
        session.execute("cannot drop role", &sql).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        let attributes = Attributes {
            super_user: Some(false),
            inherit: Some(true),
            create_db: Some(false),
            create_role: Some(false),
            login: Some(false),
            replication: Some(false),
            bypass_rls: Some(false),
        };
        let setting = |name: &str, value: &str| Setting { name: name.to_owned(), value: value.to_owned() };
        let settings = vec![setting("search_path", "\"$user\", public"), setting("work_mem", "a=b")];
        Observed { attributes, connection_limit: -1, settings }
    }

    fn statements(parameters: &Value) -> Vec<String> {
        let wanted = Parameters::deserialize(parameters).unwrap();
        changes("r", &wanted, &observed()).into_iter().map(|(_, sql)| sql).collect()
    }

    #[test]
    fn only_what_differs_is_changed() {
        assert_eq!(
            statements(&json!({"privileges": {"login": true, "inherit": true}})),
            ["ALTER ROLE \"r\" LOGIN"],
            "P8"
        );
        assert_eq!(statements(&json!({"connectionLimit": -1})), Vec::<String>::new());
        assert_eq!(statements(&json!({"connectionLimit": 4})), ["ALTER ROLE \"r\" CONNECTION LIMIT 4"]);
        let same = json!([{"name": "work_mem", "value": "a=b"}, {"name": "search_path", "value": "\"$user\", public"}]);
        assert_eq!(statements(&json!({"configurationParameters": same})), Vec::<String>::new());
        let other = json!([{"name": "search_path", "value": "\"$user\", other"}]);
        let expected = "ALTER ROLE \"r\" RESET ALL; ALTER ROLE \"r\" SET \"search_path\" TO '$user', 'other'";
        assert_eq!(statements(&json!({"configurationParameters": other})), [expected], "P9");
    }

    #[test]
    fn unset_attributes_are_filled_once() {
        let mut attributes = Attributes { login: Some(true), ..Attributes::default() };
        assert!(attributes.fill(&observed().attributes));
        assert_eq!((attributes.login, attributes.inherit), (Some(true), Some(true)));
        assert!(!attributes.fill(&observed().attributes));
    }

    #[test]
    fn passwords_differ_and_are_not_sent() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert!(one != other && one.len() == PASSWORD_LENGTH, "P5");
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert!(verifier(&one).starts_with("'SCRAM-SHA-256$") && !verifier(&one).contains(&one));
    }
}
