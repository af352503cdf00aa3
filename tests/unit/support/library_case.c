// SPDX-License-Identifier: Apache-2.0
// A library without a file: its handle is cpu's, so that what looks a library up by name finds one.
#include "library_case.h"

#include <stdio.h>
#include <unistd.h>

#include "unit.h"

enum { MAX_INPUTS = 4, MAX_ADDED = 8 };

cleave_status_t library_case_add(const cleave_backend_extensions_t *brought,
                                 cleave_extensions_t **out_extensions, cleave_error_t *error) {
  static cleave_backend_t table; /* cpu's, with extensions; in use as long as they are */
  static cleave_backend_handle_t handle;
  const cleave_backend_handle_t *cpu = NULL;
  CLEAVE_TRY(cleave_registry_find(NULL, "cpu", &cpu, error));
  table = *cpu->backend;
  table.extensions = brought;
  handle = *cpu;
  handle.backend = &table;
  return cleave_extensions_add(&handle, out_extensions, error);
}

/* What is added stays until the process ends. */
static void add(const cleave_backend_extensions_t *brought) {
  static cleave_extensions_t *added[MAX_ADDED];
  static size_t count;
  ck_assert_uint_lt(count, MAX_ADDED);
  unit_ok(library_case_add(brought, &added[count++], e));
}

void library_case_operator(const cleave_custom_operator_t *definition) {
  cleave_backend_extensions_t brought = {
      .size = sizeof brought, .operators = &definition, .operator_count = 1};
  add(&brought);
}

void library_case_partitioner(const cleave_custom_partitioner_t *definition) {
  cleave_backend_extensions_t brought = {
      .size = sizeof brought, .partitioners = &definition, .partitioner_count = 1};
  add(&brought);
}

void library_case_pass(const cleave_custom_pass_t *definition) {
  cleave_backend_extensions_t brought = {.size = sizeof brought, .passes = &definition, .pass_count = 1};
  add(&brought);
}

static cleave_status_t infer_same(void *self, const cleave_region_view_t *node, cleave_tensor_view_t *outputs,
                                  int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  (void)self;
  const cleave_tensor_view_t *x = &cleave_view_input(node, &node->nodes[0], 0)->tensor;
  (void)message;
  for (uint32_t k = 0; k < node->nodes[0].output_count; k++) {
    outputs[k].dtype = x->dtype;
    outputs[k].rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++) {
      dims[k][d] = x->dims[d];
    }
  }
  return CLEAVE_OK;
}

cleave_custom_operator_t library_case_same(const char *inputs, const char *outputs, const char *attributes) {
  return (cleave_custom_operator_t){.size = sizeof(cleave_custom_operator_t),
                                    .domain = "my.test",
                                    .name = "Op",
                                    .version = 1,
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .attributes = attributes,
                                    .infer = infer_same};
}

static cleave_status_t load(cleave_context_t *context, const char *text, cleave_model_t **out_model,
                            cleave_error_t *error) {
  char path[512];
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/library_case_%ld.lua", (long)getpid());
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
  cleave_status_t status = cleave_model_load(context, path, NULL, out_model, error);
  ck_assert_int_eq(remove(path), 0);
  return status;
}

cleave_model_t *library_case_model_in(cleave_context_t *context, const char *text) {
  cleave_model_t *model = NULL;
  unit_ok(load(context, text, &model, e));
  return model;
}

cleave_model_t *library_case_model(const char *text) {
  return library_case_model_in(NULL, text);
}

cleave_model_t *library_case_model_or_none(const char *text) {
  cleave_model_t *model = NULL;
  return load(NULL, text, &model, NULL) == CLEAVE_OK ? model : NULL;
}

void library_case_model_fails(const char *text, cleave_status_t status, const char *part) {
  cleave_model_t *model = NULL;
  unit_fails_with(load(NULL, text, &model, e), status, part);
}

cleave_status_t library_case_partition(cleave_model_t *model, const char *rules, const char *first,
                                       const char *second, cleave_plan_t **out_plan, cleave_error_t *error) {
  const char *const texts[2] = {first, second};
  char names[2][64];
  cleave_setting_t settings[2];
  size_t count = 0;
  for (size_t k = 0; k < 2 && texts[k] != NULL; k++) {
    const char *equals = strchr(texts[k], '=');
    ck_assert_ptr_nonnull(equals);
    (void)snprintf(names[k], sizeof names[k], "%.*s", (int)(equals - texts[k]), texts[k]);
    settings[count++] = (cleave_setting_t){names[k], equals + 1};
  }
  bool is_text = strchr(rules, ' ') != NULL;
  cleave_rule_source_t source = {.path = is_text ? "r.lua" : rules};
  source.text = is_text ? rules : NULL;
  source.length = is_text ? strlen(rules) : 0;
  return cleave_model_partition(model,
                                &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                              .sources = &source,
                                                              .source_count = 1,
                                                              .settings = settings,
                                                              .setting_count = count},
                                out_plan, error);
}

cleave_session_t *library_case_session(cleave_model_t *model, const cleave_plan_t *plan, int32_t rank,
                                       const int64_t *dims, const float *data,
                                       const cleave_session_options_t *options) {
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = rank, .dims = dims, .data = data};
  const cleave_tensor_view_t *inputs[MAX_INPUTS];
  uint32_t count = plan != NULL ? cleave_plan_input_count(plan) : cleave_model_input_count(model);
  cleave_session_t *session = NULL;
  ck_assert_uint_le(count, MAX_INPUTS);
  for (uint32_t k = 0; k < count; k++) {
    inputs[k] = &view;
  }
  unit_ok(cleave_session_create(model, plan, inputs, count, options, &session, e));
  for (uint32_t k = 0; k < count; k++) {
    unit_ok(cleave_session_set_input(session, k, &view, e));
  }
  return session;
}

void library_case_run(cleave_session_t *session, uint32_t output, const float *expected, int64_t count) {
  cleave_tensor_view_t view;
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, output, &view, e));
  ck_assert_int_eq((int)view.dtype, CLEAVE_DTYPE_F32);
  ck_assert_int_eq(cleave_view_element_count(&view), count);
  for (int64_t k = 0; k < count; k++) {
    float found = 0.0f;
    memcpy(&found, (const char *)view.data + (size_t)k * sizeof found, sizeof found);
    ck_assert_float_eq(found, expected[k]);
  }
}

int64_t library_case_int(cleave_session_t *session, uint32_t output) {
  cleave_tensor_view_t view;
  int64_t value = 0;
  unit_ok(cleave_session_output(session, output, &view, e));
  ck_assert_int_eq((int)view.dtype, CLEAVE_DTYPE_I64);
  ck_assert_int_eq(cleave_view_element_count(&view), 1);
  memcpy(&value, view.data, sizeof value);
  return value;
}
