// SPDX-License-Identifier: Apache-2.0
// One character ahead is enough for all that tables say.
#include "case_text.h"

#include <ctype.h>

#include "unit.h"

void case_text_skip(const char **at) {
  while (**at == ' ' || **at == '\n') {
    (*at)++;
  }
}

bool case_text_accept(const char **at, char c) {
  case_text_skip(at);
  if (**at != c) {
    return false;
  }
  (*at)++;
  return true;
}

void case_text_expect(const char **at, char c) {
  ck_assert_msg(case_text_accept(at, c), "expected '%c' at '%s'", c, *at);
}

void case_text_word(const char **at, char *word, size_t size) {
  size_t length = 0;
  case_text_skip(at);
  while ((isalnum((unsigned char)**at) || **at == '_' || **at == '.') && length + 1 < size) {
    word[length++] = *(*at)++;
  }
  word[length] = '\0';
  ck_assert_msg(length > 0, "expected a name at '%s'", *at);
}

int64_t case_text_integer(const char **at) {
  char *end = NULL;
  if (case_text_accept(at, '?')) {
    return -1;
  }
  long long number = strtoll(*at, &end, 10);
  ck_assert_msg(end != *at, "expected a number at '%s'", *at);
  *at = end;
  return number;
}

uint32_t case_text_list(const char **at, int64_t *list, uint32_t room) {
  uint32_t count = 0;
  case_text_expect(at, '[');
  while (!case_text_accept(at, ']')) {
    ck_assert_uint_lt(count, room);
    list[count++] = case_text_integer(at);
    (void)case_text_accept(at, ',');
  }
  return count;
}

/* ---- dtypes ---- */

static const struct {
  const char *text;
  cleave_dtype_t dtype;
} dtypes[] = {
    {"bool", CLEAVE_DTYPE_BOOL}, {"bf16", CLEAVE_DTYPE_BF16}, {"str", CLEAVE_DTYPE_STRING},
    {"f32", CLEAVE_DTYPE_F32},   {"f64", CLEAVE_DTYPE_F64},   {"f16", CLEAVE_DTYPE_F16},
    {"i16", CLEAVE_DTYPE_I16},   {"i32", CLEAVE_DTYPE_I32},   {"i64", CLEAVE_DTYPE_I64},
    {"u16", CLEAVE_DTYPE_U16},   {"u32", CLEAVE_DTYPE_U32},   {"u64", CLEAVE_DTYPE_U64},
    {"i8", CLEAVE_DTYPE_I8},     {"u8", CLEAVE_DTYPE_U8},     {"?", CLEAVE_DTYPE_UNKNOWN},
};

cleave_dtype_t case_text_dtype(const char **at) {
  case_text_skip(at);
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    size_t length = strlen(dtypes[k].text);
    if (strncmp(*at, dtypes[k].text, length) == 0) {
      *at += length;
      return dtypes[k].dtype;
    }
  }
  ck_abort_msg("no dtype at '%s'", *at);
  return CLEAVE_DTYPE_UNKNOWN;
}

const char *case_text_of_dtype(cleave_dtype_t dtype) {
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    if (dtypes[k].dtype == dtype) {
      return dtypes[k].text;
    }
  }
  return "another dtype";
}

/* ---- attributes ---- */

static void read_number(const char **at, case_attribute_t *out) {
  size_t length = strcspn(*at, " ");
  ck_assert_msg(length > 0, "no value of attribute '%s'", out->name);
  bool is_float = memchr(*at, '.', length) != NULL || memchr(*at, 'e', length) != NULL;
  out->kind = is_float ? CLEAVE_ATTRIBUTE_FLOAT : CLEAVE_ATTRIBUTE_INT;
  out->f = strtod(*at, NULL);
  out->i = is_float ? 0 : strtoll(*at, NULL, 10);
  *at += length;
}

void case_text_attribute(const char **at, case_attribute_t *out) {
  *out = (case_attribute_t){.kind = CLEAVE_ATTRIBUTE_TENSOR};
  case_text_word(at, out->name, sizeof out->name);
  case_text_expect(at, '=');
  if (case_text_accept(at, '\'')) {
    size_t length = strcspn(*at, "'");
    ck_assert_msg(length < sizeof out->s && (*at)[length] == '\'', "no end of the text '%s'", *at);
    memcpy(out->s, *at, length);
    *at += length + 1;
    out->kind = CLEAVE_ATTRIBUTE_STRING;
  } else if (**at == '[') {
    out->count = case_text_list(at, out->ints, 2 * CLEAVE_MAX_RANK);
    out->kind = CLEAVE_ATTRIBUTE_INTS;
  } else if (!case_text_accept(at, '<')) {
    read_number(at, out);
  }
}

void case_text_set(view_builder_t *builder, uint32_t node, const case_attribute_t *attribute) {
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: view_builder_int(builder, node, attribute->name, attribute->i); break;
    case CLEAVE_ATTRIBUTE_FLOAT: view_builder_float(builder, node, attribute->name, attribute->f); break;
    case CLEAVE_ATTRIBUTE_STRING: view_builder_string(builder, node, attribute->name, attribute->s); break;
    case CLEAVE_ATTRIBUTE_INTS:
      view_builder_ints(builder, node, attribute->name, attribute->count, attribute->ints);
      break;
    default: break;
  }
}
