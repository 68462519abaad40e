#!/usr/bin/env bash
# SIGKILL at random moments: the run goes on, and ends with the weights of one left alone.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
killed_runs 3
