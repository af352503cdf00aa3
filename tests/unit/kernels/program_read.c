// SPDX-License-Identifier: Apache-2.0
// From text to a program, word by word. What a line means is checked by the functions that build programs;
// here only words and numbers are told apart, and every failure gets its line.
#include "program_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convert.h"

enum { MAX_WORD = 63, WORDS_OF_A_LINE = 5 + KERNEL_MAX_TENSORS };

typedef struct reader {
  const char *text;
  size_t length;
  size_t at;
  int line;
  char words[WORDS_OF_A_LINE][MAX_WORD + 1];
  uint32_t word_count;
  kernel_program_t *program;
  uint32_t names[KERNEL_MAX_VALUES]; /* the value of each %k */
  uint32_t name_count;
  cleave_message_t *message;
} reader_t;

static cleave_status_t expected(reader_t *reader, const char *what, uint32_t word) {
  return kernel_fail(reader->message, CLEAVE_ERROR_FORMAT, "line %d: expected %s, found '%s'", reader->line,
                     what, word < reader->word_count ? reader->words[word] : "");
}

/* Splits the next line into words: brackets are words, '#' begins a comment. Empty lines are skipped. */
static cleave_status_t next_line(reader_t *reader) {
  reader->word_count = 0;
  while (reader->word_count == 0 && reader->at < reader->length) {
    reader->line++;
    bool is_comment = false;
    size_t word = 0;
    for (; reader->at < reader->length && reader->text[reader->at] != '\n'; reader->at++) {
      char c = reader->text[reader->at];
      bool is_bracket = c == '[' || c == ']';
      is_comment = is_comment || c == '#';
      if (is_comment || c == ' ' || c == '\t' || c == '\r' || is_bracket) {
        word = 0;
        if (is_comment || !is_bracket) {
          continue;
        }
      }
      if (word == 0) {
        if (reader->word_count == WORDS_OF_A_LINE) {
          return kernel_fail(reader->message, CLEAVE_ERROR_FORMAT, "line %d: more than %d words",
                             reader->line, WORDS_OF_A_LINE);
        }
        reader->word_count++;
      }
      if (word == MAX_WORD || c < ' ' || c > '~') {
        return kernel_fail(reader->message, CLEAVE_ERROR_FORMAT,
                           "line %d: a word is too long, or no plain text", reader->line);
      }
      reader->words[reader->word_count - 1][word++] = c;
      reader->words[reader->word_count - 1][word] = '\0';
      word = is_bracket ? 0 : word;
    }
    reader->at += reader->at < reader->length;
  }
  return CLEAVE_OK;
}

static bool is_word(const reader_t *reader, uint32_t word, const char *text) {
  return word < reader->word_count && strcmp(reader->words[word], text) == 0;
}

/* A number without sign behind a prefix: "in" and "in12" give 12. */
static bool read_index(const reader_t *reader, uint32_t word, const char *prefix, uint32_t *out_index) {
  size_t skip = strlen(prefix);
  if (word >= reader->word_count || strncmp(reader->words[word], prefix, skip) != 0) {
    return false;
  }
  const char *digits = reader->words[word] + skip;
  uint32_t index = 0;
  size_t count = 0;
  for (; digits[count] >= '0' && digits[count] <= '9' && count < 6; count++) {
    index = index * 10 + (uint32_t)(digits[count] - '0');
  }
  *out_index = index;
  return count > 0 && digits[count] == '\0';
}

static bool read_dtype(const reader_t *reader, uint32_t word, cleave_dtype_t *out_dtype) {
  for (int k = 0; k < KERNEL_DTYPE_COUNT && word < reader->word_count; k++) {
    *out_dtype = (cleave_dtype_t)k;
    if (cpu_dtype_is_plain(*out_dtype) && strcmp(kernel_dtype_name(*out_dtype), reader->words[word]) == 0) {
      return true;
    }
  }
  return false;
}

static bool read_float(const reader_t *reader, uint32_t word, double *out_number) {
  if (word >= reader->word_count) {
    return false;
  }
  char *end = NULL;
  *out_number = strtod(reader->words[word], &end);
  return end != reader->words[word] && *end == '\0';
}

static bool read_operand(const reader_t *reader, uint32_t word, uint32_t *out_value) {
  uint32_t name = 0;
  if (!read_index(reader, word, "%", &name) || name >= reader->name_count) {
    return false;
  }
  *out_value = reader->names[name];
  return true;
}

