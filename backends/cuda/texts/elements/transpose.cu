// SPDX-License-Identifier: Apache-2.0
// Exchanges the last axis of y, of `columns`, with the axis of `rows` that is the last one of x, through tiles of shared
// memory; the other axes, BATCH of them, are walked through.
struct arguments {
  const element *x;
  element *y;
  index rows;
  index columns;
  index column_step; // of x, from one column of y to the next
  index row_step;    // of y, from one row to the next
  index dims[BATCH];
  index from[BATCH];
  index to[BATCH];
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  __shared__ element tile[32][33];
  const index row_tiles = (args.rows + 31) / 32;
  const index column_tiles = (args.columns + 31) / 32;
  index rest = (index)blockIdx.x;
  const index row = take_last(rest, row_tiles) * 32;
  const index column = take_last(rest, column_tiles) * 32;
  index from = 0;
  index to = 0;
#pragma unroll
  for (int d = BATCH - 1; d >= 0; d--) {
    const index at = take_last(rest, args.dims[d]);
    from += at * args.from[d];
    to += at * args.to[d];
  }
  const int x = (int)threadIdx.x % 32;
  const int y = (int)threadIdx.x / 32;
  for (int k = y; k < 32; k += 8) {
    if (column + k < args.columns && row + x < args.rows) {
      tile[k][x] = args.x[from + (column + k) * args.column_step + row + x];
    }
  }
  __syncthreads();
  for (int k = y; k < 32; k += 8) {
    if (row + k < args.rows && column + x < args.columns) {
      args.y[to + (row + k) * args.row_step + column + x] = tile[x][k];
    }
  }
}
