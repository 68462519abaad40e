#!/usr/bin/env bash
# run --inputs, --input_exprs, --input_examples: the options of saved_model_cli. tests/interop
# compares the printed arrays with NumPy's.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok train linear --data generated:digits --model-dir m_run --steps 1
ok export m_run --out m
m="run --dir m/1 --tag_set serve --signature_def tensors"
ok $m --input_exprs 'image=np.zeros((2, 28, 28, 1))' --outdir out1
says 'Result for output key probabilities:'
says 'Output probabilities is saved to out1/probabilities.npy'
cp out zeros
python3 - <<'PY'
import zipfile
def npy(descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data
zeros = npy("|u1", (2, 28, 28, 1), bytes(2 * 784))
open("x.npy", "wb").write(zeros)
for name, members in ("one.npz", ["a"]), ("two.npz", ["a", "b"]):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        for member in members:
            z.writestr(member + ".npy", zeros)
for name, array in ("vast.npz", npy("|u1", (3 * 10 ** 9,), b"")), ("longer.npz", zeros + bytes(1 << 24)):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a.npy", array)
open("text.npy", "wb").write(npy("|S3", (1,), b"abc"))
PY
# Integers become the input's floats; the array of a .npz may be named.
for file in x.npy one.npz 'one.npz[a]' 'two.npz[b]'; do
    ok $m --inputs "image=$file"
    sed '/is saved/d' zeros | cmp - out || fail "$file"
done
fails 1 $m --inputs 'image=missing.npy'
warns 'missing.npy'
fails 1 $m --inputs 'image=two.npz'
warns 'two.npz has "a", "b"; give one: two.npz[NAME]'
fails 1 $m --inputs 'image=two.npz[c]'
warns 'two.npz has no array "c"; it has "a", "b"'
# What an array's header says is too large, or not all, is not unpacked.
fails 5 $m --inputs 'image=vast.npz'
warns 'vast.npz is an array of 2.8 GiB by its header, expected at most 256.0 MiB'
fails 3 $m --inputs 'image=longer.npz'
warns 'longer.npz: uint8[2,28,28,1] needs 1568 bytes, the file has 65420'
fails 1 $m --inputs 'image=text.npy'
warns 'input "image": expected float32, got string'
# Files that are something else.
python3 - <<'PY'
import pickle, zipfile
pickle.dump([1.0], open("x.pkl", "wb"))
def npy(descr):
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(12)
open("objects.npy", "wb").write(npy("'|O'"))
open("fields.npy", "wb").write(npy("[('a', '<i4'), ('b', '<f8')]"))
open("none.npy", "wb")
for name, members in ("other.npz", ["readme.txt", "a.npy"]), ("text.npz", ["readme.txt"]):
    with zipfile.ZipFile(name, "w") as z:
        for member in members:
            z.writestr(member, open("x.npy", "rb").read() if member == "a.npy" else "no array")
with zipfile.ZipFile("bad.npz", "w") as z:
    z.writestr("a.npy", "no array")
PY
ok $m --inputs 'image=other.npz'
while IFS='|' read -r code file error; do
    fails "$code" $m --inputs "image=$file"
    warns "--inputs: input \"image\": $error"
done <<'END'
1|x.pkl|x.pkl is a pickle of Python, which only Python can read; save the array with numpy.save
1|objects.npy|objects.npy is an array of Python objects (a pickle), which only Python can read; save strings as numpy.array(x, 'S')
1|fields.npy|fields.npy is a structured array, whose elements have several fields
3|none.npy|none.npy is an empty file, not a .npy file
1|other.npz[readme.txt]|"readme.txt" in other.npz is not an array: it is no .npy
1|other.npz[b]|other.npz has no array "b"; it has "a"
1|text.npz|text.npz has no arrays (members with names in .npy)
3|bad.npz[a]|bad.npz[a] is not a .npy file
END
fails 1 $m --inputs 'picture=x.npy'
warns '"picture" is not an input of signature tensors; it has "image"'
fails 1 $m --inputs image
warns '"image": expected INPUT=VALUE'
ok $m --input_exprs 'image=np.zeros((2, 28, 28, 1))' --outdir out3/
says 'Output probabilities is saved to out3/probabilities.npy'
fails 1 $m --input_exprs 'image=np.zeros((2, 28, 28, 1))' --outdir out1
warns 'Output file out1/class.npy already exists. Add "--overwrite"'
ok $m --input_exprs 'image=np.zeros((2, 28, 28, 1))' --outdir out1 --overwrite
# No rows: the other sizes count, also where nothing has them.
ok $m --input_exprs 'image=np.zeros((0, 28, 28, 1))'
[ "$(sed -n '/key probabilities/{n;p}' out)" = '[]' ] || fail "no rows: $(cat out)"
fails 1 $m --input_exprs 'image=np.ones((3, 0, 28))'
warns 'float32[3,0,28]'
# Literals that are none.
while IFS='|' read -r text error; do
    fails 1 $m --input_exprs "image=$text"
    warns "$error"
done <<'END'
[1, 2|expected "," or "]" at character 6, got the end
[1, x]|expected a value at character 5, got "x]"
__import__("os")|expected a value
[1, [2]]|lists of different depths do not make an array
[[1], [2, 3]]|lists of different lengths do not make an array
["a"]|expected numbers of float32, got a string
[1j]|expected numbers of float32, got a complex number
{"a": 1}|expected numbers of float32, got a dict
[[1], 2]|lists of different lengths do not make an array
np.sin(1)|expected np.array, np.zeros, np.ones, np.full or np.arange
np.random.rand(2)|no random numbers are drawn here; write them to a file with numpy.save
np.arange(6).reshape(4, 2)|reshape at character 22: 6 elements do not fill the shape
np.arange(6).reshape(-1, -1)|6 elements do not fill the shape
np.arange(6).sum()|expected reshape or astype, with arguments at character 14
-np.ones(2)|expected a number after the sign at character 1
[1__0]|expected a number at character 2, got "1__0]"
[1_]|expected a number at character 2
[01]|expected a number at character 2
[0b12]|expected a number at character 2
[1e]|expected a number at character 2
[1.5.2]|expected a number at character 2
["\ud800"]|expected the code of a character
["\u12"]|expected the digits of a character (\xHH, \uHHHH, \UHHHHHHHH) at character 3
["\N{SNOWMAN}"]|expected the digits of a character
["a" b"b"]|expected strings that are all bytes or all text
[b"ü"]|expected an ASCII character, or \xHH, in bytes
[f"x"]|expected a value at character 2
np.arange(1, 2, 0)|np.arange has no end
np.zeros(-1)|a shape is a size or a list
np.ones(2, 3)|expected a dtype or ")" at character 12, got "3)"
1 + 1|expected the end at character 3
END
fails 5 $m --input_exprs 'image=np.zeros((99999, 99999))'
warns 'has more than 16777216 items'
fails 5 $m --input_exprs 'image=np.zeros(99999999999)'
warns 'has more than 16777216 items'
fails 5 $m --input_exprs 'image=np.arange(1e30)'
warns 'has more than 16777216 items'
fails 1 $m --inputs 'image='
warns '"image=": expected INPUT=VALUE'
fails 5 $m --input_exprs "image=$(printf '[%.0s' {1..33})1"
warns 'is nested more than 32 deep'
fails 1 $m --input_examples 'image=[{"a": [1.0]}]'
warns 'Examples are strings; the input is float32'
fails 2 $m
warns 'give --inputs, --input_exprs or --input_examples'
fails 2 $m --input_exprs 'image=1' --json
warns '--json and --input_exprs are mutually exclusive'
fails 2 run m/1 --input x.npy --outdir out2
warns '--input and --outdir are mutually exclusive'
fails 2 run m/1 --input x.npy --overwrite
warns '--input and --overwrite are mutually exclusive'
fails 2 run
warns 'give the directory of the model'
fails 1 run --dir m/1 --tag_set gpu --input_exprs 'image=1'
warns 'no graph has the tags "gpu"; the model has "serve"'
mkdir tagged
cp -r m/1 tagged/1
python3 -c '
path = "tagged/1/saved_model.pb"
text = open(path, "rb").read()
tag = b"\x22\x05serve" # field 4 of MetaInfoDef
assert text.count(tag) == 1
open(path, "wb").write(text.replace(tag, b"\x22\x05other"))'
fails 1 run --dir tagged/1 --input_exprs 'image=1'
warns 'no graph has the tags "serve"; the model has "other"'
ok run --dir tagged/1 --tag_set other --signature_def tensors --input_exprs 'image=np.zeros((2, 28, 28, 1))'
sed '/is saved/d' zeros | cmp - out
