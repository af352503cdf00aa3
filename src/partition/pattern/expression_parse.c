// SPDX-License-Identifier: Apache-2.0
// Parses expressions by recursive descent, with one level per operator priority. Depth, length and number of
// symbols are bounded. The parser separates sizes from conditions, so that the interpreter does not check
// types.

#include <string.h>

#include "partition/pattern/expression.h"
#include "partition/pattern/expression_steps.h"

enum { MAX_NESTING = 32, MAX_SYMBOLS = CLEAVE_EXPRESSION_MAX_SYMBOLS, LONGEST_SYMBOL = 63 };

typedef enum token {
  TOKEN_END,
  TOKEN_NUMBER,
  TOKEN_SYMBOL,
  TOKEN_OPEN,
  TOKEN_CLOSE,
  TOKEN_NOT,
  TOKEN_OPERATOR, /* `code` says which */
  TOKEN_OTHER
} token_t;

typedef struct parser {
  cleave_arena_t *arena;
  cleave_error_t *error;
  const char *text;
  const char *at; /* after the token */
  const char *start;
  token_t token;
  uint8_t code;
  int64_t number;
  uint32_t nesting;
  uint32_t depth; /* of the stack */
  uint32_t step_count;
  uint32_t symbol_count;
  cleave_expression_step_t steps[CLEAVE_EXPRESSION_STEPS];
  const char *symbols[MAX_SYMBOLS];
} parser_t;

static cleave_status_t fail(parser_t *parser, const char *start, const char *what) {
  return cleave_error_set(parser->error, CLEAVE_ERROR_RULE, "'%s': column %d: %s", parser->text,
                          (int)(start - parser->text) + 1, what);
}

static cleave_status_t fail_found(parser_t *parser, const char *wanted) {
  if (parser->token == TOKEN_END) {
    return cleave_error_set(parser->error, CLEAVE_ERROR_RULE, "'%s': column %d: expected %s, found the end",
                            parser->text, (int)(parser->start - parser->text) + 1, wanted);
  }
  return cleave_error_set(parser->error, CLEAVE_ERROR_RULE, "'%s': column %d: expected %s, found '%.*s'",
                          parser->text, (int)(parser->start - parser->text) + 1, wanted,
                          (int)(parser->at - parser->start), parser->start);
}

// ---- tokens ----

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static const struct {
  const char *text; /* longer ones first */
  uint8_t code;
} OPERATORS[] = {{"==", CLEAVE_STEP_EQUAL},   {"!=", CLEAVE_STEP_DIFFERENT}, {"~=", CLEAVE_STEP_DIFFERENT},
                 {"<=", CLEAVE_STEP_AT_MOST}, {">=", CLEAVE_STEP_AT_LEAST},  {"//", CLEAVE_STEP_FLOOR},
                 {"<", CLEAVE_STEP_LESS},     {">", CLEAVE_STEP_MORE},       {"+", CLEAVE_STEP_ADD},
                 {"-", CLEAVE_STEP_SUBTRACT}, {"*", CLEAVE_STEP_MULTIPLY},   {"/", CLEAVE_STEP_DIVIDE},
                 {"%", CLEAVE_STEP_REST}};

static void next_word(parser_t *parser) {
  static const struct {
    const char *text;
    token_t token;
    uint8_t code;
  } WORDS[] = {{"and", TOKEN_OPERATOR, CLEAVE_STEP_AND},
               {"or", TOKEN_OPERATOR, CLEAVE_STEP_OR},
               {"not", TOKEN_NOT, CLEAVE_STEP_NOT}};
  while (is_letter(*parser->at) || is_digit(*parser->at)) {
    parser->at++;
  }
  size_t length = (size_t)(parser->at - parser->start);
  parser->token = TOKEN_SYMBOL;
  for (size_t k = 0; k < sizeof WORDS / sizeof WORDS[0]; k++) {
    if (strlen(WORDS[k].text) == length && memcmp(WORDS[k].text, parser->start, length) == 0) {
      parser->token = WORDS[k].token;
      parser->code = WORDS[k].code;
    }
  }
}

