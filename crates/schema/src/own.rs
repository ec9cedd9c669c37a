//! Field ownership: field sets, typed merge and compare, server-side apply and managedFields.
