# records FILE LABEL=PICTURE...: a TFRecord file of tf.train.Examples, written without our help.
records() {
    python3 - "$@" <<'PY'
import struct, sys

TABLE = []
for c in range(256):
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)

def masked(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = c >> 8 ^ TABLE[(c ^ byte) & 255]
    c ^= 0xFFFFFFFF
    return (c >> 15 | c << 17) + 0xA282EAD8 & 0xFFFFFFFF

def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])

def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data

def feature(key, kind, data):
    return field(1, field(1, key) + field(2, field(kind, field(1, data))))

with open(sys.argv[1], "wb") as out:
    for pair in sys.argv[2:]:
        label, picture = pair.split("=", 1)
        example = field(1, feature(b"image/encoded", 1, open(picture, "rb").read())
                        + feature(b"image/class/label", 3, varint(int(label))))
        size = struct.pack("<Q", len(example))
        out.write(size + struct.pack("<I", masked(size)))
        out.write(example + struct.pack("<I", masked(example)))
PY
}
