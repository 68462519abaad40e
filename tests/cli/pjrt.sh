# For tests on XLA's CPU plugin; source it after lib.sh. Skips where the plugin is not to be had.
if [ "${SEXTANT_SANITIZE:-}" = thread ]; then
    echo "SKIP: ThreadSanitizer does not see the locks of XLA's plugin"
    exit 77
fi
if [ -z "${SEXTANT_PJRT_PLUGIN:-}" ]; then
    python=$(XDG_CACHE_HOME= "$SEXTANT_SRC/tools/peers" pjrt 2>"$here/peers") || {
        echo "SKIP: the PJRT plugin could not be installed (tools/peers pjrt says why)"
        exit 77
    }
    SEXTANT_PJRT_PLUGIN=$(ls "${python%/bin/python}"/lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so)
fi
export PJRT_NAMES_AND_LIBRARY_PATHS=cpu:$SEXTANT_PJRT_PLUGIN
