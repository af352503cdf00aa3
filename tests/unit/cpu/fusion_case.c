// SPDX-License-Identifier: Apache-2.0
// The small language of fusion_case.h, and comparisons with the reference backend. The parser is for texts
// in tests: it stops the test at the first thing it does not understand.
#include "fusion_case.h"

#include <math.h>

#include "case_text.h"
#include "unit.h"

enum { MAX_VALUES = 128, MAX_NODES = 96, MAX_BLOCKS = 1024, MAX_LINE = 512 };

typedef struct named_value {
  char name[32];
  uint32_t id;
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
} named_value_t;

struct fusion_region {
  view_builder_t *builder;
  bool fused;
  named_value_t values[MAX_VALUES];
  uint32_t value_count;
  void *memory[MAX_BLOCKS]; /* of constants and inputs, and names that the view borrows */
  uint32_t memory_count;
  float *inputs[16];
  uint32_t input_count;
  uint32_t open[MAX_NODES]; /* nodes since the last { */
  uint32_t open_count;
  bool in_fusion;
  const char *attribute; /* of the fusion, which is 1; or NULL */
  uint32_t last[8];
  uint32_t last_count;
  uint32_t seed;
};

/* Uniform in [-1, 1). */
static float next_random(fusion_region_t *region) {
  region->seed = region->seed * 1664525U + 1013904223U;
  return (float)(region->seed >> 8) / 8388608.0F - 1.0F;
}

static size_t count_of(const named_value_t *value) {
  size_t count = 1;
  for (int32_t d = 0; d < value->rank; d++) {
    count *= value->dims[d] > 0 ? (size_t)value->dims[d] : (value->dims[d] < 0 ? 1 : 0);
  }
  return count;
}

static void *keep(fusion_region_t *region, size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  ck_assert_ptr_nonnull(memory);
  ck_assert_uint_lt(region->memory_count, MAX_BLOCKS);
  region->memory[region->memory_count++] = memory;
  return memory;
}

static const char *keep_text(fusion_region_t *region, const char *text) {
  char *copy = keep(region, strlen(text) + 1);
  memcpy(copy, text, strlen(text) + 1);
  return copy;
}

static named_value_t *find(fusion_region_t *region, const char *name) {
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (strcmp(region->values[k].name, name) == 0) {
      return &region->values[k];
    }
  }
  ck_abort_msg("no value '%s'", name);
  return NULL;
}

static named_value_t *read_declaration(fusion_region_t *region, const char **at) {
  ck_assert_uint_lt(region->value_count, MAX_VALUES);
  named_value_t *value = &region->values[region->value_count++];
  case_text_word(at, value->name, sizeof(value->name));
  case_text_skip(at);
  value->dtype = **at == '[' ? CLEAVE_DTYPE_F32 : case_text_dtype(at);
  if (strncmp(*at, "[*]", 3) == 0) {
    value->rank = -1;
    *at += 3;
  } else {
    value->rank = (int32_t)case_text_list(at, value->dims, CLEAVE_MAX_RANK);
  }
  return value;
}

static void fill(fusion_region_t *region, float *data, size_t count, bool positive) {
  for (size_t k = 0; k < count; k++) {
    float x = next_random(region);
    data[k] = positive ? fabsf(x) + 0.5F : x;
  }
}

static void read_numbers(fusion_region_t *region, const char *at, const named_value_t *value, void *data) {
  size_t count = count_of(value);
  double last = 0;
  (void)region;
  for (size_t k = 0; k < count; k++) {
    char *end = NULL;
    double x = strtod(at, &end);
    last = end != at ? x : last;
    at = end;
    if (value->dtype == CLEAVE_DTYPE_I64) {
      ((int64_t *)data)[k] = (int64_t)last;
    } else if (value->dtype == CLEAVE_DTYPE_I8 || value->dtype == CLEAVE_DTYPE_U8) {
      ((uint8_t *)data)[k] = (uint8_t)(int)last;
    } else {
      ((float *)data)[k] = (float)last;
    }
  }
}

static void read_attribute(fusion_region_t *region, uint32_t node, const char **at) {
  case_attribute_t *attribute = keep(region, sizeof *attribute);
  case_text_attribute(at, attribute);
  case_text_set(region->builder, node, attribute);
}

