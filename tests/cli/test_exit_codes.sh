#!/usr/bin/env bash
# The exit codes are documented, and errors carry them.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok help exit-codes
is <<'TEXT'
exit codes:
    0  all went well
    1  the command failed; the message says why
    2  an option or word is wrong; nothing was done
    3  data is corrupt: a record, an image, a checkpoint
    4  training met a NaN or an infinity; the last checkpoint is kept
    5  memory, disk or a size limit is exhausted
    6  a device or a server is lost or does not answer; checkpoints are kept
  130  stopped by Ctrl-C; what was done is saved
  143  stopped by SIGTERM; what was done is saved
TEXT
fails 2 version extra
fails 1 help nothing-like-it
