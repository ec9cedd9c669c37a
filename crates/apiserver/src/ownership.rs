//! managedFields for a served resource: the glue between [`Resource`] and [`transom_schema::own`].

use crate::resource::Resource;
use crate::subresource::Subresource;
use serde_json::Value;
use transom_object::Status;
use transom_schema::own;

/// Records what `manager` changed between `live` and `new`.
pub(crate) fn update(
    resource: &Resource,
    subresource: Subresource,
    live: Option<&Value>,
    new: &mut Value,
    manager: &str,
    now: &str,
) {
    let live = live.or_else(|| resource.strategy.blank());
    with_context(resource, subresource, now, |ctx| own::update(ctx, live, new, manager));
}

/// Merges an applied configuration into the live object.
pub(crate) fn apply(
    resource: &Resource,
    subresource: Subresource,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Value, Status> {
    with_context(resource, subresource, now, |ctx| own::apply(ctx, live, config, manager, force))
        .map_err(|e| e.to_status())
}

/// Owners of an object that is not stored but has a built-in type, such as a Scale.
pub(crate) fn of_type<T>(
    type_name: &str,
    api_version: &str,
    subresource: &str,
    now: &str,
    run: impl FnOnce(&own::Context<'_>) -> T,
) -> T {
    let schema = |version: &str| (version == api_version).then(|| transom_kinds::schema(type_name)).flatten();
    let convert = |value: &Value, version: &str| (version == api_version).then(|| value.clone());
    run(&own::Context {
        api_version,
        subresource,
        schema: &schema,
        convert: &convert,
        reset_fields: &|_| None,
        blank: None,
        now,
    })
}

fn with_context<T>(
    resource: &Resource,
    subresource: Subresource,
    now: &str,
    run: impl FnOnce(&own::Context<'_>) -> T,
) -> T {
    let api_version = resource.api_version();
    let schema = |version: &str| resource.schemas.get(version).cloned();
    let convert = |value: &Value, version: &str| {
        resource.schemas.contains_key(version).then(|| resource.strategy.in_version(value, version))
    };
    let reset_fields = |_version: &str| resource.strategy.reset_fields(subresource);
    run(&own::Context {
        api_version: &api_version,
        subresource: subresource.as_str(),
        schema: &schema,
        convert: &convert,
        reset_fields: &reset_fields,
        blank: resource.strategy.blank(),
        now,
    })
}