static void read_node(fusion_region_t *region, const char *at, const uint32_t *outputs, uint32_t count) {
  char op[40];
  char name[40];
  uint32_t inputs[16];
  uint32_t input_count = 0;
  case_text_word(&at, op, sizeof(op));
  case_text_expect(&at, '(');
  while (!case_text_accept(&at, ')')) {
    ck_assert_uint_lt(input_count, 16);
    if (case_text_accept(&at, '-')) {
      inputs[input_count++] = CLEAVE_INDEX_NONE;
    } else {
      case_text_word(&at, name, sizeof(name));
      inputs[input_count++] = find(region, name)->id;
    }
    (void)case_text_accept(&at, ',');
  }
  uint32_t node =
      view_builder_node(region->builder, keep_text(region, op), input_count, inputs, count, outputs);
  for (case_text_skip(&at); *at != '\0'; case_text_skip(&at)) {
    read_attribute(region, node, &at);
  }
  if (region->in_fusion) {
    region->open[region->open_count++] = node;
  }
  memcpy(region->last, outputs, count * sizeof(uint32_t));
  region->last_count = count;
}

static void read_data(fusion_region_t *region, const char *at, named_value_t *value) {
  size_t count = count_of(value);
  bool input = strncmp(at, "input", 5) == 0;
  size_t size = cleave_dtype_size(value->dtype);
  void *data =
      keep(region, count * (size > sizeof(float) ? size : sizeof(float))); /* random ones are floats */
  bool positive = strncmp(at, "positive", 8) == 0;
  if (input || positive || strncmp(at, "random", 6) == 0) {
    fill(region, data, count, positive);
  } else {
    read_numbers(region, at, value, data);
  }
  if (input) {
    ck_assert_uint_lt(region->input_count, 16);
    region->inputs[region->input_count++] = data;
    value->id = view_builder_value(region->builder, value->dtype, value->rank, value->dims);
  } else {
    value->id = view_builder_constant(region->builder, value->dtype, value->rank, value->dims, data);
  }
}

static void read_line(fusion_region_t *region, const char *at) {
  char word[32];
  const char *start = at;
  if (case_text_accept(&at, '{')) {
    region->in_fusion = region->fused;
    region->open_count = 0;
    region->attribute = strstr(at, "kernel") != NULL     ? "kernel"
                        : strstr(at, "integers") != NULL ? "integers"
                                                         : NULL;
    return;
  }
  if (case_text_accept(&at, '}')) {
    if (region->in_fusion) {
      uint32_t fusion = view_builder_fusion(region->builder, "fused", region->open_count, region->open, NULL);
      if (region->attribute != NULL) {
        view_builder_fusion_int(region->builder, fusion, region->attribute, 1);
      }
    }
    region->in_fusion = false;
    return;
  }
  if (strncmp(at, "output ", 7) == 0) {
    at += 7;
    case_text_word(&at, word, sizeof(word));
    view_builder_output(region->builder, find(region, word)->id);
    return;
  }
  named_value_t *declared[8];
  uint32_t count = 0;
  do {
    ck_assert_uint_lt(count, 8);
    declared[count++] = read_declaration(region, &at);
  } while (case_text_accept(&at, '&'));
  case_text_expect(&at, '=');
  case_text_skip(&at);
  const char *open = strchr(at, '(');
  if (open == NULL) {
    ck_assert_msg(count == 1, "one value per line of data: '%s'", start);
    read_data(region, at, declared[0]);
    return;
  }
  uint32_t outputs[8];
  for (uint32_t k = 0; k < count; k++) {
    declared[k]->id =
        view_builder_value(region->builder, declared[k]->dtype, declared[k]->rank, declared[k]->dims);
    outputs[k] = declared[k]->id;
  }
  read_node(region, at, outputs, count);
}

fusion_region_t *fusion_region_create(const char *text, bool fused) {
  fusion_region_t *region = calloc(1, sizeof(*region));
  ck_assert_ptr_nonnull(region);
  region->builder = view_builder_create();
  region->fused = fused;
  region->seed = 12345;
  while (*text != '\0') {
    char line[MAX_LINE];
    size_t length = strcspn(text, "\n");
    ck_assert_uint_lt(length, sizeof(line));
    memcpy(line, text, length);
    line[length] = '\0';
    const char *at = line;
    case_text_skip(&at);
    if (*at != '\0') {
      read_line(region, at);
    }
    text += length + (text[length] == '\n' ? 1 : 0);
  }
  for (uint32_t k = 0; k < region->last_count; k++) {
    view_builder_output(region->builder, region->last[k]);
  }
  return region;
}

void fusion_region_destroy(fusion_region_t *region) {
  view_builder_destroy(region->builder);
  for (uint32_t k = 0; k < region->memory_count; k++) {
    free(region->memory[k]);
  }
  free(region);
}

const cleave_region_view_t *fusion_region_view(fusion_region_t *region) {
  return view_builder_region(region->builder);
}

const float *fusion_region_input(const fusion_region_t *region, uint32_t index) {
  return region->inputs[index];
}

