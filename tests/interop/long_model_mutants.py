"""Mutants of ten models of the corpus, 10,000 of each: none may crash, hang or take more memory than mutants_tool.c
allows. They are the same in each run."""
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from corpus import check, rows

MODELS = ["tables_of_assets", "string_lookup", "text_vectorization", "detector_nms", "lstm_masked", "v1_loops", "scan",
          "segments", "beam_search", "conv2d_groups"]
EACH = 10000


def main():
    tool = os.path.join(os.environ["SEXTANT_TEST_BIN"], "mutants_tool")
    all_rows = rows.all_rows(check.MODULES)
    failed = []
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            row, path, scratch = all_rows[name], os.path.join(folder, name), os.path.join(folder, "mutant")
            os.mkdir(scratch)
            tf.keras.backend.clear_session()
            row.make(path)
            code = subprocess.run([tool, "0", str(EACH), path, ",".join(row.tags), scratch]).returncode
            print(f"{name}: {'ended with %d' % code if code else 'ok'}", flush=True)
            if code:
                failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
