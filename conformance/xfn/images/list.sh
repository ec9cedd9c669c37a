#!/bin/sh
# Adds a ConfigMap to a ResourceList. The composite resource is its first item.
cat > /tmp/in
awk '
  /^items:/ {
    print
    print "- apiVersion: v1"
    print "  kind: ConfigMap"
    print "  metadata:"
    print "    namespace: default"
    print "    annotations:"
    print "      fn.apiextensions.crossplane.io/type: ComposedResource"
    print "      fn.apiextensions.crossplane.io/name: listed"
    print "  data: {from: list}"
    next
  }
  { print }' /tmp/in
