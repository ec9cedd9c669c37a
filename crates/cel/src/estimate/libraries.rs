//! Costs and result sizes of the functions of libraries: the extensions for sets and lists, strings, and Kubernetes'.

use super::super::ast::{Expr, Kind, Literal};
use super::super::cost;
use super::super::types::Type;
use super::{Bounds, Estimator};

impl Estimator<'_> {
    /// Functions of the sets and lists extensions.
    pub(super) fn extension(
        &self,
        id: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Option<(Bounds, Option<Bounds>)> {
        let size = |i: usize| args.get(i).map_or(Bounds::UNKNOWN, |a| self.size_or_unknown(a));
        let of_target = target.map_or(Bounds::UNKNOWN, |t| self.size_or_unknown(t));
        let number = |i: usize, otherwise: u64| match args.get(i).map(|a| &a.kind) {
            Some(Kind::Literal(Literal::Int(n))) => u64::try_from(*n).unwrap_or(otherwise),
            _ => otherwise,
        };
        let allocating = |cost: Bounds, size: Bounds| Some((cost.plus(Bounds::exactly(11)), Some(size)));
        let squared = |size: Bounds, text: bool| {
            let square = size.times(size);
            allocating(if text { square.share(2.1) } else { square.share(2.0) }, square)
        };
        let text = |e: Option<&Expr>| {
            e.is_some_and(
                |e| matches!(self.ty(e), Type::List(t) if matches!(**t, Type::String | Type::Bytes)),
            )
        };
        match id {
            "list_sets_contains_list" | "list_sets_intersects_list" => {
                Some((size(0).times(size(1)).plus(Bounds::exactly(1)), None))
            }
            "list_sets_equivalent_list" => {
                Some((size(0).times(size(1)).share(2.0).plus(Bounds::exactly(1)), None))
            }
            "list_slice" => {
                let length = Bounds::exactly(number(1, of_target.max).saturating_sub(number(0, 0)));
                allocating(length, length)
            }
            "lists_range" => {
                allocating(Bounds::exactly(number(0, u64::MAX)), Bounds::exactly(number(0, u64::MAX)))
            }
            "list_reverse" => allocating(of_target, of_target),
            "list_flatten" => allocating(of_target, of_target),
            "list_flatten_int" => {
                let cost = of_target.times(Bounds::exactly(number(0, u64::MAX)));
                allocating(cost, of_target)
            }
            "list_distinct" => squared(of_target, text(target)),
            _ if id.ends_with("_sortByAssociatedKeys") => squared(size(0), text(args.first())),
            _ if id.starts_with("list_") && id.ends_with("_sort") => squared(of_target, text(target)),
            _ => None,
        }
    }

    /// Functions of Kubernetes' libraries and of strings.
    pub(super) fn library(
        &self,
        function: &str,
        id: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Option<(Bounds, Option<Bounds>)> {
        let size = |i: usize| args.get(i).map_or(Bounds::UNKNOWN, |a| self.size_or_unknown(a));
        let of_target = || target.map(|t| self.size_or_unknown(t));
        let one = Some((Bounds::exactly(1), None));
        let octets = Bounds { min: 4, max: 16 };
        match function {
            "check" => Some((Bounds::exactly(cost::ACCESS_CHECK_COST), None)),
            "fieldSelector" | "labelSelector" => Some((size(0).map(cost::selector), None)),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
                let (target, length) = (target?, of_target()?);
                let cost = match self.ty(target) {
                    Type::List(item) if matches!(**item, Type::String | Type::Bytes) => {
                        let mut path = self.path(target);
                        let known = (!path.is_empty()).then(|| {
                            path.push("@items".to_owned());
                            self.declared(&path)
                        });
                        let item = known.flatten().unwrap_or(Bounds::UNKNOWN);
                        length.times(Bounds::exactly(1).plus(item.traversal()))
                    }
                    Type::List(_) => length,
                    _ if function == "includes" => length,
                    _ => length.traversal(),
                };
                Some((cost, None))
            }
            "url" => Some((size(0).traversal(), Some(size(0)))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                of_target().map(|size| (size.traversal(), Some(size)))
            }
            "replace" => of_target().map(|text| (text.share(0.2), Some(replaced(text, size(0), size(1))))),
            "split" => {
                let text = of_target()?;
                let max = match args.get(1).map(|a| &a.kind) {
                    Some(Kind::Literal(Literal::Int(n))) => u64::try_from(*n).unwrap_or(u64::MAX),
                    _ => text.max,
                };
                Some((text.share(0.2), Some(Bounds { min: 0, max })))
            }
            "join" => self.join(target?, args.first()),
            "find" | "findAll" => {
                let text = of_target()?;
                let cost = text.plus(Bounds::exactly(1)).traversal().times(size(0).share(0.25));
                Some((cost, Some(Bounds { min: 0, max: text.max })))
            }
            "ip" if id == "cidr_ip" => one,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Some((size(0).traversal(), None))
            }
            "ip.isCanonical" => Some((size(0).share(0.2), None)),
            "containsIP" => {
                let parse =
                    if id == "cidr_contains_ip_string" { size(0).traversal() } else { Bounds::exactly(0) };
                Some((octets.plus(octets).traversal().plus(parse), None))
            }
            "containsCIDR" => {
                let parse =
                    if id == "cidr_contains_cidr_string" { size(0).traversal() } else { Bounds::exactly(0) };
                let compare = octets.plus(octets).traversal().plus(octets.traversal());
                Some((compare.plus(Bounds::exactly(1)).plus(parse), None))
            }
            // The longest pattern of a named format has 128 characters.
            "validate" => Some((size(0).traversal().share(32.0), None)),
            "_==_" => match args.first().map(|a| self.ty(a)) {
                Some(Type::Opaque("kubernetes.NamedFormat")) => {
                    Some((Bounds { min: 1, max: 64 }.traversal(), None))
                }
                Some(Type::Opaque("kubernetes.URL")) => {
                    let known = args.get(1).and_then(|a| self.size(a)).unwrap_or(Bounds::exactly(1));
                    Some((Bounds { min: 1, max: known.max }.traversal(), None))
                }
                Some(Type::Opaque(_)) => one,
                _ => None,
            },
            _ => None,
        }
    }

    fn join(&self, list: &Expr, separator: Option<&Expr>) -> Option<(Bounds, Option<Bounds>)> {
        let count = self.size_or_unknown(list);
        let mut path = self.path(list);
        let known = (!path.is_empty()).then(|| {
            path.push("@items".to_owned());
            self.declared(&path)
        });
        let mut size = count.times(known.flatten().unwrap_or(Bounds::UNKNOWN));
        if let Some(separator) = separator {
            size = size.plus(self.size_or_unknown(separator).times(count.map(|n| n.saturating_sub(1))));
        }
        Some((size.traversal(), Some(size)))
    }
}

/// How long a text can be after replacing `old` by `new`.
fn replaced(text: Bounds, old: Bounds, new: Bounds) -> Bounds {
    let (mut count, mut kept) = (Bounds::exactly(0), Bounds::exactly(0));
    if old.min == 0 {
        (count.max, kept.max) = (text.max.saturating_add(1), text.max);
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = text.max.div_ceil(old.min);
    }
    if old.max == 0 {
        (count.min, kept.min) = (text.min.saturating_add(1), text.min);
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = text.min.div_ceil(old.max);
    }
    count.times(new).plus(kept)
}
