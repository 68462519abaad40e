"""The whole corpus (corpus/): every model answers as TensorFlow does, and is shown and scanned as saved_model_cli
does it. What is refused is a listed gap or an error."""
import sys

from corpus import check, rows  # before what imports TensorFlow: check sets how it computes
import test_saved_model_cli


def shown(row, path):
    test_saved_model_cli.compare(path, [",".join(row.tags)])


if __name__ == "__main__":
    sys.exit(1 if check.run(list(rows.all_rows(check.MODULES).values()), after=shown) else 0)
