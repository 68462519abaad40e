"""Makes older headers of today's: older_headers.py FOLDER, of public headers, which are rewritten.

Each struct that begins with struct_size loses its last fields: as few as make it smaller, so that no
field of today lies in what was padding. Prints the names of these structs. Two are left alone, which
the library fills; and one whose last field its function cannot do without."""
import re
import subprocess
import sys
from pathlib import Path

KEPT = {"sx_input_context", "sx_train_event", "sx_slice_args"}
STRUCT = re.compile(r"struct (sx_\w+) \{\n    size_t struct_size;(.*?)^\}", re.S | re.M)
NAME = re.compile(r"\(\*(\w+)\)|(\w+)\s*(?:\[|,|$)")  # of a field's first declarator


def fields_of(body):
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [" ".join(field.split()) for field in body.split(";") if field.strip()]


def text_of(name, fields):
    return f"struct {name} {{\n    size_t struct_size;\n" + "".join(f"    {f};\n" for f in fields) + "}"


folder = Path(sys.argv[1])
headers = sorted(folder.glob("*.h"))
structs = {}
for header in headers:
    for name, body in STRUCT.findall(header.read_text()):
        if name not in KEPT:
            structs[name] = fields_of(body)

# For each struct and each number of fields kept: does the first field dropped lie beyond the end?
probe = ["#include <stdio.h>", "#include <sextant/sextant.h>"]
lines = []
for name, fields in structs.items():
    for kept in range(len(fields)):
        match = NAME.search(fields[kept])
        probe.append(text_of(f"{name}_{kept}", fields[:kept]) + ";")
        lines.append(f'    if (offsetof(struct {name}, {match.group(1) or match.group(2)}) >= '
                     f'sizeof(struct {name}_{kept}))\n        puts("{name} {kept}");')
probe += ["int main(void)", "{", *lines, "    return 0;", "}"]
(folder.parent / "probe.c").write_text("\n".join(probe))
subprocess.run(["gcc", "-std=c11", f"-I{folder.parent}", str(folder.parent / "probe.c"),
                "-o", str(folder.parent / "probe")], check=True)
output = subprocess.run([str(folder.parent / "probe")], check=True, capture_output=True, text=True)
keep = {}
for line in output.stdout.splitlines():
    name, kept = line.split()
    keep[name] = int(kept)  # the last one counts: as many as possible

for header in headers:
    header.write_text(STRUCT.sub(
        lambda m: text_of(m.group(1), structs[m.group(1)][:keep[m.group(1)]])
        if m.group(1) in structs else m.group(0), header.read_text()))
print("\n".join(structs))
