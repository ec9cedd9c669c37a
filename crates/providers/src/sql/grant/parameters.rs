//! The parameters of a Grant, and the statements that implement them. Pure.

use crate::sql::privileges::Target;
use crate::sql::statement::{identifier, identifiers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use transom_provider::{Error, Result};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::sql) struct Parameters {
    pub(super) privileges: Vec<String>,
    pub(super) with_option: Option<String>,
    pub(super) role: Option<String>,
    pub(super) database: Option<String>,
    pub(super) schema: Option<String>,
    pub(super) member_of: Option<String>,
    pub(super) revoke_public_on_db: Option<bool>,
    pub(super) tables: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) sequences: Vec<String>,
    pub(super) foreign_data_wrappers: Vec<String>,
    pub(super) foreign_servers: Vec<String>,
    pub(super) routines: Vec<Routine>,
    pub(super) with_inherit: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Routine {
    name: String,
    args: Vec<String>,
}

/// What a Grant is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Membership,
    Objects(Target),
}

fn is_set(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

impl Parameters {
    pub(super) fn role(&self) -> Result<&str> {
        let missing = || Error::permanent("role not passed or could not be resolved");
        self.role.as_deref().filter(|role| !role.is_empty()).ok_or_else(missing)
    }

    pub(super) fn subject(&self) -> Result<Subject> {
        if is_set(&self.member_of) {
            if is_set(&self.database) || !self.privileges.is_empty() {
                return Err(Error::permanent(
                    "cannot set privileges or database in the same grant as memberOf",
                ));
            }
            return Ok(Subject::Membership);
        }
        if self.with_inherit.is_some() {
            return Err(Error::permanent("withInherit is only valid for memberOf grants"));
        }
        let fields = [
            is_set(&self.database),
            is_set(&self.schema),
            !self.tables.is_empty(),
            !self.columns.is_empty(),
            !self.sequences.is_empty(),
            !self.routines.is_empty(),
            !self.foreign_data_wrappers.is_empty(),
            !self.foreign_servers.is_empty(),
        ];
        let shown: String = fields.iter().map(|set| if *set { '1' } else { '0' }).collect();
        let target = match shown.as_str() {
            "10000000" => Target::Database,
            "11000000" => Target::Schema,
            "11100000" => Target::Table,
            "11110000" => Target::Column,
            "11001000" => Target::Sequence,
            "11000100" => Target::Routine,
            "10000010" => Target::ForeignDataWrapper,
            "10000001" => Target::ForeignServer,
            _ => return Err(Error::permanent("cannot identify grant type based on passed params")),
        };
        if self.privileges.is_empty() {
            return Err(Error::permanent("privileges not passed"));
        }
        Ok(Subject::Objects(target))
    }

    pub(super) fn is_grantable(&self) -> bool {
        self.with_option.as_deref() == Some("GRANT")
    }

    /// The names of the objects, as the query about them returns them.
    pub(super) fn objects(&self, target: Target) -> Vec<String> {
        match target {
            Target::Database => self.database.iter().cloned().collect(),
            Target::Schema => self.schema.iter().cloned().collect(),
            Target::Table => self.tables.clone(),
            Target::Column => {
                let columns = |table: &String| -> Vec<String> {
                    self.columns.iter().map(|column| format!("{table}.{column}")).collect()
                };
                self.tables.iter().flat_map(columns).collect()
            }
            Target::Sequence => self.sequences.clone(),
            Target::ForeignDataWrapper => self.foreign_data_wrappers.clone(),
            Target::ForeignServer => self.foreign_servers.clone(),
            Target::Routine | Target::Type => {
                self.routines.iter().map(|routine| self.signature(routine)).collect()
            }
        }
    }

    fn signature(&self, routine: &Routine) -> String {
        let schema = identifier(self.schema.as_deref().unwrap_or_default());
        format!("{schema}.{}({})", identifier(&routine.name), routine.args.join(", "))
    }

    /// The statements that revoke privileges.
    pub(super) fn revoke(
        &self,
        target: Target,
        privileges: &BTreeSet<String>,
        signatures: &[String],
    ) -> Result<String> {
        let role = identifier(self.role()?);
        Ok(format!("REVOKE {} FROM {role}", self.on(target, privileges, signatures)))
    }

    pub(super) fn grant(
        &self,
        target: Target,
        privileges: &BTreeSet<String>,
        signatures: &[String],
    ) -> Result<String> {
        let role = identifier(self.role()?);
        let option = if self.is_grantable() { " WITH GRANT OPTION" } else { "" };
        Ok(format!("GRANT {} TO {role}{option}", self.on(target, privileges, signatures)))
    }

    /// `SELECT, INSERT ON TABLE "s"."t"`.
    fn on(&self, target: Target, privileges: &BTreeSet<String>, signatures: &[String]) -> String {
        let schema = identifier(self.schema.as_deref().unwrap_or_default());
        let qualified = |names: &[String]| {
            names.iter().map(|name| format!("{schema}.{}", identifier(name))).collect::<Vec<_>>().join(", ")
        };
        let objects = match target {
            Target::Database => format!("DATABASE {}", identifiers(&self.objects(target))),
            Target::Schema => format!("SCHEMA {}", identifiers(&self.objects(target))),
            Target::Table | Target::Column => format!("TABLE {}", qualified(&self.tables)),
            Target::Sequence => format!("SEQUENCE {}", qualified(&self.sequences)),
            Target::Routine | Target::Type => format!("ROUTINE {}", signatures.join(", ")),
            Target::ForeignDataWrapper => {
                format!("FOREIGN DATA WRAPPER {}", identifiers(&self.objects(target)))
            }
            Target::ForeignServer => format!("FOREIGN SERVER {}", identifiers(&self.objects(target))),
        };
        let columns = format!(" ({})", identifiers(&self.columns));
        let of_columns = if target == Target::Column { columns.as_str() } else { "" };
        let words: Vec<String> =
            privileges.iter().map(|privilege| format!("{privilege}{of_columns}")).collect();
        format!("{} ON {objects}", words.join(", "))
    }

    pub(super) fn membership(&self, group: &str) -> Result<Vec<String>> {
        let (group, role) = (identifier(group), identifier(self.role()?));
        let mut options = Vec::new();
        if self.with_option.as_deref() == Some("ADMIN") {
            options.push("ADMIN OPTION".to_owned());
        }
        options.extend(
            self.with_inherit.map(|inherit| format!("INHERIT {}", if inherit { "TRUE" } else { "FALSE" })),
        );
        let with = if options.is_empty() { String::new() } else { format!(" WITH {}", options.join(", ")) };
        Ok(vec![format!("REVOKE {group} FROM {role}"), format!("GRANT {group} TO {role}{with}")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parameters(value: &Value) -> Parameters {
        Parameters::deserialize(value).unwrap()
    }

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn fields_say_what_a_grant_is_about() {
        let error = |value: &Value| parameters(value).subject().unwrap_err().to_string();
        let target = |value: &Value| parameters(value).subject().unwrap();
        let privileges = json!(["ALL"]);
        let of = |more: &Value| {
            let mut all = json!({"role": "r", "database": "d", "privileges": privileges});
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            target(&all)
        };
        assert_eq!(of(&json!({})), Subject::Objects(Target::Database));
        assert_eq!(of(&json!({"schema": "s"})), Subject::Objects(Target::Schema));
        assert_eq!(of(&json!({"schema": "s", "tables": ["t"]})), Subject::Objects(Target::Table));
        assert_eq!(
            of(&json!({"schema": "s", "tables": ["t"], "columns": ["c"]})),
            Subject::Objects(Target::Column)
        );
        assert_eq!(of(&json!({"schema": "s", "sequences": ["q"]})), Subject::Objects(Target::Sequence));
        assert_eq!(
            of(&json!({"schema": "s", "routines": [{"name": "f"}]})),
            Subject::Objects(Target::Routine)
        );
        assert_eq!(of(&json!({"foreignServers": ["f"]})), Subject::Objects(Target::ForeignServer));
        assert_eq!(target(&json!({"role": "r", "memberOf": "g"})), Subject::Membership);
        for (value, expected) in [
            (
                json!({"memberOf": "g", "privileges": ["X"]}),
                "cannot set privileges or database in the same grant as memberOf",
            ),
            (json!({"database": "d"}), "privileges not passed"),
            (
                json!({"schema": "s", "privileges": ["ALL"]}),
                "cannot identify grant type based on passed params",
            ),
            (
                json!({"database": "d", "withInherit": true, "privileges": ["ALL"]}),
                "withInherit is only valid for memberOf grants",
            ),
        ] {
            assert_eq!(error(&value), expected, "P12: {value}");
        }
    }

    #[test]
    fn statements_are_quoted() {
        let wanted = parameters(&json!({
            "role": "r\"x", "database": "d", "schema": "s", "tables": ["t", "u"], "columns": ["c"],
            "privileges": ["SELECT"], "withOption": "GRANT",
        }));
        assert_eq!(
            wanted.grant(Target::Column, &set(&["INSERT", "SELECT"]), &[]).unwrap(),
            "GRANT INSERT (\"c\"), SELECT (\"c\") ON TABLE \"s\".\"t\", \"s\".\"u\" TO \"r\"\"x\" WITH GRANT OPTION"
        );
        assert_eq!(
            wanted.revoke(Target::Database, &set(&["CONNECT"]), &[]).unwrap(),
            "REVOKE CONNECT ON DATABASE \"d\" FROM \"r\"\"x\""
        );
        let member =
            parameters(&json!({"role": "r", "memberOf": "g", "withOption": "ADMIN", "withInherit": false}));
        let statements = member.membership("g").unwrap();
        assert_eq!(statements[1], "GRANT \"g\" TO \"r\" WITH ADMIN OPTION, INHERIT FALSE", "P14");
        assert!(parameters(&json!({})).role().is_err());
    }
}
