// SPDX-License-Identifier: Apache-2.0
// Operator tests from text. Tensors are parsed into fixed memory of the case; a slip in the text fails the
// test.
#include "op_case.h"

#include <math.h>

#include "case_text.h"
#include "unit.h"

const cleave_backend_t *cleave_backend_cpu(uint32_t abi_major, uint32_t abi_minor, cleave_message_t *message);

enum { MAX_TENSORS = 16, MAX_ATTRIBUTES = 16 };

typedef struct text_tensor {
  bool is_absent;
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count;
  unsigned char *memory; /* one byte more than needed, so that it can be shifted */
} text_tensor_t;

typedef struct text_case {
  const char *op;
  case_attribute_t attributes[MAX_ATTRIBUTES];
  uint32_t input_count;
  uint32_t output_count;
  text_tensor_t inputs[MAX_TENSORS];
  text_tensor_t outputs[MAX_TENSORS];
  text_tensor_t attribute_tensors[MAX_ATTRIBUTES];
  uint32_t attribute_tensor_count;
  char *strings[64];
  uint32_t string_count;
  bool gives_shapes; /* outputs have their shapes when running, also where they are unknown before */
} text_case_t;

op_backend_t op_backend_cpu(void) {
  cleave_message_t message = {.text = ""};
  op_backend_t result = {
      .backend = cleave_backend_cpu(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, &message)};
  ck_assert_ptr_nonnull(result.backend);
  ck_assert_int_eq(result.backend->initialise(view_builder_host(), &result.state, &message), CLEAVE_OK);
  return result;
}

void op_backend_destroy(op_backend_t *backend) {
  backend->backend->destroy(backend->state);
}

/* Half and bfloat values in tests are exact, so that cutting off bits is enough. */
static uint16_t short_bits(cleave_dtype_t dtype, double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (dtype == CLEAVE_DTYPE_BF16) {
    return (uint16_t)(bits >> 16);
  }
  uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t exponent = bits >> 23 & 0xffu;
  uint32_t fraction = bits >> 13 & 0x3ffu;
  uint32_t half = exponent < 113    ? (uint32_t)(fabs(value) * 0x1p24)
                  : exponent == 255 ? 0x7c00u | (fraction != 0 ? 0x200u : 0)
                                    : (exponent - 112) << 10 | fraction;
  return (uint16_t)(sign | half);
}

static void store_element(text_case_t *own, text_tensor_t *tensor, int64_t index, const char *word) {
  unsigned char *at = tensor->memory + (size_t)index * cleave_dtype_size(tensor->dtype);
  double number = strtod(word, NULL);
  int64_t integer = strtoll(word, NULL, 10);
  uint64_t natural = strtoull(word, NULL, 10);
  float single = strtof(word, NULL);
  uint16_t half = short_bits(tensor->dtype, number);
  switch (tensor->dtype) {
    case CLEAVE_DTYPE_F32: memcpy(at, &single, 4); break;
    case CLEAVE_DTYPE_F64: memcpy(at, &number, 8); break;
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: memcpy(at, &half, 2); break;
    case CLEAVE_DTYPE_STRING: {
      ck_assert_uint_lt(own->string_count, 64);
      char *copy = malloc(strlen(word) + 1);
      ck_assert_ptr_nonnull(copy);
      memcpy(copy, word, strlen(word) + 1);
      own->strings[own->string_count++] = copy;
      memcpy(at, &copy, sizeof copy);
      break;
    }
    case CLEAVE_DTYPE_U64: memcpy(at, &natural, 8); break;
    default: memcpy(at, &integer, cleave_dtype_size(tensor->dtype)); break; /* little-endian */
  }
}