static cleave_status_t next(parser_t *parser) {
  while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n') {
    parser->at++;
  }
  parser->start = parser->at;
  char c = *parser->at;
  if (c == '\0') {
    parser->token = TOKEN_END;
    return CLEAVE_OK;
  }
  if (is_letter(c)) {
    next_word(parser);
    return CLEAVE_OK;
  }
  if (is_digit(c)) {
    parser->token = TOKEN_NUMBER;
    parser->number = 0;
    while (is_digit(*parser->at)) {
      if (__builtin_mul_overflow(parser->number, 10, &parser->number) ||
          __builtin_add_overflow(parser->number, *parser->at - '0', &parser->number)) {
        return fail(parser, parser->start, "the number is too large");
      }
      parser->at++;
    }
    return CLEAVE_OK;
  }
  for (size_t k = 0; k < sizeof OPERATORS / sizeof OPERATORS[0]; k++) {
    size_t length = strlen(OPERATORS[k].text);
    if (strncmp(parser->at, OPERATORS[k].text, length) == 0) {
      parser->at += length;
      parser->token = TOKEN_OPERATOR;
      parser->code = OPERATORS[k].code;
      return CLEAVE_OK;
    }
  }
  parser->at++;
  parser->token = c == '(' ? TOKEN_OPEN : c == ')' ? TOKEN_CLOSE : TOKEN_OTHER;
  return CLEAVE_OK;
}

static bool is_operator(const parser_t *parser, uint8_t low, uint8_t high) {
  return parser->token == TOKEN_OPERATOR && parser->code >= low && parser->code <= high;
}

// ---- steps ----

static cleave_status_t emit(parser_t *parser, cleave_expression_step_t step) {
  if (parser->step_count == CLEAVE_EXPRESSION_STEPS) {
    return fail(parser, parser->start, "the expression is too long");
  }
  if (step.code == CLEAVE_STEP_NUMBER || step.code == CLEAVE_STEP_SYMBOL) {
    if (parser->depth == CLEAVE_EXPRESSION_STACK) {
      return fail(parser, parser->start, "the expression is too deep");
    }
    parser->depth++;
  } else if (step.code != CLEAVE_STEP_NEGATE && step.code != CLEAVE_STEP_NOT) {
    parser->depth--;
  }
  parser->steps[parser->step_count++] = step;
  return CLEAVE_OK;
}

static cleave_status_t emit_symbol(parser_t *parser) {
  size_t length = (size_t)(parser->at - parser->start);
  uint32_t symbol = 0;
  while (symbol < parser->symbol_count && (strlen(parser->symbols[symbol]) != length ||
                                           memcmp(parser->symbols[symbol], parser->start, length) != 0)) {
    symbol++;
  }
  if (symbol == parser->symbol_count) {
    if (symbol == MAX_SYMBOLS || length > LONGEST_SYMBOL) {
      return fail(parser, parser->start, "too many symbols, or too long a name");
    }
    parser->symbols[symbol] = cleave_arena_copy_text(parser->arena, parser->start, length);
    CLEAVE_TRY_MEMORY(parser->symbols[symbol], parser->error);
    parser->symbol_count++;
  }
  return emit(parser, (cleave_expression_step_t){.code = CLEAVE_STEP_SYMBOL, .symbol = symbol});
}

static cleave_status_t expect_kind(parser_t *parser, const char *start, cleave_expression_kind_t kind,
                                   cleave_expression_kind_t wanted) {
  if (kind == wanted) {
    return CLEAVE_OK;
  }
  return fail(parser, start,
              wanted == CLEAVE_EXPRESSION_SIZE ? "expected a size, found a condition"
                                               : "expected a condition, found a size");
}

// ---- grammar ----

static cleave_status_t parse_any(parser_t *parser, cleave_expression_kind_t *out_kind);

/* A number, a symbol or an expression in parentheses, with any number of signs before it. */
static cleave_status_t parse_primary(parser_t *parser, cleave_expression_kind_t *out_kind) {
  uint32_t signs = 0;
  const char *start = parser->start;
  while (is_operator(parser, CLEAVE_STEP_SUBTRACT, CLEAVE_STEP_SUBTRACT)) {
    signs++;
    CLEAVE_TRY(next(parser));
  }
  *out_kind = CLEAVE_EXPRESSION_SIZE;
  if (parser->token == TOKEN_NUMBER) {
    CLEAVE_TRY(
        emit(parser, (cleave_expression_step_t){.code = CLEAVE_STEP_NUMBER, .number = parser->number}));
  } else if (parser->token == TOKEN_SYMBOL) {
    CLEAVE_TRY(emit_symbol(parser));
  } else if (parser->token == TOKEN_OPEN) {
    if (++parser->nesting > MAX_NESTING) {
      return fail(parser, parser->start, "the expression is too deep");
    }
    CLEAVE_TRY(next(parser));
    CLEAVE_TRY(parse_any(parser, out_kind));
    if (parser->token != TOKEN_CLOSE) {
      return fail_found(parser, "')'");
    }
    parser->nesting--;
  } else {
    return fail_found(parser, "a size");
  }
  if (signs > 0) {
    CLEAVE_TRY(expect_kind(parser, start, *out_kind, CLEAVE_EXPRESSION_SIZE));
  }
  if (signs % 2 == 1) {
    CLEAVE_TRY(emit(parser, (cleave_expression_step_t){.code = CLEAVE_STEP_NEGATE}));
  }
  return next(parser);
}

