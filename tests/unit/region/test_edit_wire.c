// SPDX-License-Identifier: Apache-2.0
// What the process of an isolated library says of itself and to the editor, as messages: what is read is what
// was written, wrong as it may be, and nothing else can be read from other bytes.
#include "backend/isolate/isolate_internal.h"
#include "backend/region/region_wire.h"
#include "unit.h"

static uint32_t draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Changes some bytes, and perhaps the length. */
static size_t change(unsigned char *bytes, size_t length, uint32_t *state) {
  static const unsigned char EXTREMES[] = {0, 1, 2, 0x7f, 0x80, 0xff};
  uint32_t changes = draw(state) % 4;
  for (uint32_t k = 0; k <= changes; k++) {
    bytes[draw(state) % length] = changes % 2 == 0 ? (unsigned char)draw(state) : EXTREMES[draw(state) % 6];
  }
  return draw(state) % 8 == 0 ? draw(state) % (length + 1) : length;
}

/* ---- steps ---- */

static const int64_t DIMS[2] = {2, 3};
static const float NUMBERS[6] = {1, 2, 3, 4, 5, 6};
static const char *const WORDS[2] = {"a", NULL};

typedef struct step {
  cleave_arena_t arena;
  cleave_new_node_t nodes[2];
  const cleave_tensor_view_t *tensors[5];
  const cleave_attribute_view_t *attribute;
} step_t;

static void go_over(const cleave_edit_wire_t *wire, step_t *step) {
  const char *name = NULL;
  uint32_t node = 3;
  for (int k = 0; k < 2; k++) {
    cleave_edit_wire_node(wire, &step->nodes[k]);
  }
  for (int k = 0; k < 5; k++) {
    cleave_edit_wire_value(wire, &name, &step->tensors[k]);
  }
  cleave_edit_wire_attribute(wire, &node, &step->attribute);
}

static cleave_wire_out_t write_step(void) {
  const cleave_tensor_view_t tensor = {
      .size = sizeof tensor, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS, .data = NUMBERS};
  const cleave_tensor_view_t type = {.size = sizeof type, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS};
  const cleave_tensor_view_t texts = {
      .size = sizeof texts, .dtype = CLEAVE_DTYPE_STRING, .rank = 1, .dims = DIMS, .data = WORDS};
  const cleave_tensor_view_t sparse = {.size = sizeof sparse,
                                       .dtype = CLEAVE_DTYPE_F32,
                                       .rank = 2,
                                       .dims = DIMS,
                                       .data = NUMBERS,
                                       .storage = CLEAVE_STORAGE_CSR};
  const cleave_attribute_view_t attributes[] = {
      {.name = "i", .kind = CLEAVE_ATTRIBUTE_INT, .i = INT64_MIN},
      {.name = "f", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.1},
      {.name = "s", .kind = CLEAVE_ATTRIBUTE_STRING, .s = "text"},
      {.name = "is", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 2, .ints = DIMS},
      {.name = "fs", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 6, .floats = NUMBERS},
      {.name = "ss", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 2, .strings = WORDS},
      {.name = "t", .kind = CLEAVE_ATTRIBUTE_TENSOR, .tensor = &tensor},
      {.name = NULL, .kind = CLEAVE_ATTRIBUTE_TENSOR},
      {.name = "missing", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 9},
      {.name = "long", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 100000, .floats = NUMBERS},
      {.name = "longer", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 100000, .strings = WORDS},
      {.name = "none", .kind = (cleave_attribute_kind_t)77}};
  step_t step = {.nodes = {{.op = "Op",
                            .inputs = (const uint32_t[]){7, 8},
                            .input_count = 2,
                            .attributes = attributes,
                            .attribute_count = sizeof attributes / sizeof attributes[0]},
                           {.input_count = 3, .output_count = 5}},
                 .tensors = {&tensor, &texts, &sparse, NULL, &type},
                 .attribute = &attributes[6]};
  cleave_wire_out_t out = {0};
  go_over(&(cleave_edit_wire_t){.out = &out}, &step);
  ck_assert(!out.failed);
  return out;
}

