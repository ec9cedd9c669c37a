//! Decides what should exist: an XR, its composition and what is observed become an ordered plan.
