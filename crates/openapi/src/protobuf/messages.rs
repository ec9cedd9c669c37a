//! The messages of `openapi.v2`, as far as a document of ours can use them.

use super::{Form, Message};
use serde_json::Value;

use Form::{Any, Choice, Each, Flag, Integer, Map, Number, One, Text};

const fn plain(fields: &'static [(&'static str, u32, Form)], extensions: u32) -> Message {
    Message { fields, extensions, others: None }
}

pub(super) static DOCUMENT: Message = plain(
    &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, Each(&Text)),
        ("consumes", 6, Each(&Text)),
        ("produces", 7, Each(&Text)),
        ("paths", 8, One(&PATHS)),
        ("definitions", 9, Map(&One(&SCHEMA))),
        ("parameters", 10, Map(&Choice(parameter))),
        ("responses", 11, Map(&One(&RESPONSE))),
        ("security", 12, Each(&Map(&Form::Some(&Text)))),
        ("securityDefinitions", 13, Map(&Choice(security_definition))),
        ("tags", 14, Each(&One(&TAG))),
        ("externalDocs", 15, One(&EXTERNAL_DOCS)),
    ],
    16,
);

static INFO: Message = plain(
    &[
        ("title", 1, Text),
        ("version", 2, Text),
        ("description", 3, Text),
        ("termsOfService", 4, Text),
        ("contact", 5, One(&CONTACT)),
        ("license", 6, One(&LICENSE)),
    ],
    7,
);

static CONTACT: Message = plain(&[("name", 1, Text), ("url", 2, Text), ("email", 3, Text)], 4);
static LICENSE: Message = plain(&[("name", 1, Text), ("url", 2, Text)], 3);
static TAG: Message =
    plain(&[("name", 1, Text), ("description", 2, Text), ("externalDocs", 3, One(&EXTERNAL_DOCS))], 4);
static EXTERNAL_DOCS: Message = plain(&[("description", 1, Text), ("url", 2, Text)], 3);
static REFERENCE: Message = plain(&[("$ref", 1, Text), ("description", 2, Text)], 0);

static PATHS: Message = Message { fields: &[], extensions: 1, others: Some((2, One(&PATH_ITEM))) };

static PATH_ITEM: Message = plain(
    &[
        ("$ref", 1, Text),
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Each(&Choice(parameters_item))),
    ],
    10,
);

static OPERATION: Message = plain(
    &[
        ("tags", 1, Each(&Text)),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, One(&EXTERNAL_DOCS)),
        ("operationId", 5, Text),
        ("produces", 6, Each(&Text)),
        ("consumes", 7, Each(&Text)),
        ("parameters", 8, Each(&Choice(parameters_item))),
        ("responses", 9, One(&RESPONSES)),
        ("schemes", 10, Each(&Text)),
        ("deprecated", 11, Flag),
        ("security", 12, Each(&Map(&Form::Some(&Text)))),
    ],
    13,
);

static RESPONSES: Message = Message { fields: &[], extensions: 2, others: Some((1, Choice(response_value))) };

static RESPONSE: Message = plain(
    &[
        ("description", 1, Text),
        ("schema", 2, Choice(|_| (1, One(&SCHEMA)))),
        ("headers", 3, Map(&One(&HEADER))),
        ("examples", 4, Map(&Any)),
    ],
    5,
);

fn response_value(value: &Value) -> (u32, Form) {
    if value.get("$ref").is_some() { (2, One(&REFERENCE)) } else { (1, One(&RESPONSE)) }
}

fn parameters_item(value: &Value) -> (u32, Form) {
    if value.get("$ref").is_some() { (2, One(&REFERENCE)) } else { (1, Choice(parameter)) }
}

fn parameter(value: &Value) -> (u32, Form) {
    if value["in"] == "body" { (1, One(&BODY_PARAMETER)) } else { (2, Choice(non_body_parameter)) }
}

fn non_body_parameter(value: &Value) -> (u32, Form) {
    match value["in"].as_str() {
        Some("header") => (1, One(&PLACED_PARAMETER)),
        Some("formData") => (2, One(&OPTIONAL_PARAMETER)),
        Some("path") => (4, One(&PLACED_PARAMETER)),
        _ => (3, One(&OPTIONAL_PARAMETER)),
    }
}

static BODY_PARAMETER: Message = plain(
    &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    6,
);

/// The fields of a simple type, from the field number of its `type` on. The messages that have these fields have them in
/// this order.
macro_rules! simple_type {
    ($first:expr; $($before:expr),*) => {
        &[
            $($before,)*
            ("type", $first, Text),
            ("format", $first + 1, Text),
            ("items", $first + 2, One(&PRIMITIVES_ITEMS)),
            ("collectionFormat", $first + 3, Text),
            ("default", $first + 4, Any),
            ("maximum", $first + 5, Number),
            ("exclusiveMaximum", $first + 6, Flag),
            ("minimum", $first + 7, Number),
            ("exclusiveMinimum", $first + 8, Flag),
            ("maxLength", $first + 9, Integer),
            ("minLength", $first + 10, Integer),
            ("pattern", $first + 11, Text),
            ("maxItems", $first + 12, Integer),
            ("minItems", $first + 13, Integer),
            ("uniqueItems", $first + 14, Flag),
            ("enum", $first + 15, Each(&Any)),
            ("multipleOf", $first + 16, Number),
        ]
    };
}

static PRIMITIVES_ITEMS: Message = plain(simple_type!(1;), 18);
static HEADER: Message = plain(simple_type!(1; ("description", 18, Text)), 19);
/// In the path or in a header.
static PLACED_PARAMETER: Message = plain(
    simple_type!(5; ("required", 1, Flag), ("in", 2, Text), ("description", 3, Text), ("name", 4, Text)),
    22,
);
/// In the query or in a form.
static OPTIONAL_PARAMETER: Message = plain(
    simple_type!(
        6;
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag)
    ),
    23,
);

static SCHEMA: Message = plain(
    &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Each(&Text)),
        ("enum", 20, Each(&Any)),
        ("additionalProperties", 21, Choice(additional_properties)),
        ("type", 22, Form::Some(&Text)),
        ("items", 23, Form::Some(&One(&SCHEMA))),
        ("allOf", 24, Each(&One(&SCHEMA))),
        ("properties", 25, Map(&One(&SCHEMA))),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("xml", 28, One(&XML)),
        ("externalDocs", 29, One(&EXTERNAL_DOCS)),
        ("example", 30, Any),
    ],
    31,
);

static XML: Message = plain(
    &[
        ("name", 1, Text),
        ("namespace", 2, Text),
        ("prefix", 3, Text),
        ("attribute", 4, Flag),
        ("wrapped", 5, Flag),
    ],
    6,
);

fn additional_properties(value: &Value) -> (u32, Form) {
    if value.is_boolean() { (2, Flag) } else { (1, One(&SCHEMA)) }
}

/// Only the ways of signing in that an API server offers.
fn security_definition(value: &Value) -> (u32, Form) {
    if value["type"] == "basic" { (1, One(&BASIC)) } else { (2, One(&API_KEY)) }
}

static BASIC: Message = plain(&[("type", 1, Text), ("description", 2, Text)], 3);
static API_KEY: Message =
    plain(&[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)], 5);
