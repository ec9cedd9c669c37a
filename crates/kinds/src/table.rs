//! The table of built-in types: struct types with their fields, and the kinds that lead to them.

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// Every built-in type. Types refer to each other by index.
#[derive(Debug)]
pub(crate) struct Types {
    list: Vec<Type>,
    by_name: HashMap<&'static str, usize>,
    kinds: Vec<Kind>,
}

/// A kind that is served, and the name of its type.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Kind {
    #[serde(rename = "g", default)]
    pub group: &'static str,
    #[serde(rename = "v")]
    pub version: &'static str,
    #[serde(rename = "k")]
    pub kind: &'static str,
    #[serde(rename = "t")]
    pub type_name: &'static str,
}

/// One struct type.
#[derive(Debug)]
pub(crate) struct Type {
    /// The OpenAPI name, such as `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// The Go name with its package, such as `v1.Pod`; error texts carry it.
    pub go: &'static str,
    /// Server-side apply owns it as a whole.
    pub atomic: bool,
    /// The fields as declared, with inlined structs as fields: what protobuf sees.
    pub fields: Vec<Arc<Field>>,
    /// The fields with inlined structs dissolved: what JSON sees.
    pub flat: Vec<Flat>,
}

impl Type {
    /// The Go name without its package.
    pub(crate) fn short_name(&self) -> &'static str {
        self.go.rsplit('.').next().unwrap_or(self.go)
    }

    /// The field with this JSON name.
    pub(crate) fn field(&self, name: &str) -> Option<&Flat> {
        self.flat.iter().find(|f| f.name == name)
    }
}

/// A field as JSON sees it, perhaps through inlined structs.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    field: Arc<Field>,
    /// The path Go gives it in errors, such as `ProbeHandler.exec`.
    pub go_path: String,
}

impl Deref for Flat {
    type Target = Field;

    fn deref(&self) -> &Field {
        &self.field
    }
}

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    /// The JSON name; empty for an inlined struct.
    pub name: &'static str,
    pub ty: Ty,
    pub inline: bool,
    pub omit_empty: bool,
    pub omit_zero: bool,
    /// The protobuf field number, 0 when protobuf does not carry the field.
    pub number: u32,
    pub required: bool,
    pub list_type: Option<&'static str>,
    pub list_keys: Vec<&'static str>,
    pub atomic: bool,
    pub patch_strategy: Option<&'static str>,
    pub merge_key: Option<&'static str>,
    pub default: Option<Value>,
    pub enumeration: Vec<&'static str>,
}

/// The type of a field or an element, with its Go name when the shape does not imply it.
#[derive(Debug)]
pub(crate) struct Ty {
    pub shape: Shape,
    go: Option<&'static str>,
}

/// What a type is made of. The second half are types with a JSON form of their own.
#[derive(Debug)]
pub(crate) enum Shape {
    String,
    Bool,
    Int32,
    Int64,
    Float64,
    Bytes,
    Pointer(Box<Ty>),
    List(Box<Ty>),
    /// A list that protobuf wraps in a message of its own.
    Wrapped(Box<Ty>),
    Map(Box<Ty>),
    Struct(usize),

    Any,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// `runtime.RawExtension`
    Raw,
    FieldsV1,
    /// `apiextensions.JSON`
    Json,
    PropsOrArray,
    PropsOrBool,
    PropsOrStrings,
}

