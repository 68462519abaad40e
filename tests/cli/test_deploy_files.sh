#!/usr/bin/env bash
# The files of examples/deploy name options, pages and variables that the server has.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
deploy=$SEXTANT_SRC/examples/deploy
ok serve --help
for option in $(grep -ohE -- '--[a-z_]+[a-z]=' "$deploy"/Dockerfile "$deploy"/kubernetes.yaml "$deploy"/sextant.service \
    "$deploy"/image-root | tr -d = | tr _ - | sort -u); do
    case $option in --from | --from-file | --target | --user | --name | --env | --entrypoint) continue ;; esac
    says "$option"
done
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
ok export run --out models/flowers
echo 'anna secret' >keys
MODEL_NAME=flowers MODEL_BASE_PATH=$here/models start flowers --drain_grace_ms=30000 --api_keys_file="$here/keys"
get() { # PATH STATUS
    ran="GET $1"
    [ "$(curl -s -o out -w '%{http_code}' "http://localhost:$port$1")" = "$2" ] || fail "expected status $2"
}
for page in $(grep -ohE '/v2/health/[a-z]+' "$deploy"/* | sort -u); do get "$page" 200; done
for page in $(grep -ohE '/monitoring/[a-z/]+' "$deploy"/* | sort -u); do get "$page" 401; done

# The root of an image has all that the program needs.
"$deploy/image-root" "$sextant" root
if [ "$(id -u)" = 0 ]; then
    ran='version, in a root of its own'
    chroot root /usr/bin/sextant --version >out 2>err || { cat err; fail 'chroot'; }
    says 'sextant '
    ran='query, in that root'
    chroot root /usr/bin/sextant query "http://127.0.0.1:$port/v1/models/flowers" --api-key secret >out 2>err || { cat err; fail 'chroot'; }
    ran='data from-images, in that root'
    mkdir -p photos/rose
    cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" photos/rose
    tar cf root/tmp/photos.tar photos
    chroot root /usr/bin/sextant data from-images /tmp/photos.tar --out /tmp/records >out 2>err || { cat err; fail 'chroot'; }
fi
if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/local/bin/sextant|$sextant|" "$deploy/sextant.service" >sextant.service
    systemd-analyze verify ./sextant.service >out 2>err || { cat err; fail 'the unit'; }
fi
