//! The input, and the rules it must obey. Most parameters can be given as they are or as a field of the composite
//! resource that has them, but not both ways.

use serde::Deserialize;
use serde_json::Value;

use super::network::Network;
use super::source::Sources;
use crate::named::{OneOf, names};

names! {
    /// What is calculated.
    Calculation: "cidrhost", "cidrnetmask", "cidrsubnet", "cidrsubnets", "cidrsubnetloop", "multiprefixloop";
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Parameters {
    pub cidr_func: OneOf<Calculation>,
    pub cidr_func_field: String,
    pub multi_prefix: Vec<MultiPrefix>,
    pub multi_prefix_field: String,
    pub prefix_field: String,
    pub prefix: String,
    pub host_num_field: String,
    pub host_num: i64,
    pub new_bits_field: String,
    pub new_bits: Vec<i64>,
    pub net_num_field: String,
    pub net_num: i64,
    pub net_num_count_field: String,
    pub net_num_count: i64,
    pub net_num_items_field: String,
    pub net_num_items: Vec<String>,
    pub offset_field: String,
    pub offset: i64,
    pub output_field: String,
}

/// A prefix with the bits that each of its subnets extends it by.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MultiPrefix {
    pub prefix: String,
    pub new_bits: Vec<i64>,
    pub offset: i64,
}

impl MultiPrefix {
    /// The list at a field of the composite resource. Members that are none of a prefix are passed over, as are nulls.
    pub(super) fn list(value: &Value) -> Option<Vec<Self>> {
        let items = match value {
            Value::Null => return Some(Vec::new()),
            value => value.as_array()?,
        };
        items.iter().map(Self::read).collect()
    }

    fn read(item: &Value) -> Option<Self> {
        let item = match item {
            Value::Null => return Some(Self::default()),
            item => item.as_object()?,
        };
        let given = |name: &str| item.get(name).filter(|value| !value.is_null());
        Some(Self {
            prefix: given("prefix").map_or(Some(String::new()), |v| v.as_str().map(str::to_owned))?,
            new_bits: given("newBits").map_or(Some(Vec::new()), |v| integers(v).ok())?,
            offset: given("offset").map_or(Some(0), Value::as_i64)?,
        })
    }
}

/// A list of integers, or the error of Go's decoder.
pub(super) fn integers(value: &Value) -> Result<Vec<i64>, String> {
    let mismatch = |value: &Value, wanted: &str| {
        let found = match value {
            Value::Number(number) if wanted == "int" => format!("number {number}"),
            other => transom_object::json::kind_of(other).to_owned(),
        };
        format!(
            "cannot unmarshal value from JSON: json: cannot unmarshal {found} into Go value of type {wanted}"
        )
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Null => Ok(0),
                item => item.as_i64().ok_or_else(|| mismatch(item, "int")),
            })
            .collect(),
        other => Err(mismatch(other, "[]int")),
    }
}

impl Parameters {
    /// Refuses parameters that are missing, given twice or of no use.
    pub(super) fn validate(&self, sources: &Sources<'_>) -> Result<(), String> {
        let function = self
            .function(sources)
            .map_err(|_| format!("cannot get cidrFunc at cidrFuncField {}", self.cidr_func_field))?;
        if function != "multiprefixloop" {
            self.validate_prefix(sources)?;
        }
        match function {
            "" => Err("cidrFunc is required".to_owned()),
            "cidrhost" => self.validate_host(sources),
            "cidrnetmask" => Ok(()),
            "cidrsubnet" => self.validate_subnet(),
            "cidrsubnets" => self.validate_subnets(sources),
            "cidrsubnetloop" => self.validate_loop(),
            "multiprefixloop" => self.validate_prefixes(sources),
            other => Err(format!("unexpected cidrFunc {other}")),
        }
    }

    /// Which calculation to do.
    pub(super) fn function<'a>(&'a self, sources: &Sources<'a>) -> Result<&'a str, String> {
        if self.cidr_func_field.is_empty() {
            Ok(&self.cidr_func)
        } else {
            sources.text(&self.cidr_func_field)
        }
    }

    fn validate_prefix(&self, sources: &Sources<'_>) -> Result<(), String> {
        let prefix = match (self.prefix.is_empty(), self.prefix_field.is_empty()) {
            (false, false) => {
                return Err(
                    "specify only one of prefix or prefixField to avoid ambiguous function input".to_owned()
                );
            }
            (true, true) => return Err("either prefix or prefixField function input is required".to_owned()),
            (false, true) => self.prefix.clone(),
            (true, false) => sources.prefix(&self.prefix_field).map_err(|error| {
                format!("cannot get prefix at prefixField {}: {error}", self.prefix_field)
            })?,
        };
        readable(&prefix)
    }

