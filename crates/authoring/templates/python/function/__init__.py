"""@NAME@: a composition function."""