static bool read_step(const void *data, size_t length, step_t *step) {
  cleave_wire_in_t in = cleave_wire_read(data, length);
  *step = (step_t){0};
  go_over(&(cleave_edit_wire_t){.in = &in, .arena = &step->arena}, step);
  return cleave_wire_is_done(&in);
}

UNIT_TEST(a_step_comes_back_as_wrong_as_it_was) {
  cleave_wire_out_t out = write_step();
  step_t step;
  ck_assert(read_step(out.data, out.length, &step));
  const cleave_attribute_view_t *a = step.nodes[0].attributes;
  ck_assert_uint_eq(step.nodes[0].attribute_count, 12);
  ck_assert(a[0].i == INT64_MIN && a[1].f == 0.1 && strcmp(a[2].s, "text") == 0);
  ck_assert(a[3].count == 2 && a[3].ints[1] == 3 && a[4].count == 6 && a[4].floats[5] == 6.0f);
  ck_assert(a[5].count == 2 && strcmp(a[5].strings[0], "a") == 0 && a[5].strings[1] == NULL);
  ck_assert(a[6].tensor->rank == 2 && ((const float *)a[6].tensor->data)[5] == 6.0f);
  ck_assert(a[7].name == NULL && a[7].tensor == NULL);
  ck_assert(a[8].count == 9 && a[8].ints == NULL);
  ck_assert(a[9].count == 100000 && a[9].floats != NULL);
  ck_assert(a[10].count == 100000 && a[10].strings != NULL);
  ck_assert_int_eq((int)a[11].kind, 77);
  ck_assert_str_eq(((const char *const *)step.tensors[1]->data)[0], "a");
  ck_assert(step.tensors[2]->storage == CLEAVE_STORAGE_CSR && step.tensors[2]->data != NULL);
  ck_assert(step.tensors[3] == NULL && step.tensors[4]->data == NULL);
  ck_assert(step.nodes[0].input_count == 2 && step.nodes[0].inputs[1] == 8);
  ck_assert(step.nodes[1].input_count == 3 && step.nodes[1].inputs == NULL);
  ck_assert(step.nodes[1].op == NULL && step.nodes[1].attributes == NULL && step.nodes[1].output_count == 5);
  ck_assert_str_eq(step.attribute->name, "t");
  cleave_arena_deinit(&step.arena);
  cleave_wire_deinit(&out);
}

/* Looks at everything that an editor would. */
static uint64_t walk_tensor(const cleave_tensor_view_t *tensor) {
  uint64_t sum = 0;
  size_t bytes = 0;
  if (tensor == NULL) {
    return 0;
  }
  for (int32_t d = 0; tensor->dims != NULL && d < tensor->rank; d++) {
    sum += (uint64_t)tensor->dims[d];
  }
  bool is_plain = tensor->storage == CLEAVE_STORAGE_DENSE && tensor->memory == CLEAVE_MEMORY_HOST &&
                  tensor->rank >= 0 && tensor->rank <= CLEAVE_MAX_RANK &&
                  (tensor->rank == 0 || tensor->dims != NULL) && cleave_tensor_view_bytes(tensor, &bytes);
  for (size_t k = 0; is_plain && tensor->data != NULL && k < bytes; k++) {
    if (tensor->dtype != CLEAVE_DTYPE_STRING) {
      sum += ((const unsigned char *)tensor->data)[k];
    } else if (k % sizeof(char *) == 0) {
      const char *text = ((const char *const *)tensor->data)[k / sizeof(char *)];
      sum += text == NULL ? 0 : strlen(text);
    }
  }
  return sum;
}

static uint64_t walk_attribute(const cleave_attribute_view_t *a) {
  uint64_t sum = a->name == NULL ? 0 : strlen(a->name);
  sum += a->s == NULL ? 0 : strlen(a->s);
  for (uint32_t k = 0; k < a->count && a->count <= CLEAVE_EDIT_LIST_LIMIT; k++) {
    sum += a->ints == NULL ? 0 : (uint64_t)a->ints[k];
    sum += a->floats == NULL ? 0 : a->floats[k] > 0.0f;
    sum += a->strings == NULL || a->strings[k] == NULL ? 0 : strlen(a->strings[k]);
  }
  return sum + walk_tensor(a->tensor);
}

