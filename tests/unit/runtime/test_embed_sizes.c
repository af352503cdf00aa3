// SPDX-License-Identifier: Apache-2.0
// What a caller of the embedding API gets wrong in good faith: the size of a struct, a list that is not
// there, a path, an index. Each is an error that says what to set, and touches nothing of the caller's.
#include "cleave/array.h"
#include "cleave/server.h"
#include "cleave/train.h"
#include "library_case.h"
#include "unit.h"

enum { BEHIND = 64 };

static cleave_model_t *make_model(void) {
  return library_case_model(
      "local x = g.input('x', 'float32', { 2, 3 })\n"
      "g.output('y', g.Relu(x))");
}

/* ---- sizes ---- */

/* One that is too small, and one that was forgotten. `call` has the struct as `given`. */
#define REFUSES(type, call)                                                                         \
  do {                                                                                              \
    const size_t sizes[] = {offsetof(type, size) + sizeof(size_t), 0};                              \
    for (size_t k_ = 0; k_ < 2; k_++) {                                                             \
      _Alignas(type) unsigned char room_[sizeof(type)];                                             \
      memset(room_, 0, sizeof room_);                                                               \
      memcpy(room_, &sizes[k_], sizeof sizes[k_]);                                                  \
      unsigned char before_[sizeof(type)];                                                          \
      memcpy(before_, room_, sizeof room_);                                                         \
      type *given = (type *)(void *)room_;                                                          \
      unit_fails_with(call, CLEAVE_ERROR_INVALID_ARGUMENT, #type ": expected a size of at least "); \
      ck_assert_mem_eq(room_, before_, sizeof room_);                                               \
    }                                                                                               \
  } while (0)

UNIT_TEST(options_without_a_size_are_refused) {
  cleave_model_t *model = make_model();
  cleave_model_t *other = NULL;
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  cleave_server_t *server = NULL;
  cleave_context_t *context = NULL;
  cleave_imperative_t *imperative = NULL;
  cleave_engine_t *engine = NULL;
  cleave_trainer_t *trainer = NULL;
  cleave_rule_files_t *files = NULL;
  cleave_rules_watch_t *watch = NULL;
  char *text = NULL;
  REFUSES(cleave_allocator_t, cleave_set_allocator(given, e));
  REFUSES(cleave_model_load_options_t, cleave_model_load(NULL, "m.onnx", given, &other, e));
  REFUSES(cleave_partition_request_t, cleave_model_partition(model, given, &plan, e));
  REFUSES(cleave_partition_request_t, cleave_rule_files_load(NULL, given, &files, e));
  REFUSES(cleave_partition_request_t, cleave_model_why(model, given, NULL, &text, e));
  REFUSES(cleave_partition_request_t, cleave_server_create(model, given, NULL, 0, NULL, &server, e));
  REFUSES(cleave_partition_request_t, cleave_rules_watch_create(model, given, NULL, &watch, e));
  REFUSES(cleave_rules_watch_options_t, cleave_rules_watch_create(model, NULL, given, &watch, e));
  REFUSES(cleave_why_options_t, cleave_model_why(model, NULL, given, &text, e));
  REFUSES(cleave_gradient_options_t, cleave_model_gradient(model, "y", NULL, 0, given, &other, e));
  REFUSES(cleave_plan_load_options_t, cleave_plan_load(model, "p.json", given, &plan, e));
  REFUSES(cleave_plan_load_options_t, cleave_model_plan_region(model, NULL, given, &plan, e));
  REFUSES(cleave_session_options_t, cleave_session_create(model, NULL, NULL, 0, given, &session, e));
  REFUSES(
      cleave_session_options_t,
      cleave_server_create(
          model, NULL, NULL, 0,
          &(cleave_server_options_t){.size = sizeof(cleave_server_options_t), .session = given}, &server, e));
  REFUSES(cleave_server_options_t, cleave_server_create(model, NULL, NULL, 0, given, &server, e));
  REFUSES(cleave_context_options_t, cleave_context_create(given, &context, e));
  REFUSES(cleave_isolation_options_t, cleave_backend_load_isolated(NULL, "l.so", NULL, given, e));
  REFUSES(cleave_isolation_options_t, cleave_backend_isolate(NULL, "l", given, e));
  REFUSES(cleave_imperative_options_t, cleave_imperative_create(NULL, given, &imperative, e));
  REFUSES(cleave_engine_options_t, cleave_engine_create(given, &engine, e));
  REFUSES(cleave_train_options_t, cleave_trainer_create(model, NULL, given, &trainer, e));
  unit_ok(cleave_engine_create(NULL, &engine, e));
  cleave_operation_t *operation = NULL;
  REFUSES(cleave_operation_info_t, cleave_engine_push(engine, given, e));
  REFUSES(cleave_operation_info_t, cleave_operation_create(engine, given, &operation, e));
  cleave_engine_destroy(engine);
  cleave_model_release(model);
}

UNIT_TEST(nothing_is_filled_in_without_a_size) {
  cleave_model_t *model = make_model();
  cleave_plan_t *plan = NULL;
  cleave_server_t *server = NULL;
  unit_ok(cleave_model_partition(model, NULL, &plan, e));
  unit_ok(cleave_server_create(model, NULL, NULL, 0, NULL, &server, e));
  REFUSES(cleave_port_t, cleave_model_input(model, 0, given, e));
  REFUSES(cleave_port_t, cleave_model_output(model, 0, given, e));
  REFUSES(cleave_port_t, cleave_plan_input(plan, 0, given, e));
  REFUSES(cleave_port_t, cleave_server_input(server, 0, given, e));
  REFUSES(cleave_port_t, cleave_server_output(server, 0, given, e));
  REFUSES(cleave_backend_info_t, cleave_backend_describe(NULL, 0, given, e));
  REFUSES(cleave_isolation_t, cleave_backend_isolation(NULL, "cpu", given, e));
  cleave_model_t *gradient = NULL;
  REFUSES(cleave_recompute_report_t,
          cleave_model_gradient(
              model, "y", (const char *[]){"x"}, 1,
              &(cleave_gradient_options_t){.size = sizeof(cleave_gradient_options_t), .out_recompute = given},
              &gradient, e));
  cleave_server_destroy(server);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

/* Functions without a status fill in what there is room for. `call` has the struct as `given`. */
#define FILLS(type, field, call)                                                         \
  do {                                                                                   \
    _Alignas(type) unsigned char room_[sizeof(type) + BEHIND];                           \
    _Alignas(type) unsigned char whole_[sizeof room_];                                   \
    memset(room_, 0xa5, sizeof room_);                                                   \
    const size_t size_ = offsetof(type, field);                                          \
    memcpy(room_, &size_, sizeof size_);                                                 \
    memcpy(whole_, room_, sizeof room_);                                                 \
    type *given = (type *)(void *)room_;                                                 \
    call;                                                                                \
    ck_assert_mem_eq(room_ + size_, whole_ + size_, sizeof room_ - size_);               \
    ck_assert_mem_eq(room_, whole_, sizeof size_);                                       \
    ck_assert_mem_ne(room_, whole_, size_);                                              \
    given = (type *)(void *)whole_;                                                      \
    given->size = sizeof whole_;                                                         \
    call;                                                                                \
    ck_assert_uint_eq(given->size, sizeof whole_);                                       \
    ck_assert_uint_eq(whole_[sizeof(type)], 0xa5);                                       \
    ck_assert_mem_eq(room_ + sizeof size_, whole_ + sizeof size_, size_ - sizeof size_); \
  } while (0)

UNIT_TEST(counters_are_written_as_far_as_the_size_goes) {
  cleave_model_t *model = make_model();
  cleave_server_t *server = NULL;
  cleave_engine_t *engine = NULL;
  cleave_imperative_t *imperative = NULL;
  unit_ok(cleave_server_create(model, NULL, NULL, 0, NULL, &server, e));
  unit_ok(cleave_engine_create(NULL, &engine, e));
  unit_ok(cleave_imperative_create(NULL, NULL, &imperative, e));
  FILLS(cleave_server_counts_t, repeated, cleave_server_counts(server, given));
  FILLS(cleave_engine_counters_t, failed, cleave_engine_count(engine, given));
  FILLS(cleave_imperative_counters_t, kept, cleave_imperative_count(imperative, given));
  FILLS(cleave_train_options_t, loss_scale, cleave_train_defaults(given));
  cleave_imperative_destroy(imperative);
  cleave_engine_destroy(engine);
  cleave_server_destroy(server);
  cleave_model_release(model);
}

UNIT_TEST(a_port_is_filled_in_as_far_as_the_library_knows_it) {
  cleave_model_t *model = make_model();
  struct {
    cleave_port_t port;
    uint64_t newer;
  } own = {.port = {.size = sizeof own}, .newer = 5};
  unit_ok(cleave_model_input(model, 0, &own.port, e));
  ck_assert_str_eq(own.port.name, "x");
  ck_assert_int_eq(own.port.tensor.dims[1], 3);
  ck_assert_uint_eq(own.port.size, sizeof own);
  ck_assert_uint_eq(own.newer, 5);
  cleave_model_release(model);
}

/* ---- lists, paths, requests ---- */

#define REQUEST(...)                                        \
  &(cleave_partition_request_t) {                           \
    .size = sizeof(cleave_partition_request_t), __VA_ARGS__ \
  }

UNIT_TEST(a_list_that_is_counted_and_not_there_is_named) {
  cleave_model_t *model = make_model();
  cleave_model_t *other = NULL;
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  cleave_imperative_t *imperative = NULL;
  cleave_server_t *server = NULL;
  cleave_array_t *array = NULL;
  cleave_trainer_t *trainer = NULL;
#define MISSING(call, name) \
  unit_fails_with(call, CLEAVE_ERROR_INVALID_ARGUMENT, name ": expected a list of 2, found NULL")
  MISSING(cleave_model_partition(model, REQUEST(.source_count = 2), &plan, e), "sources");
  MISSING(cleave_model_partition(model, REQUEST(.setting_count = 2), &plan, e), "settings");
  cleave_model_load_options_t load = {.size = sizeof load, .setting_count = 2};
  MISSING(cleave_model_load(NULL, "m.lua", &load, &other, e), "settings");
  load = (cleave_model_load_options_t){.size = sizeof load, .open_input_count = 2};
  MISSING(cleave_model_load(NULL, "m.onnx", &load, &other, e), "open_inputs");
  load = (cleave_model_load_options_t){.size = sizeof load, .fixed_input_count = 2};
  MISSING(cleave_model_load(NULL, "m.onnx", &load, &other, e), "fixed_inputs");
  MISSING(cleave_model_gradient(model, "y", NULL, 2, NULL, &other, e), "wrt");
  cleave_gradient_options_t gradient = {.size = sizeof gradient, .source_count = 2};
  MISSING(cleave_model_gradient(model, "y", NULL, 0, &gradient, &other, e), "sources");
  MISSING(cleave_model_set_constants(model, NULL, NULL, 2, &other, e), "names");
  cleave_session_options_t options = {.size = sizeof options, .backend_option_count = 2};
  MISSING(cleave_session_create(model, NULL, NULL, 0, &options, &session, e), "backend_options");
  cleave_imperative_options_t calls = {.size = sizeof calls, .backend_option_count = 2};
  MISSING(cleave_imperative_create(NULL, &calls, &imperative, e), "backend_options");
  MISSING(cleave_backend_configure(NULL, "cpu", NULL, 2, NULL, NULL, e), "settings");
  MISSING(cleave_model_load_memory(NULL, NULL, 2, "m", &other, e), "data");
  const cleave_tensor_view_t flat = {.size = sizeof flat, .dtype = CLEAVE_DTYPE_F32, .rank = 2};
  MISSING(cleave_model_bind(model, (const cleave_tensor_view_t *const[]){&flat}, 1, &other, e), "dims");
  unit_ok(cleave_session_create(model, NULL, NULL, 0, NULL, &session, e));
  MISSING(cleave_session_set_input(session, 0, &flat, e), "dims");
  cleave_session_destroy(session);
  cleave_train_options_t training = {.size = sizeof training};
  cleave_train_defaults(&training);
  training.weight_count = 2;
  MISSING(cleave_trainer_create(model, NULL, &training, &trainer, e), "weights");
  unit_ok(cleave_imperative_create(NULL, NULL, &imperative, e));
  MISSING(cleave_array_call(imperative, "Add", NULL, 2, NULL, 0, &array, 1, e), "inputs");
  MISSING(cleave_array_call(imperative, "Add", &array, 1, NULL, 2, &array, 1, e), "attributes");
  MISSING(cleave_array_call(imperative, "Add", &array, 1, NULL, 0, NULL, 2, e), "outputs");
  cleave_record_t *record = NULL;
  unit_ok(cleave_record_begin(imperative, &record, e));
  cleave_record_request_t request = {.size = sizeof request, .result_count = 2};
  MISSING(cleave_record_gradient(record, &request, &array, e), "results");
  cleave_record_destroy(record);
  cleave_imperative_destroy(imperative);
  unit_ok(cleave_server_create(model, NULL, NULL, 0, NULL, &server, e));
  unit_fails_with(cleave_server_run(server, NULL, 1, NULL, 1, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "inputs: expected a list of 1, found NULL");
  cleave_server_destroy(server);
  cleave_model_release(model);
}

UNIT_TEST(a_path_or_what_takes_its_place_must_be_there) {
  cleave_model_t *model = make_model();
  cleave_model_t *other = NULL;
  cleave_plan_t *plan = NULL;
  unit_fails_with(cleave_model_load(NULL, NULL, NULL, &other, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "path: expected a file, or `data` in the options, found neither");
  unit_fails_with(cleave_plan_load(model, NULL, NULL, &plan, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "path: expected a file, or `text` in the options, found neither");
  cleave_model_release(model);
}

UNIT_TEST(without_a_request_cpu_runs_everything) {
  cleave_model_t *model = make_model();
  cleave_plan_t *plan = NULL;
  cleave_plan_t *same = NULL;
  cleave_rule_files_t *files = NULL;
  cleave_rules_watch_t *watch = NULL;
  cleave_trainer_t *trainer = NULL;
  unit_ok(cleave_model_partition(model, NULL, &plan, e));
  ck_assert_uint_eq(cleave_plan_region_count(plan), 0);
  unit_ok(cleave_rule_files_load(NULL, NULL, &files, e));
  unit_ok(cleave_rule_files_partition(files, model, &same, e));
  ck_assert_uint_eq(cleave_plan_region_count(same), 0);
  unit_fails_with(cleave_rules_watch_create(model, NULL, NULL, &watch, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "there is no rule file to watch");
  unit_fails_with(cleave_trainer_create(model, NULL, NULL, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "loss: expected cross_entropy, mse, or the name of an output, found nothing");
  cleave_rule_files_destroy(files);
  cleave_plan_destroy(same);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_SUITE("mistakes of callers")
