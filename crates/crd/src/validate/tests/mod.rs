//! The validation of definitions: `tables` compares it with kube-apiserver's tables, where these are beside the repository, `own`
//! has tables of our own.

mod own;
mod tables;
