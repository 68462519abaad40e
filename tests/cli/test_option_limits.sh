#!/usr/bin/env bash
# The least and the greatest value of each numeric option are taken, the next beyond are refused; and
# the defaults are the documented ones. Options are read in order: one that is taken gives way to the
# complaint about --no-such-option.
. "$SEXTANT_SRC/tests/cli/lib.sh"
takes() {
    fails 2 $1 --$2=$3 --no-such-option
    warns 'unknown option --no-such-option'
}
refuses() {
    fails 2 $1 --$2=$3 --no-such-option
    warns_not 'no-such-option'
    warns "--$2 is $3, expected "
}
# command, option, least, one below, greatest, one above (- = none)
while IFS=, read -r command option least below greatest above; do
    takes "$command" "$option" "$least"
    refuses "$command" "$option" "$below"
    [ "$greatest" = - ] || takes "$command" "$option" "$greatest"
    [ "$above" = - ] || refuses "$command" "$option" "$above"
done <<'T'
train,epochs,1,0,-,-
train,max-steps,1,0,-,-
train,steps,1,0,-,-
train,batch-size,1,0,16777216,16777217
train,train-batch-size,1,0,16777216,16777217
train,eval-batch-size,1,0,16777216,16777217
train,learning-rate,1e-30,9e-31,1e30,2e30
train,base-batch-size,1,0,16777216,16777217
train,warmup-epochs,1e-6,9e-7,1e6,1000001
train,warmup-steps,1,0,-,-
train,seed,0,-1,9223372036854775807,-
train,tf-random-seed,0,-1,9223372036854775807,-
train,steps-per-eval,1,0,-,-
train,eval-examples,1,0,-,-
train,eval-steps,1,0,-,-
train,save-checkpoints-steps,1,0,-,-
train,save-checkpoints-secs,1,0,-,-
train,keep-checkpoint-max,0,-1,1000000000,1000000001
train,keep-checkpoint-every-n-hours,1e-6,9e-7,1e9,1000000001
train,log-step-count-steps,0,-1,1000000000000000,1000000000000001
train,save-summary-steps,0,-1,1000000000000000,1000000000000001
train,shards,1,0,4096,4097
evaluate,examples,1,0,-,-
evaluate,eval-steps,1,0,-,-
evaluate,batch-size,1,0,16777216,16777217
evaluate,report-mistakes,0,-1,10000,10001
predict,examples,1,0,-,-
predict,batch-size,1,0,16777216,16777217
query,timeout,1,0,86400,86401
query,max-response-bytes,1,0,1T,1099511627777
run,threads,1,0,4096,4097
data take,size,1,0,65536,65537
data take,channels,1,0,3,4
compile,batch-size,1,0,16777216,16777217
compile,iterations-per-loop,1,0,1024,1025
compile,image-size,1,0,16384,16385
serve,port,0,-1,65535,65536
serve,rest-api-port,0,-1,65535,65536
serve,rest-api-num-threads,1,0,4096,4097
serve,rest-api-timeout-in-ms,1,0,1000000000,1000000001
serve,max-body-bytes,1K,1023,4G,4294967297
serve,max-request-memory-bytes,256K,262143,1024T,1125899906842625
serve,max-in-flight-memory-bytes,262144,1,1024T,1125899906842625
serve,max-connections,1,0,1000000,1000001
serve,drain-grace-ms,1,0,1000000000,1000000001
serve,file-system-poll-wait-seconds,-1000000,-1000001,1000000,1000001
serve,model-config-file-poll-wait-seconds,0,-1,1000000,1000001
serve,version-drain-timeout-seconds,0.001,0.0009,1000000,1000001
serve,load-retry-interval-micros,1,0,1000000000000,1000000000001
serve,max-num-load-retries,0,-1,1000000,1000001
serve,load-retry-interval-seconds,0.001,0.0009,1000000,1000001
serve,load-timeout-seconds,0.001,0.0009,1000000,1000001
serve,threads,1,0,4096,4097
data from-images,shards,1,0,100000,100001
data from-images,label-base,0,-1,1,2
data from-idx,shards,1,0,100000,100001
data from-idx,label-base,0,-1,1,2
data show,count,0,-1,1000000000,1000000001
data take,count,1,0,1000000000000,1000000000001
data take,skip,0,-1,1000000000000,1000000000001
data take,size,1,0,65536,65537
data take,channels,1,0,3,4
T

# Bounds are shown with all digits, also to values that no integer holds.
fails 2 train --seed -1
warns '--seed is -1, expected 0 to 9223372036854775807'
fails 2 train --shards 99999999999999999999
warns '--shards is 99999999999999999999, expected 1 to 4096'
fails 2 train --epochs 99999999999999999999
warns '--epochs is 99999999999999999999, expected 1 to 9223372036854775807'

# Of an option's text in `sextant help COMMAND`: the lines from its own up to the next option's.
default_of() {
    ok help $1
    tr -s '\n ' '  ' <out | sed 's/ --/\n--/g' | sed -n "s/^--$2 .*default: \([^ ,;]*\).*/\1/p" >default
    [ "$(cat default)" = "$3" ] || fail "default of --$2 is \"$(cat default)\", expected \"$3\""
}
while IFS=, read -r command option default; do
    default_of "$command" "$option" "$default"
done <<'T'
train,keep-checkpoint-max,5
train,keep-checkpoint-every-n-hours,10000
train,log-step-count-steps,100
evaluate,report-mistakes,48
evaluate,checkpoint,latest
serve,model-name,default
serve,port,8500
serve,rest-api-port,8501
serve,rest-api-timeout-in-ms,30000
serve,max-body-bytes,64M
serve,max-connections,10000
serve,drain-grace-ms,30000
serve,file-system-poll-wait-seconds,1
serve,max-num-load-retries,5
serve,load-retry-interval-seconds,60
serve,version-drain-timeout-seconds,60
serve,version-transition,availability_preserving
serve,load-timeout-seconds,300
serve,monitoring-path,/monitoring/prometheus/metrics
query,timeout,60
query,max-response-bytes,64M
query,signature,serving_default
run,signature,serving_default
compile,mode,train
data take,count,1
data show,count,2
zoo,verbosity,info
zoo,color,auto
T
