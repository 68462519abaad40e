#!/usr/bin/env bash
# On a terminal one line is written over, whatever the window does; finished epochs and evaluations
# stay. Python is the terminal: one that wraps lines when the window gets narrower, as most do, and
# one that cuts them, as xterm does.
. "$SEXTANT_SRC/tests/cli/lib.sh"
cat >terminal.py <<'PY'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

class Terminal:
    """Lines of characters; a line that is longer than the window takes several rows."""
    def __init__(self, width, reflow):
        self.width, self.reflow = width, reflow
        self.lines, self.y, self.x, self.pending, self.colors = [[]], 0, 0, "", set()
        self.shown = []  # every state of a row that a user could see before it was written over
    def resize(self, width):
        if not self.reflow:
            self.lines = [line[:width] for line in self.lines]
            self.x = min(self.x, width - 1)
        self.width = width
    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        while text:
            if text[0] == "\x1b":
                match = re.match(r"\x1b\[([0-9;]*)([A-Za-z])", text)
                if not match:
                    self.pending = text
                    return
                self.control(*match.groups())
                text = text[match.end():]
                continue
            if text[0] == "\r":
                self.shown.append("".join(self.lines[self.y]))
                self.x -= self.x % self.width
            elif text[0] == "\n":
                self.y += 1
                self.x = 0
                if self.y == len(self.lines):
                    self.lines.append([])
            else:
                line = self.lines[self.y]
                line[self.x:self.x + 1] = [text[0]]
                self.x += 1
            text = text[1:]
    def control(self, numbers, kind):
        if kind == "J" and numbers in ("", "0"):
            del self.lines[self.y][self.x:]
            del self.lines[self.y + 1:]
        elif kind == "m":
            self.colors.add(numbers)
        else:
            raise AssertionError(f"escape sequence {numbers}{kind}")
    def rows(self):
        out = []
        for line in self.lines:
            out += ["".join(line[i:i + self.width]) for i in range(0, max(len(line), 1), self.width)]
        return out

def set_width(fd, width):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))

class Session:
    def __init__(self, args, width, reflow=True, env={}):
        self.terminal = Terminal(width, reflow)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm"} | env)
            for name in [n for n in os.environ if os.environ[n] == "(unset)"]:
                del os.environ[name]
            set_width(0, width)
            os.execv(sys.argv[1], ["sextant"] + args)
        self.bytes, self.end = b"", time.monotonic() + 100
    def read(self):
        """What comes next; False at the end."""
        assert time.monotonic() < self.end, "it takes too long"
        if not select.select([self.fd], [], [], 1)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.bytes += data
        good = self.bytes.decode("utf-8", "ignore") if data else ""
        if self.bytes:
            for cut in range(4):
                try:
                    good = self.bytes[:len(self.bytes) - cut].decode("utf-8")
                    self.bytes = self.bytes[len(self.bytes) - cut:]
                    break
                except UnicodeDecodeError:
                    pass
        self.terminal.feed(good)
        return bool(data)
    def until(self, condition):
        while not condition():
            assert self.read(), "it ended early:\n" + "\n".join(self.terminal.rows())
    def resize(self, width):
        """Stops the program until all that it drew for the old width is read; one line that it has
        begun may still follow. Then waits for three lines of other steps, and for one that is
        complete: the cursor is back in the first column."""
        os.kill(self.pid, signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(self.pid, os.WUNTRACED)[1])
        while select.select([self.fd], [], [], 0.05)[0]:
            self.read()
        self.terminal.resize(width)
        set_width(self.fd, width)
        os.kill(self.pid, signal.SIGCONT)
        begin = len(self.terminal.shown)
        self.until(lambda: len({t for t in self.terminal.shown[begin:] if "eta " in t}) > 3)
        self.until(lambda: "eta " in self.terminal.rows()[-1] and self.terminal.x == 0)
    def finish(self):
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

def check_resizing(reflow):
    words = ["train", "linear", "--data", "generated:digits?n=20000", "--batch-size", "4", "--epochs",
             "10000", "--seed", "1", "--color", "always"]
    s = Session(words, 140, reflow)
    seen = []
    for width in (140, 70, 30, 9, 100, 140):
        s.resize(width)
        rows = s.terminal.rows()
        lines = [r for r in rows if re.search(r"eta [0-9:]", r) or "input" in r]
        assert len(lines) == 1 and lines[0] is rows[-1] or lines == [rows[-1]], (width, rows)
        assert len(rows[-1]) < width, (width, rows[-1])
        assert rows[-1].startswith("eta") if width == 9 else "eta " in rows[-1], (width, rows[-1])
        seen.append(rows[-1])
    for wide in (seen[0], seen[5]):
        assert re.fullmatch(r"epoch \d+/10000  step \d+/50000000  [▇▁]{7}  loss [0-9.]+  accuracy [0-9.]+  "
                            r"[0-9,]+ img/s  input \d+ %  eta [0-9:]+", wide), wide
    assert re.fullmatch(r"epoch \d+/10000  step \d+/50000000  loss [0-9.]+  eta [0-9:]+", seen[1]), seen[1]
    assert re.fullmatch(r"step \d+  eta [0-9:]+", seen[2]), seen[2]
    assert {"32", "2", "0"} <= s.terminal.colors, s.terminal.colors
    os.kill(s.pid, signal.SIGINT)
    assert s.finish() == 130
    rows = [r.rstrip() for r in s.terminal.rows()]
    assert "stopping; interrupt again to quit at once" in rows, rows
    assert not any("eta" in r for r in rows), rows