/* What a function that builds said, with the line. */
static cleave_status_t placed(reader_t *reader, cleave_status_t status, const cleave_message_t *detail) {
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  cleave_status_t kind = status == CLEAVE_ERROR_OUT_OF_MEMORY ? status : CLEAVE_ERROR_FORMAT;
  return kernel_fail(reader->message, kind, "line %d: %.200s", reader->line, detail->text);
}

static cleave_status_t end_of_line(reader_t *reader, uint32_t word) {
  return word == reader->word_count ? CLEAVE_OK : expected(reader, "the end of the line", word);
}

static cleave_status_t read_head(reader_t *reader) {
  uint32_t rank = 0;
  uint32_t reduced = 0;
  if (!is_word(reader, 0, "kernel") || !is_word(reader, 1, "rank") || !read_index(reader, 2, "", &rank) ||
      !is_word(reader, 3, "reduced") || !read_index(reader, 4, "", &reduced)) {
    return expected(reader, "'kernel rank N reduced N'", 0);
  }
  cleave_message_t detail = {.text = ""};
  cleave_status_t status = kernel_program_create((int32_t)rank, (int32_t)reduced, &reader->program, &detail);
  return status == CLEAVE_OK ? end_of_line(reader, 5) : placed(reader, status, &detail);
}

static cleave_status_t read_input(reader_t *reader) {
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  int8_t axes[CLEAVE_MAX_RANK] = {0};
  uint32_t word = 2;
  if (!read_dtype(reader, 1, &dtype)) {
    return expected(reader, "a dtype", 1);
  }
  if (!is_word(reader, word++, "[")) {
    return expected(reader, "'['", 2);
  }
  for (int32_t d = 0; d < reader->program->rank; d++, word++) {
    uint32_t axis = 0;
    if (!is_word(reader, word, ".") && (!read_index(reader, word, "", &axis) || axis >= CLEAVE_MAX_RANK)) {
      return expected(reader, "an axis or '.'", word);
    }
    axes[d] = (int8_t)(is_word(reader, word, ".") ? -1 : (int)axis);
  }
  if (!is_word(reader, word, "]")) {
    return expected(reader, "']'", word);
  }
  cleave_message_t detail = {.text = ""};
  uint32_t input = 0;
  cleave_status_t status = kernel_program_input(reader->program, dtype, axes, &input, &detail);
  return status == CLEAVE_OK ? end_of_line(reader, word + 1) : placed(reader, status, &detail);
}

static bool read_element(const reader_t *reader, uint32_t word, cleave_dtype_t dtype, uint64_t *out_element) {
  *out_element = 0;
  if (word >= reader->word_count) {
    return false;
  }
  const char *text = reader->words[word];
  char *end = NULL;
  errno = 0;
  if (cpu_dtype_is_float(dtype)) {
    double number = 0;
    bool is_number = read_float(reader, word, &number);
    cpu_convert(CLEAVE_DTYPE_F64, &number, dtype, out_element, 1);
    return is_number;
  }
  if (dtype == CLEAVE_DTYPE_U64) {
    unsigned long long number = strtoull(text, &end, 10);
    *out_element = number;
    return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9';
  }
  int64_t number = (int64_t)strtoll(text, &end, 10);
  int64_t back = 0;
  cpu_convert(CLEAVE_DTYPE_I64, &number, dtype, out_element, 1);
  cpu_convert(dtype, out_element, CLEAVE_DTYPE_I64, &back, 1);
  return errno == 0 && end != text && *end == '\0' && back == number;
}

/* "in0", or "in0 in1 along 2": inputs that follow each other. */
static cleave_status_t read_load(reader_t *reader) {
  uint32_t first = 0;
  uint32_t input = 0;
  uint32_t along = 0;
  uint32_t count = 0;
  uint32_t value = 0;
  uint32_t word = 3;
  for (; read_index(reader, word, "in", &input); word++, count++) {
    first = count == 0 ? input : first;
    if (input != first + count) {
      return expected(reader, "the next input", word);
    }
  }
  if (count == 0) {
    return expected(reader, "an input", word);
  }
  bool joins = is_word(reader, word, "along");
  if (joins && !read_index(reader, ++word, "", &along)) {
    return expected(reader, "an axis", word);
  }
  if (!joins && count > 1) {
    return expected(reader, "'along'", word);
  }
  cleave_message_t detail = {.text = ""};
  cleave_status_t status =
      joins ? kernel_program_join(reader->program, first, count, (int32_t)along, &value, &detail)
            : kernel_program_load(reader->program, first, &value, &detail);
  reader->names[reader->name_count++] = value;
  return status == CLEAVE_OK ? end_of_line(reader, word + (joins ? 1 : 0)) : placed(reader, status, &detail);
}

