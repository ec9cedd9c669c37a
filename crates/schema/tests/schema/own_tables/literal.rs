//! Go composite literals, as the conformance tables encode them, to our types.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_schema::own::{Element, ManagerId, Managers, Operation, Owned, Path, Set};

pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Values of identifiers a literal refers to.
pub(crate) type Names = BTreeMap<String, Value>;

/// Resolves identifiers and calls that build plain values.
pub(crate) fn resolve(lit: &Value, names: &Names) -> Outcome<Value> {
    if let Some(name) = lit.get("$id").and_then(Value::as_str) {
        return names.get(name).cloned().ok_or_else(|| format!("unknown identifier {name}"));
    }
    if let Some(call) = lit.get("$call").and_then(Value::as_str) {
        let args: Vec<_> = args(lit).iter().map(|a| resolve(a, names)).collect::<Outcome<_>>()?;
        return match (call, args.as_slice()) {
            ("fmt.Sprintf", [Value::String(format), rest @ ..]) => {
                let mut text = format.clone();
                for arg in rest {
                    text = text.replacen("%s", arg.as_str().unwrap_or_default(), 1);
                }
                Ok(text.into())
            }
            ("float64", [Value::Number(n)]) => Ok(serde_json::json!(n.as_f64())),
            (
                "typed.YAMLObject"
                | "value.NewValueInterface"
                | "val"
                | "_V"
                | "_SV"
                | "_IV"
                | "_FV"
                | "_BV"
                | "string",
                [v],
            ) => Ok(v.clone()),
            _ => Err(format!("unknown call {call}")),
        };
    }
    if let Some(fields) = lit.get("fields").and_then(Value::as_object) {
        let fields = fields.iter().map(|(k, v)| Ok((k.clone(), resolve(v, names)?)));
        return Ok(Value::Object(fields.collect::<Outcome<_>>()?));
    }
    if let Some(items) = lit.get("items").and_then(Value::as_array) {
        return items.iter().map(|v| resolve(v, names)).collect::<Outcome<Vec<_>>>().map(Value::Array);
    }
    Ok(lit.clone())
}

pub(crate) fn text(lit: &Value, names: &Names) -> Outcome<String> {
    let value = resolve(lit, names)?;
    value.as_str().map(str::to_owned).ok_or_else(|| format!("no text: {value}"))
}

pub(crate) fn call(lit: &Value) -> &str {
    lit.get("$call").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn args(lit: &Value) -> &[Value] {
    lit.get("args").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn items(lit: &Value) -> &[Value] {
    lit.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The fields of a struct literal, or of a map literal.
pub(crate) fn field<'a>(lit: &'a Value, name: &str) -> Option<&'a Value> {
    lit.get("fields")?.get(name).filter(|v| !v.is_null())
}

pub(crate) fn element(lit: &Value, names: &Names) -> Outcome<Element> {
    match lit {
        Value::String(name) => return Ok(Element::field(name)),
        Value::Number(n) => return Ok(Element::Index(n.as_i64().unwrap_or_default())),
        _ => {}
    }
    match call(lit) {
        "_KBF" | "KeyByFields" | "KeyElementByFields" | "fieldpath.KeyByFields" => {
            let pairs = args(lit).chunks(2).map(|pair| match pair {
                [name, value] => Ok((text(name, names)?.into(), resolve(value, names)?)),
                _ => Err("a key without a value".to_owned()),
            });
            Ok(Element::key(pairs.collect::<Outcome<_>>()?))
        }
        "KeyElement" => key(args(lit), names),
        _ if lit["$type"] == "value.FieldList" => key(items(lit), names),
        "ValueElement" | "_V" | "value.NewValueInterface" | "val" => {
            Ok(Element::value(resolve(args(lit).first().unwrap_or(&Value::Null), names)?))
        }
        "FieldNameElement" | "fmt.Sprintf" => Ok(Element::field(&match call(lit) {
            "fmt.Sprintf" => text(lit, names)?,
            _ => text(&args(lit)[0], names)?,
        })),
        "IndexElement" => Ok(Element::Index(args(lit)[0].as_i64().unwrap_or_default())),
        _ if lit.get("$id").is_some() => element(&resolve(lit, names)?, &Names::new()),
        _ => Err(format!("no path element: {lit}")),
    }
}

fn key(fields: &[Value], names: &Names) -> Outcome<Element> {
    let fields = fields.iter().map(|f| {
        let name = text(field(f, "Name").ok_or("no name")?, names)?;
        let value = field(f, "Value").map_or(Ok(Value::Null), |v| resolve(v, names))?;
        Ok((name.into(), value))
    });
    Ok(Element::key(fields.collect::<Outcome<_>>()?))
}

pub(crate) fn path(lit: &Value, names: &Names) -> Outcome<Path> {
    Ok(Path(args(lit).iter().map(|e| element(e, names)).collect::<Outcome<_>>()?))
}

pub(crate) fn set(lit: Option<&Value>, names: &Names) -> Outcome<Set> {
    let Some(lit) = lit else { return Ok(Set::new()) };
    match lit.get("$id").and_then(Value::as_str) {
        Some(name) => Err(format!("unknown set {name}")),
        None => args(lit).iter().map(|p| path(p, names)).collect(),
    }
}

/// Tables name managers by a word only.
pub(crate) fn manager(name: &str) -> ManagerId {
    ManagerId {
        manager: name.to_owned(),
        operation: Operation::Update,
        api_version: String::new(),
        subresource: String::new(),
    }
}

pub(crate) fn managers(lit: Option<&Value>, names: &Names) -> Outcome<Managers> {
    let Some(fields) = lit.and_then(|l| l.get("fields")).and_then(Value::as_object) else {
        return Ok(Managers::new());
    };
    let entry = |(name, lit): (&String, &Value)| {
        let owned = Owned {
            set: set(args(lit).first(), names)?,
            api_version: text(args(lit).get(1).ok_or("no version")?, names)?,
            time: None,
        };
        Ok((manager(name), owned))
    };
    fields.iter().map(entry).collect()
}

/// YAML in Go sources is indented by tabs; the first line says how many. What follows a JSON value is ignored,
/// as their reader does.
pub(crate) fn yaml(text: &str) -> Outcome<Value> {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let tabs = text.len() - text.trim_start_matches('\t').len();
    let prefix = "\t".repeat(tabs);
    let lines: Vec<_> =
        text.lines().map(|l| l.strip_prefix(&prefix).unwrap_or(l.trim_start_matches('\t'))).collect();
    let read = transom_object::yaml::read(&lines.join("\n"));
    read.or_else(|e| match serde_json::Deserializer::from_str(text).into_iter().next() {
        Some(Ok(value)) => Ok(value),
        _ => Err(format!("{e}: {text}")),
    })
}
