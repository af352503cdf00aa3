// SPDX-License-Identifier: Apache-2.0
// Dynamic programming: the least time up to each kernel in each form, and the form before it that gave it.
#include "onednn/tune/path.h"

#include <stdlib.h>
#include <string.h>

// One kernel: `now` from `before`.
static void advance(const onednn_path_t *path, uint32_t kernel, const double *before, double *now,
                    uint32_t *came_from) {
  for (uint32_t to = 0; to < path->forms; to++) {
    uint32_t best = to;
    double least = before[to];
    for (uint32_t from = 0; from < path->forms; from++) {
      // Conversions take no less than nothing: most need not be asked for.
      if (from != to && before[from] < least) {
        double time = before[from] + path->switches(path->context, kernel, from, to);
        best = time < least ? from : best;
        least = time < least ? time : least;
      }
    }
    now[to] = least + path->times[(size_t)kernel * path->forms + to];
    came_from[(size_t)kernel * path->forms + to] = best;
  }
}

bool onednn_path_find(const onednn_path_t *path, uint32_t *out) {
  size_t forms = path->forms;
  if (path->kernels == 0 || forms == 0) {
    return true;
  }
  double *before = calloc(2 * forms, sizeof(double));
  uint32_t *came_from = calloc(path->kernels * forms, sizeof(uint32_t));
  bool has_memory = before != NULL && came_from != NULL;
  if (has_memory) {
    double *now = before + forms;
    memcpy(before, path->times, forms * sizeof(double));
    for (uint32_t k = 1; k < path->kernels; k++) {
      advance(path, k, before, now, came_from);
      memcpy(before, now, forms * sizeof(double));
    }
    uint32_t form = 0;
    for (uint32_t k = 1; k < forms; k++) {
      form = before[k] < before[form] ? k : form;
    }
    for (uint32_t k = path->kernels; k-- > 0;) {
      out[k] = form;
      form = came_from[k * forms + form];
    }
  }
  free(before);
  free(came_from);
  return has_memory;
}
