"""The slips that one C file can hold.

candidates(path, text) reads our own C (formatted by clang-format, so nothing exotic) and returns
every place where a programmer could have slipped, each with two texts: `plain`, how the slip reads,
and `switched`, the original and the slip behind the switch of switch.h. What the reading gets wrong
does not compile, or compiles to something else with the switch off: build.py drops it.
"""
import bisect
import hashlib
import re

TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|//[^\n]*|\\\n)
      | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<punct>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)""",
    re.X | re.S | re.M,
)
PRECEDENCE = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, ">": 7, "<=": 7,
              ">=": 7, "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
TYPE_WORDS = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool",
              "const", "volatile", "struct", "union", "enum", "static", "extern", "register",
              "_Bool", "_Atomic", "inline", "FILE", "DIR", "__m512", "__m256"}
STATEMENT_WORDS = {"if", "else", "for", "while", "do", "switch", "case", "default", "return", "goto",
                   "break", "continue"}
# Calls whose arguments or results only a reader of the log sees, or that state what cannot be.
UNSEEN = re.compile(r"^(assert|_Static_assert|static_assert|__attribute__|sx_log\w*|SX_LOG\w*)$")
# Calls that do nothing in glibc, and the lock whose loss ThreadSanitizer alone can see.
NO_SLIP = re.compile(r"^pthread_(mutex_lock|mutex_init|cond_init|(mutex|cond|attr|condattr)_destroy)$|^va_end$")
ERRORS = re.compile(r"^(sx_error|sx_errno_status|sx_status_annotate|sx_status_make)$")
# How often each kind is drawn where all are to be had.
WEIGHTS = {
    "comparison": 18, "boundary": 14, "condition": 8, "lost condition": 8, "negation": 6,
    "arithmetic": 12, "number": 14, "flag": 4, "limit": 4, "table": 9, "lost call": 12,
    "lost assignment": 5, "lost check": 12, "ignored error": 5, "swapped arguments": 4,
    "swapped results": 3, "lost jump": 4, "index": 4, "error code": 3,
}
SLIPS = {  # operator -> (kind, slip)
    "<": [("boundary", "<="), ("comparison", ">")],
    "<=": [("boundary", "<"), ("comparison", ">=")],
    ">": [("boundary", ">="), ("comparison", "<")],
    ">=": [("boundary", ">"), ("comparison", "<=")],
    "==": [("comparison", "!=")], "!=": [("comparison", "==")],
    "&&": [("condition", "||")], "||": [("condition", "&&")],
    "+": [("arithmetic", "-")], "-": [("arithmetic", "+")],
    "*": [("arithmetic", "/")], "/": [("arithmetic", "*")], "%": [("arithmetic", "/")],
    "<<": [("arithmetic", ">>")], ">>": [("arithmetic", "<<")],
    "&": [("arithmetic", "|")], "|": [("arithmetic", "&")], "^": [("arithmetic", "|")],
}


class Slip:
    """One slip: text[start:end] becomes `plain`, or `switched` in the mutated copy."""

    def __init__(self, path, function, line, kind, start, end, plain, switched):
        self.path, self.function, self.line, self.kind = path, function, line, kind
        self.start, self.end, self.plain, self.switched = start, end, plain, switched
        self.id = None

    @property
    def weight(self):
        return WEIGHTS[self.kind]

    @property
    def place(self):
        return f"{self.path}:{self.line}"


class File:
    def __init__(self, path, text, type_names):
        self.path, self.text, self.type_names = path, text, type_names
        self.lines = [m.start() for m in re.finditer("\n", text)]
        self.tokens = []  # (kind, text, start, end)
        for m in TOKEN.finditer(text):
            if m.lastgroup != "space":
                self.tokens.append((m.lastgroup, m.group(), m.start(), m.end()))
        self.partner = {}
        open_ = []
        for i, (kind, t, _, _) in enumerate(self.tokens):
            if kind == "punct" and t in "([{":
                open_.append(i)
            elif kind == "punct" and t in ")]}" and open_:
                j = open_.pop()
                self.partner[i], self.partner[j] = j, i
        self.slips = []
        self.function = ""

    def t(self, i):
        return self.tokens[i][1] if 0 <= i < len(self.tokens) else ""

    def kind(self, i):
        return self.tokens[i][0] if 0 <= i < len(self.tokens) else ""

    def source(self, a, b):
        """The text of tokens a..b, both included."""
        return self.text[self.tokens[a][2]:self.tokens[b][3]]

    def line(self, i):
        return bisect.bisect_left(self.lines, self.tokens[i][2]) + 1

    def add(self, kind, a, b, plain, switched, line=None):
        """@ stands for the slip's number in `switched`."""
        self.slips.append(Slip(self.path, self.function, self.line(a if line is None else line), kind,
                               self.tokens[a][2], self.tokens[b][3], plain, switched))

    # ---- reading ---------------------------------------------------------------------------

    def is_type_name(self, word):
        return word in TYPE_WORDS or word in self.type_names or word.endswith("_t")

    def ends_operand(self, i):
        kind, t = self.kind(i), self.t(i)
        if kind in ("number", "string"):
            return True
        if kind == "name":
            return t not in STATEMENT_WORDS and t != "sizeof" and not self.is_type_name(t) and \
                self.t(i - 1) not in ("struct", "union", "enum")
        if t == ")":
            return not self.is_cast(self.partner.get(i, i), i)
        return t == "]" or t in ("++", "--") and self.ends_operand(i - 1)

    def is_cast(self, a, b):
        """Is (...) of tokens a..b a type in parentheses?"""
        words = [self.t(i) for i in range(a + 1, b)]
        if not words or self.t(a - 1) in ("if", "while", "for", "switch"):
            return self.t(a - 1) in ("if", "while", "for", "switch")
        if self.kind(a - 1) == "name" and self.t(a - 1) not in STATEMENT_WORDS:
            return False  # a call, or sizeof
        return self.is_type_name(words[0]) and all(
            w == "*" or re.match(r"\w+$", w) for w in words)

    def is_binary(self, i):
        return self.kind(i) == "punct" and self.t(i) in PRECEDENCE and self.ends_operand(i - 1) and \
            not (self.t(i) == "*" and self.t(i + 1) in (")", ",", "*", "const"))

    def left_of(self, i, precedence):
        """The first token of the operand that ends before token i."""
        j = i - 1
        while j >= 0:
            t = self.t(j)
            if t in ")]" and self.kind(j) == "punct" and j in self.partner:
                j = self.partner[j] - 1
            elif t == "}" and self.t(self.partner.get(j, 0) - 1) == ")" and \
                    self.is_cast(self.partner[self.partner[j] - 1], self.partner[j] - 1):
                j = self.partner[j] - 1
            elif self.kind(j) == "punct" and (t in "([{};,?:" or t in ASSIGN):
                break
            elif t in STATEMENT_WORDS or self.kind(j) == "directive":
                break
            elif self.is_binary(j) and PRECEDENCE[t] < precedence:
                break
            else:
                j -= 1
        return j + 1

    def right_of(self, i, precedence):
        """The last token of the operand that begins after token i."""
        j = i + 1
        while j < len(self.tokens):
            t = self.t(j)
            if self.kind(j) == "punct" and t in "([{" and j in self.partner:
                j = self.partner[j] + 1
            elif self.kind(j) == "punct" and (t in ")]};,?:" or t in ASSIGN):
                break
            elif self.kind(j) == "directive":
                break
            elif self.is_binary(j) and PRECEDENCE[t] <= precedence:
                break
            else:
                j += 1
        return j - 1

    def arguments(self, open_):
        """Token ranges of the arguments of the call whose parenthesis opens at `open_`."""
        close, found, begin, i = self.partner[open_], [], open_ + 1, open_ + 1
        while i <= close:
            if i == close or self.t(i) == ",":
                if i > begin:
                    found.append((begin, i - 1))
                begin = i + 1
            elif self.kind(i) == "punct" and self.t(i) in "([{":
                i = self.partner[i]
            i += 1
        return found

    # ---- statements ------------------------------------------------------------------------

    def statement(self, i, end):
        """Reads the statement at token i; returns the token after it."""
        t = self.t(i)
        if self.kind(i) == "directive":
            return i + 1
        if t == "{":
            self.block(i)
            return self.partner[i] + 1
        if t in ("if", "while", "for", "switch") and self.t(i + 1) == "(":
            close = self.partner[i + 1]
            after = self.statement(close + 1, end)
            if t == "if":
                has_else = self.t(after) == "else"
                self.condition_of_if(i + 2, close - 1, close + 1, after - 1, has_else)
                if has_else:
                    after = self.statement(after + 1, end)
            return after
        if t == "do":
            after = self.statement(i + 1, end)
            return self.partner[after + 1] + 2
        if t in ("case", "default") or self.kind(i) == "name" and self.t(i + 1) == ":":
            while self.t(i) != ":":
                i += 1
            return i + 1
        last = i
        while last < end and self.t(last) != ";":
            last = self.partner.get(last, last) if self.t(last) in "([{" else last
            if self.kind(last) == "directive":
                return last + 1
            last += 1
        self.simple(i, last)
        return last + 1

    def block(self, open_):
        i, close = open_ + 1, self.partner[open_]
        while i < close:
            i = self.statement(i, close)

    def condition_of_if(self, a, b, body, body_end, has_else):
        condition = self.source(a, b)
        self.add("negation", a, b, f"!({condition})", f"SXM_NOT(@, {condition})")
        inner = body + 1 if self.t(body) == "{" else body
        jumps = self.t(inner) in ("return", "break", "continue", "goto") or \
            re.match(r"SX_TRY|SX_RETURN", self.t(inner)) is not None
        single = sum(self.t(i) == ";" for i in range(inner, body_end + 1)) == 1
        if not has_else and jumps and single:
            self.add("lost check", a, b, f"false && ({condition})", f"SXM_NEVER(@, {condition})")
        elif not has_else:
            self.add("lost call", a, b, f"false && ({condition})", f"SXM_NEVER(@, {condition})")

    def simple(self, a, b):
        """The statement of tokens a..b, b its semicolon."""
        t, next_ = self.t(a), self.t(a + 1)
        text = self.source(a, b)
        if t in ("break", "continue"):
            # The break that ends a case before a case of the same body is a fallthrough when lost.
            self.add("lost jump", a, b, ";", f"SXM_DROP(@) {text}")
            return
        if t in ("return", "goto") or self.kind(a) != "name" and t not in ("*", "++", "--", "("):
            return
        if t in ("SX_TRY", "SX_TRY_GOTO") and next_ == "(":
            call = self.arguments(a + 1)[0 if t == "SX_TRY" else 1]
            expr = self.source(*call)
            self.add("ignored error", call[0], call[1], f"ignored({expr})",
                     f"SXM_IGNORE(@, {expr})", a)
            self.add("lost call", a, b, ";", f"SXM_DROP(@) {text}")
            return
        if UNSEEN.match(t) or NO_SLIP.match(t):
            return
        i, assign = a, None
        while i < b:
            if self.kind(i) == "punct" and self.t(i) in ASSIGN:
                assign = i
                break
            i = self.partner[i] + 1 if self.t(i) in "([{" and i in self.partner else i + 1
        if assign is None:
            if t == "(" and self.t(a + 1) == "void":
                is_call = self.t(b - 1) == ")"
            else:
                is_call = self.kind(a) == "name" and self.t(b - 1) == ")" and (
                    next_ in ("(", "->", ".", "["))
            if is_call:
                self.add("lost call", a, b, ";", f"SXM_DROP(@) {text}")
            elif t in ("++", "--") or self.t(b - 1) in ("++", "--"):
                self.add("lost assignment", a, b, ";", f"SXM_DROP(@) {text}")
            return
        words = [self.t(i) for i in range(a, assign)]
        declares = self.is_type_name(words[0]) or len(words) > 1 and self.kind(a + 1) == "name" or (
            len(words) > 2 and words[1] == "*" and self.kind(a + 2) == "name" and words[0] != "*")
        if not declares:
            self.add("lost assignment", a, b, ";", f"SXM_DROP(@) {text}")

    # ---- expressions -----------------------------------------------------------------------

    def unseen_ranges(self, a, b):
        """Tokens inside calls that only readers of messages see."""
        hidden = set()
        for i in range(a, b):
            if self.kind(i) != "name" or self.t(i + 1) != "(":
                continue
            args = self.arguments(i + 1)
            if UNSEEN.match(self.t(i)):
                hidden.update(range(i, self.partner[i + 1] + 1))
            elif ERRORS.match(self.t(i)):
                hidden.update(range(i + 2, self.partner[i + 1]))
            elif re.match(r"SX_TRY", self.t(i)):
                for first, last in args[2 if self.t(i) == "SX_TRY_GOTO" else 1:]:
                    hidden.update(range(first, last + 1))
        return hidden

    def expressions(self, a, b):
        hidden = self.unseen_ranges(a, b)
        i = a
        while i <= b:
            kind, t = self.kind(i), self.t(i)
            if i in hidden or kind == "directive":
                i += 1
                continue
            if t in ("case", "default") and kind == "name":
                while self.t(i) != ":":
                    i += 1
                continue
            if t == "sizeof" and self.t(i + 1) == "(":
                i = self.partner[i + 1] + 1
                continue
            if kind == "number":
                self.number(i)
            elif kind == "name":
                self.name(i)
            elif t == "!" and kind == "punct":
                last = self.right_of(i, 11)
                operand = self.source(i + 1, last)
                self.add("negation", i, last, f"{operand}", f"SXM_NOT(@, !{operand})")
            elif t == "?":
                self.ternary(i)
            elif t == "[" and self.ends_operand(i - 1):
                self.index(i)
            elif self.is_binary(i):
                self.binary(i)
            i += 1

    def number(self, i):
        t = self.t(i)
        if self.t(i - 1) == "{" and self.t(i + 1) == "}":
            return  # = {0}
        for slip in number_slips(t):
            self.add("number", i, i, slip, f"SXM_SLIP(@, {t}, {slip})")

    def name(self, i):
        t, next_ = self.t(i), self.t(i + 1)
        if t in ("true", "false"):
            slip = "false" if t == "true" else "true"
            self.add("flag", i, i, slip, f"SXM_SLIP(@, {t}, {slip})")
        elif t == "sx_error" and next_ == "(" and self.t(i + 3) == ",":
            slip = "SX_INVALID_ARGUMENT" if self.t(i + 2) == "SX_INTERNAL" else "SX_INTERNAL"
            self.add("error code", i + 2, i + 2, slip, f"SXM_SLIP(@, {self.t(i + 2)}, {slip})")
        elif next_ == "(" and t.islower() and t not in STATEMENT_WORDS and not ERRORS.match(t) and \
                t not in ("sx_alloc", "calloc") and not self.is_type_name(self.t(i - 1)) and self.t(i - 1) != "*":
            args = self.arguments(i + 1)
            close = self.partner[i + 1]
            for (a, b), (c, d) in zip(args, args[1:]):
                first, second = self.source(a, b), self.source(c, d)
                if first != second and '"' not in first + second and "NULL" not in (first, second):
                    head, between, tail = (self.text[self.tokens[i][2]:self.tokens[a][2]],
                                           self.text[self.tokens[b][3]:self.tokens[c][2]],
                                           self.text[self.tokens[d][3]:self.tokens[close][3]])
                    slip = head + second + between + first + tail
                    self.add("swapped arguments", i, close, slip,
                             f"SXM_SLIP(@, {self.source(i, close)}, {slip})")

    def ternary(self, i):
        first = self.left_of(i, 0)
        depth, j = 0, i + 1
        while j < len(self.tokens) and (self.t(j) != ":" or depth):
            depth += {"?": 1, ":": -1}.get(self.t(j), 0)
            j = self.partner[j] + 1 if self.t(j) in "([{" and j in self.partner else j + 1
        condition = self.source(first, i - 1)
        self.add("swapped results", first, i - 1, f"!({condition})", f"SXM_NOT(@, {condition})")

    def index(self, i):
        a, b = i + 1, self.partner[i] - 1
        if a > b or a == b and self.kind(a) == "number" or self.is_declared(i):
            return
        text = self.source(a, b)
        for op in "+-":
            self.add("index", a, b, f"{text} {op} 1", f"(SXM_SLIP(@, 0, 1) ? ({text}) {op} 1 : ({text}))")

    def is_declared(self, i):
        """Does the bracket belong to a declarator (`int a[n]`) rather than to an expression?"""
        j = i - 1
        while self.t(j) == "]":
            j = self.partner[j] - 1
        return self.kind(j - 1) == "name" and self.t(j - 1) not in STATEMENT_WORDS or \
            self.t(j - 1) == "*" and not self.is_binary(j - 1)

    def binary(self, i):
        t = self.t(i)
        a, b = self.left_of(i, PRECEDENCE[t]), self.right_of(i, PRECEDENCE[t])
        if a >= i or b <= i:
            return
        left, right = self.source(a, i - 1), self.source(i + 1, b)
        for kind, slip in SLIPS[t]:
            plain = f"{left} {slip} {right}"
            if t in ("&&", "||"):
                switched = f"SXM_SLIP(@, ({left}) {t} ({right}), ({left}) {slip} ({right}))"
            elif t in ("*", "/", "%", "<<", ">>", "&", "|", "^"):
                switched = f"SXM_SLIP(@, ({left}) {t} ({right}), ({left}) {slip} ({right}))"
            else:
                switched = f"SXM_BINARY(@, ({left}), {t}, {slip}, ({right}))"
            self.add(kind, a, b, plain, f"({switched})", i)
        if t in ("&&", "||"):
            neutral = "true" if t == "&&" else "false"
            for kept in (left, right):
                self.add("lost condition", a, b, kept,
                         f"(SXM_SLIP(@, ({left}) {t} ({right}), {neutral} {t} ({kept})))", i)

    # ---- file scope ------------------------------------------------------------------------

    def read(self):
        i, begin = 0, 0
        bodies = []
        while i < len(self.tokens):
            t = self.t(i)
            if self.kind(i) == "directive":
                self.define(i)
                begin = i = i + 1
            elif t == "{" and self.t(i - 1) == ")" and i in self.partner:
                name = self.partner[i - 1] - 1
                self.function = self.t(name)
                bodies.append((i, self.function))
                self.block(i)
                self.expressions(i + 1, self.partner[i] - 1)
                begin = i = self.partner[i] + 1
            elif t == ";":
                self.function = ""
                words = [self.t(j) for j in range(begin, i)]
                if words[:1] == ["enum"]:
                    self.limits(begin, i)
                elif "=" in words and "typedef" not in words:
                    self.table(begin, i, bodies)
                begin = i = i + 1
            elif t in "([{" and i in self.partner:
                i = self.partner[i] + 1
            else:
                i += 1
        for slip in self.slips:  # a table's slip is met by each function of its file
            if slip.kind == "table":
                slip.probes = [self.tokens[open_][3] for open_, _ in bodies]
        return self.slips

    def define(self, i):
        m = re.match(r"[ \t]*#\s*define\s+(\w+)\s+([\d.]\S*)\s*(/\*.*)?$", self.t(i))
        if m:
            self.function = m.group(1)
            for slip in number_slips(m.group(2)):
                start = self.tokens[i][2] + m.start(2)
                self.slips.append(Slip(self.path, self.function, self.line(i), "limit", start,
                                       start + len(m.group(2)), slip,
                                       f"(SXM_SLIP(@, {m.group(2)}, {slip}))"))

    def limits(self, a, b):
        if self.path.endswith((".h", ".inc")) or self.t(b - 1) != "}":
            return
        for i in range(a, b):
            if self.t(i) != "=" or self.kind(i - 1) != "name" or not self.t(i - 1).isupper():
                continue
            last = self.right_of(i, 0)
            name, value = self.t(i - 1), self.source(i + 1, last)
            self.function = name
            line = bisect.bisect_left(self.lines, self.tokens[b][2]) + 1
            rest = self.text[self.tokens[b][2]:self.text.find("\n", self.tokens[b][2])]
            for op in "+-":
                slip = Slip(self.path, name, self.line(i), "limit", self.tokens[i + 1][2],
                            self.tokens[last][3], f"({value}) {op} 1", None)
                # The enumerator keeps its value; its uses read the macro of the same name.
                slip.after = (self.tokens[b][2] + len(rest),
                              f"\n#define {name} (SXM_LIMIT(@, {name}, ({name}) {op} 1))"
                              f"\n#line {line + 1}")
                self.slips.append(slip)

    def table(self, a, b, bodies):
        equals = next(i for i in range(a, b) if self.t(i) == "=")
        name = equals - 1
        while self.t(name) == "]":
            name = self.partner[name] - 1
        if self.kind(name) != "name" or "samples" in self.t(name) or self.t(a) == "extern":
            return
        self.function = self.t(name)
        declaration = self.text[self.tokens[a][2]:self.tokens[b][3]]
        base = self.tokens[a][2]
        is_static = "static" in (self.t(i) for i in range(a, name))
        for i in range(equals + 1, b):
            t = self.t(i)
            slips = number_slips(t) if self.kind(i) == "number" else []
            if t in ("true", "false"):
                slips = ["false" if t == "true" else "true"]
            if self.t(i - 1) == "[":
                continue
            for slip in slips:
                start, end = self.tokens[i][2], self.tokens[i][3]
                mutated = self.text[base:start] + slip + self.text[end:self.tokens[b][3]]
                at = self.tokens[name][2] - base
                mutated = mutated[:at] + "sxm_table_@" + mutated[at + len(self.t(name)):]
                mutated = "static " + re.sub(r"^static\s+", "", mutated)
                mutated = re.sub(r"\s*\n\s*", " ", re.sub(r"/\*.*?\*/", "", mutated, flags=re.S))
                original = declaration
                if is_static:
                    head = re.sub(r"\bconst\b", "SXM_CONST", declaration[:at])
                    original = head + declaration[at:]
                found = Slip(self.path, self.function, self.line(i), "table", start, end, slip, None)
                found.whole = (base, self.tokens[b][3],
                               f"{original} SXM_TABLE(@, {self.t(name)}, {mutated})")
                self.slips.append(found)


