//! Projects of function authors: the decisions about them, without I/O.
//!
//! | module | purpose |
//! |---|---|
//! | [`language`] | the languages, how a project in one is recognised, built and served |
//! | [`template`] | the files of a new project |
//! | [`program`] | what a program needs of the image that it is put into |
//! | [`cases`] | files with requests and expected responses, and how responses differ |
//!
//! Pure: files are read and written, and programs are started, by the caller.

#![warn(missing_docs)]

pub mod cases;
pub mod language;
pub mod program;
pub mod template;
