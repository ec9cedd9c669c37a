//! Schemas, rules, patches and field ownership through the public interface of the crate: our own tables and laws, and upstream's
//! tables where they are beside the repository.

mod own_apply;
mod own_laws;
mod own_tables;
mod own_typed;
mod patch;
mod rules;
mod structural;
