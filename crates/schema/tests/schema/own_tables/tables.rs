//! The folder of conformance tables, and the schemas that tables refer to by name.

use super::literal::{Outcome, field};
use super::merging::Parser;
use super::smd_schema::Types;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use transom_schema::Schema;

pub(crate) struct Tables {
    folder: PathBuf,
    schemas: Value,
}

impl Tables {
    pub(crate) fn open() -> Option<Self> {
        let folder = transom_testkit::tables::find("smd")?;
        let schemas = read(&folder.join("schemas.json")).ok()?;
        Some(Self { folder, schemas })
    }

    pub(crate) fn kubernetes() -> Option<PathBuf> {
        transom_testkit::tables::find("kubernetes/managedfields")
    }

    /// Every table with the name of its file.
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        let mut tables: Vec<_> = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
                let table = read(&path).ok()?;
                table.get("cases")?;
                Some((name, table))
            })
            .collect();
        tables.sort_by(|a, b| a.0.cmp(&b.0));
        tables
    }

    pub(crate) fn data(&self, file: &str) -> Outcome<String> {
        std::fs::read_to_string(self.folder.join("testdata").join(file)).map_err(|e| format!("{file}: {e}"))
    }

    pub(crate) fn parser(&self, name: &str) -> Outcome<Parser> {
        if name == "DeducedParser" {
            return Ok(Parser::Same(Arc::new(Schema::any())));
        }
        let text =
            self.schemas["parsers"][name]["schema"].as_str().ok_or_else(|| format!("no parser {name}"))?;
        Parser::new(&Types::parse(&unindent(text))?)
    }

    /// The parser a merge table is run with.
    pub(crate) fn parser_of(&self, table: &Value) -> Outcome<Parser> {
        let source = table["source"].as_str().and_then(|s| s.rsplit_once(':')).map_or("", |(_, file)| file);
        let key = format!("{source}:{}", table["table"].as_str().unwrap_or_default());
        self.parser(self.schemas["tableParser"][&key].as_str().ok_or_else(|| format!("no parser for {key}"))?)
    }

    pub(crate) fn kubernetes_types(&self) -> Outcome<Types> {
        Types::parse(&self.data("k8s-schema.yaml")?)
    }

    /// The schema of a row: in the row, or by the name of a variable.
    pub(crate) fn types_of(&self, case: &Value, name: &str) -> Outcome<Types> {
        let lit = field(case, name).ok_or_else(|| format!("no {name}"))?;
        if let Some(text) = lit.as_str() {
            return Types::parse(text);
        }
        let variable =
            lit["$id"].as_str().or_else(|| lit["args"][0]["$id"].as_str()).or_else(|| lit["$call"].as_str());
        match variable {
            Some("nestedTypesSchema") => Types::parse(&unindent(
                self.schemas["parsers"]["nestedTypeParser"]["schema"].as_str().unwrap_or_default(),
            )),
            Some(variable) => match named(variable) {
                Some(text) => Types::parse(text),
                None => Err(format!("unknown schema {variable}")),
            },
            None => Err(format!("no schema: {lit}")),
        }
    }
}

pub(crate) fn read(path: &Path) -> Outcome<Value> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// Some schemas are indented in their source.
fn unindent(text: &str) -> String {
    let text = text.trim_start_matches('\n');
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let prefix = " ".repeat(spaces);
    text.lines().map(|l| l.strip_prefix(&prefix).unwrap_or(l)).collect::<Vec<_>>().join("\n")
}

/// Schemas that tables refer to by variable, written anew.
fn named(variable: &str) -> Option<&'static str> {
    Some(match variable {
        "simplePairSchema" => {
            "types: [{name: stringPair, map: {fields: [
                {name: key, type: {scalar: string}}, {name: value, type: {namedType: __untyped_atomic_}}]}}]"
        }
        "structGrabBagSchema" => {
            "types: [{name: myStruct, map: {fields: [
                {name: numeric, type: {scalar: numeric}}, {name: string, type: {scalar: string}},
                {name: bool, type: {scalar: boolean}},
                {name: setStr, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}},
                {name: setBool, type: {list: {elementType: {scalar: boolean}, elementRelationship: associative}}},
                {name: setNumeric, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}]}}]"
        }
        "associativeAndAtomicSchema" => {
            "types:
- {name: myRoot, map: {fields: [
    {name: list, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [key, id]}}},
    {name: atomicList, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}},
    {name: atomicMap, type: {namedType: atoms}},
    {name: atomicElementList,
     type: {list: {elementType: {namedType: atoms}, elementRelationship: associative, keys: [id]}}}]}}
