// SPDX-License-Identifier: Apache-2.0
/*
 * Reading the texts of test tables: words, numbers, lists, dtypes, attributes. `at` is moved behind what was
 * read, and blanks before it. A slip in a text fails the test.
 */
#ifndef CLEAVE_TESTS_CASE_TEXT_H
#define CLEAVE_TESTS_CASE_TEXT_H

#include "view_builder.h"

void case_text_skip(const char **at);
/* Is this the next character? If so, it is read. */
bool case_text_accept(const char **at, char c);
void case_text_expect(const char **at, char c);
/* Letters, digits, underscores and dots. */
void case_text_word(const char **at, char *word, size_t size);
/* A whole number; -1 for "?". */
int64_t case_text_integer(const char **at);
/* "[1,2,?]"; returns the number of elements, at most `room`. */
uint32_t case_text_list(const char **at, int64_t *list, uint32_t room);

/* f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str, or "?": unknown. */
cleave_dtype_t case_text_dtype(const char **at);
const char *case_text_of_dtype(cleave_dtype_t dtype);

typedef struct case_attribute {
  char name[32];
  cleave_attribute_kind_t kind; /* INT, FLOAT, STRING or INTS; TENSOR: the text goes on behind a '<' */
  int64_t i;
  double f;
  char s[64];
  uint32_t count; /* of ints */
  int64_t ints[2 * CLEAVE_MAX_RANK];
} case_attribute_t;

/* `name=1`, `name=1.5`, `name=[1,2]`, `name='text'` or `name=<`. */
void case_text_attribute(const char **at, case_attribute_t *out);
/* Gives it to a node, unless it is a TENSOR; it must outlive the builder. */
void case_text_set(view_builder_t *builder, uint32_t node, const case_attribute_t *attribute);

#endif /* CLEAVE_TESTS_CASE_TEXT_H */
