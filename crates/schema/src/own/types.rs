//! A [`Schema`] read the way merging needs it: every node is a scalar, a list, a map, or a choice of them
//! that the value decides.
//!
//! The view is computed while walking, costs nothing to make and holds only references. Rules:
//! lists are atomic unless they are declared a set or a map (or, for built-in kinds, merged by patch
//! strategy); maps are granular unless declared atomic; where a schema says nothing about a value its
//! type is *deduced*: maps granular, lists atomic. Preserving unknown fields holds for all descendants.

use crate::model::{Additional, ListType, MapType, PatchStrategy, Schema, Type as JsonType};
use serde_json::Value;
use std::collections::BTreeMap;
use std::slice;
use std::sync::{Arc, LazyLock};

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub struct Type<'s>(Kind<'s>);

#[derive(Clone, Copy, Debug)]
enum Kind<'s> {
    /// A whole API object: `apiVersion`, `kind` and `metadata` are known whatever the schema says.
    Object(&'s Schema),
    /// The metadata of a whole object.
    Metadata,
    /// A node of a schema; `open` when an ancestor preserves unknown fields.
    Node { schema: &'s Schema, open: bool },
    /// Nothing is known: maps are granular, lists atomic.
    Deduced,
    /// Nothing is known, and the value is only ever replaced as a whole.
    Opaque,
    /// Bookkeeping that merging must not see: `metadata.managedFields`.
    Hidden,
}

/// The types of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any of them.
    Untyped,
}

/// Lists whose items have an identity, or that are one value.
#[derive(Clone, Copy, Debug)]
pub struct List<'s> {
    /// Whether it is replaced as a whole.
    pub atomic: bool,
    /// Names of the fields that identify an item; empty for sets of scalars.
    pub keys: &'s [String],
    /// The type of the items.
    pub element: Type<'s>,
}

/// Objects whose fields are owned one by one, or that are one value.
#[derive(Clone, Copy, Debug)]
pub struct Map<'s> {
    /// Whether it is replaced as a whole.
    pub atomic: bool,
    /// The type of values under undeclared keys, if such keys are allowed.
    pub element: Option<Type<'s>>,
    fields: Fields<'s>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'s> {
    None,
    Declared { properties: &'s BTreeMap<String, Arc<Schema>>, open: bool },
    Object { properties: &'s BTreeMap<String, Arc<Schema>>, open: bool, root: bool },
    Metadata,
}

/// How a value of some type is to be treated.
#[derive(Clone, Copy, Debug)]
pub enum Atom<'s> {
    /// As a scalar.
    Scalar(Scalar),
    /// As a list.
    List(List<'s>),
    /// As a map.
    Map(Map<'s>),
}

impl Atom<'_> {
    pub(super) fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl<'s> Type<'s> {
    /// The type of API objects with this schema.
    pub fn object(schema: &'s Schema) -> Self {
        Self(Kind::Object(schema))
    }

    /// The type of values of one schema node.
    pub fn node(schema: &'s Schema) -> Self {
        Self::inherit(schema, false)
    }

    /// The type of values about which nothing is known.
    pub fn deduced() -> Self {
        Self(Kind::Deduced)
    }

    fn inherit(schema: &'s Schema, open: bool) -> Self {
        let silent = schema.properties.is_empty()
            && schema.items.is_none()
            && !schema.preserve_unknown
            && matches!(schema.additional, Additional::Absent);
        // Only built-in kinds have such nodes: `runtime.RawExtension` and the like.
        if schema.ty == JsonType::Any && silent && schema.map_type == Some(MapType::Atomic) {
            return Self(Kind::Opaque);
        }
        Self(Kind::Node { schema, open })
    }

    /// Whether merging must leave the value out.
    pub(super) fn hidden(self) -> bool {
        matches!(self.0, Kind::Hidden)
    }

    /// Whether the value may contain hidden parts.
    pub(super) fn hides(self) -> bool {
        matches!(self.0, Kind::Object(_) | Kind::Metadata | Kind::Hidden)
    }

    /// How scalars of this type are treated; `None` if it has none.
    pub fn scalar(self) -> Option<Scalar> {
        match self.0 {
            Kind::Node { schema, .. } => scalar(schema),
            Kind::Deduced | Kind::Opaque | Kind::Hidden => Some(Scalar::Untyped),
            Kind::Object(_) | Kind::Metadata => None,
        }
    }

    /// How lists of this type are treated; `None` if it has none.
    pub fn list(self) -> Option<List<'s>> {
        match self.0 {
            Kind::Node { schema, open } if matches!(schema.ty, JsonType::Array | JsonType::Any) => {
                Some(list(schema, open))
            }
            Kind::Deduced | Kind::Opaque | Kind::Hidden => {
                Some(List { atomic: true, keys: &[], element: Self(Kind::Opaque) })
            }
            _ => None,
        }
    }

    /// How maps of this type are treated; `None` if it has none.
    pub fn map(self) -> Option<Map<'s>> {
        match self.0 {
            Kind::Node { schema, open } if matches!(schema.ty, JsonType::Object | JsonType::Any) => {
                Some(map(schema, open, false))
            }
            Kind::Object(schema) => Some(map(schema, false, true)),
            Kind::Metadata => Some(Map { atomic: false, element: None, fields: Fields::Metadata }),
            Kind::Deduced => {
                Some(Map { atomic: false, element: Some(Self(Kind::Deduced)), fields: Fields::None })
            }
            Kind::Opaque | Kind::Hidden => {
                Some(Map { atomic: true, element: Some(Self(Kind::Opaque)), fields: Fields::None })
            }
            Kind::Node { .. } => None,
        }
    }

    /// What to treat a value as. A value the type does not allow, null included, is treated as the type's
    /// first choice of map, scalar, list.
    pub fn atom(self, value: Option<&Value>) -> Option<Atom<'s>> {
        let chosen = match value {
            None | Some(Value::Null) => None,
            Some(Value::Array(_)) => self.list().map(Atom::List),
            Some(Value::Object(_)) => self.map().map(Atom::Map),
            Some(_) => self.scalar().map(Atom::Scalar),
        };
        chosen
            .or_else(|| self.map().map(Atom::Map))
            .or_else(|| self.scalar().map(Atom::Scalar))
            .or_else(|| self.list().map(Atom::List))
    }

    fn untyped(self) -> bool {
        match self.0 {
            Kind::Deduced => true,
            Kind::Node { .. } => self.scalar() == Some(Scalar::Untyped),
            _ => false,
        }
    }
}