static cleave_status_t read_value(reader_t *reader) {
  uint32_t name = 0;
  if (!read_index(reader, 0, "%", &name) || name != reader->name_count || name >= KERNEL_MAX_VALUES) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "'%%%u'", (unsigned)reader->name_count);
    return expected(reader, wanted, 0);
  }
  if (!is_word(reader, 1, "=")) {
    return expected(reader, "'='", 1);
  }
  kernel_op_t op = reader->word_count > 2 ? kernel_op_find(reader->words[2]) : KERNEL_OP_COUNT;
  if (op == KERNEL_OP_COUNT) {
    return expected(reader, "an operator", 2);
  }
  const kernel_op_info_t *info = kernel_op_info(op);
  uint32_t word = 3;
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  uint64_t element = 0;
  uint32_t operands[3] = {0};
  double immediates[2] = {0, 0};
  if (op == KERNEL_LOAD) {
    return read_load(reader);
  }
  if ((op == KERNEL_CONSTANT || op == KERNEL_CAST) && !read_dtype(reader, word++, &dtype)) {
    return expected(reader, "a dtype", 3);
  }
  if (op == KERNEL_CONSTANT && !read_element(reader, word++, dtype, &element)) {
    return expected(reader, "a number of that dtype", 4);
  }
  for (uint32_t k = 0; k < info->operand_count; k++, word++) {
    if (!read_operand(reader, word, &operands[k])) {
      return expected(reader, "a value from above", word);
    }
  }
  for (uint32_t k = 0; k < info->immediate_count; k++, word++) {
    if (!read_float(reader, word, &immediates[k])) {
      return expected(reader, "a number", word);
    }
  }
  cleave_message_t detail = {.text = ""};
  uint32_t value = 0;
  cleave_status_t status =
      op == KERNEL_CONSTANT ? kernel_program_constant(reader->program, dtype, &element, &value, &detail)
      : op == KERNEL_CAST   ? kernel_program_cast(reader->program, dtype, operands[0], &value, &detail)
                          : kernel_program_apply(reader->program, op, operands, immediates[0], immediates[1],
                                                 &value, &detail);
  reader->names[reader->name_count++] = value;
  return status == CLEAVE_OK ? end_of_line(reader, word) : placed(reader, status, &detail);
}

static cleave_status_t read_output(reader_t *reader) {
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  uint32_t value = 0;
  if (!read_dtype(reader, 1, &dtype)) {
    return expected(reader, "a dtype", 1);
  }
  if (!is_word(reader, 2, "=") && !is_word(reader, 2, "+=")) {
    return expected(reader, "'=' or '+='", 2);
  }
  if (!read_operand(reader, 3, &value)) {
    return expected(reader, "a value from above", 3);
  }
  cleave_message_t detail = {.text = ""};
  cleave_status_t status =
      kernel_program_output(reader->program, dtype, value, is_word(reader, 2, "+="), &detail);
  return status == CLEAVE_OK ? end_of_line(reader, 4) : placed(reader, status, &detail);
}

static cleave_status_t read_line(reader_t *reader) {
  uint32_t index = 0;
  if (reader->program == NULL) {
    return read_head(reader);
  }
  if (read_index(reader, 0, "in", &index) && index == reader->program->input_count) {
    return read_input(reader);
  }
  if (read_index(reader, 0, "out", &index) && index == reader->program->output_count) {
    return read_output(reader);
  }
  return read_value(reader);
}

cleave_status_t kernel_program_read(const char *text, size_t length, kernel_program_t **out_program,
                                    cleave_message_t *message) {
  *out_program = NULL;
  reader_t *reader = calloc(1, sizeof *reader);
  if (reader == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory to read a program");
  }
  reader->text = text;
  reader->length = length;
  reader->message = message;
  cleave_status_t status = next_line(reader);
  while (status == CLEAVE_OK && reader->word_count > 0) {
    status = read_line(reader);
    status = status == CLEAVE_OK ? next_line(reader) : status;
  }
  if (status == CLEAVE_OK && reader->program == NULL) {
    status = expected(reader, "'kernel rank N reduced N'", 0);
  }
  if (status == CLEAVE_OK) {
    *out_program = reader->program;
  } else {
    kernel_program_destroy(reader->program);
  }
  free(reader);
  return status;
}
