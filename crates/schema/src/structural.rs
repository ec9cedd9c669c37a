//! From an OpenAPI v3 schema document to a [`crate::Schema`], and the rules that make it structural.
