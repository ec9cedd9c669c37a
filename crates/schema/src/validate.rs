//! Values against their schema: value validations, list types, ratcheting.
