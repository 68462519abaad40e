#!/usr/bin/env python3
"""Writes a made-up census as CSV for census.c: census_csv.py DIR."""
import csv
import os
import random
import sys

EDUCATIONS = ["Some-college", "HS-grad", "Bachelors", "Masters", "Doctorate"]
JOBS = {"Clerical": -1, "Sales": 0, "Craft, repair": 0, "Managerial": 2, "Farming": -2, "Tech \"support\"": 1}


def person(rng):
    age, level, job = rng.randrange(18, 80), rng.randrange(len(EDUCATIONS)), rng.choice(list(JOBS))
    hours, gain = rng.choice([20, 40, 40, 40, 60]), rng.choice([0, 0, 0, 0, 5000, 20000])
    score = level - 2 + JOBS[job] + (hours - 40) / 20 + (gain > 0) * 2 - abs(age - 50) / 20
    known = rng.random() < 0.95
    return [age, gain or "", hours if known else "", EDUCATIONS[level], job if known else "",
            int(score + rng.gauss(0, 0.5) > 0), rng.choice([0.5, 1, 2])]


def main(folder):
    rng = random.Random(11)
    os.makedirs(folder, exist_ok=True)
    for name, count in (("train", 4000), ("val", 600)):
        with open(os.path.join(folder, f"{name}.csv"), "w", newline="") as out:
            table = csv.writer(out)
            table.writerow(["age", "gain", "hours", "education", "job", "rich", "weight"])
            table.writerows(person(rng) for _ in range(count))


main(sys.argv[1])
