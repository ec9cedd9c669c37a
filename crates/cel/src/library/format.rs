//! `format`: the named formats of Kubernetes, and what is wrong with a string that does not have that format.

use super::url;
use super::{Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use transom_object::{formats, names};

/// A named format. `regex_size` is the length of its pattern in cost computations.
#[derive(Debug)]
pub struct Format {
    /// The name that it prints as.
    pub name: &'static str,
    /// What is wrong with a text; nothing if it has the format.
    pub check: fn(&str) -> Vec<String>,
    /// The length of its pattern in cost computations.
    pub regex_size: u64,
}

static TABLE: [(&str, Format); 13] = [
    (
        "dns1123Label",
        Format { name: "DNS1123Label", check: |s| names::name_is_dns_label(s, false), regex_size: 30 },
    ),
    (
        "dns1123Subdomain",
        Format {
            name: "DNS1123Subdomain",
            check: |s| names::name_is_dns_subdomain(s, false),
            regex_size: 60,
        },
    ),
    (
        "dns1035Label",
        Format { name: "DNS1035Label", check: |s| names::name_is_dns1035_label(s, false), regex_size: 30 },
    ),
    ("qualifiedName", Format { name: "QualifiedName", check: names::is_qualified_name, regex_size: 60 }),
    (
        "dns1123LabelPrefix",
        Format { name: "DNS1123LabelPrefix", check: |s| names::name_is_dns_label(s, true), regex_size: 30 },
    ),
    (
        "dns1123SubdomainPrefix",
        Format {
            name: "DNS1123SubdomainPrefix",
            check: |s| names::name_is_dns_subdomain(s, true),
            regex_size: 60,
        },
    ),
    (
        "dns1035LabelPrefix",
        Format {
            name: "DNS1035LabelPrefix",
            check: |s| names::name_is_dns1035_label(s, true),
            regex_size: 30,
        },
    ),
    ("labelValue", Format { name: "LabelValue", check: names::is_label_value, regex_size: 40 }),
    (
        "uri",
        Format {
            name: "URI",
            check: |s| url::parse(s).err().iter().map(ToString::to_string).collect(),
            regex_size: 1103,
        },
    ),
    (
        "uuid",
        Format { name: "uuid", check: |s| unless(uuid(s), "does not match the UUID format"), regex_size: 90 },
    ),
    (
        "byte",
        Format { name: "byte", check: |s| unless(formats::is_base64(s), "invalid base64"), regex_size: 84 },
    ),
    (
        "date",
        Format { name: "date", check: |s| unless(formats::is_date(s), "invalid date"), regex_size: 133 },
    ),
    (
        "datetime",
        Format {
            name: "datetime",
            check: |s| unless(formats::is_date_time(s), "invalid datetime"),
            regex_size: 133,
        },
    ),
];

fn unless(valid: bool, message: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![message.to_owned()] }
}

/// Thirty-two hexadecimal digits, dashes between the usual groups or not.
fn uuid(s: &str) -> bool {
    let mut rest = s;
    for (i, width) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..width) else { return false };
        if !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    rest.is_empty()
}

fn validate<'a>(format: &Value<'a>, text: &Value<'a>) -> Out<'a> {
    if let Value::Opaque(o) = format
        && let Opaque::Format(format) = &**o
    {
        let errors = (format.check)(string(text)?);
        let errors: Vec<Value<'a>> = errors.into_iter().map(Value::text).collect();
        return Ok(if errors.is_empty() { Value::Optional(None) } else { Value::some(Value::list(errors)) });
    }
    Err(EvalError::overload())
}

fn named(name: &str) -> Option<&'static Format> {
    TABLE.iter().find(|(n, _)| *n == name).map(|(_, f)| f)
}

pub(super) fn declare(t: &mut Table) {
    const F: &str = "kubernetes.NamedFormat";
    t.member("validate", "format-validate", &format!("{F}, string"), "optional(list(string))", |_, a| {
        validate(a.get(0)?, a.get(1)?)
    });
    t.global("format.named", "format-named", "string", &format!("optional({F})"), |_, a| {
        Ok(match named(string(a.get(0)?)?) {
            Some(f) => Value::some(Value::opaque(Opaque::Format(f))),
            None => Value::Optional(None),
        })
    });
    for (name, _) in &TABLE {
        // The function's name is that of the format.
        t.constant(&format!("format.{name}"), F, |name| {
            let format = named(name.strip_prefix("format.").unwrap_or(name))?;
            Some(Value::opaque(Opaque::Format(format)))
        });
    }
}