- {name: atoms, map: {fields: [{name: id, type: {scalar: string}}], elementType: {scalar: string}, elementRelationship: atomic}}
- {name: item, map: {fields: [
    {name: key, type: {scalar: string}}, {name: id, type: {scalar: numeric}}, {name: nv, type: {scalar: numeric}},
    {name: bv, type: {scalar: boolean}}, {name: value, type: {scalar: numeric}}]}}"
        }
        "nestedSchema" => {
            "types: [{name: type, map: {elementType: {namedType: type}, fields: [
                {name: keyAStr, type: {scalar: string}}, {name: keyBInt, type: {scalar: numeric}},
                {name: named, type: {namedType: type}}, {name: a, type: {namedType: type}},
                {name: list, type: {list: {elementRelationship: associative, keys: [keyAStr, keyBInt],
                                           elementType: {namedType: type}}}},
                {name: value, type: {scalar: numeric}}]}}]"
        }
        "associativeListSchema" => {
            "types: [{name: type, map: {fields: [{name: values, type: {list: {
                elementRelationship: associative, keys: [keyAStr, keyBInt], elementType: {map: {fields: [
                    {name: keyAStr, type: {scalar: string}}, {name: keyBInt, type: {scalar: numeric}},
                    {name: value, type: {scalar: numeric}}]}}}}}]}}]"
        }
        "oldAssociativeListSchema" => {
            "types: [{name: type, map: {fields: [{name: values, type: {list: {
                elementRelationship: associative, keys: [keyAStr], elementType: {map: {fields: [
                    {name: keyAStr, type: {scalar: string}}, {name: value, type: {scalar: numeric}}]}}}}}]}}]"
        }
        "granularSchema" => RECONCILED_GRANULAR,
        "atomicSchema" => RECONCILED_ATOMIC,
        _ => return None,
    })
}

const RECONCILED_GRANULAR: &str = "types:
- {name: v1, map: {fields: [
    {name: struct, type: {namedType: struct}}, {name: list, type: {namedType: list}},
    {name: objectList, type: {namedType: objectList}}, {name: stringMap, type: {namedType: stringMap}},
    {name: unchanged, type: {namedType: unchanged}}]}}
- {name: struct, map: {fields: [{name: numeric, type: {scalar: numeric}}, {name: string, type: {scalar: string}}]}}
- {name: list, list: {elementType: {scalar: string}, elementRelationship: associative}}
- {name: objectList, list: {elementType: {namedType: item}, elementRelationship: associative, keys: [keyA, keyB]}}
- {name: item, map: {fields: [{name: keyA, type: {scalar: string}}, {name: keyB, type: {scalar: string}},
                              {name: value, type: {scalar: string}}]}}
- {name: stringMap, map: {elementType: {scalar: string}}}
- {name: unchanged, map: {fields: [{name: numeric, type: {scalar: numeric}}]}}
- {name: empty, map: {elementType: {scalar: untyped, list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic},
                                    map: {elementType: {namedType: __untyped_deduced_}}}}}
- {name: emptyWithPreserveUnknown, map: {fields: [{name: preserveField, type: {map: {elementType: {
    scalar: untyped, list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic},
    map: {elementType: {namedType: __untyped_deduced_}}}}}}]}}
- {name: populatedWithPreserveUnknown, map: {fields: [{name: preserveField, type: {map: {
    fields: [{name: list, type: {namedType: list}}], elementType: {namedType: __untyped_deduced_}}}}]}}";

const RECONCILED_ATOMIC: &str = "types:
- {name: v1, map: {fields: [
    {name: struct, type: {namedType: struct}}, {name: list, type: {namedType: list}},
    {name: objectList, type: {namedType: objectList}}, {name: stringMap, type: {namedType: stringMap}},
    {name: unchanged, type: {namedType: unchanged}}]}}
- {name: struct, map: {elementRelationship: atomic,
    fields: [{name: numeric, type: {scalar: numeric}}, {name: string, type: {scalar: string}}]}}
- {name: list, list: {elementType: {scalar: string}, elementRelationship: atomic}}
- {name: objectList, list: {elementType: {namedType: item}, elementRelationship: atomic}}
- {name: item, map: {fields: [{name: keyA, type: {scalar: string}}, {name: keyB, type: {scalar: string}},
                              {name: value, type: {scalar: string}}]}}
- {name: stringMap, map: {elementType: {scalar: string}, elementRelationship: atomic}}
- {name: unchanged, map: {fields: [{name: numeric, type: {scalar: numeric}}]}}
- {name: empty, map: {elementType: {scalar: untyped, list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic},
                                    map: {elementType: {namedType: __untyped_deduced_}}}}}
- {name: emptyWithPreserveUnknown, map: {fields: [{name: preserveField, type: {map: {elementType: {
    scalar: untyped, list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic},
    map: {elementType: {namedType: __untyped_deduced_}}}}}}]}}
- {name: populatedWithPreserveUnknown, map: {fields: [{name: preserveField, type: {map: {
    fields: [{name: list, type: {namedType: list}}], elementType: {namedType: __untyped_deduced_}}}}]}}";