static void parse_tensor(text_case_t *own, const char **at, text_tensor_t *tensor) {
  *tensor = (text_tensor_t){.count = 1};
  if (case_text_accept(at, '-')) {
    tensor->is_absent = true;
    return;
  }
  tensor->dtype = case_text_dtype(at);
  tensor->rank = (int32_t)case_text_list(at, tensor->dims, CLEAVE_MAX_RANK);
  for (int32_t d = 0; d < tensor->rank; d++) {
    tensor->count *= tensor->dims[d];
  }
  size_t size = cleave_dtype_size(tensor->dtype);
  tensor->memory = aligned_alloc(64, ((size_t)tensor->count * size + 128) / 64 * 64);
  ck_assert_ptr_nonnull(tensor->memory);
  int64_t given = 0;
  for (case_text_skip(at); **at != '\0' && **at != ';' && **at != '>'; case_text_skip(at)) {
    char word[64];
    size_t length = strcspn(*at, " \n;>");
    ck_assert_uint_lt(length, sizeof word);
    memcpy(word, *at, length);
    word[length] = '\0';
    ck_assert_msg(given < tensor->count, "more than %lld elements", (long long)tensor->count);
    store_element(own, tensor, given++, word);
    *at += length;
  }
  for (int64_t k = 1; given == 1 && k < tensor->count; k++) {
    memcpy(tensor->memory + (size_t)k * size, tensor->memory, size);
  }
  ck_assert_msg(given == tensor->count || given == 1, "%lld elements, expected %lld", (long long)given,
                (long long)tensor->count);
}

static uint32_t parse_list(text_case_t *own, const char *text, text_tensor_t *tensors) {
  uint32_t count = 0;
  for (case_text_skip(&text); *text != '\0'; case_text_skip(&text)) {
    ck_assert_uint_lt(count, MAX_TENSORS);
    parse_tensor(own, &text, &tensors[count++]);
    case_text_skip(&text);
    ck_assert_msg(*text == '\0' || case_text_accept(&text, ';'), "unexpected '%s'", text);
  }
  return count;
}

static void add_attributes(text_case_t *own, view_builder_t *builder, uint32_t node, const char *text) {
  uint32_t count = 0;
  own->attribute_tensor_count = 0;
  for (case_text_skip(&text); *text != '\0'; case_text_skip(&text)) {
    ck_assert_uint_lt(count, MAX_ATTRIBUTES);
    case_attribute_t *attribute = &own->attributes[count++];
    case_text_attribute(&text, attribute);
    case_text_set(builder, node, attribute);
    if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
      text_tensor_t *tensor = &own->attribute_tensors[own->attribute_tensor_count++];
      parse_tensor(own, &text, tensor);
      case_text_expect(&text, '>');
      view_builder_tensor(builder, node, attribute->name, tensor->dtype, tensor->rank, tensor->dims,
                          tensor->memory);
    }
  }
}

static void free_tensors(text_tensor_t *tensors, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    free(tensors[k].memory);
  }
}

typedef enum variant { KNOWN, UNKNOWN, CONSTANTS, THREADS, INPLACE, VARIANTS } variant_t;

static const char *const variant_names[] = {"known shapes", "unknown shapes", "constants", "threads",
                                            "in place"};

static uint32_t add_value(view_builder_t *builder, const text_tensor_t *tensor, variant_t variant) {
  static const int64_t unknown[CLEAVE_MAX_RANK] = {-1, -1, -1, -1, -1, -1, -1, -1};
  if (tensor->is_absent) {
    return CLEAVE_INDEX_NONE;
  }
  return view_builder_value(builder, tensor->dtype, tensor->rank,
                            variant == UNKNOWN ? unknown : tensor->dims);
}

static double read_number(cleave_dtype_t dtype, const unsigned char *at) {
  float single;
  double wide;
  uint16_t bits;
  switch (dtype) {
    case CLEAVE_DTYPE_F32: memcpy(&single, at, 4); return (double)single;
    case CLEAVE_DTYPE_F64: memcpy(&wide, at, 8); return wide;
    default: memcpy(&bits, at, 2); return bits;
  }
}

