#!/usr/bin/env bash
# The TPU's example programs run on XLA's CPU plugin with two replicas (on the cpu backend where the
# plugin cannot be installed), and do what they say.
. "$SEXTANT_SRC/tests/train/examples.sh"

echo "tpu_mnist"
(
    cd "$dir"
    . "$SEXTANT_SRC/tests/cli/idx.sh"
    idx t 40
    idx u 19
    "$SEXTANT_BIN" data from-idx t-images-idx3-ubyte t-labels-idx1-ubyte --out mnist/train
    "$SEXTANT_BIN" data from-idx u-images-idx3-ubyte u-labels-idx1-ubyte --out mnist/test
) >"$dir/out" 2>&1
"$bin/tpu_mnist" -- --use_tpu --device $device --master=local --iterations 2 --batch_size 8 \
    --train_steps 6 --train_file "$dir/mnist/train-*" --model_dir "$dir/run" >"$dir/out"
expect '^Loss for final step: [0-9.]+\.$'
"$bin/tpu_mnist" --use_tpu=false --batch_size 8 --train_steps 8 --data_dir "$dir/mnist" \
    --model_dir "$dir/run" >"$dir/out" # the same run, on the CPU
expect '^Loss for final step: [0-9.]+\.$'
expect '^Eval results: accuracy = [01]\.[0-9]+, global_step = 8, loss = [0-9.]+ \(19 examples\)$'
"$bin/tpu_mnist" --batch_size 8 --train_steps 8 --data_dir "$dir/mnist" --model_dir "$dir/run" \
    --eval_steps 2 >"$dir/out"
expect ' \(16 examples, limited by --eval_steps\)$'
if [ -n "$replicas" ]; then
    "$bin/tpu_mnist" --device $device --batch_size 8 --train_steps 10 --data_dir "$dir/mnist" \
        --model_dir "$dir/run" >"$dir/out" # a device that is named, without --use_tpu
    expect '^Loss for final step: '
    fails "$bin/tpu_mnist" --use_tpu --device $device --batch_size 7 --train_steps 1 --data_dir "$dir/mnist"
    expect 'is not divisible by 2 replicas: the nearest are 6 and 8'
fi
fails "$bin/tpu_mnist" --use_tpu
expect 'must be set for training'
fails "$bin/tpu_mnist" --use_gpu
expect '^usage: '

echo "flowers_estimator"
"$bin/flowers_estimator" --train_data_path 'generated:flowers?n=24&size=40' \
    --eval_data_path 'generated:flowers?n=9&size=40&seed=2' --output_dir "$dir/flowers" \
    --image_size 32 --train_batch_size 8 --eval_batch_size 4 --steps_per_eval 2 --train_steps 4 \
    --nfil1 4 --nfil2 4 --ksize1 3 --ksize2 3 --nhidden 8 --batch_norm 1 --use_tpu 1 --device $device >"$dir/out"
expect '^Saving dict for global step 2: accuracy = [01]\.[0-9]+, loss = '
expect '^Saving dict for global step 4: '
expect '^probabilities\[[0-4]\] = [01]\.[0-9]+, classid = [0-4], class = [a-z]+$'
expect "^exported to $dir/flowers/export/exporter/1\$"
"$SEXTANT_BIN" show "$dir/flowers/export/exporter/1" >"$dir/out"
expect 'image_bytes'
expect 'probabilities'
expect 'classid'
fails "$bin/flowers_estimator" --train_data_path x
expect '^usage: '
fails "$bin/flowers_estimator" --train_data_path 'generated:flowers?n=8&size=40' \
    --eval_data_path 'generated:flowers?n=8&size=40' --output_dir "$dir/other" --image_size 32 --device cpu --nfil 3
expect 'the model has no parameter "nfil"'