fn scalar(schema: &Schema) -> Option<Scalar> {
    match schema.ty {
        JsonType::Any => Some(Scalar::Untyped),
        JsonType::Integer | JsonType::Number => Some(Scalar::Numeric),
        JsonType::Boolean => Some(Scalar::Boolean),
        JsonType::String => match schema.format.as_deref() {
            None | Some("" | "byte") => Some(Scalar::String),
            Some(_) => Some(Scalar::Untyped),
        },
        JsonType::Object | JsonType::Array => None,
    }
}

fn list(schema: &Schema, open: bool) -> List<'_> {
    let open = open || schema.preserve_unknown;
    let keys: Option<&[String]> = match (&schema.list_type, &schema.patch) {
        (Some(ListType::Atomic), _) => None,
        (Some(ListType::Set), _) => Some(&[]),
        (Some(ListType::Map(keys)), _) => Some(keys),
        (None, Some(PatchStrategy { merge: true, merge_key, .. })) => {
            Some(merge_key.as_ref().map_or(&[], slice::from_ref))
        }
        (None, _) => None,
    };
    let element = match &schema.items {
        Some(items) => Type::inherit(items, open),
        None => Type(Kind::Opaque),
    };
    List { atomic: keys.is_none(), keys: keys.unwrap_or(&[]), element }
}

fn map(schema: &Schema, open: bool, root: bool) -> Map<'_> {
    let open = open || schema.preserve_unknown;
    let properties = &schema.properties;
    let object = root || schema.embedded;
    let element = match &schema.additional {
        Additional::Schema(s) => Some(Type::inherit(s, open)),
        Additional::Bool(true) => Some(Type::deduced()),
        Additional::Absent if open || (properties.is_empty() && !object) => Some(Type::deduced()),
        Additional::Absent | Additional::Bool(false) => None,
    };
    let fields = if object {
        Fields::Object { properties, open, root }
    } else {
        Fields::Declared { properties, open }
    };
    Map { atomic: schema.map_type == Some(MapType::Atomic), element, fields }
}

impl<'s> Map<'s> {
    /// The type of a declared field.
    pub fn field(&self, name: &str) -> Option<Type<'s>> {
        match self.fields {
            Fields::None => None,
            Fields::Declared { properties, open } => properties.get(name).map(|s| Type::inherit(s, open)),
            Fields::Object { properties, open, root } => match name {
                "apiVersion" | "kind" => Some(Type::node(&TEXT)),
                "metadata" if root => Some(Type(Kind::Metadata)),
                "metadata" => Some(Type::node(&METADATA)),
                _ => properties.get(name).map(|s| Type::inherit(s, open)),
            },
            Fields::Metadata => match name {
                "managedFields" => Some(Type(Kind::Hidden)),
                _ => METADATA.properties.get(name).map(|s| Type::node(s)),
            },
        }
    }

    /// The type of the value under a key, declared or not.
    pub fn value(&self, name: &str) -> Option<Type<'s>> {
        self.field(name).or(self.element)
    }

    /// The default of a declared field.
    pub fn default(&self, name: &str) -> Option<&'s Value> {
        match self.fields {
            Fields::Declared { properties, .. } | Fields::Object { properties, .. } => {
                properties.get(name)?.default.as_ref()
            }
            Fields::None | Fields::Metadata => None,
        }
    }

    /// Whether the map declares nothing and takes anything, so that there is no schema to agree with.
    pub(super) fn schemaless(&self) -> bool {
        let undeclared = match self.fields {
            Fields::None => true,
            Fields::Declared { properties, .. } => properties.is_empty(),
            Fields::Object { .. } | Fields::Metadata => false,
        };
        undeclared && self.element.is_some_and(Type::untyped)
    }
}

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema { ty: JsonType::String, ..Schema::default() });

