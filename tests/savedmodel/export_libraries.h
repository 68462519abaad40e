/* Libraries of functions that are exported, by tests/savedmodel/test_export_library.c and by
 * tests/interop/export_tool.c for TensorFlow: function "main" of each, with inputs. */
#ifndef SX_TESTS_SAVEDMODEL_EXPORT_LIBRARIES_H
#define SX_TESTS_SAVEDMODEL_EXPORT_LIBRARIES_H

#include <sextant/types.h>

enum { EXPORT_RUNS = 3, EXPORT_INPUTS = 4 };

typedef struct export_library {
    const char *name, *text;
    sx_tensor runs[EXPORT_RUNS][EXPORT_INPUTS];
} export_library;

#define TENSOR(dtype_, data_, ...)                                                  \
    {                                                                               \
        .type = {.dtype = (dtype_),                                                 \
                 .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                 .dims = {__VA_ARGS__}},                                            \
        .data = (void *)(uintptr_t)(data_)                                          \
    }
#define SCALAR(dtype_, data_)                                           \
    {                                                                   \
        .type = {.dtype = (dtype_)}, .data = (void *)(uintptr_t)(data_) \
    }

static const float export_x[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
static const int32_t export_n[] = {0, 1, 5};
static const sx_bytes export_texts[] = {
    {"the quick brown fox", 19}, {"", 0}, {"hello", 5}, {"a b a b c", 9}};
static const sx_bytes export_words[] = {{"the", 3}, {"The", 3}, {"hello", 5}};
static const uint8_t export_bytes[] = "hello a to the quick fox ";

#define I64(hex)  "constant() {value=tensor(int64[] \"" hex "00000000000000\")} int64[] "
#define I64S(hex) "constant() {value=tensor(int64[1] \"" hex "\")} int64[1] "

/* calls, one of them twice; a branch and a loop without a bound that call and read a variable */
static const char export_control[] =
    "sextant-library 2\n"
    "variable float32[3] \"scale\" weight normal 0.5\n"
    "variable float32[] \"bias\" weight normal 0.5\n"
    "function \"cell\"\n"
    "input %1 float32[?,3] \"x\"\ninput %2 float32[3] \"w\"\n"
    "%3 = mul(%1, %2) float32[?,3] \"mul\"\n%4 = tanh(%3) float32[?,3] \"tanh\"\n"
    "output \"y\" %4\nend\n"
    "function \"shifted\"\n"
    "input %1 float32[?,3] \"x\"\n"
    "%2 = variable_handle() {name=\"bias\"} resource[] \"handle\"\n"
    "%3 = read_variable(%2) float32[] \"read\"\n"
    "%4 = add(%1, %3) float32[?,3] \"add\"\noutput \"y\" %4\nend\n"
    "function \"main\"\n"
    "input %1 float32[?,3] \"x\"\ninput %2 int32[] \"n\"\n"
    "%3 = variable_handle() {name=\"scale\"} resource[] \"handle\"\n"
    "%4 = read_variable(%3) float32[3] \"scale\"\n"
    "%5 = call(%1, %4) {function=\"cell\"} float32[?,3] \"cell\"\n"
    "%6 = call(%5, %4) {function=\"cell\"} float32[?,3] \"cell_1\"\n"
    "%7 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%8, %9 = while(%6, %7, %4, %2) float32[?,3], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[?,3] \"h\"\n    input %2 int32[] \"i\"\n    input %3 float32[3] \"w\"\n"
    "    input %4 int32[] \"n\"\n    %5 = less(%2, %4) bool[] \"go\"\n    output \"go\" %5\n  end\n"
    "  body\n"
    "    input %1 float32[?,3] \"h\"\n    input %2 int32[] \"i\"\n    input %3 float32[3] \"w\"\n"
    "    input %4 int32[] \"n\"\n"
    "    %5 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %6 = add(%2, %5) int32[] \"next\"\n"
    "    %7 = call(%1, %3) {function=\"cell\"} float32[?,3] \"call\"\n"
    "    %8 = call(%7) {function=\"shifted\"} float32[?,3] \"call_1\"\n"
    "    output \"h\" %8\n    output \"i\" %6\n  end\n"
    "%10 = constant() {value=tensor(int32[] \"02000000\")} int32[] \"two\"\n"
    "%11 = less(%2, %10) bool[] \"few\"\n"
    "%12, %13 = if(%11, %8, %4) float32[?,3], int32[] \"if\"\n"
    "  then\n    input %1 float32[?,3] \"h\"\n    input %2 float32[3] \"w\"\n"
    "    %3 = call(%1, %2) {function=\"cell\"} float32[?,3] \"call\"\n"
    "    %4 = constant() {value=tensor(int32[] \"07000000\")} int32[] \"seven\"\n"
    "    output \"y\" %3\n    output \"k\" %4\n  end\n"
    "  else\n    input %1 float32[?,3] \"h\"\n    input %2 float32[3] \"w\"\n"
    "    %3 = call(%1) {function=\"shifted\"} float32[?,3] \"call\"\n"
    "    %4 = constant() {value=tensor(int32[] \"09000000\")} int32[] \"nine\"\n"
    "    output \"y\" %3\n    output \"k\" %4\n  end\n"
    "output \"y\" %12\noutput \"k\" %13\noutput \"trips\" %9\nend\n";

/* words of texts, padded to the longest text, with the number of each by its hash: all shapes come
 * from the data; then the table's rows, weighted by what is there, through a map */
static const char export_text[] =
    "sextant-library 2\n"
    "variable float32[10,4] \"embedding\" weight normal 0.5\n"
    "function \"words\"\n"
    "input %1 string[?] \"text\"\n"
    "%2 = constant() {value=tensor(string[] \"\")} string[] \"spaces\"\n"
    "%3, %4, %5 = string_split_v2(%1, %2) {maxsplit=-1} int64[?,2], string[?], int64[2] \"split\"\n"
    "output \"indices\" %3\noutput \"words\" %4\noutput \"size\" %5\nend\n"
    "function \"main\"\n"
    "input %1 string[?] \"text\"\n"
    "%2, %3, %4 = call(%1) {function=\"words\"} int64[?,2], string[?], int64[2] \"words\"\n"
    "%5 = string_to_hash_bucket(%3) {num_buckets=10} int64[?] \"bucket\"\n"
    "%6 = " I64(
        "00") "\"nothing\"\n"
              "%7 = constant() {value=tensor(int64[] \"ffffffffffffffff\")} int64[] \"none\"\n"
              "%8 = sparse_to_dense(%2, %4, %5, %7) int64[?,?] \"ids\"\n"
              "%9 = less(%7, %8) bool[?,?] \"there\"\n"
              "%10 = maximum(%8, %6) int64[?,?] \"row\"\n"
              "%11 = variable_handle() {name=\"embedding\"} resource[] \"handle\"\n"
              "%12 = read_variable(%11) float32[10,4] \"table\"\n"
              "%13 = cast(%9) {dtype=float32} float32[?,?] \"mask\"\n"
              "%14, %15 = map(%10, %13, %12) {mapped=2} float32[?,4], float32[?] \"map\"\n"
              "  body\n"
              "    input %1 int64[?] \"ids\"\n    input %2 float32[?] \"mask\"\n"
              "    input %3 float32[10,4] \"table\"\n"
              "    %4 = gather(%3, %1) float32[?,4] \"rows\"\n"
              "    %5 = constant() {value=tensor(int64[2] \"ffffffffffffffff0100000000000000\")} "
              "int64[2] "
              "\"as_column\"\n"
              "    %6 = reshape(%2) {shape=%5} float32[?,1] \"column\"\n"
              "    %7 = mul(%4, %6) float32[?,4] \"kept\"\n"
              "    %8 = reduce_sum(%7) {axes=[0]} float32[4] \"sum\"\n"
              "    %9 = reduce_sum(%2) {axes=[0]} float32[] \"count\"\n"
              "    output \"sum\" %8\n    output \"count\" %9\n  end\n"
              "%16 = string_upper(%3) string[?] \"upper\"\n"
              "output \"y\" %14\noutput \"count\" %15\noutput \"ids\" %8\noutput \"upper\" "
              "%16\nend\n";

/* bytes -> words by where the spaces are -> padded; computed attributes */
static const char export_pad[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "  input %1 uint8[?] \"text\"\n"
    "  %2 = constant() {value=tensor(uint8[] \"20\")} uint8[] \"space\"\n"
    "  %3 = equal(%1, %2) bool[?] \"is_space\"\n"
    "  %4 = where(%3) int64[?,1] \"spaces\"\n"
    "  %5 = " I64S(
        "ffffffffffffffff") "\"rest\"\n"
                            "  %6 = reshape(%4) {shape=%5} int64[?] \"ends\"\n"
                            "  %7 = shape(%6) {dtype=int64} int64[1] \"words\"\n"
                            "  %8 = iota() {shape=%7, axis=0, dtype=int64} int64[?] \"word\"\n"
                            "  %9 = " I64(
                                "01") "\"one\"\n"
                                      "  %10 = sub(%8, %9) int64[?] \"before\"\n"
                                      "  %11 = " I64(
                                          "00") "\"zero\"\n"
                                                "  %12 = maximum(%10, %11) int64[?] \"at\"\n"
                                                "  %13 = gather(%6, %12) int64[?] "
                                                "\"previous_end\"\n"
                                                "  %14 = add(%13, %9) int64[?] \"after\"\n"
                                                "  %15 = minimum(%8, %9) int64[?] \"skip\"\n"
                                                "  %16 = mul(%14, %15) int64[?] \"starts\"\n"
                                                "  %17 = sub(%6, %16) int64[?] \"lengths\"\n"
                                                "  %18 = reduce_max(%17) {axes=[0]} int64[] "
                                                "\"longest\"\n"
                                                "  %19 = " I64S(
                                                    "0100000000000000") "\"one_dim\"\n"
                                                                        "  %20 = reshape(%18) "
                                                                        "{shape=%19} int64[1] "
                                                                        "\"width\"\n"
                                                                        "  %21 = iota() "
                                                                        "{shape=%20, axis=0, "
                                                                        "dtype=int64} int64[?] "
                                                                        "\"column\"\n"
                                                                        "  %22 = constant() "
                                                                        "{value=tensor(int64[2] "
                                                                        "\"ffffffffffffffff01000000"
                                                                        "00000000\")} int64[2] "
                                                                        "\"as_column\"\n"
                                                                        "  %23 = reshape(%16) "
                                                                        "{shape=%22} int64[?,1] "
                                                                        "\"start_of\"\n"
                                                                        "  %24 = reshape(%17) "
                                                                        "{shape=%22} int64[?,1] "
                                                                        "\"length_of\"\n"
                                                                        "  %25 = add(%23, %21) "
                                                                        "int64[?,?] \"position\"\n"
                                                                        "  %26 = less(%21, %24) "
                                                                        "bool[?,?] \"valid\"\n"
                                                                        "  %27 = cast(%1) "
                                                                        "{dtype=int32} int32[?] "
                                                                        "\"codes\"\n"
                                                                        "  %28 = shape(%27) "
                                                                        "{dtype=int64} int64[1] "
                                                                        "\"bytes\"\n"
                                                                        "  %29 = sub(%28, %9) "
                                                                        "int64[1] \"last\"\n"
                                                                        "  %30 = minimum(%25, %29) "
                                                                        "int64[?,?] \"inside\"\n"
                                                                        "  %31 = gather(%27, %30) "
                                                                        "int32[?,?] \"ids\"\n"
                                                                        "  output \"ids\" %31\n  "
                                                                        "output \"valid\" "
                                                                        "%26\nend\n";

/* the order of assignments, reads and asserts; of a variable that a called function assigns */
static const char export_effects[] =
    "sextant-library 2\n"
    "variable float32[] \"count\" state zeros\n"
    "function \"increment\"\n"
    "input %1 resource[] \"counter\"\ninput %2 float32[] \"by\"\n"
    "%3 = read_variable(%1) float32[] \"before\"\n"
    "%4 = add(%3, %2) float32[] \"after\"\n"
    "%5 = assign_variable(%1, %4) float32[] \"assign\"\n"
    "output \"before\" %3\nend\n"
    "function \"main\"\n"
    "input %1 float32[] \"by\"\n"
    "%2 = variable_handle() {name=\"count\"} resource[] \"handle\"\n"
    "%3 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%4 = assign_variable(%2, %3) float32[] \"reset\"\n"
    "%5 = call(%2, %1) {function=\"increment\"} float32[] \"first\"\n"
    "%6 = read_variable(%2) float32[] \"between\"\n"
    "%7 = call(%2, %1) {function=\"increment\"} float32[] \"second\"\n"
    "%8 = less(%3, %1) bool[] \"positive\"\n"
    "%9 = assert(%8, %1) {message=\"by must be positive\"} bool[] \"assert\"\n"
    "%10 = print(%7, %6) {message=\"between\"} float32[] \"print\"\n"
    "%11 = read_variable(%2) float32[] \"end\"\n"
    "output \"first\" %5\noutput \"between\" %6\noutput \"second\" %10\noutput \"end\" %11\nend\n";

/* a vocabulary in a function that is called, whose table is handed down; and in a branch */
#define WORDS                                                                    \
    "{words=tensor(string[2] \"68656c6c6f\" \"746865\"), lines=tensor(int64[2] " \
    "\"01000000000000000000000000000000\"), first_id=2, default_value=-1} int64[?] "
static const char export_vocabulary[] =
    "sextant-library 2\n"
    "function \"ids\"\n  input %1 string[?] \"x\"\n"
    "  %2 = vocabulary_lookup(%1) " WORDS "\"find\"\n  output \"y\" %2\nend\n"
    "function \"main\"\n  input %1 string[?] \"x\"\n"
    "  %2 = call(%1) {function=\"ids\"} int64[?] \"call\"\n"
    "  %3 = constant() {value=tensor(int64[] \"0300000000000000\")} int64[] \"three\"\n"
    "  %4 = equal(%2, %3) bool[?] \"is\"\n  %5 = reduce_any(%4) {axes=[0]} bool[] \"any\"\n"
    "  %6 = if(%5, %1) int64[?] \"branch\"\n"
    "    then\n      input %1 string[?] \"x\"\n"
    "      %2 = vocabulary_lookup(%1) " WORDS "\"again\"\n      output \"y\" %2\n    end\n"
    "    else\n      input %1 string[?] \"x\"\n"
    "      %2 = string_length(%1) {unit=\"BYTE\"} int32[?] \"length\"\n"
    "      %3 = cast(%2) {dtype=int64} int64[?] \"wide\"\n      output \"y\" %3\n    end\n"
    "  output \"ids\" %2\n  output \"branch\" %6\nend\n";
#undef WORDS

/* y = x x, with a gradient of its own, in a function; z, with one that is not known */
static const char export_gradients[] =
    "sextant-library 2\n"
    "function \"square\"\n  input %1 float32[?] \"x\"\n"
    "  %2 = mul(%1, %1) float32[?] \"square\"\n  %3 = sin(%1) float32[?] \"sin\"\n"
    "  %4 = custom_gradient(%2, %1, %3) {results=1} float32[?] \"custom\"\n"
    "    gradient\n      input %1 float32[?] \"dy\"\n      input %2 float32[?] \"x\"\n"
    "      input %3 float32[?] \"s\"\n      %4 = mul(%1, %3) float32[?] \"dx\"\n"
    "      output \"dx\" %4\n    end\n"
    "  output \"y\" %4\nend\n"
    "function \"main\"\n  input %1 float32[?] \"x\"\n"
    "  %2 = call(%1) {function=\"square\"} float32[?] \"call\"\n"
    "  %3 = round(%1) float32[?] \"round\"\n"
    "  %4 = refuse_gradient(%3, %1) {results=1, why=\"it was lost\"} float32[?] \"refuse\"\n"
    "  output \"y\" %2\n  output \"z\" %4\nend\n";

static const export_library export_libraries[] = {
    {"control",
     export_control,
     {{TENSOR(SX_F32, export_x, 2, 3), SCALAR(SX_I32, &export_n[0])},
      {TENSOR(SX_F32, export_x, 1, 3), SCALAR(SX_I32, &export_n[1])},
      {TENSOR(SX_F32, export_x, 4, 3), SCALAR(SX_I32, &export_n[2])}}},
    {"text",
     export_text,
     {{TENSOR(SX_STRING, export_texts, 4)},
      {TENSOR(SX_STRING, export_texts, 1)},
      {TENSOR(SX_STRING, export_texts + 2, 2)}}},
    {"pad", export_pad, {{TENSOR(SX_U8, export_bytes, 25)}, {TENSOR(SX_U8, export_bytes, 6)}}},
    {"effects", export_effects, {{SCALAR(SX_F32, export_x)}, {SCALAR(SX_F32, export_x + 2)}}},
    {"vocabulary",
     export_vocabulary,
     {{TENSOR(SX_STRING, export_texts, 4)}, {TENSOR(SX_STRING, export_words, 3)}}},
    {"gradients", export_gradients, {{TENSOR(SX_F32, export_x, 4)}, {TENSOR(SX_F32, export_x, 0)}}},
};

#undef I64
#undef I64S
#endif
