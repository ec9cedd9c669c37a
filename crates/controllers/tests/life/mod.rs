//! The controllers over the embedded API server: scenarios from the life of a platform. Their names follow those of
//! Crossplane's own end-to-end tests where there is one.

mod basics;
mod caching;
mod checks;
mod claims;
mod conformance;
mod costs;
mod crash;
mod definitions;
mod edges;
mod environment;
mod faults;
mod fixture;
mod managed;
mod namespaced;
mod overload;
mod packages;
mod policy;
mod polling;
mod realtime;
mod remote;
mod requirements;
mod rights;
mod rollout;
mod scenarios;
mod selecting;
mod selection;
mod starting;
mod templates;
mod test_functions;
mod usages;