/// `meta/v1` `ObjectMeta`, as far as merging is concerned.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let of = |ty: JsonType| Schema { ty, ..Schema::default() };
    let time = || Schema { format: Some("date-time".to_owned()), ..of(JsonType::String) };
    let fields = |fields: Vec<(&str, Schema)>| {
        fields.into_iter().map(|(name, s)| (name.to_owned(), Arc::new(s))).collect::<BTreeMap<_, _>>()
    };
    let texts =
        || Schema { additional: Additional::Schema(Arc::new(of(JsonType::String))), ..of(JsonType::Object) };
    let owner = Schema {
        properties: fields(vec![
            ("apiVersion", of(JsonType::String)),
            ("blockOwnerDeletion", of(JsonType::Boolean)),
            ("controller", of(JsonType::Boolean)),
            ("kind", of(JsonType::String)),
            ("name", of(JsonType::String)),
            ("uid", of(JsonType::String)),
        ]),
        map_type: Some(MapType::Atomic),
        ..of(JsonType::Object)
    };
    let list = |list_type: ListType, items: Schema| Schema {
        list_type: Some(list_type),
        items: Some(Arc::new(items)),
        ..of(JsonType::Array)
    };
    let opaque = Schema { map_type: Some(MapType::Atomic), ..Schema::default() };
    let mut properties = fields(vec![
        ("annotations", texts()),
        ("labels", texts()),
        ("creationTimestamp", time()),
        ("deletionTimestamp", time()),
        ("deletionGracePeriodSeconds", of(JsonType::Integer)),
        ("generation", of(JsonType::Integer)),
        ("finalizers", list(ListType::Set, of(JsonType::String))),
        ("managedFields", list(ListType::Atomic, opaque)),
        ("ownerReferences", list(ListType::Map(vec!["uid".to_owned()]), owner)),
    ]);
    for name in ["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"] {
        properties.insert(name.to_owned(), Arc::new(of(JsonType::String)));
    }
    Schema { properties, ..of(JsonType::Object) }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn array(list_type: Option<ListType>, patch: Option<PatchStrategy>) -> Schema {
        Schema { ty: JsonType::Array, list_type, patch, ..Schema::default() }
    }

    #[test]
    fn lists_are_atomic_unless_declared_otherwise() {
        let merge =
            PatchStrategy { merge: true, merge_key: Some("name".to_owned()), ..PatchStrategy::default() };
        for (schema, atomic, keys) in [
            (array(None, None), true, 0),
            (array(Some(ListType::Set), None), false, 0),
            (array(Some(ListType::Map(vec!["a".into(), "b".into()])), None), false, 2),
            (array(None, Some(merge.clone())), false, 1),
            (array(Some(ListType::Atomic), Some(merge)), true, 0),
            (array(None, Some(PatchStrategy { replace: true, ..PatchStrategy::default() })), true, 0),
        ] {
            let list = Type::node(&schema).list().unwrap();
            assert_eq!((list.atomic, list.keys.len()), (atomic, keys), "{schema:?}");
        }
    }

    #[test]
    fn unknown_keys_follow_additional_properties() {
        let named = BTreeMap::from([("a".to_owned(), Arc::new(Schema::default()))]);
        let object = |s: Schema| Schema { ty: JsonType::Object, ..s };
        let element = |s: &Schema| Type::node(s).map().unwrap().element.is_some();
        assert!(element(&object(Schema::default())));
        assert!(!element(&object(Schema { properties: named.clone(), ..Schema::default() })));
        assert!(element(&object(Schema {
            properties: named.clone(),
            preserve_unknown: true,
            ..Schema::default()
        })));
        assert!(!element(&object(Schema { additional: Additional::Bool(false), ..Schema::default() })));
        let nested = object(Schema {
            preserve_unknown: true,
            properties: BTreeMap::from([(
                "in".into(),
                Arc::new(object(Schema { properties: named, ..Schema::default() })),
            )]),
            ..Schema::default()
        });
        let inner = Type::node(&nested).map().unwrap().field("in").unwrap();
        assert!(inner.map().unwrap().element.is_some(), "descendants preserve unknown fields too");
    }

    #[test]
    fn objects_know_their_metadata() {
        let schema = Schema { ty: JsonType::Object, ..Schema::default() };
        let metadata = Type::object(&schema).map().unwrap().field("metadata").unwrap().map().unwrap();
        assert_eq!(metadata.field("ownerReferences").unwrap().list().unwrap().keys, ["uid"]);
        assert!(metadata.field("managedFields").unwrap().hidden());
        assert!(metadata.value("unheardOf").is_none());
    }
}