void fusion_region_compile(fusion_region_t *region, const op_backend_t *backend, int32_t threads,
                           view_program_t *program) {
  const cleave_region_view_t *view = fusion_region_view(region);
  cleave_status_t status = view_program_create(program, backend->backend, backend->state, view, threads);
  ck_assert_msg(status == CLEAVE_OK, "compile: %s", program->message.text);
  for (uint32_t k = 0; k < view->input_count; k++) {
    const cleave_tensor_view_t *tensor = &view->values[view->inputs[k]].tensor;
    view_program_input(program, k, tensor->rank, tensor->dims, region->inputs[k]);
  }
}

static void compare(const view_program_t *actual, const view_program_t *expected, double tolerance,
                    const char *text, bool fused) {
  ck_assert_uint_eq(actual->output_count, expected->output_count);
  for (uint32_t o = 0; o < expected->output_count; o++) {
    const float *a = actual->outputs[o].data;
    const float *e = expected->outputs[o].data;
    int64_t count = cleave_view_element_count(&expected->outputs[o]);
    double largest = 1e-2;
    ck_assert_int_eq(cleave_view_element_count(&actual->outputs[o]), count);
    for (int64_t k = 0; k < count; k++) {
      largest = fmax(largest, fabs((double)e[k]));
    }
    for (int64_t k = 0; k < count; k++) {
      // An assertion writes to a pipe also if it holds: too slow for each element.
      if (!(fabs((double)a[k] - (double)e[k]) <= tolerance * largest)) {
        ck_abort_msg("%s: output %u[%lld]: expected %.7g, found %.7g in\n%s", fused ? "fused" : "single",
                     (unsigned)o, (long long)k, (double)e[k], (double)a[k], text);
      }
    }
  }
}

/* Every fusion alone, as the partitioner asks. */
static void check_supported(fusion_region_t *region, const op_backend_t *backend, const char *text) {
  cleave_message_t message = {.text = ""};
  cleave_status_t status = backend->backend->supports(backend->state, fusion_region_view(region), &message);
  ck_assert_msg(status == CLEAVE_OK, "refused: %s in\n%s", message.text, text);
}

static void run_moved(fusion_region_t *region, view_program_t *program) {
  const cleave_region_view_t *view = fusion_region_view(region);
  float *copies[16];
  for (uint32_t k = 0; k < view->input_count; k++) {
    const cleave_tensor_view_t *tensor = &view->values[view->inputs[k]].tensor;
    size_t bytes = (size_t)cleave_view_element_count(tensor) * sizeof(float);
    copies[k] = malloc(bytes);
    ck_assert_ptr_nonnull(copies[k]);
    memcpy(copies[k], region->inputs[k], bytes);
    view_program_input(program, k, tensor->rank, tensor->dims, copies[k]);
  }
  cleave_status_t status = view_program_run(program);
  ck_assert_msg(status == CLEAVE_OK, "run: %s", program->message.text);
  for (uint32_t k = 0; k < view->input_count; k++) {
    free(copies[k]);
  }
}

void fusion_case(const op_backend_t *backend, const char *text, double tolerance) {
  op_backend_t cpu = op_backend_cpu();
  fusion_region_t *plain = fusion_region_create(text, false);
  view_program_t expected;
  fusion_region_compile(plain, &cpu, 1, &expected);
  ck_assert_msg(view_program_run(&expected) == CLEAVE_OK, "reference: %s", expected.message.text);
  for (int variant = 0; variant < 4; variant++) {
    bool fused = variant % 2 == 0;
    fusion_region_t *region = fusion_region_create(text, fused);
    view_program_t program;
    if (fused) {
      check_supported(region, backend, text);
    } else {
      cleave_message_t message = {.text = ""};
      if (backend->backend->supports(backend->state, fusion_region_view(region), &message) != CLEAVE_OK) {
        // A node that runs inside a fusion only.
        fusion_region_destroy(region);
        continue;
      }
    }
    fusion_region_compile(region, backend, 1 + variant / 2, &program);
    ck_assert_msg(view_program_run(&program) == CLEAVE_OK, "run: %s", program.message.text);
    compare(&program, &expected, tolerance, text, fused);
    run_moved(region, &program);
    compare(&program, &expected, tolerance, text, fused);
    view_program_destroy(&program);
    fusion_region_destroy(region);
  }
  view_program_destroy(&expected);
  fusion_region_destroy(plain);
  op_backend_destroy(&cpu);
}

void fusion_case_refused(const op_backend_t *backend, const char *text, const char *reason) {
  fusion_region_t *region = fusion_region_create(text, true);
  cleave_message_t message = {.text = ""};
  cleave_status_t status = backend->backend->supports(backend->state, fusion_region_view(region), &message);
  ck_assert_int_eq(status, CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(message.text, reason);
  fusion_region_destroy(region);
}
