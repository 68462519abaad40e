#!/usr/bin/env bash
# The exit codes are documented, and errors carry them.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok help exit-codes
is <<'TEXT'
Exit codes:
    0  success
    1  the command failed; see the message
    2  invalid option or argument; nothing was done
    3  corrupt data: a record, an image or a checkpoint
    4  training stopped at a NaN or an infinity; the last checkpoint is kept
    5  out of memory or disk space, or over a size limit
    6  a device or a server is unavailable; checkpoints are kept
  130  interrupted by Ctrl-C; progress is saved
  143  terminated by SIGTERM; progress is saved
TEXT
fails 2 version extra
fails 1 help nothing-like-it
