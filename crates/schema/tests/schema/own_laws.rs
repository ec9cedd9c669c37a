//! Laws of field sets and of ownership, on random sets, configurations and managedFields.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of as maybe;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_schema::own::managers::decode;
use transom_schema::own::typed::{absorbs, compare, extract_items, merge, remove_items, to_field_set};
use transom_schema::own::{self, Context, Element, Path, Set};
use transom_schema::{Additional, ListType, Schema, Type};

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[a-d]".prop_map(|n| Element::field(&n)),
        "[<&\"é\\\\\n]{0,2}".prop_map(|n| Element::field(&n)),
        ("[xy]", 0..3i64)
            .prop_map(|(k, v)| Element::key(vec![(k.into(), v.into()), ("name".into(), json!("n<"))])),
        (0..3i64).prop_map(|v| Element::value(v.into())),
        (0..3i64).prop_map(|v| Element::value(json!(v as f64 + 0.5))),
        any::<bool>().prop_map(|v| Element::value(v.into())),
        (0..12i64).prop_map(Element::Index),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    vec(vec(element(), 1..4), 0..12).prop_map(|paths| paths.into_iter().map(Path).collect())
}

proptest! {
    #[test]
    fn sets_obey_their_algebra(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(&a.union(&a), &a);
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(&a.intersection(&a), &a);
        prop_assert_eq!(&a.difference(&b).union(&a.intersection(&b)), &a);
        prop_assert!(a.difference(&a).is_empty() && a.recursive_difference(&a).is_empty());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        prop_assert!(a.leaves().difference(&a).is_empty());
        for path in a.paths() {
            prop_assert!(a.has(&path.0));
            prop_assert_eq!(a.difference(&b).has(&path.0), !b.has(&path.0));
        }
        prop_assert_eq!(a.paths().into_iter().collect::<Set>(), a);
    }

    #[test]
    fn field_sets_survive_json(a in set()) {
        prop_assert_eq!(&Set::from_json(&a.to_json()).unwrap(), &a);
        prop_assert_eq!(&Set::from_fields(&a.to_value()).unwrap(), &a);
        prop_assert_eq!(serde_json::from_str::<Value>(&a.to_json()).unwrap(), a.to_value());
    }
}

fn of(ty: Type) -> Schema {
    Schema { ty, ..Schema::default() }
}

fn object(fields: Vec<(&str, Schema)>) -> Schema {
    let properties: BTreeMap<_, _> = fields.into_iter().map(|(n, s)| (n.to_owned(), Arc::new(s))).collect();
    Schema { properties, ..of(Type::Object) }
}

fn schema() -> Schema {
    let port =
        object(vec![("port", of(Type::Integer)), ("name", of(Type::String)), ("open", of(Type::Boolean))]);
    let list = |list_type, items| Schema { list_type, items: Some(Arc::new(items)), ..of(Type::Array) };
    let texts = Schema { additional: Additional::Schema(Arc::new(of(Type::String))), ..of(Type::Object) };
    let spec = object(vec![
        ("replicas", of(Type::Integer)),
        ("color", of(Type::String)),
        ("labels", texts),
        ("args", list(None, of(Type::String))),
        ("zones", list(Some(ListType::Set), of(Type::String))),
        ("ports", list(Some(ListType::Map(vec!["port".into()])), port)),
        ("free", Schema::any()),
    ]);
    object(vec![("spec", spec)])
}

fn item() -> impl Strategy<Value = Value> {
    (maybe("[pq]"), maybe(any::<bool>())).prop_map(|(name, open)| {
        let mut item = json!({});
        name.into_iter().for_each(|n| item["name"] = n.into());
        open.into_iter().for_each(|o| item["open"] = o.into());
        item
    })
}

fn ports() -> impl Strategy<Value = Value> {
    (btree_map(0..4i64, item(), 1..4), any::<bool>()).prop_map(|(ports, reverse)| {
        let mut items: Vec<Value> = ports
            .into_iter()
            .map(|(port, mut item)| {
                item["port"] = port.into();
                item
            })
            .collect();
        if reverse {
            items.reverse();
        }
        items.into()
    })
}

/// A configuration; it always has a replica count, so that there is always a spec.
fn config() -> impl Strategy<Value = Value> {
    let words = || vec("[a-c]", 1..4);
    let zones = btree_set("[a-d]", 1..4).prop_map(|z| z.into_iter().collect::<Vec<_>>());
    (
        0..3i64,
        maybe("[rgb]"),
        maybe(btree_map("[a-c]", "[xy]", 1..3)),
        maybe(words()),
        maybe(zones.prop_shuffle()),
        maybe(ports()),
        maybe(btree_map("[a-c]", words(), 1..3)),
    )
        .prop_map(|(replicas, color, labels, args, zones, ports, free)| {
            let mut spec = json!({"replicas": replicas});
            color.into_iter().for_each(|v| spec["color"] = v.into());
            labels.into_iter().for_each(|v| spec["labels"] = json!(v));
            args.into_iter().for_each(|v| spec["args"] = json!(v));
            zones.into_iter().for_each(|v| spec["zones"] = json!(v));
            ports.into_iter().for_each(|v| spec["ports"] = v);
            free.into_iter().for_each(|v| spec["free"] = json!(v));
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec})
        })
}