impl Ty {
    /// The type as Go prints it, for error texts.
    pub(crate) fn go_name(&self, types: &Types) -> String {
        if let Some(name) = self.go {
            return name.to_owned();
        }
        match &self.shape {
            Shape::String => "string".into(),
            Shape::Bool => "bool".into(),
            Shape::Int32 => "int32".into(),
            Shape::Int64 => "int64".into(),
            Shape::Float64 => "float64".into(),
            Shape::Bytes => "[]uint8".into(),
            Shape::Pointer(inner) => format!("*{}", inner.go_name(types)),
            Shape::List(inner) | Shape::Wrapped(inner) => format!("[]{}", inner.go_name(types)),
            Shape::Map(inner) => format!("map[string]{}", inner.go_name(types)),
            Shape::Struct(index) => types.list[*index].go.to_owned(),
            Shape::Any => "interface {}".into(),
            Shape::Time => "v1.Time".into(),
            Shape::MicroTime => "v1.MicroTime".into(),
            Shape::Quantity => "resource.Quantity".into(),
            Shape::IntOrString => "intstr.IntOrString".into(),
            Shape::Raw => "runtime.RawExtension".into(),
            Shape::FieldsV1 => "v1.FieldsV1".into(),
            Shape::Json => "v1.JSON".into(),
            Shape::PropsOrArray => "v1.JSONSchemaPropsOrArray".into(),
            Shape::PropsOrBool => "v1.JSONSchemaPropsOrBool".into(),
            Shape::PropsOrStrings => "v1.JSONSchemaPropsOrStringArray".into(),
        }
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.shape, Shape::Pointer(_))
    }
}

impl Types {
    pub(crate) fn get(&self, name: &str) -> Option<&Type> {
        self.by_name.get(name).map(|i| &self.list[*i])
    }

