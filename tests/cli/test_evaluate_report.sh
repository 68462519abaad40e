#!/usr/bin/env bash
# evaluate --report: scores by class, confusion matrix and worst mistakes, as CSV, JSON and one page.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 4
mv photos/tulip $'photos/<b>t\xc3\xbclip<b>,"x" & co'
cp photos/rose/rose-0.jpg $'photos/rose/<img src=x>,"a"\n&amp;.jpg'
cp photos/rose/rose-1.jpg $'photos/daisy/caf\xe9 \x1b[31m.jpg'
ok train mnist_cnn --data photos --model-dir run --steps 2 --batch-size 4 --seed 1 -- --num_classes 3
ok evaluate run --data photos --json
cp out plain
ok evaluate run --data photos --json --report new/report
cmp plain out || fail 'the report changes the result'
warns 'wrote new/report/report.html'
[ "$(ls new/report | tr '\n' ' ')" = 'classes.csv confusion.csv mistakes.csv report.html report.json ' ] || fail "$(ls new/report)"
fails 1 evaluate nowhere --data photos --report none
fails 1 evaluate run --data nowhere --report none
[ ! -e none ] || fail 'an empty directory was left'
ok predict run --data photos --out p.csv
cat >check.py <<'PY'
import base64, csv, html, html.parser, json, math, re, sys
folder, shown = sys.argv[1], int(sys.argv[2])
def table(path):
    return list(csv.reader(open(path, newline="", encoding="utf-8")))
rows = [dict(zip(table("p.csv")[0], r)) for r in table("p.csv")[1:]]
names = table("p.csv")[0][5:]
wrong = [r for r in rows if r["label"] != r["class"]]
assert wrong and len(wrong) < len(rows), "this needs right and wrong predictions"

confusion = table(folder + "/confusion.csv")
assert confusion[0] == ["label"] + names and [r[0] for r in confusion[1:]] == names
matrix = [[int(v) for v in r[1:]] for r in confusion[1:]]
expected = [[sum(r["label"] == a and r["class"] == b for r in rows) for b in names] for a in names]
assert matrix == expected, (matrix, expected)

def ratio(a, b):
    return a / b if b else None
scores = []
for i, name in enumerate(names):
    hits, support, predicted = matrix[i][i], sum(matrix[i]), sum(r[i] for r in matrix)
    scores.append([ratio(hits, predicted), ratio(hits, support), ratio(2 * hits, support + predicted)])
classes = table(folder + "/classes.csv")
assert classes[0] == "class,examples,predicted,correct,precision,recall,f1".split(",")
assert [r[0] for r in classes[1:]] == names
for i, row in enumerate(classes[1:]):
    assert [int(v) for v in row[1:4]] == [sum(matrix[i]), sum(r[i] for r in matrix), matrix[i][i]], row
for row, score in zip(classes[1:], scores):
    for text, value in zip(row[4:], score):
        assert (text == "") == (value is None) and (value is None or abs(float(text) - value) < 1e-6), (text, value)

mistakes = [dict(zip(table(folder + "/mistakes.csv")[0], r)) for r in table(folder + "/mistakes.csv")[1:]]
wrong.sort(key=lambda r: (float(r[r["label"]]), -float(r["probability"]), int(r["id"])))
assert [m["id"] for m in mistakes] == [r["id"] for r in wrong]
for m, r in zip(mistakes, wrong):
    assert m["file"] == r["file"] and m["label"] == r["label"] and m["class"] == r["class"]
    assert m["label_probability"] == r[r["label"]] and m["probability"] == r["probability"]

report = json.load(open(folder + "/report.json", encoding="utf-8"))
assert report["confusion"] == matrix and report["examples"] == len(rows) and report["mistakes"] == len(wrong)
assert report["correct"] == len(rows) - len(wrong) and report["metrics"]["accuracy"] == json.load(open("plain"))["accuracy"]
assert report["metrics"]["loss"] == json.load(open("plain"))["loss"]
assert [w["file"] for w in report["worst"]] == [m["file"] for m in mistakes[:shown]]
occurring = [s for i, s in enumerate(scores) if sum(matrix[i]) + sum(r[i] for r in matrix)]
for k, key in enumerate(("precision", "recall", "f1")):
    macro = sum(s[k] or 0 for s in occurring) / len(occurring)
    weighted = sum((s[k] or 0) * sum(matrix[i]) for i, s in enumerate(scores)) / len(rows)
    assert abs(report["macro"][key] - macro) < 1e-9 and abs(report["weighted"][key] - weighted) < 1e-9, key
    assert [c[key] for c in report["classes"]] == [s[k] for s in scores]
assert [c["examples"] for c in report["classes"]] == [sum(r) for r in matrix]
assert [c["predicted"] for c in report["classes"]] == [sum(r[i] for r in matrix) for i in range(len(names))]