def number_slips(t):
    """What a hurried hand writes for a number."""
    m = re.match(r"(\d+)([uUlL]*)$", t)
    if m and (t == "0" or t[0] != "0"):
        value, suffix = int(m.group(1)), m.group(2)
        return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value > 0 else [])
    m = re.match(r"0[xX]([0-9a-fA-F]+)([uUlL]*)$", t)
    if m:
        digits = len(m.group(1))
        return [f"0x{int(m.group(1), 16) ^ 1 << 4 * (digits // 2):0{digits}x}{m.group(2)}"]
    m = re.match(r"(\d*\.\d*|\d+(?=[eE]))([eE][+-]?\d+)?([fFlL]?)$", t)
    if m:
        mantissa, exponent, suffix = m.group(1), m.group(2) or "", m.group(3)
        value = float(mantissa)
        slips = [value * 2 if value else 1.0]
        if not exponent and 0 < value < 1:
            slips.append(1 - value if value != 0.5 else 0.25)
        texts = [f"{s:.15g}" for s in slips]
        return [(s if "." in s else s + ".0") + exponent + suffix for s in texts]
    return []


def candidates(path, text, type_names):
    """All slips of the file, each with an id that survives edits elsewhere."""
    slips = File(path, text, type_names).read()
    seen = {}
    for slip in slips:
        before = text[text.rfind("\n", 0, slip.start) + 1:slip.start]
        key = "|".join([path, slip.function, slip.kind, " ".join(text[slip.start:slip.end].split()),
                        " ".join(slip.plain.split()), " ".join(before.split())])
        seen[key] = seen.get(key, 0) + 1
        slip.id = hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()[:8]
    return slips