UNIT_TEST(steps_with_other_bytes_are_steps_or_refused) {
  cleave_wire_out_t out = write_step();
  uint32_t state = 3;
  uint32_t steps = 0;
  volatile uint64_t sum = 0;
  for (int round = 0; round < 20000; round++) {
    unsigned char *bytes = malloc(out.length);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, out.data, out.length);
    size_t length = change(bytes, out.length, &state);
    unsigned char *exact = malloc(length + (length == 0));
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, bytes, length);
    step_t step;
    if (read_step(exact, length, &step)) {
      steps++;
      const cleave_new_node_t *node = &step.nodes[0];
      for (uint32_t k = 0; node->attributes != NULL && node->attribute_count <= CLEAVE_EDIT_LIST_LIMIT &&
                           k < node->attribute_count;
           k++) {
        sum += walk_attribute(&node->attributes[k]);
      }
      sum += step.attribute == NULL ? 0 : walk_attribute(step.attribute);
      for (int k = 0; k < 5; k++) {
        sum += walk_tensor(step.tensors[k]);
      }
      for (uint32_t k = 0; node->inputs != NULL && k < node->input_count && k < CLEAVE_EDIT_LIST_LIMIT; k++) {
        sum += node->inputs[k];
      }
    }
    ck_assert_uint_le(step.arena.total, 65536 + 64 * length);
    cleave_arena_deinit(&step.arena);
    free(exact);
    free(bytes);
  }
  ck_assert_uint_gt(steps, 1000);
  ck_assert_uint_lt(steps, 19000);
  cleave_wire_deinit(&out);
}

/* ---- tables ---- */

static void put_counts(cleave_wire_out_t *out, uint32_t count, uint32_t told) {
  cleave_wire_put_u32(out, count);
  cleave_wire_put_u32(out, told);
}

static void put_operator(cleave_wire_out_t *out, const char *name) {
  cleave_wire_put_u32(out, 1);
  cleave_wire_put_u64(out, sizeof(cleave_custom_operator_t));
  cleave_wire_put_text(out, "my.domain");
  cleave_wire_put_text(out, name);
  cleave_wire_put_u32(out, 1);
  cleave_wire_put_u32(out, 2);
  cleave_wire_put_text(out, "A B");
  cleave_wire_put_text(out, "C");
  cleave_wire_put_text(out, NULL);
  cleave_wire_put_u32(out, 63);
}

/* What a worker says of a library with two operators (one of them an old struct), and one of all else. */
static cleave_wire_out_t write_table(uint32_t told_passes) {
  cleave_wire_out_t out = {0};
  cleave_wire_put_u64(&out, sizeof(cleave_backend_t));
  cleave_wire_put_u32(&out, CLEAVE_BACKEND_ABI_MAJOR);
  cleave_wire_put_u32(&out, CLEAVE_BACKEND_ABI_MINOR);
  cleave_wire_put_u32(&out, UINT32_MAX);
  cleave_wire_put_text(&out, "name");
  cleave_wire_put_text(&out, "version");
  cleave_wire_put_text(&out, NULL);
  cleave_wire_put_u32(&out, 1);
  cleave_wire_put_u64(&out, sizeof(cleave_backend_extensions_t));
  put_counts(&out, 3, 3);
  put_operator(&out, "First");
  cleave_wire_put_u32(&out, 1);
  cleave_wire_put_u64(&out, 8);
  cleave_wire_put_u32(&out, 0);
  put_counts(&out, 1, 1);
  cleave_wire_put_u32(&out, 1);
  cleave_wire_put_u64(&out, sizeof(cleave_custom_partitioner_t));
  cleave_wire_put_text(&out, "part");
  cleave_wire_put_text(&out, NULL);
  cleave_wire_put_u32(&out, 1);
  put_counts(&out, 5000, told_passes);
  put_counts(&out, 1, 1);
  cleave_wire_put_text(&out, "file.lua");
  put_counts(&out, 1, 1);
  cleave_wire_put_text(&out, "speed");
  return out;
}

