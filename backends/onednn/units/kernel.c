// SPDX-License-Identifier: Apache-2.0
// The posts of a kernel. Linear steps in a row become one.
#include "onednn/units/kernel.h"

#include <math.h>

static bool is_identity(double scale, double shift) {
  return fabs(scale - 1) < 1e-6 && shift == 0;
}

bool onednn_post_append(onednn_kernel_t *kernel, onednn_post_t post) {
  bool linear = post.kind == ONEDNN_POST_ELTWISE && post.algorithm == dnnl_eltwise_linear;
  if (linear && is_identity((double)post.alpha, (double)post.beta)) {
    return true;
  }
  if (linear && kernel->post_count > 0) {
    onednn_post_t *last = &kernel->posts[kernel->post_count - 1];
    if (last->kind == ONEDNN_POST_ELTWISE && last->algorithm == dnnl_eltwise_linear) {
      double scale = (double)last->alpha * (double)post.alpha;
      double shift = (double)last->beta * (double)post.alpha + (double)post.beta;
      last->alpha = (float)scale;
      last->beta = (float)shift;
      kernel->post_count -= is_identity(scale, shift) ? 1U : 0U;
      return true;
    }
  }
  if (kernel->post_count == ONEDNN_MAX_POSTS) {
    return false;
  }
  kernel->posts[kernel->post_count++] = post;
  return true;
}

bool onednn_post_eltwise(onednn_kernel_t *kernel, dnnl_alg_kind_t algorithm, double alpha, double beta,
                         uint32_t node) {
  onednn_post_t post = {.kind = ONEDNN_POST_ELTWISE,
                        .algorithm = algorithm,
                        .alpha = (float)alpha,
                        .beta = (float)beta,
                        .operand = CLEAVE_INDEX_NONE,
                        .node = node};
  return onednn_post_append(kernel, post);
}

bool onednn_post_linear(onednn_kernel_t *kernel, double scale, double shift, uint32_t node) {
  return onednn_post_eltwise(kernel, dnnl_eltwise_linear, scale, shift, node);
}
