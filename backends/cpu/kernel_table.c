// SPDX-License-Identifier: Apache-2.0
// The table of kernels, of all families, sorted by operator.
#include <stdlib.h>
#include <string.h>

#include "cpu/program.h"

#define CPU_KERNEL_FAMILY(name) extern const cpu_kernel_t cpu_kernels_##name[];
#include "kernel_families.inc"
#undef CPU_KERNEL_FAMILY

#define CPU_KERNEL_FAMILY(name) cpu_kernels_##name,
static const cpu_kernel_t *const families[] = {
#include "kernel_families.inc"
};
#undef CPU_KERNEL_FAMILY

enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

static int compare_kernels(const void *a, const void *b) {
  const cpu_kernel_t *const *left = a;
  const cpu_kernel_t *const *right = b;
  int order = strcmp((*left)->op, (*right)->op);
  const char *left_domain = (*left)->domain == NULL ? "" : (*left)->domain;
  return order != 0 ? order : strcmp(left_domain, (*right)->domain == NULL ? "" : (*right)->domain);
}

const cpu_kernel_t *cpu_backend_kernel(const cpu_backend_t *backend, const cleave_node_view_t *node) {
  bool is_onnx = node->domain == NULL || strcmp(node->domain, "ai.onnx") == 0;
  cpu_kernel_t wanted = {.op = node->op, .domain = is_onnx ? NULL : node->domain};
  const cpu_kernel_t *key = &wanted;
  const cpu_kernel_t *const *found =
      bsearch(&key, backend->kernels, backend->kernel_count, sizeof backend->kernels[0], compare_kernels);
  return found == NULL ? NULL : *found;
}

bool cpu_kernel_table_make(const cpu_kernel_t *const **out_kernels, uint32_t *out_count) {
  uint32_t count = 0;
  for (size_t f = 0; f < FAMILY_COUNT; f++) {
    for (const cpu_kernel_t *kernel = families[f]; kernel->op != NULL; kernel++) {
      count++;
    }
  }
  const cpu_kernel_t **kernels = calloc((size_t)count + 1, sizeof *kernels);
  if (kernels == NULL) {
    return false;
  }
  uint32_t next = 0;
  for (size_t f = 0; f < FAMILY_COUNT; f++) {
    for (const cpu_kernel_t *kernel = families[f]; kernel->op != NULL; kernel++) {
      kernels[next++] = kernel;
    }
  }
  qsort(kernels, count, sizeof *kernels, compare_kernels);
  *out_kernels = kernels;
  *out_count = count;
  return true;
}