fn with<T>(work: impl FnOnce(&Context<'_>) -> T) -> T {
    let schema = Arc::new(schema());
    let schema = |version: &str| (version == "v1").then(|| schema.clone());
    let convert = |_: &Value, _: &str| None;
    let reset_fields = |_: &str| None;
    work(&Context {
        api_version: "v1",
        subresource: "",
        schema: &schema,
        convert: &convert,
        reset_fields: &reset_fields,
        blank: None,
        now: "2030-01-01T00:00:00Z",
    })
}

fn apply(live: Option<&Value>, config: &Value, manager: &str) -> Value {
    let mut object =
        with(|ctx| own::apply(ctx, live, config, manager, true)).expect("a forced apply succeeds");
    object["metadata"]["uid"] = "1".into();
    object
}

fn update(live: &Value, mut new: Value, manager: &str) -> Value {
    new["metadata"] = live["metadata"].clone();
    with(|ctx| own::update(ctx, Some(live), &mut new, manager));
    new
}

fn owned(object: &Value, manager: &str) -> Set {
    let owners = decode(object["metadata"].get("managedFields")).expect("written by us");
    owners.into_iter().find(|(id, _)| id.manager == manager).map(|(_, owned)| owned.set).unwrap_or_default()
}

fn spec_fields(object: &Value) -> Set {
    let schema = schema();
    let only_spec = json!({"spec": object["spec"]});
    to_field_set(own::Type::object(&schema), &only_spec).expect("it fits")
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(base in config(), c in config()) {
        let live = apply(Some(&apply(None, &base, "other")), &c, "m");
        prop_assert_eq!(with(|ctx| own::apply_change(ctx, Some(&live), &c, "m", false)).unwrap(), None);
    }

    #[test]
    fn a_sole_applier_gets_exactly_what_it_applies(first in config(), second in config()) {
        let live = apply(Some(&apply(None, &first, "m")), &second, "m");
        prop_assert_eq!(&live["spec"], &second["spec"]);
        prop_assert_eq!(owned(&live, "m"), spec_fields(&second));
    }

    #[test]
    fn what_another_owns_does_not_vanish(mine in config(), theirs in config(), next in config()) {
        let live = apply(Some(&apply(None, &theirs, "other")), &mine, "m");
        let before = owned(&live, "other");
        let live = apply(Some(&live), &next, "m");
        let gone = before.difference(&spec_fields(&live));
        prop_assert!(gone.is_empty(), "{gone} is gone");
    }

    #[test]
    fn an_update_owns_what_it_changes(c in config(), new in config()) {
        let live = apply(None, &c, "m");
        let schema = schema();
        let change = compare(own::Type::object(&schema), &json!({"spec": c["spec"]}), &json!({"spec": new["spec"]})).unwrap();
        let taken = change.modified.union(&change.added);
        let live = update(&live, new.clone(), "u");
        prop_assert_eq!(&owned(&live, "u"), &taken);
        prop_assert!(owned(&live, "m").intersection(&taken.union(&change.removed)).is_empty());
        // An apply of what the object already has takes no field from another manager.
        let shared = apply(Some(&live), &new, "late");
        prop_assert_eq!(owned(&shared, "u"), taken);
        prop_assert_eq!(&shared["spec"], &live["spec"]);
    }

    #[test]
    fn merging_and_taking_apart(a in config(), b in config()) {
        let schema = schema();
        let ty = own::Type::object(&schema);
        let merged = merge(ty, &a, &b).unwrap().unwrap();
        prop_assert_eq!(&merge(ty, &merged, &b).unwrap().unwrap(), &merged);
        prop_assert!(absorbs(ty, &merged, &b));
        prop_assert!(!absorbs(ty, &a, &b) || merged == a);
        let fields = to_field_set(ty, &b).unwrap();
        prop_assert!(fields.difference(&to_field_set(ty, &merged).unwrap()).is_empty());
        prop_assert!(compare(ty, &merged, &merged).unwrap().is_same());
        prop_assert_eq!(&extract_items(ty, &b, &fields.leaves()), &b);
        let mut nothing = b;
        remove_items(ty, &mut nothing, &fields.ensure_named_fields_are_members(Some(ty)));
        prop_assert_eq!(nothing, Value::Null);
    }

    #[test]
    fn any_managed_fields_are_survived(c in config(), garbage in json_value(), entries in vec(entry(), 0..3)) {
        for fields in [garbage, Value::Array(entries)] {
            let mut live = apply(None, &c, "m");
            live["metadata"]["managedFields"] = fields;
            let _ = with(|ctx| own::apply_change(ctx, Some(&live), &c, "m", false));
            let mut new = live.clone();
            new["spec"]["replicas"] = 9.into();
            with(|ctx| own::update(ctx, Some(&live), &mut new, "u"));
            prop_assert!(decode(new["metadata"].get("managedFields")).is_ok() || new["metadata"]["managedFields"] == live["metadata"]["managedFields"]);
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|f| json!(f)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("([fkvi.]:)?.{0,5}", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

/// An entry that is right except for, perhaps, its fields.
fn entry() -> impl Strategy<Value = Value> {
    (json_value(), set(), any::<bool>(), "v[12]").prop_map(|(garbage, set, good, version)| {
        json!({"manager": "g", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
               "fieldsV1": if good { set.to_value() } else { garbage }})
    })
}