def check_narrow():
    """On 20 columns there is room for the step and the remaining time."""
    s = Session(["train", "linear", "--data", "generated:digits?n=20000", "--steps", "999", "--seed", "1"], 20)
    assert s.finish() == 0
    lines = [t for t in s.terminal.shown if "eta" in t]
    assert lines and all(re.fullmatch(r"step \d{1,3}  eta \d:\d\d *", t) for t in lines), lines

def check_rate():
    """The line is drawn ten times a second, however many steps are logged."""
    begin = time.monotonic()
    s = Session(["train", "linear", "--data", "generated:digits?n=20000", "--steps", "300",
                 "--log-step-count-steps", "1", "--seed", "1"], 120)
    assert s.finish() == 0
    lines = [t for t in s.terminal.shown if "img/s" in t]  # each twice: when drawn, when overwritten
    drawn = sum(a != b for a, b in zip([""] + lines, lines))
    assert 1 <= drawn <= 10 * (time.monotonic() - begin) + 1, drawn

def check_messages():
    """A finished epoch and evaluations stay; nothing is left of the line that was written over."""
    s = Session(["train", "linear", "--data", "generated:digits?n=320", "--eval-data",
                 "generated:digits?n=64", "--epochs", "2", "--seed", "1"], 120, env={"NO_COLOR": "1"})
    assert s.finish() == 0
    rows = s.terminal.rows()
    assert "Training for 20 steps (2 epochs in total). Current step 0." in rows, rows
    assert any(re.fullmatch(r"epoch 1/2  step 10/20  loss [0-9.]+  accuracy [0-9.]+  [0-9.]+ s", r) for r in rows), rows
    assert any(r.startswith("Eval results at step 20: ") for r in rows), rows
    assert any(r.startswith("Elapsed ") for r in rows), rows
    assert not any("eta" in r or "evaluating" in r for r in rows), rows
    assert not s.terminal.colors

def check_kinds():
    """Without TERM it is a terminal, a dumb one is none; colours only where they are wanted."""
    kinds = [({}, [], True, True), ({"TERM": "(unset)"}, [], True, True), ({"TERM": "dumb"}, [], False, False),
             ({}, ["--color", "never"], True, False),
             ({"NO_COLOR": "1"}, [], True, False), ({"NO_COLOR": ""}, [], True, True)]
    for env, words, overwrites, colors in kinds:
        s = Session(["train", "linear", "--data", "generated:digits?n=64", "--steps", "2"] + words, 120, env=env)
        assert s.finish() == 0, s.terminal.rows()
        line = "Loss for final step"
        assert any(line in r for r in s.terminal.rows()), (env, s.terminal.rows())
        assert any("img/s" in t for t in s.terminal.shown), (env, s.terminal.shown)
        assert any("img/s" in r for r in s.terminal.rows()) != overwrites, (env, s.terminal.rows())
        assert bool(s.terminal.colors) == colors, (env, words, s.terminal.colors)

def check_quiet():
    for flag in (["--quiet"], ["-q"], ["--verbosity", "error"], ["--verbosity", "warn"]):
        s = Session(["train", "linear", "--data", "generated:digits?n=64", "--steps", "2"] + flag, 120)
        assert s.finish() == 0
        assert s.terminal.rows() == [""], (flag, s.terminal.rows())

def check_compile(plugin):
    """A compile that takes long counts its seconds, and the line does not stay."""
    s = Session(["train", "linear", "--device", "pjrt", "--pjrt-plugin", plugin, "--data",
                 "generated:digits?n=320", "--steps", "1"], 120, env={"SX_PJRT_REF": "compile=1300"})
    assert s.finish() == 0
    line = r"compiling the train program for batch size 32 on \S+ … 1 s"
    assert any(re.fullmatch(line, t) for t in s.terminal.shown), s.terminal.shown
    assert not any("compiling" in r for r in s.terminal.rows()), s.terminal.rows()

check_resizing(True)
check_resizing(False)
check_narrow()
check_rate()
check_messages()
check_kinds()
check_quiet()
if sys.argv[2]:
    check_compile(sys.argv[2])
PY
unset NO_COLOR
ran='train on a terminal'
plugin=$SEXTANT_TEST_BIN/libpjrt_ref.so
[ -z "${SEXTANT_SANITIZE:-}" ] || plugin=
python3 terminal.py "$sextant" "$plugin" >out 2>err || fail 'the terminal does not show what it should'
