# idx NAME N: NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte with N pictures of 28x28.
idx() {
    local name=$1 n=$2
    python3 - "$name" "$n" <<'PY'
import struct, sys
name, n = sys.argv[1], int(sys.argv[2])
pixels = bytes((i * 7 + j) % 256 for i in range(n) for j in range(784))
open(f"{name}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, n, 28, 28) + pixels)
open(f"{name}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))
PY
}
