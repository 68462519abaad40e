#!/usr/bin/env bash
# Several models: a configuration file with policies and labels, reloading, the environment, and every
# option of tensorflow_model_server.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
for i in 1 2 3; do ok export run --out models/digits; done
mkdir -p models/other
cp -r models/digits/1 models/other/7
get() {
    code=0
    curl -sS -o out -w '%{http_code}\n' "http://127.0.0.1:$port$1" >status 2>err || code=$?
    ran="GET $1"
    [ "$(cat status)" = "${2:-200}" ] || fail "HTTP status $(cat status), expected ${2:-200}"
}
wait_get() { # until the answer of URL $1 has text $2
    for ((i = 0; i < 500; i++)); do
        curl -sS -o out "http://127.0.0.1:$port$1" 2>err || true
        ! grep -qF -- "$2" out || return 0
        sleep 0.02
    done
    ran="GET $1"
    fail "the answer never had: $2"
}
wait_log() {
    for ((i = 0; i < 500; i++)); do
        ! grep -qF -- "$1" serve.err || return 0
        sleep 0.02
    done
    cat serve.err >err
    fail "the log never had: $1"
}

cat >models.config <<C
# two versions at once, under names
model_config_list {
  config {
    name: 'digits'
    base_path: '$here/models/digits'
    model_platform: 'tensorflow'
    model_version_policy { specific { versions: 1 versions: 3 } }
    version_labels { key: 'stable' value: 1 }
    version_labels { key: 'canary' value: 3 }
  }
  config { name: 'missing' base_path: '$here/models/missing' }
  config { name: 'other' base_path: '$here/models/other' }
}
C
launch --model_config_file=models.config
until grep -q '^Listening' serve.out; do sleep 0.02; done
port=$(sed -n 's/^Listening on port //p' serve.out)
wait_get /v1/models/other '"AVAILABLE"'
wait_get /v1/models/digits/labels/stable/metadata '"version": "1"'
wait_get /v1/models/digits/labels/canary/metadata '"version": "3"'
wait_get /v1/models/digits/metadata '"version": "3"'
get /v1/models/digits
[ "$(grep -c '"state": "AVAILABLE"' out)" = 2 ] || fail 'expected two available versions'
says_not '"version": "2"'
get /v1/models/digits/labels/stable # a label does not narrow the status, as in TensorFlow Serving
says '"version": "3"'
get /v1/models/digits/labels/none/metadata 400
says 'Unrecognized servable version label: none'
get /v1/models/digits/versions/2/metadata 404
says 'Servable not found for request: Specific(digits, 2)'
get /v1/models/missing 404
says 'Could not find any versions of model missing'
get /readyz 503
wait_log "Exporting HTTP/REST API at:localhost:$port ..."
wait_log 'Successfully loaded servable version {name: digits version: 1}'
wait_log "model missing: Could not find base path $here/models/missing"
get /monitoring/prometheus/metrics
says ':tensorflow:cc:saved_model:load_attempt_count{model_path="other",status="success"} 1'

# A mistake changes nothing, and is told with its place; SIGHUP takes what is right.
cp models.config good.config
sed -i 's/base_path: .*other/bsae_path: "x/' models.config
kill -HUP "$server"
wait_log "models.config:12:26: ModelConfig has no field 'bsae_path'; the models stay as they are"
sed 's/value: 1 /value: 2 /' good.config >models.config
kill -HUP "$server"
wait_log 'models.config:3: model_config_list.config[0]: Request to assign label to version 2 of model digits, which is not currently available for inference'
get /v1/models/other/metadata
sed 's/value: 1 /value: 3 /; s/versions: 1//; /other/d; /missing/d' good.config >models.config
kill -HUP "$server"
wait_get /v1/models/digits/labels/stable/metadata '"version": "3"'
wait_log 'Quiescing servable version {name: digits version: 1}'
wait_log 'Done unloading servable version {name: digits version: 1}'
get /v1/models/other 404
get /readyz
wait_log 'Done unloading servable version {name: other version: 7}'
grep -q '^Serving the models of models.config at ' serve.out || sleep 0.1
grep -q '^Serving the models of models.config at ' serve.out || fail 'no address'
kill -TERM "$server"
wait "$server" || fail 'exit code'
server=

# The file is looked at every now and then.
cp good.config models.config
sed -i /missing/d models.config
launch --model_config_file=models.config --model_config_file_poll_wait_seconds=0.05 --monitoring_config_file=<(echo)
wait "$server" && fail 'a pipe as a file'
server=
echo 'prometheus_config { enable: true path: "/figures" }' >monitoring.config
start 'the models of models.config' --model_config_file=models.config --model_config_file_poll_wait_seconds=0.05 \
    --monitoring_config_file=monitoring.config
get /figures
sed -i "s/'other'/'another'/" models.config
wait_get /v1/models/another '"AVAILABLE"'
get /v1/models/other 404

