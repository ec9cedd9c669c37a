//! Formatting of a type that has nothing to do with templates. Expected texts are Go's.

use super::{Element, FmtError, Operand, View, sprint, sprintf, try_sprintf, try_sprintln};
use std::borrow::Cow;

#[derive(Clone, Debug)]
enum Any {
    Nil,
    Bool(bool),
    Int(i64),
    Byte(u8),
    Float(f64),
    Text(&'static str),
    List(&'static str, Vec<Any>),
    Map(Vec<(Any, Any)>),
    Point(Vec<(&'static str, Any)>),
    Weekday(i64),
}

impl Operand for Any {
    fn view(&self) -> View<'_> {
        match self {
            Any::Nil => View::Nil,
            Any::Bool(flag) => View::Bool(*flag),
            Any::Int(number) | Any::Weekday(number) => View::Int(*number),
            Any::Byte(number) => View::Uint(u64::from(*number)),
            Any::Float(number) => View::Float(*number),
            Any::Text(text) => View::Str(text.as_bytes()),
            Any::List(name, _) => View::List { is_nil: false, is_bytes: *name == "[]uint8" },
            Any::Map(_) => View::Map { is_nil: false },
            Any::Point(_) => View::Struct,
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Any::Nil => "<nil>",
            Any::Bool(_) => "bool",
            Any::Int(_) => "int",
            Any::Byte(_) => "uint8",
            Any::Float(_) => "float64",
            Any::Text(_) => "string",
            Any::List(name, _) => name,
            Any::Map(_) => "map[string]int",
            Any::Point(_) => "main.Point",
            Any::Weekday(_) => "time.Weekday",
        })
    }

    fn string_method(&self) -> Option<String> {
        match self {
            Any::Weekday(day) => Some(crate::time::weekday_name(*day)),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let byte = |value: &Any| match value {
            Any::Byte(byte) => Some(*byte),
            _ => None,
        };
        match self {
            Any::List(_, items) => items.iter().map(byte).collect(),
            _ => None,
        }
    }

    fn elements(&self, visit: &mut dyn FnMut(Element<'_, Self>) -> bool) {
        match self {
            Any::List(_, items) => {
                items.iter().all(|item| visit(Element::Item(item)));
            }
            Any::Map(entries) => {
                entries.iter().all(|(key, item)| visit(Element::Entry(key, item)));
            }
            Any::Point(fields) => {
                fields.iter().all(|(name, item)| visit(Element::Field(name, item)));
            }
            _ => {}
        }
    }
}

fn bytes() -> Any {
    Any::List("[]uint8", vec![Any::Byte(0xca), Any::Byte(0xfe)])
}

fn point() -> Any {
    Any::Point(vec![("X", Any::Int(1)), ("Name", Any::Text("a"))])
}

#[test]
fn verbs_flags_and_mistakes_print_as_in_go() {
    let map = || Any::Map(vec![(Any::Text("a"), Any::Int(1)), (Any::Text("b"), Any::Int(2))]);
    for (format, args, expected) in [
        ("%v|%6d|%-6d|%+d|%06d", (0..5).map(|_| Any::Int(42)).collect(), "42|    42|42    |+42|000042"),
        ("%x|%#x|%o|%b|%c|%U", (0..6).map(|_| Any::Int(65)).collect(), "41|0x41|101|1000001|A|U+0041"),
        ("%.2f|%g|%e", (0..3).map(|_| Any::Float(1.5)).collect(), "1.50|1.5|1.500000e+00"),
        ("%q|%s|%x|%.1s", (0..4).map(|_| Any::Text("hé")).collect(), "\"hé\"|hé|68c3a9|h"),
        ("%t|%v", vec![Any::Bool(true), Any::Nil], "true|<nil>"),
        ("%v|%#v", vec![map(), map()], "map[a:1 b:2]|map[string]int{\"a\":1, \"b\":2}"),
        ("%v|%+v|%#v", vec![point(), point(), point()], "{1 a}|{X:1 Name:a}|main.Point{X:1, Name:\"a\"}"),
        (
            "%s|%x|%v|%#v",
            vec![bytes(), bytes(), bytes(), bytes()],
            "\u{fffd}\u{fffd}|cafe|[202 254]|[]byte{0xca, 0xfe}",
        ),
        ("%v|%d|%T", vec![Any::Weekday(2), Any::Weekday(2), Any::Weekday(2)], "Tuesday|2|time.Weekday"),
        ("%[2]d %[1]d|%*d", vec![Any::Int(1), Any::Int(2)], "2 1|%!d(MISSING)"),
        ("%d %!", vec![Any::Text("x")], "%!d(string=x) %!!(MISSING)"),
        ("%d", vec![], "%!d(MISSING)"),
        ("%d", vec![Any::Int(1), Any::Text("y"), Any::Nil], "1%!(EXTRA string=y, <nil>)"),
        ("%t %z", vec![Any::Int(1), Any::Bool(true)], "%!t(int=1) %!z(bool=true)"),
    ] {
        let args: Vec<Any> = args;
        assert_eq!(sprintf(format, &args), expected, "{format}");
    }
    assert_eq!(sprint(&[Any::Int(1), Any::Int(2), Any::Text("a"), Any::Int(3)]), b"1 2a3");
    assert_eq!(try_sprintln(&[Any::Text("a"), Any::Int(3)], 100).unwrap(), b"a 3\n");
}

#[test]
fn output_and_depth_are_bounded() {
    assert_eq!(
        try_sprintf(b"%1000000d%1000000d", &[Any::Int(1), Any::Int(1)], 1 << 20),
        Err(FmtError::TooLong)
    );
    let mut deep = Any::Int(1);
    for _ in 0..600 {
        deep = Any::List("[]interface {}", vec![deep]);
    }
    assert_eq!(try_sprintf(b"%v", &[deep], 1 << 20), Err(FmtError::TooDeep));
}