    fn validate_host(&self, sources: &Sources<'_>) -> Result<(), String> {
        if self.host_num > 0 && !self.host_num_field.is_empty() {
            return Err(
                "specify only one of hostnum or hostnumfield to avoid ambiguous function input".to_owned()
            );
        }
        if self.host_num != 0 {
            return Ok(());
        }
        if self.host_num_field.is_empty() {
            return Err("either hostnum or hostnumfield function input is required".to_owned());
        }
        let number = sources.integer(&self.host_num_field);
        number.map(drop).map_err(|_| format!("cannot get hostnum at hostnumfield {}", self.host_num_field))
    }

    fn validate_subnet(&self) -> Result<(), String> {
        let refused = match (self.new_bits.is_empty(), self.new_bits_field.is_empty()) {
            (false, false) => "specify only one of newbits or newbitsfield to avoid ambiguous function input",
            (true, true) => "either newbits or newbitsfield function input is required",
            (false, true) if self.new_bits.len() != 1 => {
                "cidrFunc cidrsubnet requires exactly 1 parameter in the array"
            }
            _ if self.net_num > 0 && !self.net_num_field.is_empty() => {
                "cidrFunc cidrsubnet requires either one of netnum or netnumfield"
            }
            _ => return Ok(()),
        };
        Err(refused.to_owned())
    }

    fn validate_subnets(&self, sources: &Sources<'_>) -> Result<(), String> {
        match (self.new_bits.is_empty(), self.new_bits_field.is_empty()) {
            (false, false) => {
                Err("cidrFunc cidrsubnets requires either one of newbits or newbitsfield".to_owned())
            }
            (true, false) => {
                let bits = sources.integers(&self.new_bits_field);
                bits.map(drop)
                    .map_err(|_| format!("cannot get newbits at newbitsfield {}", self.new_bits_field))
            }
            _ => Ok(()),
        }
    }

    fn validate_loop(&self) -> Result<(), String> {
        let count = (self.net_num_count > 0, !self.net_num_count_field.is_empty());
        let items = (!self.net_num_items.is_empty(), !self.net_num_items_field.is_empty());
        let refused = match () {
            () if count == (true, true) => {
                "cidrFunc cidrsubnetloop requires either one of netnumcount or netnumcountfield, \
                 but only if nonetnumitems or netnumitemsfield have been specified"
            }
            () if items == (true, true) => {
                "cidrFunc cidrsubnetloop requires either one of netnumitems or netnumitemsfield, \
                 but only if nonetnumcount or netnumcountfield have been specified"
            }
            () if (count.0 || count.1) && (items.0 || items.1) => {
                "cidrFunc cidrsubnetloop requires either one of netnumitems or netnumitemsfield, \
                 or mutually exclusive one of netnumcount or netnumcountfield, but not both counts and items"
            }
            () if !self.new_bits.is_empty() && !self.new_bits_field.is_empty() => {
                "cidrFunc cidrsubnetloop requires either one of newbits or newbitsfield"
            }
            () if self.offset > 0 && !self.offset_field.is_empty() => {
                "cidrFunc cidrsubnetloop requires either one of offset or offsetfield"
            }
            () => return Ok(()),
        };
        Err(refused.to_owned())
    }

    fn validate_prefixes(&self, sources: &Sources<'_>) -> Result<(), String> {
        let prefixes = match (self.multi_prefix.is_empty(), self.multi_prefix_field.is_empty()) {
            (false, false) => {
                return Err(
                    "specify only one of multiPrefix or multiPrefixField to avoid ambiguous function input"
                        .to_owned(),
                );
            }
            (true, true) => {
                return Err("either multiPrefix or multiPrefixField function input is required".to_owned());
            }
            _ => self.prefixes(sources).map_err(|_| {
                format!("cannot get multiPrefixes at multiPrefixField {}", self.multi_prefix_field)
            })?,
        };
        for prefix in &prefixes {
            readable(&prefix.prefix)?;
            if prefix.new_bits.is_empty() {
                return Err("newBits is required for each prefix in multiPrefixField".to_owned());
            }
        }
        Ok(())
    }

    /// The prefixes of a loop over several.
    pub(super) fn prefixes(&self, sources: &Sources<'_>) -> Result<Vec<MultiPrefix>, String> {
        if self.multi_prefix_field.is_empty() {
            return Ok(self.multi_prefix.clone());
        }
        let value = sources.value(&self.multi_prefix_field)?;
        MultiPrefix::list(value).ok_or_else(|| "cannot unmarshal value from JSON".to_owned())
    }
}

fn readable(prefix: &str) -> Result<(), String> {
    let network = Network::parse(prefix);
    network.map(drop).ok_or_else(|| format!("invalid CIDR prefix address {prefix}"))
}