# As in tensorflow_model_server's image.
export MODEL_NAME=digits MODEL_BASE_PATH=$here/models
start digits
get /v1/models/digits/metadata
says '"version": "3"'
unset MODEL_NAME
fails 2 serve --model_base_path=a --model_config_file=b
warns '--model_base_path and --model_config_file are mutually exclusive'
unset MODEL_BASE_PATH
fails 2 serve --port=0 --rest_api_port=0
warns '--model_base_path DIR is required, or --model_config_file FILE, or $MODEL_NAME'

# A bad file refuses to start.
echo 'model_config_list { config { name: "m" } }' >bad.config
fails 1 serve --port=0 --rest_api_port=0 --model_config_file=bad.config
warns 'bad.config:1: model_config_list.config[0]: base_path: model m needs one'
fails 1 serve --port=0 --rest_api_port=0 --model_config_file=none.config
warns 'none.config'
fails 2 serve --model_base_path=m --monitoring_config_file=bad.config
warns 'bad.config:1:1: MonitoringConfig has no field'
echo 'prometheus_config { enable: true path: "figures" }' >monitoring.config
fails 2 serve --model_base_path=m --monitoring_config_file=monitoring.config
warns 'monitoring.config: prometheus_config.path: "figures" is not a URL path'
fails 2 serve --model_base_path=m --version_transition=other
warns 'expected availability_preserving|resource_preserving'

fails 2 serve --model_base_path=m --batching_parameters_file=x
warns '--batching_parameters_file needs --enable_batching'
printf 'max_batch_size { value: 8 }\nallowed_batch_sizes: 2\nallowed_batch_sizes: 4\n' >batching.config
fails 2 serve --model_base_path=m --enable_batching --batching_parameters_file=batching.config
warns 'batching.config:2: allowed_batch_sizes: 4, expected the last one to be max_batch_size, 8'
fails 2 serve --model_base_path=m --model_weights=a=1,b
warns '--model_weights: "b", expected NAME=WEIGHT'

# Every option of tensorflow_model_server is known; those without effect say so in a line.
cat >batching.config <<'E'
max_batch_size { value: 128 }
batch_timeout_micros { value: 0 }
max_enqueued_batches { value: 1000000 }
num_batch_threads { value: 8 }
E
start default --model_base_path="$here/models/digits" --port=0 --grpc_socket_path=x \
    --grpc_max_threads=4 --grpc_channel_arguments=a=b --use_alts_credentials=false \
    --enable_grpc_healthcheck_service --enable_batching --batching_parameters_file=batching.config \
    --enable_per_model_batching_parameters=true --file_system_poll_wait_seconds=0 \
    --rest_api_num_threads=2 --rest_api_timeout_in_ms=30000 --rest_api_enable_cors_support=true \
    --tensorflow_session_parallelism=0 --tensorflow_intra_op_parallelism=1 \
    --tensorflow_inter_op_parallelism=1 --tensorflow_session_config_file=x --platform_config_file=x \
    --thread_pool_factory_config_file=x --per_process_gpu_memory_fraction=0.5 \
    --mixed_precision=bfloat16 --xla_cpu_compilation_enabled --xla_gpu_compilation_enabled=false \
    --skip_initialize_tpu --saved_model_tags=serve --enable_signature_method_name_check=false \
    --remove_unused_fields_from_bundle_metagraph=true --enable_model_warmup=true \
    --num_request_iterations_for_warmup=0 --num_load_threads=0 --num_unload_threads=0 \
    --max_num_load_retries=0 --load_retry_interval_micros=60000000 --flush_filesystem_caches \
    --allow_version_labels_for_unavailable_models --prefer_tflite_model=false --num_tflite_pools=1 \
    --num_tflite_interpreters_per_pool=1 --enable_profiler --enable_serialization_as_tensor_content
cp serve.err err
warns 'warning: --use_alts_credentials has no effect: see --ssl-config-file'
[ "$(grep -c 'has no effect: ' err)" = 23 ] || fail 'expected one line for each'
warns_not '--saved_model_tags has'
warns_not '--enable_serialization_as_tensor_content has'

# An empty file name is none, as scripts pass it.
start default --model_base_path="$here/models/digits" --model_config_file= --monitoring_config_file= \
    --ssl_config_file= --rest_api_ssl_config_file= --grpc_socket_path= --batching_parameters_file= \
    --platform_config_file=
cp serve.err err
warns_not 'no effect'
ok serve --version
says 'sextant '

# The old version is gone before the new one is loaded.
rm -r models/other/7
cp -r models/digits/1 models/other/1
start other --model_name=other --model_base_path="$here/models/other" \
    --version_transition=resource_preserving
cp -r models/digits/1 models/other/new
mv models/other/new models/other/2
wait_log 'Successfully loaded servable version {name: other version: 2}'
wait_log 'model other: was not served for '
ran=log
cp serve.err err
grep -n 'servable version {name: other' err | sed 's/.*info: //; s/^[0-9]*://' >out
is <<'E'
Successfully loaded servable version {name: other version: 1}
Quiescing servable version {name: other version: 1}
Unloading servable version {name: other version: 1}
Done unloading servable version {name: other version: 1}
Successfully loaded servable version {name: other version: 2}
E
