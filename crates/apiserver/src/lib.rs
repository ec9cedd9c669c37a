//! The Kubernetes HTTP API over a store: discovery, OpenAPI, CRDs, verbs, watch, garbage collection.
//! Has never heard of Crossplane.

pub mod kinds;
