// SPDX-License-Identifier: Apache-2.0
/* AMX's tiles, in files that are compiled for them. */
#ifndef CLEAVE_KERNELS_TILES_H
#define CLEAVE_KERNELS_TILES_H

#include <immintrin.h>
#include <stdint.h>

/* What the instruction reads. */
typedef struct tile_sizes {
  uint8_t palette;
  uint8_t start;
  uint8_t unused[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} tile_sizes_t;

/* Until _tile_release all eight tiles have 16 rows of 64 bytes. */
static inline void begin_tiles(void) {
  _Alignas(64) tile_sizes_t sizes = {.palette = 1};
  for (int k = 0; k < 8; k++) {
    sizes.bytes[k] = 64;
    sizes.rows[k] = 16;
  }
  _tile_loadconfig(&sizes);
}

#endif /* CLEAVE_KERNELS_TILES_H */
