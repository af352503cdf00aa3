// SPDX-License-Identifier: Apache-2.0
/* Relu as regions, executors and blobs. CLEAVE_TEST_MISDEED: "crash PLACE" or "hang PLACE" with a place of
 * save, check, load, get, execute, release; "full PLACE" has no memory in supports or compile; "note" says a
 * long line of its programs; "behind" writes behind an output of an executor; "endless" saves without end,
 * "many" in many pieces; "nothing" loads no program; "callback" says something out of turn, in `supports`;
 * "wild" something that nobody knows, while it saves; "flood" writes lines without end. */
#include "misdeed.h"

static const cleave_host_t *its_host;

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  its_host = host;
  return relu_initialise(host, out_state, message);
}

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  if (misdeed("callback")) {
    for (uint32_t kind = 4; kind < 64; kind++) {
      misdeed_send(kind, "12345678", 8);
    }
  }
  if (misdeed("full supports")) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  while (misdeed("flood")) {
    its_host->log(its_host, 3, "more and more");
  }
  return relu_supports(state, region, reason);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  return misdeed("full compile") ? CLEAVE_ERROR_OUT_OF_MEMORY
                                 : relu_compile(state, region, options, out_program, message);
}

static const cleave_program_info_t *info(const void *program) {
  static cleave_program_info_t noted;
  static char note[1000];
  if (!misdeed("note")) {
    return relu_info(program);
  }
  (void)snprintf(note, sizeof note, "six elements, %0900d", 0);
  noted = *relu_info(program);
  noted.size = sizeof noted;
  noted.note = note;
  return &noted;
}

/* ---- blobs ---- */

static cleave_status_t save(const void *program,
                            cleave_status_t (*write_piece)(void *context, const void *data, size_t bytes),
                            void *context, cleave_message_t *message) {
  static char piece[1 << 20];
  (void)message;
  cleave_status_t status = write_piece(context, program, sizeof(relu_program_t));
  if (misdeed("wild")) {
    for (uint32_t kind = 4; kind < 64; kind++) {
      misdeed_send(kind, "12345678", 8);
    }
  }
  for (int k = 0; misdeed("many") && k < 100000 && status == CLEAVE_OK; k++) {
    status = write_piece(context, "0123456789", 10);
  }
  while (misdeed("endless") && status == CLEAVE_OK) {
    status = write_piece(context, piece, sizeof piece);
  }
  (void)misdeed("save");
  return status;
}

static cleave_status_t check(void *state, uint32_t device, const void *data, size_t bytes,
                             cleave_message_t *message) {
  (void)state;
  (void)device;
  (void)message;
  (void)misdeed("check");
  return data != NULL && bytes >= sizeof(relu_program_t) ? CLEAVE_OK : CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t load(void *state, const cleave_region_view_t *region,
                            const cleave_compile_options_t *options, const void *data, size_t bytes,
                            void **out_program, cleave_message_t *message) {
  (void)data;
  (void)bytes;
  (void)misdeed("load");
  *out_program = NULL;
  return misdeed("nothing") ? CLEAVE_OK : relu_compile(state, region, options, out_program, message);
}

/* ---- executors ---- */

static cleave_status_t get_executor(void *state, const cleave_region_view_t *node,
                                    const cleave_compile_options_t *options, void **out_executor,
                                    cleave_message_t *message) {
  (void)misdeed("get");
  return relu_compile(state, node, options, out_executor, message);
}

static void release_executor(void *executor) {
  (void)misdeed("release");
  relu_unload(executor);
}

static cleave_status_t execute(void *executor, const cleave_run_args_t *args, cleave_message_t *message) {
  const relu_program_t *relu = executor;
  (void)misdeed("execute");
  if (misdeed("behind")) {
    hostile_write(hostile_memory(&args->outputs[0]) + relu->elements * sizeof(float), 8);
  }
  return relu_run(executor, args, message);
}

static const cleave_backend_blobs_t blobs = {
    .size = sizeof blobs, .save = save, .check = check, .load = load};
static const cleave_backend_imperative_t imperative = {.size = sizeof imperative,
                                                       .get_executor = get_executor,
                                                       .release_executor = release_executor,
                                                       .execute = execute};
static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "bad_programs",
                                         .version = "1",
                                         .description = "a test",
                                         .initialise = initialise,
                                         .destroy = relu_destroy,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = relu_unload,
                                         .info = info,
                                         .run = relu_run,
                                         .imperative = &imperative,
                                         .blobs = &blobs};

RELU_ENTRY()
