//! The grammar of templates: a stream of documents of every kind, their annotations, and expressions over the request.
//!
//! `<symbol>` in a production stands for one of the productions of that symbol. Below a certain depth the first one of a
//! symbol is taken, so that all texts end.

use super::{Dice, world};

/// Resources that may be observed, and one that never is.
pub(super) const RESOURCES: [&str; 5] = ["db", "bucket", "a.b", "7", "missing"];

/// A template for a request.
pub(super) fn template(dice: &mut Dice) -> String {
    let mut text = String::new();
    expand(dice, "stream", 0, &mut text);
    text
}

const DEEPEST: usize = 14;

fn expand(dice: &mut Dice, symbol: &str, depth: usize, text: &mut String) {
    let productions = match symbol {
        "key" => return text.push_str(&world::path(dice).0),
        "plain" => return text.push_str(&plain(dice)),
        _ => GRAMMAR.iter().find(|(name, _)| *name == symbol).map_or(&[][..], |(_, productions)| productions),
    };
    assert!(!productions.is_empty(), "the grammar has no {symbol}");
    let chosen = if depth > DEEPEST { 0 } else { dice.below(productions.len()) };
    let mut rest = productions[chosen];
    // Lines that a production indents are indented as a whole.
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('>').filter(|(name, _)| is_symbol(name)) else {
            text.push('<');
            rest = after;
            continue;
        };
        let mut inner = String::new();
        expand(dice, name, depth + 1, &mut inner);
        let column = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
        let line = &text[text.len() - column..];
        if name == "field" && line.bytes().all(|byte| byte == b' ') {
            inner = inner.replace('\n', &format!("\n{}", " ".repeat(column)));
        }
        text.push_str(&inner);
        rest = after;
    }
    text.push_str(rest);
}

