//! One reconciler per kind, and the engine for kinds born at run time.
