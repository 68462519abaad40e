"""Writes the table and the vocabulary that sentiment.c trains on: sentences that say good or bad words of
something.

usage: python3 sentiment_csv.py DIR [ROWS]    DIR/train.csv, DIR/val.csv, DIR/words.txt
"""
import csv
import pathlib
import random
import sys

PLAIN = "a the day meal film was with very this quite and so".split()
SAID = {"bad": "bad awful poor dull sad".split(), "good": "good nice great fine fun".split()}


def sentence(draw):
    mood = draw.choice(sorted(SAID))
    words = [draw.choice(PLAIN) for _ in range(draw.randint(0, 14))]
    if draw.random() < 0.2:
        words.insert(0, "Zanzibar")  # not in the vocabulary
    words.insert(draw.randint(0, min(len(words), 10)), draw.choice(SAID[mood]))
    return {"text": " ".join(words).capitalize(), "mood": mood}


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    for name, count in ("train", rows), ("val", rows // 5):
        with open(folder / f"{name}.csv", "w", newline="") as f:
            writer = csv.DictWriter(f, ["text", "mood"])
            writer.writeheader()
            writer.writerows(sentence(draw) for _ in range(count))
    (folder / "words.txt").write_text("\n".join(PLAIN + SAID["bad"] + SAID["good"]) + "\n")


main()
