//! Where the catalogs of PostgreSQL keep privileges.

use crate::sql::privileges::Target;

/// Objects, privileges, and whether the role may grant them, of the ACL of each kind of object. An object without an ACL has
/// the default one. $1 is the role, $2 the objects (for routines their signatures), $3 the schema.
pub(super) fn select(target: Target) -> &'static str {
    match target {
        Target::Database => {
            "SELECT d.datname::text, a.privilege_type, a.is_grantable FROM pg_database d, \
             aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND d.datname = ANY($2) AND $3::text IS NOT NULL"
        }
        Target::Schema => {
            "SELECT n.nspname::text, a.privilege_type, a.is_grantable FROM pg_namespace n, \
             aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND n.nspname = ANY($2) AND $3::text IS NOT NULL"
        }
        Target::Table => {
            "SELECT c.relname::text, a.privilege_type, a.is_grantable FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace, \
             aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND c.relname = ANY($2) AND n.nspname = $3 AND c.relkind IN ('r','p','v','m','f')"
        }
        Target::Column => {
            "SELECT c.relname::text || '.' || t.attname, a.privilege_type, a.is_grantable FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute t ON t.attrelid = c.oid, \
             aclexplode(t.attacl) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND c.relname::text || '.' || t.attname = ANY($2) AND n.nspname = $3"
        }
        Target::Sequence => {
            "SELECT c.relname::text, a.privilege_type, a.is_grantable FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace, \
             aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND c.relname = ANY($2) AND n.nspname = $3 AND c.relkind = 'S'"
        }
        Target::Routine | Target::Type => {
            "SELECT s.signature, a.privilege_type, a.is_grantable FROM unnest($2::text[]) s(signature) \
             JOIN pg_proc p ON p.oid = to_regprocedure(s.signature), \
             aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND $3::text IS NOT NULL"
        }
        Target::ForeignDataWrapper => {
            "SELECT w.fdwname::text, a.privilege_type, a.is_grantable FROM pg_foreign_data_wrapper w, \
             aclexplode(coalesce(w.fdwacl, acldefault('F', w.fdwowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND w.fdwname = ANY($2) AND $3::text IS NOT NULL"
        }
        Target::ForeignServer => {
            "SELECT s.srvname::text, a.privilege_type, a.is_grantable FROM pg_foreign_server s, \
             aclexplode(coalesce(s.srvacl, acldefault('S', s.srvowner))) a JOIN pg_roles r ON r.oid = a.grantee \
             WHERE r.rolname = $1 AND s.srvname = ANY($2) AND $3::text IS NOT NULL"
        }
    }
}