static cleave_status_t read_table(const void *data, size_t length, cleave_isolate_t *isolate) {
  cleave_wire_in_t in = cleave_wire_read(data, length);
  *isolate = (cleave_isolate_t){0};
  return cleave_isolate_read_table(isolate, &in);
}

UNIT_TEST(a_table_has_what_the_library_said) {
  cleave_isolate_t *isolate = calloc(1, sizeof *isolate);
  ck_assert_ptr_nonnull(isolate);
  cleave_wire_out_t out = write_table(0);
  ck_assert_int_eq(read_table(out.data, out.length, isolate), CLEAVE_OK);
  const cleave_backend_extensions_t *found = isolate->table.extensions;
  ck_assert_str_eq(isolate->table.name, "name");
  ck_assert(isolate->table.description == NULL && isolate->table.blobs != NULL && isolate->table.adds);
  ck_assert_uint_eq(found->operator_count, 3);
  ck_assert_str_eq(found->operators[0]->name, "First");
  ck_assert(found->operators[0]->execute != NULL && found->operators[0]->attributes == NULL);
  ck_assert(found->operators[1]->size == 8 && found->operators[1]->name == NULL &&
            found->operators[2] == NULL);
  ck_assert(found->partitioners[0]->supported != NULL && found->partitioners[0]->select == NULL);
  ck_assert(found->pass_count == 5000 && found->passes == NULL);
  ck_assert_str_eq(found->rule_files[0], "file.lua");
  ck_assert_int_eq(found->operators[0]->last_version, 2);
  ck_assert_uint_eq(isolate->table.option_key_count, 1);
  ck_assert_str_eq(isolate->table.option_keys[0], "speed");
  cleave_arena_deinit(&isolate->arena);
  cleave_wire_deinit(&out);
  out = write_table(2); /* a list that is shorter than it says */
  ck_assert_int_eq(read_table(out.data, out.length, isolate), CLEAVE_ERROR_FORMAT);
  cleave_arena_deinit(&isolate->arena);
  cleave_wire_deinit(&out);
  free(isolate);
}

static uint64_t walk_extensions(const cleave_backend_extensions_t *found) {
  uint64_t sum = 0;
  for (uint32_t k = 0; found->operators != NULL && found->operator_count <= CLEAVE_MAX_EXTENSIONS &&
                       k < found->operator_count;
       k++) {
    const cleave_custom_operator_t *op = found->operators[k];
    sum += op != NULL && op->size >= sizeof *op && op->name != NULL ? strlen(op->name) : 0;
  }
  for (uint32_t k = 0; found->partitioners != NULL && found->partitioner_count <= CLEAVE_MAX_EXTENSIONS &&
                       k < found->partitioner_count;
       k++) {
    const cleave_custom_partitioner_t *own = found->partitioners[k];
    sum += own != NULL && own->size >= sizeof *own && own->name != NULL ? strlen(own->name) : 0;
  }
  for (uint32_t k = 0; found->rule_files != NULL && k < found->rule_file_count; k++) {
    sum += found->rule_files[k] == NULL ? 0 : strlen(found->rule_files[k]);
  }
  return sum;
}

UNIT_TEST(tables_with_other_bytes_are_tables_or_refused) {
  cleave_isolate_t *isolate = calloc(1, sizeof *isolate);
  cleave_wire_out_t out = write_table(0);
  uint32_t state = 5;
  uint32_t tables = 0;
  volatile uint64_t sum = 0;
  ck_assert_ptr_nonnull(isolate);
  for (int round = 0; round < 20000; round++) {
    unsigned char *bytes = malloc(out.length);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, out.data, out.length);
    size_t length = change(bytes, out.length, &state);
    unsigned char *exact = malloc(length + (length == 0));
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, bytes, length);
    if (read_table(exact, length, isolate) == CLEAVE_OK) {
      tables++;
      sum += isolate->table.extensions == NULL ? 0 : walk_extensions(isolate->table.extensions);
    }
    cleave_arena_deinit(&isolate->arena);
    free(exact);
    free(bytes);
  }
  ck_assert_uint_gt(tables, 1000);
  ck_assert_uint_lt(tables, 19000);
  cleave_wire_deinit(&out);
  free(isolate);
}

UNIT_SUITE("edit_wire")
