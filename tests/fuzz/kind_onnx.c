// SPDX-License-Identifier: Apache-2.0
// ONNX models. What is read must verify, print, and be written so that it is read again; what loads as a
// model is run.
#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "formats/onnx/onnx.h"
#include "fuzz.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "ops/infer.h"

/* A model that a script built, as a file; false if the script is none. */
static bool draw_built(cleave_text_t *out) {
  cleave_text_t script = {0};
  cleave_graph_t *graph = NULL;
  fuzz_draw_script(&script);
  bool is_built = fuzz_build(cleave_text_get(&script), script.length, &graph, NULL) == CLEAVE_OK &&
                  cleave_onnx_write_text(graph, NULL, out, NULL) == CLEAVE_OK;
  cleave_graph_destroy(graph);
  cleave_text_deinit(&script);
  return is_built;
}

static void draw(cleave_text_t *out) {
  if (damage_random(2) == 0 || !draw_built(out)) {
    fuzz_text_t file = fuzz_draw_corpus("onnx");
    out->length = 0;
    cleave_text_append(out, file.data, file.size);
  }
}

/* A piece of another model over this one, or a change that knows nothing of models. */
static size_t damage(char *data, size_t size, size_t room) {
  if (damage_random(4) > 0) {
    return damage_bytes(data, size, room);
  }
  fuzz_text_t other = fuzz_draw_corpus("onnx");
  size_t at = damage_random(size);
  size_t from = damage_random(other.size);
  size_t length = 1 + damage_random(24);
  length = length < other.size - from ? length : other.size - from;
  length = length < size - at ? length : size - at;
  memcpy(data + at, other.data + from, length);
  return size;
}

static void use_graph(cleave_graph_t *graph) {
  const unsigned any = ~FUZZ_STATUS(INTERNAL);
  const cleave_infer_options_t options = {0};
  cleave_text_t text = {0};
  fuzz_ok(cleave_graph_verify(graph, e));
  fuzz_ok(cleave_graph_print(graph, &text, e));
  text.length = 0;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  fuzz_check(cleave_graph_infer(graph, &options, NULL, &error), &error, any);
  /* What is wrong about types may be seen only when an older operator stands for it. */
  cleave_error_clear(&error);
  fuzz_check(cleave_onnx_write_text(graph, NULL, &text, &error), &error, any);
  cleave_text_deinit(&text);
}

static fuzz_outcome_t run(const void *data, size_t size) {
  const unsigned any = ~FUZZ_STATUS(INTERNAL);
  cleave_graph_t *graph = NULL;
  cleave_model_t *model = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  void *copy = fuzz_copy(data, size);
  cleave_status_t status = cleave_onnx_read_memory(copy, size, "fuzz", NULL, &graph, &error);
  free(copy);
  fuzz_check(status, &error, any);
  if (status != CLEAVE_OK) {
    fuzz_expect(graph == NULL, "%s", error.message);
    return FUZZ_REFUSED;
  }
  use_graph(graph);
  cleave_graph_destroy(graph);
  status = cleave_model_load_memory(NULL, data, size, "fuzz.onnx", &model, &error);
  fuzz_check(status, &error, any);
  if (status != CLEAVE_OK) {
    return FUZZ_READ;
  }
  bool ran = fuzz_run_model(model, NULL, NULL);
  cleave_model_release(model);
  return ran ? FUZZ_USED : FUZZ_READ;
}

const fuzz_kind_t fuzz_onnx = {draw, damage, run};
