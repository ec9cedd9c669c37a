//! Real definitions (the Gateway API's) and objects of their kinds: created, and updated onto each other.

use super::tables::{compare, folder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transom_object::field;
use transom_object::yaml::read_documents;
use transom_schema::rules::Rules;
use transom_schema::{Schema, normalize, structural, validate};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    read_documents(&text).unwrap().into_iter().map(|d| d.value).filter(Value::is_object).collect()
}

/// A schema with its rules.
struct Defined {
    schema: Schema,
    rules: Rules,
}

/// Schemas by `apiVersion` and `kind`.
fn schemas(folder: &Path) -> BTreeMap<(String, String), Defined> {
    let mut schemas = BTreeMap::new();
    for crd in documents(&folder.join("crds/standard-install.yaml")) {
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let doc = &version["schema"]["openAPIV3Schema"];
            let errors = structural::check(doc, &field::Path::root());
            assert!(errors.is_empty(), "{errors:?}");
            let api_version = format!("{}/{}", text(&crd["spec"]["group"]), text(&version["name"]));
            let kind = text(&crd["spec"]["names"]["kind"]);
            let schema = structural::parse(doc).unwrap();
            let rules = Rules::compile(&schema).unwrap();
            schemas.insert((api_version, kind), Defined { schema, rules });
        }
    }
    schemas
}

struct Object {
    name: String,
    value: Value,
    key: (String, String),
}

/// The objects below a folder whose kind is defined, normalized as a server would.
fn objects(root: &Path, sub: &str, schemas: &BTreeMap<(String, String), Defined>) -> Vec<Object> {
    let mut objects = Vec::new();
    for file in files(&root.join(sub)) {
        for (i, mut value) in documents(&file).into_iter().enumerate() {
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            let key = (text("apiVersion"), text("kind"));
            let Some(Defined { schema, .. }) = schemas.get(&key) else { continue };
            normalize::prune(&mut value, schema, true);
            normalize::drop_nulls(&mut value, schema);
            normalize::default(&mut value, schema);
            let name = format!("ratcheting/{} {i}", file.strip_prefix(root).unwrap().display());
            objects.push(Object { name, value, key });
        }
    }
    objects
}

fn errors(new: &Value, old: Option<&Value>, Defined { schema, rules }: &Defined) -> Vec<String> {
    let path = field::Path::root();
    let mut errors = validate::validate(new, old, schema, &path);
    errors.extend(validate::list_types(new, old, schema, &path));
    if !validate::blocks_rules(&errors) {
        errors.extend(rules.validate(new, old, &path));
    }
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn valid_objects_are_created_and_invalid_ones_are_not() {
    let Some(root) = folder().map(|f| f.join("ratcheting")) else { return };
    let schemas = schemas(&root);
    let (valid, invalid) = (objects(&root, "valid", &schemas), objects(&root, "invalid", &schemas));
    assert!(!valid.is_empty() && !invalid.is_empty());
    let mut failed = BTreeMap::new();
    for object in &valid {
        let found = errors(&object.value, None, &schemas[&object.key]);
        if !found.is_empty() {
            failed.insert(object.name.clone(), format!("{found:?}"));
        }
    }
    for object in &invalid {
        if errors(&object.value, None, &schemas[&object.key]).is_empty() {
            failed.insert(object.name.clone(), "accepted".to_owned());
        }
    }
    compare("ratcheting/", valid.len() + invalid.len(), &failed);
}

/// An update may keep what is wrong, and may not bring anything wrong in.
#[test]
fn updates_onto_each_other() {
    let Some(root) = folder().map(|f| f.join("ratcheting")) else { return };
    let schemas = schemas(&root);
    let (valid, invalid) = (objects(&root, "valid", &schemas), objects(&root, "invalid", &schemas));
    for new in valid.iter().chain(&invalid) {
        let schema = &schemas[&new.key];
        let created = errors(&new.value, None, schema);
        assert!(errors(&new.value, Some(&new.value), schema).is_empty(), "{} onto itself", new.name);
        for old in valid.iter().filter(|old| old.key == new.key) {
            let updated = errors(&new.value, Some(&old.value), schema);
            assert!(updated.iter().all(|e| created.contains(e)), "{} onto {}", new.name, old.name);
            assert_eq!(updated.is_empty(), created.is_empty(), "{} onto {}", new.name, old.name);
        }
    }
}