    pub(crate) fn at(&self, index: usize) -> &Type {
        &self.list[index]
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Type> {
        self.list.iter()
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kind of a group version. Options, `Status` and the like exist under every group version.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Kind> {
        let exact = |k: &&Kind| k.group == group && k.version == version && k.kind == kind;
        let anywhere = |k: &&Kind| k.group == META_GROUP && k.kind == kind;
        self.kinds.iter().find(exact).or_else(|| self.kinds.iter().find(anywhere))
    }

    /// The type of JSON schema nodes, which some special types contain.
    pub(crate) fn json_schema_props(&self) -> usize {
        self.by_name.get(JSON_SCHEMA_PROPS).copied().unwrap_or_default()
    }
}

const META_GROUP: &str = "meta.k8s.io";
const JSON_SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The table, loaded on first use.
pub(crate) fn types() -> &'static Types {
    static TYPES: LazyLock<Types> =
        LazyLock::new(|| load(include_str!("types.json")).expect("the checked-in table of types is sound"));
    &TYPES
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct RawTable {
    kinds: Vec<Kind>,
    types: BTreeMap<&'static str, RawType>,
}

#[derive(Deserialize)]
struct RawType {
    go: &'static str,
    #[serde(default)]
    atomic: bool,
    fields: Vec<RawField>,
}

#[derive(Deserialize)]
struct RawField {
    #[serde(default)]
    n: &'static str,
    t: &'static str,
    #[serde(default)]
    i: bool,
    #[serde(default)]
    o: &'static str,
    #[serde(default)]
    p: u32,
    #[serde(default)]
    r: bool,
    l: Option<&'static str>,
    #[serde(default, borrow)]
    k: Vec<&'static str>,
    #[serde(default)]
    a: bool,
    s: Option<&'static str>,
    m: Option<&'static str>,
    d: Option<Value>,
    #[serde(default, borrow)]
    e: Vec<&'static str>,
}

fn load(text: &'static str) -> Result<Types, String> {
    let raw: RawTable = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let by_name: HashMap<&'static str, usize> = raw.types.keys().enumerate().map(|(i, n)| (*n, i)).collect();
    let mut list = Vec::with_capacity(raw.types.len());
    for (name, t) in raw.types {
        let fields: Result<Vec<_>, String> = t.fields.into_iter().map(|f| field(f, &by_name)).collect();
        let fields = fields.map_err(|e| format!("{name}: {e}"))?;
        list.push(Type { name, go: t.go, atomic: t.atomic, fields, flat: Vec::new() });
    }
    for i in 0..list.len() {
        list[i].flat = flatten(&list, i);
    }
    Ok(Types { list, by_name, kinds: raw.kinds })
}

fn field(f: RawField, by_name: &HashMap<&'static str, usize>) -> Result<Arc<Field>, String> {
    let (ty, rest) = parse_type(f.t, by_name)?;
    if !rest.is_empty() {
        return Err(format!("trailing {rest:?} in type {:?}", f.t));
    }
    Ok(Arc::new(Field {
        name: f.n,
        ty,
        inline: f.i,
        omit_empty: f.o.contains('e'),
        omit_zero: f.o.contains('z'),
        number: f.p,
        required: f.r,
        list_type: f.l,
        list_keys: f.k,
        atomic: f.a,
        patch_strategy: f.s,
        merge_key: f.m,
        default: f.d,
        enumeration: f.e,
    }))
}

/// Reads one type expression (see the generator for the grammar) and returns what follows it.
fn parse_type(s: &'static str, by_name: &HashMap<&'static str, usize>) -> Result<(Ty, &'static str), String> {
    let inner = |s: &'static str, close: &str| -> Result<(Box<Ty>, &'static str), String> {
        let (ty, rest) = parse_type(s, by_name)?;
        let rest = rest.strip_prefix(close).ok_or_else(|| format!("no {close:?} after {s:?}"))?;
        Ok((Box::new(ty), rest))
    };
    let (shape, rest) = match s.as_bytes().first() {
        Some(b'*') => inner(&s[1..], "").map(|(t, r)| (Shape::Pointer(t), r))?,
        Some(b'[') => inner(&s[1..], "]").map(|(t, r)| (Shape::List(t), r))?,
        Some(b'(') => inner(&s[1..], ")").map(|(t, r)| (Shape::Wrapped(t), r))?,
        Some(b'{') => inner(&s[1..], "}").map(|(t, r)| (Shape::Map(t), r))?,
        _ => {
            let (word, rest) = s.split_at(s.find(['=', ']', ')', '}']).unwrap_or(s.len()));
            (parse_word(word, by_name)?, rest)
        }
    };
    match rest.strip_prefix('=') {
        None => Ok((Ty { shape, go: None }, rest)),
        Some(named) => {
            let end = name_end(named);
            Ok((Ty { shape, go: Some(&named[..end]) }, &named[end..]))
        }
    }
}

/// Where a Go name ends, which may contain brackets of its own: `map[v1.ResourceName]resource.Quantity`.
fn name_end(named: &str) -> usize {
    let mut open = 0_usize;
    for (at, c) in named.char_indices() {
        match c {
            '[' => open += 1,
            ']' if open > 0 => open -= 1,
            ']' | ')' | '}' => return at,
            _ => {}
        }
    }
    named.len()
}

fn parse_word(word: &str, by_name: &HashMap<&'static str, usize>) -> Result<Shape, String> {
    Ok(match word {
        "string" => Shape::String,
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "float64" => Shape::Float64,
        "bytes" => Shape::Bytes,
        "any" => Shape::Any,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "quantity" => Shape::Quantity,
        "intorstring" => Shape::IntOrString,
        "raw" => Shape::Raw,
        "fieldsv1" => Shape::FieldsV1,
        "json" => Shape::Json,
        "propsorarray" => Shape::PropsOrArray,
        "propsorbool" => Shape::PropsOrBool,
        "propsorstrings" => Shape::PropsOrStrings,
        _ => {
            let index = word.strip_prefix('@').and_then(|name| by_name.get(name));
            Shape::Struct(*index.ok_or_else(|| format!("unknown type {word:?}"))?)
        }
    })
}

/// A struct's own fields win over those of the structs it inlines, as in Go.
fn flatten(list: &[Type], index: usize) -> Vec<Flat> {
    let mut out: Vec<Flat> = Vec::new();
    for f in &list[index].fields {
        match f.ty.shape {
            Shape::Struct(inner) if f.inline => {
                let own = |g: &Flat| list[index].fields.iter().any(|o| !o.inline && o.name == g.name);
                let via = list[inner].short_name();
                let through = |g: Flat| Flat { go_path: format!("{via}.{}", g.go_path), ..g };
                out.extend(flatten(list, inner).into_iter().filter(|g| !own(g)).map(through));
            }
            _ => out.push(Flat { field: Arc::clone(f), go_path: f.name.to_owned() }),
        }
    }
    out
}
