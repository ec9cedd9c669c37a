//! `function-cidr`: calculates networks and addresses as Terraform's functions of the same names do, and writes them
//! to a field of the composite resource.

mod input;
mod network;
mod source;

use input::Parameters;
use network::Network;
use serde_json::{Map, Value};
use source::Sources;
use transom_function::{Ready, RunFunctionRequest, RunFunctionResponse};

use crate::review::{self, Builtin, Review, Unsupported};
use crate::strict;

/// The most subnets a loop makes: more than any composite resource can hold.
const MAX_NETWORKS: i64 = 65_536;

/// The function.
pub(crate) struct Cidr;

impl Builtin for Cidr {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        crate::input::answer(request, write)
    }

    fn input_kind(&self) -> &'static str {
        "Parameters"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Parameters>(input, Unsupported::Refused)
    }
}

review::function!(Cidr);

fn write(request: &RunFunctionRequest, response: &mut RunFunctionResponse) -> Result<(), String> {
    let input: Parameters = strict::input(request, "v1beta1.Parameters")
        .map_err(|error| format!("cannot get Function input: {error}"))?;
    let sources = Sources::new(request, response);
    input
        .validate(&sources)
        .map_err(|error| format!("invalid Function input: parameters: Required value: {error}"))?;
    let calculated = calculate(&input, &sources)?;

    let field = if input.output_field.is_empty() { "status.atFunction.cidr" } else { &input.output_field };
    let observed = request.observed_composite();
    let text = |field| observed.get_str(field).unwrap_or_default();
    let kind = text("kind");
    let mut composite =
        response.desired.as_ref().and_then(|desired| desired.composite.clone()).unwrap_or_default();
    for (header, value) in [("apiVersion", text("apiVersion")), ("kind", kind)] {
        composite.set(header, value).map_err(|error| error.to_string())?;
    }
    let text = printed(&calculated);
    composite
        .set(field, calculated)
        .map_err(|error| format!("cannot set field {field} to {text} for {kind}: {error}"))?;
    // Writing the composite resource back resets the readiness that an earlier step set.
    composite.set_ready(Ready::Unspecified);
    *response.composite() = composite;
    Ok(())
}

/// A value as Go prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}:{}", printed(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        _ => "[]".to_owned(),
    }
}

fn calculate(input: &Parameters, sources: &Sources<'_>) -> Result<Value, String> {
    let kind = sources.kind();
    let in_subnets = |error: String| format!("cannot calculate Subnet CIDRs for {kind}: {error}");
    let in_subnet = |error: String| format!("cannot calculate subnet CIDR for {kind}: {error}");
    let function = input.function(sources)?;
    if function == "multiprefixloop" {
        return subnets_by_prefix(input, sources).map_err(in_subnets);
    }
    let prefix = match input.prefix_field.as_str() {
        "" => input.prefix.clone(),
        field => sources.prefix(field)?,
    };
    let network = Network::parse(&prefix).ok_or_else(|| format!("invalid CIDR address: {prefix}"))?;
    Ok(match function {
        "cidrhost" => {
            let number = number(input.host_num, &input.host_num_field, "hostnum", sources)?;
            let host = network.host(number);
            host.map_err(|error| format!("cannot calculate CIDR host number for {kind}: {error}"))?.into()
        }
        "cidrnetmask" => network.netmask().into(),
        "cidrsubnet" => {
            let new_bits = first(&new_bits(input, sources)?).map_err(in_subnet)?;
            let number = number(input.net_num, &input.net_num_field, "netnum", sources)?;
            network.subnet(new_bits, number).map_err(in_subnet)?.to_string().into()
        }
        "cidrsubnets" => list(&network.subnets(&new_bits(input, sources)?).map_err(in_subnets)?),
        _ => list(&subnets_in_loop(network, input, sources, in_subnet)?),
    })
}

/// Networks as a list; null if there are none.
fn list(networks: &[Network]) -> Value {
    if networks.is_empty() {
        return Value::Null;
    }
    networks.iter().map(|network| Value::from(network.to_string())).collect()
}

fn number(given: i64, field: &str, name: &str, sources: &Sources<'_>) -> Result<i64, String> {
    if field.is_empty() {
        return Ok(given);
    }
    let kind = sources.kind();
    sources
        .integer(field)
        .map_err(|error| format!("cannot get {name} from field {field} for {kind}: {error}"))
}

fn new_bits(input: &Parameters, sources: &Sources<'_>) -> Result<Vec<i64>, String> {
    let (field, kind) = (&input.new_bits_field, sources.kind());
    if field.is_empty() {
        return Ok(input.new_bits.clone());
    }
    sources
        .integers(field)
        .map_err(|error| format!("cannot get newbits from field {field} of {kind}: {error}"))
}

fn first(new_bits: &[i64]) -> Result<i64, String> {
    new_bits.first().copied().ok_or_else(|| "newbits is empty".to_owned())
}

fn subnets_in_loop(
    network: Network,
    input: &Parameters,
    sources: &Sources<'_>,
    in_subnet: impl Fn(String) -> String,
) -> Result<Vec<Network>, String> {
    let new_bits = new_bits(input, sources)?;
    let offset = number(input.offset, &input.offset_field, "offset", sources)?;
    let (field, kind) = (&input.net_num_items_field, sources.kind());
    let items = match field.as_str() {
        "" => input.net_num_items.len(),
        field => sources
            .count(field)
            .map_err(|error| format!("cannot get netnumitems from field {field} for {kind}: {error}"))?,
    };
    let count = input.net_num_count.max(i64::try_from(items).unwrap_or(i64::MAX));
    let count = number(count, &input.net_num_count_field, "netnumcount", sources)?;
    if count > MAX_NETWORKS {
        return Err(in_subnet(format!("{count} subnets are more than the {MAX_NETWORKS} that are allowed")));
    }
    let subnet = |number: i64| network.subnet(first(&new_bits)?, number.saturating_add(offset));
    (0..count).map(subnet).collect::<Result<_, _>>().map_err(in_subnet)
}

fn subnets_by_prefix(input: &Parameters, sources: &Sources<'_>) -> Result<Value, String> {
    let mut by_prefix = Map::new();
    for entry in input.prefixes(sources)? {
        let Some(network) = Network::parse(&entry.prefix) else { continue };
        // An offset is room left at the start.
        let skipped = usize::from(entry.offset > 0);
        let new_bits: Vec<i64> = [entry.offset].into_iter().take(skipped).chain(entry.new_bits).collect();
        let subnets = network.subnets(&new_bits)?.split_off(skipped);
        by_prefix.insert(entry.prefix, list(&subnets));
    }
    Ok(by_prefix.into())
}

#[cfg(test)]
mod tests;
