/* The tokens of the graph's text form: identifiers, %values, numbers, "strings", punctuation. Keeps
 * line numbers for messages; the text need not end in a NUL. */
#ifndef SX_GRAPH_LEXER_H
#define SX_GRAPH_LEXER_H

#include <sextant/types.h>

#include "base/arena.h"
#include "base/buffer.h"

typedef enum sx_token_kind {
    SX_TOKEN_END,
    SX_TOKEN_WORD,   /* letters, digits, _; not starting with a digit */
    SX_TOKEN_VALUE,  /* %12 */
    SX_TOKEN_NUMBER, /* integer or floating */
    SX_TOKEN_STRING, /* begin, size: the text between the quotes, with its escapes */
    SX_TOKEN_PUNCT,  /* one character */
    SX_TOKEN_BAD,    /* an unclosed string, a % without number */
} sx_token_kind;

typedef struct sx_lexer {
    const char *at, *end; /* the text after the current token */
    int line;
    sx_token_kind kind; /* the current token */
    const char *begin;
    size_t size;
    sx_arena *arena; /* for the texts taken */
} sx_lexer;

/* Starts at the first token. `text` and `arena` outlive the lexer. */
void sx_lexer_init(sx_lexer *lexer, const char *text, size_t size, sx_arena *arena);
void sx_lexer_next(sx_lexer *lexer);

bool sx_lexer_is_punct(const sx_lexer *lexer, char c);
bool sx_lexer_is_word(const sx_lexer *lexer, const char *word);
/* Steps over the current token if it is `c`. */
bool sx_lexer_accept(sx_lexer *lexer, char c);
bool sx_lexer_accept_word(sx_lexer *lexer, const char *word);
/* INVALID_ARGUMENT "line 12: expected ..., got ...". */
SX_MUST_USE sx_status sx_lexer_error(const sx_lexer *lexer, const char *expected);
SX_MUST_USE sx_status sx_lexer_expect(sx_lexer *lexer, char c);
/* Each takes one token or returns an error with what was expected. Texts are copied into the arena.
 */
SX_MUST_USE sx_status sx_lexer_take_word(sx_lexer *lexer, const char *what, const char **out_text);
SX_MUST_USE sx_status sx_lexer_take_string(sx_lexer *lexer, const char *what,
                                           const char **out_text);
SX_MUST_USE sx_status sx_lexer_take_int(sx_lexer *lexer, int64_t *out_value);
SX_MUST_USE sx_status sx_lexer_take_float(sx_lexer *lexer, double *out_value);
SX_MUST_USE sx_status sx_lexer_take_value(sx_lexer *lexer, uint32_t *out_id);

/* The reverse of take_string: prints in quotes, with \" \\ \n and \xHH for control characters. */
void sx_quoted_print(const char *text, sx_buf *out);

#endif
