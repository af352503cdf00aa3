// SPDX-License-Identifier: Apache-2.0
/* The operator bad.op.Twice, and bad.op.Places, whose output tells its shape in a run: numbers of the
 * elements that are not zero. Attribute `does`: "crash PLACE" or "hang PLACE" with a place of infer, create,
 * execute, destroy; "dtype", "rank" and "dims" infer what cannot be, "full infer" has no memory for it;
 * "behind" writes behind the output; "index", "rank run", "flat", "less", "far" (with a reason of its own),
 * "often" and "never" ask for memory that is not to be had, again and again, or not at all; "input" writes
 * into the input. */
#include "misdeed.h"

static const char *does(const cleave_region_view_t *view) {
  return cleave_view_string(&view->nodes[0], "does", "");
}

/* ---- inference ---- */

static cleave_status_t infer(void *self, const cleave_region_view_t *view, cleave_tensor_view_t *outputs,
                             int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  (void)self;
  const cleave_tensor_view_t *x = &cleave_view_input(view, &view->nodes[0], 0)->tensor;
  const char *what = does(view);
  (void)message;
  if (misdeed_is(what, "full infer")) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  (void)misdeed_is(what, "infer");
  outputs[0].dtype = misdeed_is(what, "dtype") ? (cleave_dtype_t)99 : x->dtype;
  outputs[0].rank = misdeed_is(what, "rank") ? 1000000 : x->rank;
  for (int32_t d = 0; d < x->rank; d++) {
    dims[0][d] = misdeed_is(what, "dims") ? INT64_MIN + 5 : x->dims[d];
  }
  return CLEAVE_OK;
}

static cleave_status_t infer_places(void *self, const cleave_region_view_t *view,
                                    cleave_tensor_view_t *outputs, int64_t (*dims)[CLEAVE_MAX_RANK],
                                    cleave_message_t *message) {
  (void)self;
  (void)view;
  (void)message;
  outputs[0].dtype = CLEAVE_DTYPE_F32;
  outputs[0].rank = 1;
  dims[0][0] = -1;
  return CLEAVE_OK;
}

/* ---- kernels ---- */

typedef struct executor {
  char does[32];
} executor_t;

static cleave_status_t create(void *self, const cleave_region_view_t *view,
                              const cleave_compile_options_t *options, void **out_executor,
                              cleave_message_t *message) {
  (void)self;
  (void)options;
  (void)message;
  executor_t *executor = calloc(1, sizeof *executor);
  (void)snprintf(executor->does, sizeof executor->does, "%s", does(view));
  (void)misdeed_is(executor->does, "create");
  *out_executor = executor;
  return CLEAVE_OK;
}

static void destroy(void *memory) {
  executor_t *executor = memory;
  (void)misdeed_is(executor->does, "destroy");
  free(executor);
}

static cleave_status_t execute(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  const executor_t *executor = memory;
  int64_t count = cleave_view_element_count(&args->inputs[0]);
  const float *from = args->inputs[0].data;
  float *to = (float *)(uintptr_t)args->outputs[0].data;
  (void)message;
  (void)misdeed_is(executor->does, "execute");
  for (int64_t k = 0; k < count; k++) {
    to[k] = 2.0f * from[k];
  }
  if (misdeed_is(executor->does, "behind")) {
    hostile_write((unsigned char *)(to + count), 4);
  }
  if (misdeed_is(executor->does, "input")) {
    hostile_write(hostile_memory(&args->inputs[0]), 4);
  }
  return CLEAVE_OK;
}

/* Asks for what is no place; true if it did. */
static bool asks_wrongly(const char *what, const cleave_run_args_t *args, int64_t found,
                         cleave_status_t *out_status, cleave_message_t *message) {
  uint32_t output = misdeed_is(what, "index") ? 7 : 0;
  int32_t rank = misdeed_is(what, "rank run") ? 77 : misdeed_is(what, "flat") ? 2 : 1;
  int64_t dims[2] = {found, 1};
  if (misdeed_is(what, "less")) {
    dims[0] = -3;
  } else if (misdeed_is(what, "far")) {
    dims[0] = INT64_MAX / 2;
    (void)snprintf(message->text, sizeof message->text, "no memory for %lld places", (long long)dims[0]);
  }
  if (output == 0 && rank == 1 && dims[0] == found) {
    return false;
  }
  *out_status = args->resize_output(args->session, output, rank, dims);
  return true;
}

static cleave_status_t execute_places(void *memory, const cleave_run_args_t *args,
                                      cleave_message_t *message) {
  const executor_t *executor = memory;
  const float *from = args->inputs[0].data;
  int64_t count = cleave_view_element_count(&args->inputs[0]);
  int64_t found = 0;
  cleave_status_t status = CLEAVE_OK;
  (void)misdeed_is(executor->does, "execute");
  for (int64_t k = 0; k < count; k++) {
    found += from[k] != 0.0f;
  }
  if (asks_wrongly(executor->does, args, found, &status, message)) {
    return status;
  }
  for (int k = 0; misdeed_is(executor->does, "often") && k < 200; k++) {
    int64_t more = found + k;
    status = args->resize_output(args->session, 0, 1, &more);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  if (misdeed_is(executor->does, "never")) {
    return CLEAVE_OK;
  }
  status = args->resize_output(args->session, 0, 1, &found);
  if (status != CLEAVE_OK) {
    return status;
  }
  float *to = (float *)(uintptr_t)args->outputs[0].data;
  if (misdeed_is(executor->does, "behind")) {
    hostile_write((unsigned char *)(to + found), 4);
  }
  for (int64_t k = 0; k < count; k++) {
    if (from[k] != 0.0f) {
      *to++ = (float)k;
    }
  }
  return CLEAVE_OK;
}

#define OPERATOR(operator_name, its_infer, its_execute)                                                  \
  {                                                                                                      \
    .size = sizeof(cleave_custom_operator_t), .domain = "bad.op", .name = (operator_name), .version = 1, \
    .inputs = "X", .outputs = "Y", .attributes = "does:s=well", .infer = (its_infer), .create = create,  \
    .destroy = destroy, .execute = (its_execute)                                                         \
  }

static const cleave_custom_operator_t twice = OPERATOR("Twice", infer, execute);
static const cleave_custom_operator_t places = OPERATOR("Places", infer_places, execute_places);
static const cleave_custom_operator_t *const operators[] = {&twice, &places};
static const cleave_backend_extensions_t extensions = {
    .size = sizeof extensions, .operators = operators, .operator_count = 2};
static const cleave_backend_t backend = {RELU_BACKEND("bad_operators"), .extensions = &extensions};

RELU_ENTRY()
