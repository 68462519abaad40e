#!/usr/bin/env bash
# Mistakes of serve and query.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2 serve --model_name=m
warns '--model_base_path DIR is required'
fails 2 serve --model_base_path=m --rest_api_port=70000
warns '--rest_api_port is 70000, expected 0 to 65535'
fails 2 serve --model_base_path=m --rest_api_prot=8501
warns 'unknown option --rest_api_prot; did you mean "--rest_api_port"?'
fails 2 serve --model-base-path m --rest-api-prot 8501
warns 'unknown option --rest-api-prot; did you mean "--rest-api-port"?'
fails 2 serve --model-name m
warns '--model-base-path DIR is required'
fails 2 serve --model_name=m --model-base-path gs://bucket/m
warns '--model-base-path is "gs://bucket/m"'
for size in 99999999999999999999 8388608T 1X 1KB K '' -1K 1.5M 1MiBx; do
    fails 2 serve --model_base_path=m --max_request_memory_bytes="$size"
    warns "--max_request_memory_bytes is \"$size\", expected a size like 512M or 2G"
done
fails 2 serve --model_base_path=m --max_in_flight_memory_bytes=1
warns '--max_in_flight_memory_bytes is 1, expected 256K to 1024T'
fails 2 serve --model_base_path=m --monitoring_path=metrics
warns '--monitoring_path: "metrics" is not a URL path for the metrics: it must begin with /'
fails 2 serve --model_base_path=m --monitoring-path=/healthz
warns '--monitoring-path: the metrics cannot be at "/healthz": the server has another page there'
fails 2 query
warns 'expected URL'
fails 1 query ftp://localhost/x
fails 1 query http://localhost:1/v1/models/m --image missing.jpg
warns 'missing.jpg'
fails 2 query http://localhost:1/v1/models/m --image a.jpg --input x.npy
warns 'mutually exclusive'
