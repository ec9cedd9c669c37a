#!/bin/sh
# Adds a ConfigMap with the size of the composite resource to whatever is desired.
cat > /tmp/in
size=$(sed -n 's/^ *size: *//p' /tmp/in | head -1)
colour=$(sed -n 's/^  colour: *//p' /tmp/in | head -1)
awk -v size="$size" -v colour="$colour" '
  /^desired:/ { within = 1 }
  /^[a-z]/ && !/^desired:/ { within = 0 }
  within && /^  resources:/ {
    print "  resources:"
    print "  - name: sized"
    print "    resource:"
    print "      apiVersion: v1"
    print "      kind: ConfigMap"
    print "      metadata: {namespace: default}"
    print "      data: {size: \"" size "\", colour: \"" colour "\"}"
    print "    readinessChecks: [{type: None}]"
    next
  }
  { print }' /tmp/in
