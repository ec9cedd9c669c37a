//! The expression language by our own tables and laws: what expressions give, what they are refused for, what they
//! cost, and that nothing panics or runs away.

use proptest::prelude::*;
use serde_json::json;
use transom_cel::{Bindings, Env, EvalError, PER_CALL_LIMIT, Program, Type, Value};

fn env() -> Env {
    Env::new().with("x", Type::Dyn)
}

fn holds(source: &str, x: &serde_json::Value) -> Result<bool, String> {
    let program = Program::compile(source, &env()).map_err(|e| e.to_string())?;
    let bindings = Bindings::new().with("x", Value::from_json(x));
    match program.eval_default(&bindings).map_err(|e| e.to_string())? {
        Value::Bool(b) => Ok(b),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn these_are_true() {
    let x = json!({"a": {"b": [1, 2, 3]}, "s": "Grüße", "n": 7, "f": 1.5, "e": {}, "l": ["b", "a"]});
    let mut wrong = Vec::new();
    for source in [
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && -x.n == -7 && 7 % 4 == 3 && 7 / 2 == 3",
        "1 < 1.5 && 2u > 1 && dyn(1) == 1.0 && dyn(1u) == 1 && 'a' != 'b'",
        "x.a.b[1] == 2 && x['a']['b'][0] == 1 && 2 in x.a.b && 'a' in x",
        "has(x.a.b) && !has(x.a.c) && has(x.e)",
        "x.a.b.all(i, i > 0) && x.a.b.exists(i, i == 3) && x.a.b.exists_one(i, i == 2)",
        "x.a.b.map(i, i * 2) == [2, 4, 6] && x.a.b.filter(i, i != 2) == [1, 3] && x.a.b.map(i, i > 1, i) == [2, 3]",
        "x.a.b.all(i, v, v == i + 1) && x.a.b.transformList(i, v, i + v) == [1, 3, 5]",
        "x.a.b.transformMap(i, v, v > 1, v * v) == {1: 4, 2: 9}",
        "{'k': 1}.transformMapEntry(k, v, {v: k}) == {1: 'k'}",
        "false && 1 / 0 == 1 ? false : true || 1 / 0 == 1",
        "[1, 2].exists(i, i / (i - 1) == 2) && (1 / 0 == 1 || true)",
        "x.?a.?b[?1].orValue(0) == 2 && x.?zz.?b.orValue(5) == 5 && !x.?zz.hasValue()",
        "optional.of(1).optMap(v, v + 1).value() == 2 && optional.none().or(optional.of(3)).value() == 3",
        "optional.of(4).optFlatMap(v, optional.of(v * 2)).orValue(0) == 8 && [?optional.none(), 1] == [1]",
        "{?'a': optional.none(), 'b': 2} == {'b': 2} && cel.bind(v, 21, v + v) == 42",
        "x.s.size() == 5 && size(b'abc') == 3 && x.s.charAt(2) == 'ü' && x.s.substring(1, 3) == 'rü'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && ['x', 'y'].join('-') == 'x-y'",
        "'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3 && 'aXbX'.replace('X', '', 1) == 'abX'",
        "' t '.trim() == 't' && 'Ab'.lowerAscii() == 'ab' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'%s %d %.2f %x %b'.format(['a', 10, 1.5, 255, 5]) == 'a 10 1.50 ff 101'",
        "'abc'.matches('^a.c$') && 'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "x.l.sort() == ['a', 'b'] && [3, 1].sortBy(e, -e) == [3, 1] && [1, 1, 2].distinct() == [1, 2]",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [[[1]], [[2]]].flatten(2) == [1, 2]",
        "[1, 2, 3].sum() == 6 && [1, 2].max() == 2 && [2, 1].min() == 1 && [1, 2].isSorted() && lists.range(3) == [0, 1, 2]",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
        "[1, 2, 3].first().value() == 1 && [1, 2, 3].last().value() == 3 && [1, 2, 3].slice(1, 2) == [2]",
        "duration('90m').getHours() == 1 && timestamp('2024-02-29T12:00:00Z').getDate() == 29",
        "timestamp('2024-01-01T00:00:00Z').getHours('America/New_York') == 19",
        "timestamp('2024-01-01T00:00:00Z') + duration('1h') > timestamp('2024-01-01T00:30:00Z')",
        "string(1.0) == '1' && string(duration('1500ms')) == '1.5s' && int('12') == 12 && double('1.5') == x.f",
        "type(1) == int && type('') == string && type([]) == list && type(null) == null_type",
        "'%s'.format([type(1)]) == 'int' && 1e-400 == 0.0 && 1.7976931348623157e308 > 1e308",
        "!optional.ofNonZeroValue(timestamp('0001-01-01T01:00:00+01:00')).hasValue()",
        "optional.ofNonZeroValue(timestamp(0)).hasValue() && optional.ofNonZeroValue(optional.none()).hasValue()",
        "cel.bind(v, 1 / 0, 5) == 5 && optional.of(0).optMap(v, 7).value() == 7",
        "string(timestamp('2024-01-01T05:00:00.50+05:30')) == '2024-01-01T05:00:00.5+05:30'",
        "string(timestamp('2024-01-01T05:00:00+05:30') + duration('1h')) == '2024-01-01T06:00:00+05:30'",
        "timestamp('2024-01-01T05:00:00+05:30').getDate() == 31 && timestamp('9999-12-31T23:59:59Z').getMonth() == 11",
        "string(1e6) == '1e+06' && string(123456.7) == '123456.7' && string(-1.0 / 0.0) == '-Inf' && string(-0.0) == '-0'",
        "string(duration('9223372036854775807ns')) == '9223372036.854776s'",
        "quantity('0.3').asApproximateFloat() != 0.3 && sign(quantity('1').sub(-9223372036854775808)) == -1",
        "!format.byte().validate('YR==').hasValue() && format.byte().validate('Y').hasValue()",
        "quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1k').asInteger() == 1000",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && isSemver('v1.2', true) && !isSemver('1.2')",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('::ffff:1.2.3.4')",
        "url('https://u:p@example.com:8443/a b?q=1').getPort() == '8443' && !isURL('../x')",
        "!format.dns1123Label().validate('ok').hasValue() && format.dns1123Label().validate('No').hasValue()",
        "r'\\d' == '\\\\d' && b'\\x41' == b'A' && '''a\nb''' == 'a\\nb' && '\\u00fc' == 'ü' // comment",
    ] {
        let result = holds(source, &x);
        if result != Ok(true) {
            wrong.push(format!("{source}: {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn these_are_refused() {
    for (source, wanted) in [
        ("1 +", "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting"),
        ("y", "ERROR: <input>:1:1: undeclared reference to 'y' (in container '')\n | y\n | ^"),
        ("x && \n  'a'", "ERROR: <input>:2:3: expected type 'bool' but found 'string'\n |   'a'\n | ..^"),
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.nope()", "undeclared reference to 'nope'"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("has(x)", "invalid argument to has() macro"),
        ("[1].all(x.y, true)", "argument must be a simple name"),
        ("5.all(i, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("if", "reserved identifier: if"),
        ("'a", "token recognition error"),
        ("9223372036854775808", "invalid int literal"),
        ("1e309", "invalid double literal"),
        ("-179769313486231580793e289", "invalid double literal"),
        ("Foo{a: 1}", "undeclared reference to 'Foo'"),
    ] {
        let error = Program::compile(source, &env()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{source}: {error}");
    }
    let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    assert!(
        Program::compile(&deep, &env()).unwrap_err().to_string().contains("max recursion depth exceeded")
    );
}

#[test]
fn these_fail_when_evaluated() {
    let x = json!({"l": [1], "s": "a", "n": 1});
    for (source, wanted) in [
        ("x.l[5] == 1", "index out of bounds: 5"),
        ("x.zz == 1", "no such key: zz"),
        ("1 / (x.n - 1) == 1", "division by zero"),
        ("9223372036854775807 + x.n > 0", "integer overflow"),
        ("x.s < x.n", "no such overload"),
        ("x.s.matches(x.s + '(')", "missing closing )"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("string(dyn(type(x.n))) == 'int'", "no such overload"),
    ] {
        let error = holds(source, &x).unwrap_err();
        assert!(error.contains(wanted), "{source}: {error}");
    }
}

/// What upstream says, and what it charges: the target of `optMap` is evaluated twice, and a value only where it is used.
#[test]
fn failures_and_costs_are_upstreams() {
    let evaluated = |source: &str| {
        let program = Program::compile(source, &Env::new()).expect(source);
        let (result, cost) = program.eval_metered(&Bindings::new(), PER_CALL_LIMIT);
        (result.map(drop).map_err(|e| e.to_string()), cost)
    };
    for (source, cost) in [
        ("optional.of(1).optMap(x, x)", 6),
        ("optional.of(1).optFlatMap(x, optional.none())", 3),
        ("optional.of(1).optMap(x, x).optMap(x, x)", 16),
        ("optional.none().optMap(x, x)", 3),
        ("optional.of('0123456789a') == optional.of('0123456789a')", 4),
        ("optional.of([]) == optional.none()", 2),
    ] {
        assert_eq!(evaluated(source), (Ok(()), cost), "{source}");
    }
    for (source, why) in [
        (
            "ip('1.2.3.')",
            r#"IP Address "1.2.3." parse error during conversion from string: ParseAddr("1.2.3."): IPv4 field must have at least one digit (at ".")"#,
        ),
        ("ip('fe80::1%eth0')", r#"IP address "fe80::1%eth0" with zone value is not allowed"#),
        (
            "cidr('::/x')",
            "network address parse error during conversion from string: network address parse error during conversion \
             from string: netip.ParsePrefix(\"::/x\"): bad bits after slash: \"x\"",
        ),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("duration(1 + 1)", "type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("timestamp('0000-01-01T00:00:00Z' + '')", "timestamp overflow"),
        ("double('1e40' + '0')", "type conversion error from 'string' to 'double'"),
        ("uint('+' + '1')", "type conversion error from 'string' to 'uint'"),
        ("timestamp('9999-12-31T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')", "integer overflow"),
    ] {
        assert_eq!(evaluated(source).0, Err(why.to_owned()), "{source}");
    }
    let refused = |source: &str| Program::compile(source, &Env::new()).map(drop).unwrap_err().to_string();
    assert!(refused("duration(5)").contains("invalid duration argument"));
    assert!(refused("uint(dyn(false))").contains("no such overload: uint(bool)"));
    let chain = format!("optional.of(1){}", ".optMap(x, x)".repeat(40));
    assert!(refused(&chain).contains("too large"), "doubling must end");
}

#[test]
fn budgets_stop_what_would_run_away() {
    let big = json!((0..300).collect::<Vec<i32>>());
    for source in [
        "x.all(a, x.all(b, x.all(c, a + b + c >= 0)))",
        "lists.range(1000000).map(i, i).size() > 0",
        "cel.bind(a, x + x, cel.bind(b, a + a + a + a, cel.bind(c, b + b + b + b, cel.bind(d, c + c + c + c, \
         cel.bind(e, d + d + d + d, cel.bind(f, e + e + e + e, cel.bind(g, f + f + f + f, cel.bind(h, g + g + g + g, \
         cel.bind(i, h + h + h + h, (i + i + i + i).size() > 0)))))))))",
    ] {
        let program = Program::compile(source, &env()).unwrap();
        let result = program.eval_default(&Bindings::new().with("x", Value::from_json(&big)));
        assert_eq!(result.unwrap_err(), EvalError::CostExceeded, "{source}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(source in "\\PC{0,60}") {
        let _ = Program::compile(&source, &env());
    }

    #[test]
    fn no_soup_of_tokens_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "x", "1", "'a'", "(", ")", "[", "]", "{", "}", ".", "?", ":", ",", "+", "-", "!", "&&", "||", "==", "in",
        "has", ".all(", ".map(", "i", "size(", "[?", ".?", "null", "1u", "1.5", "b'x'", "int", "optional.of(",
    ]), 0..25)) {
        let source = parts.join(" ");
        if let Ok(program) = Program::compile(&source, &env()) {
            let x = json!({"a": [1, "b", null], "b": {"c": 1.5}});
            let _ = program.eval_default(&Bindings::new().with("x", Value::from_json(&x)));
        }
    }

    #[test]
    fn cost_grows_with_the_data_and_the_budget_bounds_it(n in 0_usize..200, more in 1_usize..50, budget in 0_u64..3000) {
        let program = Program::compile("x.filter(i, i > 1).map(i, string(i)).all(s, s.contains('1'))", &env()).unwrap();
        let cost = |n: usize, budget| {
            let x = json!(vec![11; n]);
            let (result, cost) = program.eval_metered(&Bindings::new().with("x", Value::from_json(&x)), budget);
            (result.is_ok(), cost)
        };
        let (small, large) = (cost(n, PER_CALL_LIMIT).1, cost(n + more, PER_CALL_LIMIT).1);
        prop_assert!(small < large);
        let (finished, spent) = cost(n, budget);
        prop_assert_eq!(finished, small <= budget);
        prop_assert!(spent <= small);
    }
}