# The pairs that are confused most, ten at most; of equal ones those of the earlier classes first.
page = open(folder + "/report.html", encoding="utf-8").read()
pairs = [[html.unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in re.findall(
    r'<tr><th scope="row">(.*?)</th><td class="text">(.*?)</td><td>([0-9,]+)</td>',
    page.split('<h2 id="pairs">')[1].split("</section>")[0], re.S)]
confused = [(-matrix[a][b], a, b) for a in range(len(names)) for b in range(len(names)) if a != b and matrix[a][b]]
assert pairs == [[names[a], names[b], str(-n)] for n, a, b in sorted(confused)[:10]], pairs

# The page: well-formed, nothing from elsewhere, no scripts, every name as text, a picture each.
class Page(html.parser.HTMLParser):
    void = {"meta", "img", "br"}
    def __init__(self):
        super().__init__()
        self.stack, self.images, self.text, self.cells, self.cards = [], [], "", [], 0
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert tag in ("html head meta title style body header main footer section h1 h2 p dl dt dd div table thead tbody "
                       "tfoot tr th td span small bdi ol li img br a i".split()), tag
        assert not any(a.startswith("on") for a in attrs), attrs
        for a in ("src", "href"):
            if a in attrs:
                assert attrs[a].startswith("data:image/") or (a == "href" and re.fullmatch(r"\w+\.(csv|json)", attrs[a])), attrs[a]
        if tag == "img":
            kind, data = re.fullmatch(r"data:image/(png|jpeg);base64,(.*)", attrs["src"]).groups()
            data = base64.b64decode(data, validate=True)
            assert data.startswith(b"\x89PNG" if kind == "png" else b"\xff\xd8\xff")
            assert attrs["alt"]
            self.images.append(data)
        if tag == "td" and attrs.get("class") in ("r", "w", "z"):
            self.cells.append((attrs["class"], attrs.get("style"), ""))
        if tag not in self.void:
            self.stack.append(tag)
    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, tag
    def handle_data(self, data):
        if "style" not in self.stack:
            self.text += data
        if "td" in self.stack and "small" not in self.stack and self.cells and self.cells[-1][2] == "":
            self.cells[-1] = self.cells[-1][:2] + (data,)
page = Page()
source = open(folder + "/report.html", encoding="utf-8").read()
page.feed(source)
page.close()
assert page.stack == [] and "<script" not in source and "http:" not in source and "https:" not in source
assert not re.search(r"url\(|@import", source)
assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", source)
assert len(page.images) == min(shown, len(wrong)), (len(page.images), len(wrong))
for m in mistakes[:shown]:
    assert re.sub(r"[\x00-\x08\x0b-\x1f]", "\ufffd", m["file"]).removeprefix("photos/") in page.text, m["file"]
for name in names:
    assert name in page.text, name
assert [int(c[2]) for c in page.cells] == [v for r in matrix for v in r], page.cells
for (kind, style, count), (i, j) in zip(page.cells, [(i, j) for i in range(3) for j in range(3)]):
    assert kind == ("z" if matrix[i][j] == 0 else "r" if i == j else "w")
    assert style is None or style == "--p:%.3f" % (matrix[i][j] / sum(matrix[i])), style
PY
python3 check.py new/report 48 || fail 'the report does not fit the predictions'
ok evaluate run --data photos --report again --batch-size 1 --report-mistakes 2
python3 check.py again 2 || fail 'the report does not fit the predictions'
cmp new/report/mistakes.csv again/mistakes.csv || fail 'the batch size changes the report'
cp -r again first
ok evaluate run --data photos --report again --report-mistakes 2
diff -r first again || fail 'the same scores give another report'

# Arrays have no pictures, examples without names no file; some data have no mistake, or no labels.
ok train linear --data 'generated:digits?n=64' --model-dir digits --steps 1
ok evaluate digits --data 'generated:digits?n=20' --report digits-report --examples 7
python3 - <<'PY' || fail 'a part of the data is reported wrongly'
import json
report = json.load(open("digits-report/report.json"))
assert report["examples"] == 7 and sum(map(sum, report["confusion"])) == 7
assert all(w["file"] is None for w in report["worst"])
PY

# Pixels that are not encoded keep their colours: the header of a PNG of 64 x 64, 8 bits, RGB.
ok train flowers_cnn --data 'generated:flowers?n=16&size=64' --model-dir flowers --steps 1 --batch-size 8
ok evaluate flowers --data 'generated:flowers?n=16&size=64' --report flowers-report
grep -q 'base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAI' flowers-report/report.html || fail 'a picture without its colours'
fails 1 evaluate digits --data 'generated:digits?n=20' --report photos/rose/rose-0.jpg
warns 'photos/rose/rose-0.jpg'
