//! The vocabulary of the API through the public interface of the crate: our own tables and laws, and Kubernetes' tables where
//! they are beside the repository.

mod fieldpath;
mod json;
mod kubernetes;
mod names_and_selectors;
mod yaml;
