// SPDX-License-Identifier: Apache-2.0
// Panels are packed one by one, by any thread.
#include "onednn/weights/panels.h"

#include <string.h>

enum { PANEL = 16, GRAIN = 65536 /* elements */, FLOAT = sizeof(float) };

typedef struct packing {
  const dnnl_dim_t *dims;
  const dnnl_dim_t *strides;
  const char *from; /* floats at any address */
  float *out;
} packing_t;

bool onednn_panels_pack_from(const onednn_layout_t *weights, const onednn_layout_t *panels) {
  if (weights->ndims != 3 || weights->data_type != dnnl_f32 || !onednn_layout_is_strided(weights)) {
    return false;
  }
  onednn_shape_t shape = onednn_layout_shape(weights);
  onednn_layout_t wanted = onednn_layout_panels(&shape);
  return onednn_layout_equal(&wanted, panels);
}

static void pack_panels(void *opaque, int64_t begin, int64_t end) {
  const packing_t *p = opaque;
  for (int64_t panel = begin; panel < end; panel++) {
    int64_t left = p->dims[0] - panel * PANEL;
    int64_t width = left < PANEL ? left : PANEL;
    const char *first = p->from + panel * PANEL * p->strides[0] * FLOAT;
    float *out = p->out + panel * p->dims[1] * p->dims[2] * PANEL;
    for (int64_t b = 0; b < p->dims[1]; b++) {
      for (int64_t c = 0; c < p->dims[2]; c++, out += PANEL) {
        const char *from = first + (b * p->strides[1] + c * p->strides[2]) * FLOAT;
        for (int64_t n = 0; n < width; n++) {
          memcpy(&out[n], from + n * p->strides[0] * FLOAT, sizeof(float));
        }
        memset(out + width, 0, (size_t)(PANEL - width) * sizeof(float));
      }
    }
  }
}

void onednn_panels_pack(const cleave_host_t *host, int32_t threads, const onednn_layout_t *weights,
                        const void *from, float *out) {
  packing_t packing = {
      .dims = weights->dims, .strides = weights->format_desc.blocking.strides, .from = from, .out = out};
  int64_t panels = (weights->dims[0] - 1) / PANEL + 1;
  int64_t grain = GRAIN / (weights->dims[1] * weights->dims[2] * PANEL) + 1;
  host->parallel_for(threads, panels, grain, pack_panels, &packing);
}