static void compare(const text_case_t *own, const char *variant, uint32_t output,
                    const text_tensor_t *expected, const cleave_tensor_view_t *found) {
  ck_assert_msg(found->rank == expected->rank, "%s (%s): output %u: rank %d, expected %d", own->op, variant,
                output, (int)found->rank, (int)expected->rank);
  for (int32_t d = 0; d < expected->rank; d++) {
    ck_assert_msg(found->dims[d] == expected->dims[d], "%s (%s): output %u: dim %d is %lld, expected %lld",
                  own->op, variant, output, (int)d, (long long)found->dims[d], (long long)expected->dims[d]);
  }
  size_t size = cleave_dtype_size(expected->dtype);
  bool is_float = expected->dtype == CLEAVE_DTYPE_F32 || expected->dtype == CLEAVE_DTYPE_F64;
  for (int64_t k = 0; k < expected->count; k++) {
    const unsigned char *want = expected->memory + (size_t)k * size;
    const unsigned char *have = (const unsigned char *)found->data + (size_t)k * size;
    bool same = memcmp(want, have, size) == 0;
    if (expected->dtype == CLEAVE_DTYPE_STRING) {
      const char *texts[2];
      memcpy(&texts[0], want, sizeof texts[0]);
      memcpy(&texts[1], have, sizeof texts[1]);
      same = strcmp(texts[0], texts[1]) == 0;
    } else if (is_float && !same) {
      double x = read_number(expected->dtype, want);
      double y = read_number(expected->dtype, have);
      same = (isnan(x) && isnan(y)) || x == y || (isfinite(x) && fabs(x - y) <= 1e-6 + 2e-6 * fabs(x));
    }
    double x = is_float ? read_number(expected->dtype, want) : 0.0;
    double y = is_float ? read_number(expected->dtype, have) : 0.0;
    int64_t want_bits = 0;
    int64_t have_bits = 0;
    memcpy(&want_bits, want, size);
    memcpy(&have_bits, have, size);
    ck_assert_msg(same, "%s (%s): output %u, element %lld: %.9g (%lld), expected %.9g (%lld)", own->op,
                  variant, output, (long long)k, y, (long long)have_bits, x, (long long)want_bits);
  }
}

/* Lets output and input of the first pair that the program offers share memory; false where it offers none.
 */
static bool share_memory(const text_case_t *own, view_program_t *program, void **out_memory) {
  const cleave_program_info_t *info = program->backend->info(program->program);
  if (info->inplace_count == 0) {
    return false;
  }
  cleave_inplace_pair_t pair = info->inplace[0];
  cleave_tensor_view_t *input = &program->inputs[pair.input];
  size_t bytes = (size_t)cleave_view_element_count(input) * cleave_dtype_size(input->dtype);
  (void)own;
  *out_memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
  ck_assert_ptr_nonnull(*out_memory);
  memcpy(*out_memory, input->data, bytes);
  input->data = *out_memory;
  program->outputs[pair.output].data = *out_memory;
  return true;
}

