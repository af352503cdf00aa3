// SPDX-License-Identifier: Apache-2.0
/* Text that grows. If memory runs out, it stays as it is, and says so at the end. */
#ifndef CLEAVE_KERNELS_CUDA_WRITER_H
#define CLEAVE_KERNELS_CUDA_WRITER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cuda_writer {
  char *text; /* ends in NUL; NULL as long as nothing was written */
  size_t length;
  size_t capacity;
  bool failed;
} cuda_writer_t;

void cuda_write(cuda_writer_t *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cuda_write_bytes(cuda_writer_t *writer, const char *bytes, size_t count);

/* Lines of text as comments; what could end a comment, or is not printable ASCII, is replaced. */
void cuda_write_comment(cuda_writer_t *writer, const char *text);

void cuda_writer_deinit(cuda_writer_t *writer);

#endif /* CLEAVE_KERNELS_CUDA_WRITER_H */
