// SPDX-License-Identifier: Apache-2.0
// Tensors, programs and settings of the mirror library, for its tests.
#include "mirror_case.h"

#include <stdlib.h>

#include "unit.h"

enum { MOST = 1 << 20 };

mirror_case_t mirror_case_open(void) {
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_load(NULL, MIRROR_LIBRARY, NULL, e));
  unit_ok(cleave_registry_find(NULL, "mirror", &handle, e));
  mirror_case_t c = {.backend = handle->backend, .devices = handle->backend->devices, .state = handle->state};
  ck_assert_ptr_nonnull(c.devices);
  ck_assert_int_eq(mirror_case_set(&c, "host_memory", "refuse"), CLEAVE_OK);
  return c;
}

cleave_status_t mirror_case_set(mirror_case_t *c, const char *key, const char *value) {
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  return c->backend->configure(c->state, &(cleave_key_value_t){.key = key, .value = value}, 1, &answers,
                               &count, &c->message);
}

int64_t mirror_case_ask(mirror_case_t *c, const char *key) {
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  mirror_ok(*c, c->backend->configure(c->state, &(cleave_key_value_t){.key = key}, 1, &answers, &count,
                                      &c->message));
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(answers[0].key, key);
  char *end = NULL;
  long long number = strtoll(answers[0].value, &end, 10);
  return *end == '\0' && end != answers[0].value ? number : -1;
}

void mirror_case_tensor(mirror_tensor_t *tensor, uint32_t device, int64_t count, const void *data) {
  tensor->dims[0] = count;
  tensor->view =
      (cleave_tensor_view_t){.size = sizeof tensor->view,
                             .dtype = CLEAVE_DTYPE_F32,
                             .rank = 1,
                             .dims = tensor->dims,
                             .data = data,
                             .memory = device == CLEAVE_INDEX_NONE ? CLEAVE_MEMORY_HOST : device + 1};
}

void mirror_case_upload(mirror_case_t *c, mirror_tensor_t *tensor, uint32_t device, int64_t count,
                        const float *values) {
  void *memory = NULL;
  mirror_tensor_t host;
  mirror_ok(*c, c->devices->alloc(c->state, device, (size_t)count * sizeof(float), &memory, &c->message));
  mirror_case_tensor(tensor, device, count, memory);
  mirror_case_tensor(&host, CLEAVE_INDEX_NONE, count, values);
  mirror_ok(*c, c->devices->copy_to(c->state, device, &tensor->view, &host.view, NULL, &c->message));
}

void mirror_case_download(mirror_case_t *c, const mirror_tensor_t *tensor, float *values) {
  mirror_tensor_t host;
  mirror_case_tensor(&host, CLEAVE_INDEX_NONE, tensor->dims[0], values);
  mirror_ok(*c, c->devices->copy_from(c->state, tensor->view.memory - 1, &host.view, &tensor->view, NULL,
                                      &c->message));
}

void mirror_case_expect(mirror_case_t *c, const mirror_tensor_t *tensor, const float *values) {
  float *found = calloc((size_t)tensor->dims[0] + 1, sizeof *found);
  ck_assert_ptr_nonnull(found);
  mirror_case_download(c, tensor, found);
  for (int64_t k = 0; k < tensor->dims[0]; k++) {
    ck_assert_msg(found[k] == values[k], "element %lld is %g, expected %g", (long long)k, (double)found[k],
                  (double)values[k]);
  }
  free(found);
}

const cleave_region_view_t *mirror_case_region(int64_t count) {
  static view_builder_t *builder;
  static float ones[MOST];
  ck_assert_int_le(count, MOST);
  if (builder != NULL) {
    view_builder_destroy(builder);
  }
  builder = view_builder_create();
  for (int64_t k = 0; k < count; k++) {
    ones[k] = 1.0f;
  }
  uint32_t x = view_builder_value(builder, CLEAVE_DTYPE_F32, 1, &count);
  uint32_t w = view_builder_constant(builder, CLEAVE_DTYPE_F32, 1, &count, ones);
  uint32_t sum = view_builder_value(builder, CLEAVE_DTYPE_F32, 1, &count);
  uint32_t y = view_builder_value(builder, CLEAVE_DTYPE_F32, 1, &count);
  view_builder_node(builder, "Add", 2, (uint32_t[]){x, w}, 1, &sum);
  view_builder_node(builder, "Relu", 1, &sum, 1, &y);
  view_builder_output(builder, y);
  return view_builder_region(builder);
}

void *mirror_case_program(mirror_case_t *c, uint32_t device, int64_t count) {
  void *program = NULL;
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .device = device};
  mirror_ok(*c, c->backend->compile(c->state, mirror_case_region(count), &options, &program, &c->message));
  return program;
}

cleave_run_args_t mirror_case_args(const mirror_tensor_t *from, mirror_tensor_t *to) {
  return (cleave_run_args_t){.size = sizeof(cleave_run_args_t), .inputs = &from->view, .outputs = &to->view};
}

void mirror_case_refused(const mirror_case_t *c, cleave_status_t status, cleave_status_t expected,
                         const char *part) {
  ck_assert_int_eq((int)status, (int)expected);
  ck_assert_msg(strstr(c->message.text, part) != NULL, "'%s' is not in '%s'", part, c->message.text);
}
