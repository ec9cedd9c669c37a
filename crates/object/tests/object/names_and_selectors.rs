//! Name rules, selectors and quantities: our own tables and laws.

use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use transom_object::field::Path;
use transom_object::labels::{Labels, Operator, Requirement, Selector};
use transom_object::names::{self, ip};
use transom_object::quantity::{Format, Quantity};
use transom_object::{fields, labels};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn names_are_judged() {
    type Rule = fn(&str) -> Vec<String>;
    let table: [(Rule, &[&str], &[&str]); 12] = [
        (names::is_dns1123_label, &["a", "0", "a-1", "1--a"], &["", "A", "-a", "a-", "a.b", "a_b", "é"]),
        (names::is_dns1123_subdomain, &["a", "a.b", "1.2.3"], &["", ".", "a..b", "a.", "a.B", "a b"]),
        (names::is_dns1035_label, &["a", "a-1"], &["", "1a", "a.b", "A"]),
        (names::is_dns1123_subdomain_with_underscore, &["_a.b", "a_b"], &["__a", "a_", "", "_"]),
        (names::is_wildcard_dns1123_subdomain, &["*.a.b"], &["*", "*.", "a.b", "*.*.a", "*a.b"]),
        (
            names::is_qualified_name,
            &["A_1.b", "a.b/C", "1/2"],
            &["", "/", "/a", "a/", "a/b/c", "A/b", "-a", "a b"],
        ),
        (names::is_label_value, &["", "a", "A.b_c-D"], &["-a", "a-", "a/b", "é"]),
        (names::is_c_identifier, &["_a1", "A"], &["", "1a", "a-b"]),
        (names::is_port_name, &["http", "a1", "1a"], &["", "1", "a--b", "-a", "a-", "A", "abcdefghijklmnop"]),
        (names::is_percent, &["0%", "007%"], &["", "%", "1", "-1%", "1.5%"]),
        (names::is_config_map_key, &[".a", "a..b", "A_1"], &["", ".", "..", "..a", "a b"]),
        (names::is_path_segment_name, &["a:b", "*", "é"], &[".", "..", "a/b", "a%b"]),
    ];
    for (rule, good, bad) in table {
        for s in good {
            assert_eq!(rule(s), Vec::<String>::new(), "{s:?}");
        }
        for s in bad {
            assert!(!rule(s).is_empty(), "{s:?}");
        }
    }
}

