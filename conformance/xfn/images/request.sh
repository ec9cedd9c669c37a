#!/bin/sh
# A function that reads the protocol's request as JSON, and writes its response: one ConfigMap with the size of the composite resource.
cat > /tmp/in
size=$(sed -n 's/.*"size": *\([0-9]*\).*/\1/p' /tmp/in)
echo "{\"desired\": {\"resources\": {\"sized\": {\"ready\": \"READY_TRUE\", \"resource\": {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"size\": \"$size\"}}}}}}"