fn is_symbol(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A field below `spec` that can be written without quotes.
fn plain(dice: &mut Dice) -> String {
    loop {
        let path = world::path(dice).0;
        if !path.contains(['[', '\'', '*', '/']) {
            return path;
        }
    }
}

#[rustfmt::skip]
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "stream",
        &[
            "<head><doc>",
            "<head><doc><doc>",
            "<head><doc><doc><doc>",
            "<head><doc><doc>",
            "<head><doc>",
            "<xr>\n<json>\n<json>",
        ],
    ),
    ("head", &["<xr><defined>", "<xr><defined>", "<xr><defined>", "<xr><defined>", "<xr><defined>", "<xr>"]),
    ("xr", &["{{- $xr := .observed.composite.resource }}{{ $spec := $xr.spec }}"]),
    (
        "defined",
        &[
            "{{ define \"labels\" }}app: {{ .metadata.name }}\nn: {{ .kind | lower }}{{ end }}{{ define \"one\" }}{{ . | toString | quote }}{{ end }}",
        ],
    ),
    (
        "doc",
        &[
            "\n---\n<document>",
            "\n---\n<document>",
            "\n---\n<document>",
            "\n---\n<document>",
            "\n---\n<document>",
            "{{ if <condition> }}\n---\n<document>{{ else }}\n---\n<document>{{ end }}",
            "{{- with <value> }}\n---\n<document>{{- end }}",
            "{{- range $i, $v := <collection> }}\n---\n<document>{{- end }}",
            "\n---\n# nothing but {{/* a note */}} {{- /* another */ -}} a comment\n",
        ],
    ),
    (
        "document",
        &["<resource>", "<resource>", "<resource>", "<resource>", "<resource>", "<composite>", "<meta>"],
    ),
    (
        "json",
        &[
            "{\"apiVersion\":\"v1\",\"kind\":\"J\",\"metadata\":{\"annotations\":{\"gotemplating.fn.crossplane.io/composition-resource-name\":\"j{{ $spec.size }}\"}},\"spec\":{{ <value> | toJson }}}",
            "{\"apiVersion\":\"v1\",\"kind\":\"J\",\"metadata\":{\"annotations\":{\"gotemplating.fn.crossplane.io/composition-resource-name\":\"a\"}},\"spec\":{\"x\": {{ <value> | toPrettyJson }}}}",
        ],
    ),
    (
        "resource",
        &[
            "apiVersion: aws.example.org/v1\nkind: Bucket\nmetadata:\n  annotations:\n    <name>\n<more>spec:\n  <field>\n  <field>\n",
            "apiVersion: aws.example.org/v1\nkind: Bucket\nmetadata:\n  name: {{ $xr.metadata.name }}\n  annotations:\n    <name>\n<more>spec:\n  <field>\n  <field>\n  <field>\n",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n    <name>\n<more>data:\n  <field>\n",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n    <name>\n    note: {{ <value> | quote }}\n<labels>spec:\n  <field>\n",
        ],
    ),
    (
        "name",
        &[
            "{{ setResourceNameAnnotation \"one\" }}",
            "{{ setResourceNameAnnotation \"two\" }}",
            "{{ setResourceNameAnnotation \"db\" }}",
            "{{ setResourceNameAnnotation (printf \"r-%v\" $spec.size) }}",
            "gotemplating.fn.crossplane.io/composition-resource-name: {{ $xr.metadata.name }}-3",
            "gotemplating.fn.crossplane.io/composition-resource-name: r{{ $xr.spec.size }}",
            "<odd>",
        ],
    ),
    (
        "odd",
        &[
            "none: here",
            "gotemplating.fn.crossplane.io/composition-resource-name: 5",
            "{{ setResourceNameAnnotation <value> }}",
        ],
    ),
    (
        "more",
        &[
            "",
            "",
            "    gotemplating.fn.crossplane.io/ready: \"True\"\n",
            "    gotemplating.fn.crossplane.io/ready: \"False\"\n",
            "    gotemplating.fn.crossplane.io/ready: Unspecified\n",
            "    gotemplating.fn.crossplane.io/ready: {{ <condition> | ternary \"True\" \"False\" | quote }}\n",
            "    kept: {{ <value> | quote }}\n",
            "<labels>",
            "    <oddready>\n",
        ],
    ),
    (
        "oddready",
        &[
            "gotemplating.fn.crossplane.io/ready: true",
            "gotemplating.fn.crossplane.io/ready: \"yes\"",
            "x: {{ <value> }}",
        ],
    ),
    (
        "labels",
        &[
            "  labels: {{- include \"labels\" $xr | nindent 4 }}\n",
            "  labels: {{ $xr.metadata.labels | toJson }}\n",
        ],
    ),
    (
        "composite",
        &[
            "apiVersion: {{ $xr.apiVersion }}\nkind: {{ $xr.kind }}\nstatus:\n  <status>\n  <status>\n",
            "apiVersion: {{ $xr.apiVersion }}\nkind: {{ $xr.kind }}\nmetadata:\n  annotations: { gotemplating.fn.crossplane.io/ready: \"True\" }\nstatus:\n  <status>\n",
            "apiVersion: {{ $xr.apiVersion }}\nkind: {{ $xr.kind }}\nmetadata:\n  annotations: { gotemplating.fn.crossplane.io/ready: \"False\" }\n",
            "apiVersion: {{ $xr.apiVersion }}\nkind: {{ $xr.kind }}\nstatus: {{ <value> | toJson }}\n",
            "apiVersion: {{ $xr.apiVersion }}\nkind: {{ $xr.kind }}\nstatus: null\n",
        ],
    ),
    (
        "status",
        &[
            "size: {{ <value> | toJson }}",
            "nested: {{ <value> | toJson }}",
            "labels: {{ <value> | toJson }}",
            "tags: {{ <value> | toJson }}",
            "fresh: {{ <value> | quote }}",
        ],
    ),
    (
        "meta",
        &[
            "<metahead>CompositeConnectionDetails\ndata:\n  user: {{ <value> | toString | b64enc }}\n  other: dmFsdWU=\n",
            "<metahead>CompositeConnectionDetails\ndata:\n  user: {{ <value> | quote }}\n  odd: 'YQ='\n",
            "<metahead>ClaimConditions\nconditions:\n- type: <condtype>\n  status: <condstatus>\n  reason: R\n  message: {{ <value> | quote }}\n  target: <target>\n",
            "<metahead>Context\ndata:\n  other: {{ <value> | toJson }}\n  apiextensions.crossplane.io/environment: {{ <value> | toJson }}\n",
            "<metahead>ExtraResources\nrequirements:\n  nodes:\n    apiVersion: v1\n    kind: Node\n    <selector>\n",
            "<metahead>ExtraResources\nrequirements:\n  {{ $xr.metadata.name }}:\n    apiVersion: v1\n    kind: Node\n    <selector>\n",
            "<metahead><oddmeta>\n",
        ],
    ),
    ("metahead", &["apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1\nkind: "]),
    ("oddmeta", &["Odd", "Context", "ExtraResources", "ClaimConditions", "CompositeConnectionDetails"]),
    ("condtype", &["DatabaseReady", "Custom", "{{ $xr.kind }}", "Ready"]),
    (
        "condstatus",
        &[
            "\"True\"",
            "\"False\"",
            "Unknown",
            "{{ <condition> | ternary \"True\" \"False\" | quote }}",
            "maybe",
            "true",
        ],
    ),
    ("target", &["CompositeAndClaim", "Composite", "Claim", "\"\""]),
    (
        "selector",
        &[
            "matchName: x",
            "matchLabels: {a: b}",
            "matchLabels: {}",
            "namespace: ns\n    matchName: y",
            "namespace: ns\n    matchLabels: {a: b}",
            "matchName: {{ <value> | quote }}",
            "matchLabels: {a: 1}",
            "matchName: 1",
        ],
    ),
    (
        "field",
        &[
            "plain: {{ <value> | toJson }}",
            "text: {{ <value> | quote }}",
            "bare: {{ <path> }}",
            "block: {{- <value> | toYaml | nindent 12 }}",
            "pretty: {{ <value> | toPrettyJson }}",
            "literal: |\n  {{- <value> | toString | nindent 12 }}",
            "folded: >-\n  {{- <value> | quote | nindent 12 }}",
            "{{- if <condition> }}\nthen: 1\n{{- else if <condition> }}\nelse: 2\n{{- else }}\nnever: x\n{{- end }}",
            "{{- with <value> }}\nwith: {{ . | toJson }}\n{{- else with <path> }}\nelsewith: [{{ . | toJson }}]\n{{- end }}",
            "list:\n{{- range <collection> }}\n- {{ . | toJson }}\n{{- else }}\n- none\n{{- end }}",
            "map:\n{{- range $k, $v := <collection> }}\n  k{{ $k }}: {{ $v | toJson }}\n{{- end }}",
            "some: [{{ range $i, $v := <collection> }}{{ if eq $i 1 }}{{ <leave> }}{{ end }}{{ $v | toJson }}, {{ else }}none{{ end }}]",
            "{{- $v := <value> }}{{ if <condition> }}{{ $v = <path> }}{{ end }}\nassigned: {{ $v | toJson }}",
            "called: {{ template \"one\" <value> }}",
            "included: {{ include \"one\" <value> }}",
            "block: {{ block \"b\" <value> }}{{ . | toJson }}{{ end }}",
            "{{- $d := dict \"a\" <value> }}{{ $_ := set $d \"b\" <path> }}\nset: {{ $d | toJson }}",
            "deep:\n  <field>",
            "deep:\n  a: 1\n  <field>",
            "odd: <scalar>",
        ],
    ),
    ("leave", &["break", "continue"]),
    (
        "scalar",
        &[
            "0644",
            "yes",
            "~",
            "1_000",
            "1e3",
            "0x1F",
            "2024-01-01",
            "'it''s'",
            "\"a\\tb\"",
            "[a, {b: c}]",
            "{a: 1, b: [x]}",
            "!!str 5",
            "1:30",
            ".5",
            "=",
            "a # note",
            "&x [1]",
            "<<",
        ],
    ),
    (
        "condition",
        &[
            "(hasKey $spec \"<key>\")",
            "(eq <value> <value>)",
            "(and <value> <value>)",
            "(or <value> (not <value>))",
            "(eq (getResourceCondition \"Ready\" <observed>).Status \"True\")",
            "(empty <value>)",
            "(gt (len <collection>) 1)",
            "(<compare> <number> <number>)",
            "(not <condition>)",
        ],
    ),
    ("compare", &["lt", "le", "gt", "ge", "eq", "ne"]),
    (
        "number",
        &["1", "$spec.size", "$spec.ratio", "2.5", "(int <value>)", "(add <value> 1)", "(float64 <value>)"],
    ),
    (
        "observed",
        &[
            "(getComposedResource $ \"<observedname>\")",
            "(index (default dict $.observed.resources) \"<observedname>\")",
            "(get (default dict $.observed.resources) \"<observedname>\" | default dict)",
            "(getCompositeResource $)",
        ],
    ),
    ("observedname", &["db", "bucket", "a.b", "7", "missing"]),
    (
        "collection",
        &[
            "(default list $spec.items)",
            "(default list $spec.tags)",
            "(default dict $spec.labels)",
            "(list <value> <path>)",
            "(dict \"k\" <value> \"a\" 1)",
            "(until 3)",
            "(untilStep 5 0 -2)",
            "(splitList \"-\" (<value> | toString))",
            "(list <value> <value> | <listfn>)",
            "(keys (default dict $.observed.resources) | sortAlpha)",
            "(default (list 1 2) $spec.missing)",
            "(getExtraResources $ \"nodes\")",
            "<value>",
        ],
    ),
    (
        "listfn",
        &[
            "compact",
            "reverse",
            "toStrings | sortAlpha",
            "uniq",
            "initial",
            "rest",
            "concat (list 1)",
            "chunk 1",
            "without 5",
            "prepend 0",
        ],
    ),
    ("value", &["<path>", "<path>", "<path>", "<call>"]),
    (
        "path",
        &[
            "$spec.<plain>",
            "$spec.<plain>",
            "$spec.<plain>",
            "(index $spec \"<key>\")",
            "(get $spec \"<key>\")",
            "(dig \"<key>\" \"none\" $xr.spec)",
            "$xr.metadata.labels",
            "$xr.metadata.name",
            "$spec.nested.a.b.n",
            "$spec",
            "(default dict $xr.status).<plain>",
            "<literal>",
            "<literal>",
        ],
    ),
    (
        "literal",
        &[
            "\"text\"",
            "5",
            "1.5",
            "true",
            "(list 1 2 \"x\")",
            "(dict \"a\" 1 \"b\" \"yes\")",
            "\"0123\"",
            "\"a: b\"",
            "\"on\"",
            "1e3",
            "-7",
            "`raw\\n`",
            "'c'",
            "\"ü\\n\\ttab\"",
            "\" pad \"",
        ],
    ),
    (
        "call",
        &[
            "(<value> | default <path>)",
            "(printf \"%v-%s\" <value> <path>)",
            "(printf \"<verb>\" <value>)",
            // Not of everything: types of the original have other names in newer versions.
            "(printf \"%T %#v\" <path> <path>)",
            "(typeOf <path>)",
            "(dig \"nested\" \"a\" \"b\" <value> $spec)",
            "(ternary <value> <path> <condition>)",
            "(merge (dict \"x\" <value>) (default dict $spec.nested))",
            "(mergeOverwrite (deepCopy $spec) (dict \"size\" <value>))",
            "(<value> | toString | <textfn>)",
            "(<value> | toString | <textfn>)",
            "(<value> | toString | <textfn>)",
            "(<anyfn> <value>)",
            "(<anyfn> <value>)",
            "(<mathfn> <value> <number>)",
            "(list <value> <path>)",
            "(list <value> <path> | <listfn>)",
            "(list <value> <path> | join \"-\")",
            "(dict \"k\" <value>)",
            "(<value> | toYaml | fromYaml)",
            "(<value> | toJson | fromJson)",
            "<observed>.kind",
            "<observed>.spec.forProvider.region",
            "<observed>.connectionDetails",
            "(getResourceCondition \"<condname>\" <observed>).<condfield>",
            "(getResourceCondition \"<condname>\" <observed> | <anyfn>)",
            "(getExtraResources $ \"<extra>\")",
            "(getExtraResourcesFromContext $ \"<extra>\")",
            "((getCredentialData $ \"aws\").key | toString)",
            "(getCredentialData $ \"missing\")",
            "<request>",
            "(include \"labels\" $xr)",
            "(coalesce <value> <path>)",
            "(omit $spec \"<key>\" \"mixed\" | toYaml)",
            "(pick $spec \"<key>\" \"size\" \"ratio\")",
            "(values (pick $spec \"size\") | first)",
            "(first <collection>)",
            "(slice <collection> 1)",
            "(has <value> <collection>)",
            "(concat <collection> <collection>)",
            "(pluck \"name\" (dict \"name\" <value>) $xr.metadata)",
        ],
    ),
    (
        "verb",
        &[
            "%v", "%d", "%s", "%q", "%5v|", "%-8v|", "%t", "%x", "%.2f", "%+v", "%05d", "%c", "%e", "%U", "%%|%v",
        ],
    ),
    (
        "textfn",
        &[
            "upper",
            "lower",
            "title",
            "trunc 5",
            "b64enc",
            "b64dec",
            "sha256sum",
            "replace \"a\" \"b\"",
            "trimSuffix \"1\"",
            "kebabcase",
            "snakecase",
            "camelcase",
            "quote",
            "squote",
            "indent 2",
            "regexReplaceAll \"[0-9]+\" \"N\"",
            "fromJson",
            "fromYaml",
            "atoi",
            "splitList \"-\"",
            "regexFind \"[a-z]+\"",
            "regexMatch \"^[0-9]+$\"",
            "nospace",
            "trim",
            "substr 0 3",
            "contains \"a\"",
            "hasPrefix \"d\"",
            "sha1sum",
            "adler32sum",
            "urlParse",
            "base",
            "dir",
            "ext",
            "toDecimal",
            "abbrev 8",
            "wrap 5",
            "initials",
            "repeat 2",
            "html",
            "js",
            "urlquery",
            "regexSplit \"-\" -1",
            "semverCompare \">=1.0\"",
            "semver",
            "regexFindAll \"[a-z]\" 2",
            "trimPrefix \"d\"",
            "trimAll \"d\"",
            "untitle",
            "swapcase",
            "toDate \"2006\"",
            "duration",
            "cat 1",
            "substr 1 -1",
            "split \"-\"",
            "regexQuoteMeta",
            "b32enc",
            "toPrettyJson",
            "len",
            "int",
            "float64",
            "title | nospace",
        ],
    ),
    (
        "anyfn",
        &[
            "toYaml",
            "toJson",
            "toString",
            "kindOf",
            "empty",
            "not",
            "float64",
            "int64",
            "int",
            "len",
            "quote",
            "squote",
            "print",
            "println",
            "html",
            "js",
            "toRawJson",
            "toPrettyJson",
            "deepCopy",
            "list",
            "compact",
            "first",
            "last",
            "keys | sortAlpha",
            "ceil",
            "floor",
            "toDecimal",
            "add1",
            "toStrings",
            "default 1",
            "kindIs \"map\"",
            "typeIs \"string\"",
            "deepEqual 5",
            "all",
            "any",
            "uniq",
            "mustToJson",
            "mustFirst",
            "sortAlpha",
            "seq",
            "tuple",
            "cat",
            "printf \"%v\"",
            "fromYaml",
            "toYaml | fromYaml",
            "ternary 1 2",
        ],
    ),
    (
        "mathfn",
        &[
            "add",
            "sub",
            "mul",
            "max",
            "min",
            "div",
            "mod",
            "addf",
            "subf",
            "mulf",
            "eq",
            "lt",
            "and",
            "or",
            "cat",
            "round",
            "index",
            "deepEqual",
            "ne",
        ],
    ),
    ("condname", &["Ready", "Synced", "No"]),
    (
        "condfield",
        &["Status", "Reason", "Message", "LastTransitionTime", "ObservedGeneration", "Type", "Nope"],
    ),
    ("extra", &["nodes", "none", "missing", "0"]),
    (
        "request",
        &[
            "$.context",
            "$.desired",
            "$.extraResources",
            "$.requiredResources",
            "$.credentials",
            "$.meta.tag",
            "(index $.context \"apiextensions.crossplane.io/environment\")",
            "$.observed.resources",
        ],
    ),
];
