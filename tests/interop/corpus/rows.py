"""The rows of the corpus: SavedModels that TensorFlow and Keras write, each made by a small function.

    @row(sizes=[(5,), (9,)])
    def lstm(path):
        export(keras.Sequential([keras.Input((None, 4)), layers.LSTM(5)]), path)

A row's function saves a model at `path`. What is fed follows from its signatures: floats are drawn from the
normal distribution, integers from [0, 5), bools are mixed, unknown dimensions take the batch size or `sizes`.
`feed(rng, n)` gives the inputs of a batch of n instead."""
import importlib
from typing import Callable, NamedTuple, Optional

DEEP = 1e-4  # tolerance of networks of many layers
HALF = 1e-2  # of 16-bit arithmetic


class Row(NamedTuple):
    name: str
    make: Callable
    feed: Optional[Callable] = None
    batches: tuple = (1, 3, 32)
    sizes: tuple = ((7, 6, 5),)  # of the unknown dimensions but the first, one after the other
    tolerance: float = 1e-5
    tags: tuple = ("serve",)
    wrong: tuple = ()  # those of `batches` that TensorFlow refuses
    sample: bool = False  # part of the short test
    gap_key: str = ""  # of gaps.py, where that is not the name


ROWS = {}


def add(name, make, **options):
    assert name not in ROWS, name
    ROWS[name] = Row(name, make, **{"gap_key": name, **options})


def row(**options):
    def note(make):
        add(make.__name__, make, **options)
        return make
    return note


def all_rows(modules):
    for module in modules:
        importlib.import_module(f"corpus.{module}")
    return ROWS