#[test]
fn messages_are_upstreams() {
    assert_eq!(
        names::is_dns1123_subdomain("A"),
        [
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(names::is_dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(names::is_dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
    assert_eq!(names::is_label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    assert_eq!(
        names::is_qualified_name("/")[..2],
        ["prefix part must be non-empty", "name part must be non-empty"]
    );
    assert_eq!(names::is_path_segment_name("a/%"), ["may not contain '/'", "may not contain '%'"]);
    assert_eq!(names::name_is_dns_label("web-", true), Vec::<String>::new());
    assert!(!names::name_is_dns_label("é-", true).is_empty());
}

#[test]
fn addresses_are_judged() {
    let p = Path::new("ip");
    for good in ["1.2.3.4", "::", "::1", "2001:db8::ffff"] {
        assert!(ip::is_ip(&p, good).is_empty(), "{good}");
    }
    for (bad, why) in [
        ("", "must be a valid IP address"),
        ("1.2.3", "must be a valid IP address"),
        ("1:2:3:4:5:6:7:8:9", "must be a valid IP address"),
        ("1::2::3", "must be a valid IP address"),
        ("::1.2.3.4:5", "must be a valid IP address"),
        ("fe80::1%eth0", "must be a valid IP address"),
        ("1.2.3.04", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("2001:DB8::1", "must be in canonical form (\"2001:db8::1\")"),
        ("0:0::1", "must be in canonical form (\"::1\")"),
    ] {
        let errors = ip::is_ip(&p, bad);
        assert!(errors.len() == 1 && errors[0].detail.contains(why), "{bad}: {errors:?}");
    }
    assert!(ip::is_cidr(&p, "10.0.0.0/8").is_empty());
    assert!(ip::is_cidr(&p, "0.0.0.0/0").is_empty() && ip::is_cidr(&p, "::/0").is_empty());
    assert!(ip::is_cidr(&p, "10.0.0.1/8")[0].detail.contains("bits set beyond"));
    assert!(ip::is_cidr(&p, "10.0.0.0/33")[0].detail.contains("must be a valid CIDR value"));
    assert!(ip::is_interface_address(&p, "10.0.0.1/8").is_empty());
    assert!(ip::is_interface_address(&p, "::ffff:10.0.0.1/40")[0].detail.contains("canonical"));
}

#[test]
fn label_selectors_select() {
    let object = labels(&[("app", "web"), ("tier", "1"), ("in", "")]);
    for (selector, matches) in [
        ("", true),
        ("app=web", true),
        ("app==web,tier!=2", true),
        ("app!=web", false),
        ("nope!=web", true),
        ("app in (web,db)", true),
        ("app notin (web,db)", false),
        ("nope notin ()", true),
        ("in", true),
        ("in in ()", true),
        ("!nope", true),
        ("!app", false),
        ("tier>0,tier<2", true),
        ("app>0", false),
        (" \tapp = web , in= ", true),
    ] {
        assert_eq!(Selector::parse(selector).unwrap().matches(&object), matches, "{selector}");
    }
    for (selector, error) in [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "a<b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        assert_eq!(Selector::parse(selector).unwrap_err().to_string(), error, "{selector}");
    }
    let error = Selector::parse("-a").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of"
        )
    );
    assert_eq!(Selector::parse("b in (z,a),a").unwrap().to_string(), "a,b in (a,z)");
    assert_eq!(Selector::parse("a in (x),b=y,c!=z").unwrap().exact("a"), Some("x"));
}

#[test]
fn label_selector_objects_select() {
    let read = |v: &serde_json::Value| Selector::from_label_selector(v);
    assert_eq!(read(&serde_json::json!(null)), Ok(Selector::Nothing));
    assert!(read(&serde_json::json!({})).unwrap().is_everything());
    let selector = serde_json::json!({"matchLabels": {"b": "c"}, "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "n", "operator": "DoesNotExist"}]});
    assert_eq!(read(&selector).unwrap().to_string(), "a in (x,y),b=c,!n");
    let bad = serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    assert_eq!(read(&bad).unwrap_err().to_string(), "\"Near\" is not a valid label selector operator");
    assert!(read(&serde_json::json!({"matchLabels": 5})).is_err());
    let errors = labels::validate_label_selector(&bad, &Path::new("spec"));
    assert_eq!(errors[0].field, "spec.matchExpressions[0].operator");
}

#[test]
fn field_selectors_select() {
    let selector = fields::Selector::parse("spec.b!=x,metadata.name=a\\,b").unwrap();
    assert_eq!(selector.to_string(), "metadata.name=a\\,b,spec.b!=x");
    assert_eq!(selector.exact("metadata.name"), Some("a,b"));
    let object = BTreeMap::from([("metadata.name", "a,b")]);
    assert!(selector.matches(|f| object.get(f).map(|v| Cow::Borrowed(*v))));
    assert!(!fields::Selector::parse("x=1").unwrap().matches(|_| None));
    assert!(fields::Selector::parse("x=").unwrap().matches(|_| None));
    for (bad, error) in [
        ("x", "invalid selector: 'x'; can't understand 'x'"),
        ("x=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("x=a=b", "invalid field selector: unescaped character in value: 61"),
    ] {
        assert_eq!(fields::Selector::parse(bad).unwrap_err().to_string(), error);
    }
}

#[test]
fn quantities_are_canonical() {
    for (text, canonical) in [
        ("0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("1500", "1500"),
        ("100000", "100k"),
        ("1e3", "1e3"),
        ("12E", "12E"),
        (".01", "10m"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("0.5Ki", "512"),
        ("100Ei", "9223372036854775807"),
        ("1.1e-12", "1e-9"),
    ] {
        assert_eq!(Quantity::parse(text).unwrap().canonical(), canonical, "{text}");
    }
    for bad in ["", "1 ", "1i", "1.1.M", "1+1", "1Zi", "e", "1e", "1234567890123456789e999999999"] {
        assert!(Quantity::parse(bad).is_err(), "{bad}");
    }
    // Upstream's leniency: digits may be missing, and a text near the canonical one is kept.
    assert!(Quantity::parse("Mi").unwrap().is_zero() && Quantity::parse("-").unwrap().is_zero());
    assert_eq!(Quantity::parse("+1").unwrap().to_string(), "+1");
    let q = |s: &str| Quantity::parse(s).unwrap();
    assert!(q("1Ki") > q("1k") && q("1000m") == q("1") && q("-1") < q("1m"));
    assert_eq!(q("1Gi").checked_add(&q("1Mi")).unwrap().to_string(), "1025Mi");
    assert_eq!(q("1").checked_sub(&q("1m")).unwrap().to_string(), "999m");
    assert_eq!((q("1500m").value(), q("1500m").milli_value()), (2, 1500));
    assert_eq!((q("5").as_i64(), q("1.0").as_i64(), q("1.5Gi").as_i64()), (Some(5), None, None));
    assert_eq!(q("1e2147483647").checked_add(&q("1")), None);
}

/// What differs between upstream's two forms of an amount, and where `int64` ends.
#[test]
fn quantities_at_the_edges() {
    let q = |s: &str| Quantity::parse(s).unwrap();
    let n = |n: i64| Quantity::new(n, Format::DecimalExponent);
    // Negating the least integer leaves it as it is, so that subtracting it adds it.
    assert_eq!(n(i64::MIN).negated().to_string(), "-9223372036854775808");
    assert_eq!(q("1").checked_sub(&n(i64::MIN)).unwrap().to_string(), "-9223372036854775807");
    assert_eq!(q("-1Ki").checked_add(&n(i64::MIN + 1024)).unwrap().to_string(), "-9223372036854775808");
    assert_eq!(q("1").checked_add(&n(i64::MAX)).unwrap().to_string(), "9223372036854775808");
    // More digits than any machine integer has.
    let long = "1234567890123456789012345678901234567890";
    assert_eq!(q(long).times(1000).to_string(), format!("{long}k"));
    assert!(
        q(long) > q("9223372036854775807") && q("9223372036854775807") > q("9223372036854775806.999999999")
    );
    assert_eq!(q("9223372036854775807").cmp(&n(i64::MAX)), std::cmp::Ordering::Equal);
    // Doubles are the number times a power of ten, each rounded.
    assert_eq!(q("0.3").as_f64().to_bits(), 0.300_000_000_000_000_04_f64.to_bits());
    assert_eq!(q("300m").as_f64().to_bits(), 0.3_f64.to_bits());
    assert_eq!(q("1e309").as_f64(), f64::INFINITY);
    assert!(q("0e400").as_f64().is_nan());
    // Factors that leave no whole number make a big decimal, which is not an integer.
    assert_eq!((q("10").times(5).as_i64(), q("0.5").times(3).times(0).as_i64()), (Some(50), None));
}

proptest! {
    #[test]
    fn requirements_print_and_parse(
        key in "[a-z]([a-z0-9-]{0,8}[a-z0-9])?(/[A-Za-z0-9]{1,5})?",
        values in prop::collection::btree_set("([A-Za-z0-9]([A-Za-z0-9_.-]{0,5}[A-Za-z0-9])?)?", 1..4),
        negated: bool,
    ) {
        let operator = if negated { Operator::NotIn } else { Operator::In };
        let selector = Selector::new(vec![Requirement::new(&key, operator, values.into_iter().collect()).unwrap()]);
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn any_text_is_a_selector_or_an_error(text in "[a-c=!<>(), \\\\\0é\t]{0,20}") {
        if let Ok(selector) = Selector::parse(&text) {
            prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
        }
        if let Ok(selector) = fields::Selector::parse(&text) {
            let again = fields::Selector::parse(&selector.to_string()).unwrap();
            prop_assert!(selector.requirements().iter().all(|r| again.requirements().contains(r)));
        }
    }

    #[test]
    fn escaping_is_undone(value in any::<String>()) {
        let escaped = fields::escape(&value).into_owned();
        prop_assert_eq!(fields::unescape(&escaped).unwrap(), value);
    }

    #[test]
    fn canonical_quantities_read_back(value in any::<i64>(), suffix in prop::sample::select(vec!["", "n", "u", "m", "k", "M", "Ki", "Mi"])) {
        let q = Quantity::parse(&format!("{value}{suffix}")).unwrap();
        prop_assert_eq!(Quantity::parse(&q.canonical()).unwrap(), q);
    }

    #[test]
    fn addition_is_commutative_and_undone(a in any::<i32>(), b in any::<i32>(), ea in -9..9_i32, eb in -9..9_i32) {
        let (x, y) = (Quantity::scaled(a.into(), ea), Quantity::scaled(b.into(), eb));
        let sum = x.checked_add(&y).unwrap();
        prop_assert_eq!(&sum, &y.checked_add(&x).unwrap());
        prop_assert_eq!(sum.checked_sub(&y).unwrap(), x);
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error(text in "[+-]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[+-]?[0-9]{0,12}") {
        if let Ok(q) = Quantity::parse(&text) {
            let _ = (q.canonical(), q.value(), q.as_i64(), q.as_f64(), q.times(7), q.checked_add(&q));
            let mut rounded = q.clone();
            rounded.round_up(0);
            prop_assert!(q.sign() <= 0 || rounded >= q);
        }
    }

    #[test]
    fn any_text_is_a_name_or_not(text in any::<String>()) {
        let p = Path::new("p");
        let _ = (names::is_qualified_name(&text), names::is_dns1123_label(&text), names::mask_trailing_dash(&text));
        let _ = (ip::is_ip(&p, &text), ip::is_cidr(&p, &text), ip::warnings_for_cidr(&p, &text));
    }

    #[test]
    fn addresses_print_as_the_standard_library_does(bits in any::<u128>(), v4 in any::<u32>()) {
        let p = Path::new("p");
        let v6 = std::net::Ipv6Addr::from(bits);
        prop_assert!(v6.to_ipv4_mapped().is_some() || ip::is_ip(&p, &v6.to_string()).is_empty());
        prop_assert!(ip::is_ip(&p, &std::net::Ipv4Addr::from(v4).to_string()).is_empty());
    }
}
