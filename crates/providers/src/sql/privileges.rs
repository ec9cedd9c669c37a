//! Privileges on objects of a database: which there are, and what is granted.

use std::collections::{BTreeMap, BTreeSet};
use transom_provider::{Error, Result};

/// What privileges are granted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Database,
    Schema,
    Table,
    Column,
    Sequence,
    Routine,
    Type,
    ForeignDataWrapper,
    ForeignServer,
}

impl Target {
    /// What `ALL` means on a server of this version.
    fn all(self, server_version: i32) -> Vec<&'static str> {
        match self {
            Self::Database => vec!["CREATE", "TEMPORARY", "CONNECT"],
            Self::Schema => vec!["CREATE", "USAGE"],
            Self::Table => {
                let mut all =
                    vec!["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
                all.extend((server_version >= 170_000).then_some("MAINTAIN"));
                all
            }
            Self::Column => vec!["SELECT", "INSERT", "UPDATE", "REFERENCES"],
            Self::Sequence => vec!["USAGE", "SELECT", "UPDATE"],
            Self::Routine => vec!["EXECUTE"],
            Self::Type | Self::ForeignDataWrapper | Self::ForeignServer => vec!["USAGE"],
        }
    }

    /// The privileges that a list stands for.
    pub(super) fn expand(self, privileges: &[String], server_version: i32) -> Result<BTreeSet<String>> {
        let mut expanded = BTreeSet::new();
        for privilege in privileges {
            match privilege.as_str() {
                "ALL" | "ALL PRIVILEGES" => {
                    expanded.extend(self.all(server_version).into_iter().map(str::to_owned));
                }
                "TEMP" => {
                    expanded.insert("TEMPORARY".to_owned());
                }
                // What is not a word would be SQL.
                word if !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b' ') => {
                    expanded.insert(word.to_owned());
                }
                other => {
                    return Err(Error::permanent(format!(
                        "spec.forProvider.privileges: {other:?} is not a privilege"
                    )));
                }
            }
        }
        Ok(expanded)
    }
}

/// What a role was granted on each object: privileges, with whether it may grant them to others.
pub(super) type Granted = BTreeMap<String, BTreeMap<String, bool>>;

/// How what is granted compares with what is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Whether anything that is wanted is granted.
    pub(super) any: bool,
    /// What is missing, human-readable.
    pub(super) missing: Vec<String>,
}

/// Compares: everything wanted must be granted on every object. More may be granted, by others or to an owner.
pub(super) fn compare(
    objects: &[String],
    wanted: &BTreeSet<String>,
    grantable: bool,
    granted: &Granted,
) -> Comparison {
    let mut comparison = Comparison { any: false, missing: Vec::new() };
    for object in objects {
        for privilege in wanted {
            let held = granted.get(object).and_then(|held| held.get(privilege));
            match held {
                Some(may_grant) if *may_grant || !grantable => comparison.any = true,
                Some(_) => {
                    comparison.any = true;
                    comparison.missing.push(format!("{privilege} WITH GRANT OPTION on {object}"));
                }
                None => comparison.missing.push(format!("{privilege} on {object}")),
            }
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn all_depends_on_the_target_and_the_server() {
        let all = ["ALL".to_owned()];
        assert_eq!(
            Target::Database.expand(&all, 0).unwrap(),
            set(&["CREATE", "TEMPORARY", "CONNECT"]),
            "P10"
        );
        assert!(!Target::Table.expand(&all, 160_002).unwrap().contains("MAINTAIN"), "P11");
        assert!(Target::Table.expand(&all, 170_000).unwrap().contains("MAINTAIN"), "P11");
        assert_eq!(Target::Database.expand(&["TEMP".to_owned()], 0).unwrap(), set(&["TEMPORARY"]));
        assert!(Target::Table.expand(&["SELECT; DROP".to_owned()], 0).is_err());
    }

    #[test]
    fn more_than_wanted_is_fine_and_less_is_not() {
        let objects = ["a".to_owned(), "b".to_owned()];
        let held =
            |privileges: &[(&str, bool)]| privileges.iter().map(|(p, g)| ((*p).to_owned(), *g)).collect();
        let granted: Granted = [
            ("a".to_owned(), held(&[("SELECT", false), ("INSERT", true)])),
            ("b".to_owned(), held(&[("SELECT", true)])),
        ]
        .into();
        let select = compare(&objects, &set(&["SELECT"]), false, &granted);
        assert_eq!(select, Comparison { any: true, missing: vec![] });
        let grantable = compare(&objects, &set(&["SELECT"]), true, &granted);
        assert_eq!(grantable.missing, ["SELECT WITH GRANT OPTION on a"]);
        let insert = compare(&objects, &set(&["INSERT"]), false, &granted);
        assert_eq!((insert.any, insert.missing), (true, vec!["INSERT on b".to_owned()]));
        assert!(!compare(&objects, &set(&["DELETE"]), false, &granted).any);
    }
}
