"""TFRecord files of tf.train.Examples, written without our help."""
import struct

TABLE = []
for c in range(256):
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)

BYTES, FLOATS, INTS = 1, 2, 3


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


def texts(*values):
    return b"".join(field(1, value) for value in values)


def floats(*values):
    return field(1, struct.pack(f"<{len(values)}f", *values))


def ints(*values):
    return field(1, b"".join(varint(value) for value in values))


def feature(key, kind, values):
    return field(1, field(1, key) + field(2, field(kind, values)))


def example(*features):
    return field(1, b"".join(features))


def write(path, examples):
    with open(path, "wb") as out:
        for data in examples:
            size = struct.pack("<Q", len(data))
            out.write(size + struct.pack("<I", masked(size)))
            out.write(data + struct.pack("<I", masked(data)))