/* Runs one variant. On success compares, unless `wanted` is a failure. */
static void run_variant(text_case_t *own, const op_backend_t *backend, const char *attributes,
                        variant_t variant, cleave_status_t wanted, const char *part) {
  view_builder_t *builder = view_builder_create();
  uint32_t inputs[MAX_TENSORS];
  uint32_t outputs[MAX_TENSORS];
  unsigned char *shifted[MAX_TENSORS] = {NULL};
  for (uint32_t k = 0; k < own->input_count; k++) {
    const text_tensor_t *tensor = &own->inputs[k];
    if (variant == CONSTANTS && !tensor->is_absent) {
      size_t bytes = (size_t)tensor->count * cleave_dtype_size(tensor->dtype);
      shifted[k] = malloc(bytes + 1);
      ck_assert_ptr_nonnull(shifted[k]);
      memcpy(shifted[k] + 1, tensor->memory, bytes);
      inputs[k] = view_builder_constant(builder, tensor->dtype, tensor->rank, tensor->dims, shifted[k] + 1);
    } else {
      inputs[k] = add_value(builder, tensor, variant);
    }
  }
  for (uint32_t k = 0; k < own->output_count; k++) {
    outputs[k] = add_value(builder, &own->outputs[k], variant);
  }
  uint32_t node = view_builder_node(builder, own->op, own->input_count, inputs, own->output_count, outputs);
  for (uint32_t k = 0; k < own->output_count; k++) {
    if (outputs[k] != CLEAVE_INDEX_NONE) {
      view_builder_output(builder, outputs[k]);
    }
  }
  add_attributes(own, builder, node, attributes);

  view_program_t program;
  void *shared = NULL;
  cleave_status_t status = view_program_create(&program, backend->backend, backend->state,
                                               view_builder_region(builder), variant == THREADS ? 3 : 1);
  bool is_compiled = status == CLEAVE_OK;
  uint32_t next = 0;
  for (uint32_t k = 0; is_compiled && variant == UNKNOWN && own->gives_shapes && k < own->output_count; k++) {
    if (!own->outputs[k].is_absent) {
      memcpy(program.output_dims[next], own->outputs[k].dims, sizeof program.output_dims[next]);
      program.outputs[next].dims = program.output_dims[next];
      program.outputs[next++].rank = own->outputs[k].rank;
    }
  }
  next = 0;
  for (uint32_t k = 0; is_compiled && variant != CONSTANTS && k < own->input_count; k++) {
    if (!own->inputs[k].is_absent) {
      view_program_input(&program, next++, own->inputs[k].rank, own->inputs[k].dims, own->inputs[k].memory);
    }
  }
  bool is_offered = variant != INPLACE || (is_compiled && share_memory(own, &program, &shared));
  if (is_compiled && is_offered) {
    status = view_program_run(&program);
  }
  if (is_offered) {
    ck_assert_msg(status == wanted, "%s (%s): status %d, expected %d: %s", own->op, variant_names[variant],
                  (int)status, (int)wanted, status == CLEAVE_OK ? "" : program.message.text);
    ck_assert_msg(status == CLEAVE_OK || strstr(program.message.text, part) != NULL, "'%s' is not in '%s'",
                  part, program.message.text);
  }
  next = 0;
  for (uint32_t k = 0; is_offered && status == CLEAVE_OK && k < own->output_count; k++) {
    if (!own->outputs[k].is_absent) {
      compare(own, variant_names[variant], k, &own->outputs[k], &program.outputs[next++]);
    }
  }
  if (is_compiled) {
    view_program_destroy(&program);
  }
  free_tensors(own->attribute_tensors, own->attribute_tensor_count);
  for (uint32_t k = 0; k < own->input_count; k++) {
    free(shifted[k]);
  }
  free(shared);
  view_builder_destroy(builder);
}

static void run_case(const op_backend_t *backend, const char *op, const char *inputs, const char *attributes,
                     const char *expected, bool gives_shapes, cleave_status_t status, const char *part) {
  text_case_t own = {.op = op, .gives_shapes = gives_shapes};
  own.input_count = parse_list(&own, inputs, own.inputs);
  own.output_count = parse_list(&own, expected, own.outputs);
  for (variant_t variant = KNOWN; variant < VARIANTS; variant++) {
    if (status == CLEAVE_OK || variant == KNOWN || variant == CONSTANTS) {
      run_variant(&own, backend, attributes, variant, status, part);
    }
  }
  free_tensors(own.inputs, own.input_count);
  free_tensors(own.outputs, own.output_count);
  for (uint32_t k = 0; k < own.string_count; k++) {
    free(own.strings[k]);
  }
}

void op_case(const op_backend_t *backend, const char *op, const char *inputs, const char *attributes,
             const char *expected) {
  run_case(backend, op, inputs, attributes, expected, false, CLEAVE_OK, "");
}

void op_case_with_shapes(const op_backend_t *backend, const char *op, const char *inputs,
                         const char *attributes, const char *expected) {
  run_case(backend, op, inputs, attributes, expected, true, CLEAVE_OK, "");
}

void op_case_fails(const op_backend_t *backend, const char *op, const char *inputs, const char *attributes,
                   const char *expected, cleave_status_t status, const char *part) {
  run_case(backend, op, inputs, attributes, expected, false, status, part);
}