def plain(text, slip):
    """The file's text with the slip in it."""
    return text[:slip.start] + slip.plain + text[slip.end:]


def span(slip):
    """The part of the text that belongs to the slip: two slips' spans may not meet."""
    whole = getattr(slip, "whole", None)
    return (whole[0], whole[1]) if whole else (slip.start, slip.end)


def switched(text, slips):
    """The file's text with every slip of (number, slip) behind its switch. Lines keep their numbers."""
    edits = []  # (start, end, replacement)
    for number, slip in slips:
        whole, after = getattr(slip, "whole", None), getattr(slip, "after", None)
        if whole:
            edits.append((whole[0], whole[1], whole[2].replace("@", str(number))))
            edits += [(at, at, f" SXM_PROBE({number})") for at in slip.probes]
        elif after:
            edits.append((after[0], after[0], after[1].replace("@", str(number))))
        else:
            edits.append((slip.start, slip.end, slip.switched.replace("@", str(number))))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def type_names_of(texts):
    """Names that typedefs of these files introduce."""
    names = set()
    for text in texts:
        names.update(re.findall(r"^typedef\b[^;{]*?\b(\w+);", text, re.M))
        names.update(re.findall(r"^\}\s*(\w+);", text, re.M))
        names.update(re.findall(r"^typedef\b[^;{]*\(\*?(\w+)\)\(", text, re.M))
    return names