static cleave_status_t parse_level(parser_t *parser, uint32_t level, cleave_expression_kind_t *out_kind);

/* An operand of the operators of a level; conditions may have any number of `not` before them. */
static cleave_status_t parse_operand(parser_t *parser, uint32_t level, cleave_expression_kind_t *out_kind) {
  const char *start = parser->start;
  uint32_t negations = 0;
  while (level == 3 && parser->token == TOKEN_NOT) {
    negations++;
    CLEAVE_TRY(next(parser));
  }
  CLEAVE_TRY(level == 0 ? parse_primary(parser, out_kind) : parse_level(parser, level - 1, out_kind));
  if (negations > 0) {
    CLEAVE_TRY(expect_kind(parser, start, *out_kind, CLEAVE_EXPRESSION_CONDITION));
  }
  if (negations % 2 == 1) {
    CLEAVE_TRY(emit(parser, (cleave_expression_step_t){.code = CLEAVE_STEP_NOT}));
  }
  return CLEAVE_OK;
}

/* Parses the operators of one level from left to right. Level 0: products, 1: sums, 2: one comparison, 3:
 * and, 4: or. */
static cleave_status_t parse_level(parser_t *parser, uint32_t level, cleave_expression_kind_t *out_kind) {
  static const uint8_t LOW[] = {CLEAVE_STEP_MULTIPLY, CLEAVE_STEP_ADD, CLEAVE_STEP_EQUAL, CLEAVE_STEP_AND,
                                CLEAVE_STEP_OR};
  static const uint8_t HIGH[] = {CLEAVE_STEP_REST, CLEAVE_STEP_SUBTRACT, CLEAVE_STEP_AT_LEAST,
                                 CLEAVE_STEP_AND, CLEAVE_STEP_OR};
  cleave_expression_kind_t operands = level <= 2 ? CLEAVE_EXPRESSION_SIZE : CLEAVE_EXPRESSION_CONDITION;
  const char *start = parser->start;
  CLEAVE_TRY(parse_operand(parser, level, out_kind));
  while (is_operator(parser, LOW[level], HIGH[level])) {
    cleave_expression_step_t step = {.code = parser->code};
    CLEAVE_TRY(expect_kind(parser, start, *out_kind, operands));
    CLEAVE_TRY(next(parser));
    start = parser->start;
    CLEAVE_TRY(parse_operand(parser, level, out_kind));
    CLEAVE_TRY(expect_kind(parser, start, *out_kind, operands));
    CLEAVE_TRY(emit(parser, step));
    if (level == 2) {
      *out_kind = CLEAVE_EXPRESSION_CONDITION;
      if (is_operator(parser, LOW[level], HIGH[level])) {
        return fail(parser, parser->start, "comparisons do not chain (write a < b and b < c)");
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t parse_any(parser_t *parser, cleave_expression_kind_t *out_kind) {
  return parse_level(parser, 4, out_kind);
}

// ---- the whole ----

static cleave_status_t parse_whole(parser_t *parser, cleave_expression_kind_t kind) {
  cleave_expression_kind_t found = CLEAVE_EXPRESSION_SIZE;
  CLEAVE_TRY(next(parser));
  const char *start = parser->start;
  CLEAVE_TRY(parse_any(parser, &found));
  if (parser->token != TOKEN_END) {
    return fail_found(parser, "an operator or the end");
  }
  return expect_kind(parser, start, found, kind);
}

cleave_status_t cleave_expression_compile(cleave_arena_t *arena, const char *text, int32_t line,
                                          cleave_expression_kind_t kind,
                                          const cleave_expression_t **out_expression, cleave_error_t *error) {
  parser_t parser = {.arena = arena, .error = error, .at = text};
  parser.text = cleave_arena_copy_text(arena, text, strlen(text));
  cleave_expression_t *expression = cleave_arena_allocate(arena, 1, sizeof *expression);
  CLEAVE_TRY_MEMORY(parser.text != NULL && expression != NULL, error);
  parser.at = parser.text;
  CLEAVE_TRY(parse_whole(&parser, kind));
  *expression = (cleave_expression_t){
      .text = parser.text,
      .line = line,
      .kind = kind,
      .symbol_count = parser.symbol_count,
      .step_count = parser.step_count,
      .steps = cleave_arena_copy(arena, parser.steps, parser.step_count * sizeof *parser.steps)};
  const char **symbols = cleave_arena_allocate(arena, (size_t)parser.symbol_count + 1, sizeof *symbols);
  CLEAVE_TRY_MEMORY(expression->steps != NULL && symbols != NULL, error);
  memcpy(symbols, parser.symbols, parser.symbol_count * sizeof *symbols);
  expression->symbols = symbols;
  *out_expression = expression;
  return CLEAVE_OK;
}
