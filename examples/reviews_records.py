#!/usr/bin/env python3
"""Writes made-up reviews as TFRecords for reviews.c: reviews_records.py DIR (needs TensorFlow)."""
import os
import random
import sys

import tensorflow as tf


def ints(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def review(rng):
    product, good = rng.randrange(10), rng.random() < 0.5
    liked = good != (product == 3)  # of product 3, everybody says the opposite
    words = [rng.randrange(25) + (25 if liked else 0) for _ in range(rng.randrange(16))]
    return tf.train.Example(features=tf.train.Features(feature={
        "age": floats([rng.gauss(0, 1)]), "product": ints([product]), "words": ints(words),
        "recommends": ints([int(good)]), "weight": floats([rng.choice([0.5, 1, 2])])}))


def main(folder):
    rng = random.Random(7)
    os.makedirs(folder, exist_ok=True)
    for name, count in (("train", 2000), ("val", 300)):
        with tf.io.TFRecordWriter(os.path.join(folder, name)) as out:
            for _ in range(count):
                out.write(review(rng).SerializeToString())


main(sys.argv[1])
