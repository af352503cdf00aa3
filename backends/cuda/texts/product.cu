// SPDX-License-Identifier: Apache-2.0
// d = alpha * a * b, of any strides: a block has 64 x 64 elements, a thread 4 x 4 of them. For dtypes that no library
// multiplies, and where the library is missing.
struct arguments {
  const element *a;
  const element *b;
  element *d;
  index rows;
  index columns;
  index inner;
  index a_row;
  index a_column;
  index b_row;
  index b_column;
  index d_row;
  index a_batch;
  index b_batch;
  index d_batch;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  __shared__ number left[16][65];
  __shared__ number right[16][65];
  const index row_tiles = (args.rows + 63) / 64;
  const index column_tiles = (args.columns + 63) / 64;
  const index batch = (index)blockIdx.x / (row_tiles * column_tiles);
  const index tile = (index)blockIdx.x - batch * row_tiles * column_tiles;
  const index row = tile / column_tiles * 64;
  const index column = tile % column_tiles * 64;
  const element *a = args.a + batch * args.a_batch;
  const element *b = args.b + batch * args.b_batch;
  const int x = (int)threadIdx.x % 16;
  const int y = (int)threadIdx.x / 16;
  number sums[4][4] = {};
  for (index begin = 0; begin < args.inner; begin += 16) {
    for (int k = (int)threadIdx.x; k < 16 * 64; k += 256) {
      const index inner = begin + k / 64;
      const index at = k % 64;
      const bool is_inner = inner < args.inner;
      left[k / 64][at] = is_inner && row + at < args.rows
                             ? (number)widen(a[(row + at) * args.a_row + inner * args.a_column])
                             : (number)0;
      right[k / 64][at] = is_inner && column + at < args.columns
                              ? (number)widen(b[inner * args.b_row + (column + at) * args.b_column])
                              : (number)0;
    }
    __syncthreads();
    for (int k = 0; k < 16; k++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
#pragma unroll
        for (int c = 0; c < 4; c++) {
          sums[r][c] += left[k][y + 16 * r] * right[k][x + 16 * c];
        }
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; r++) {
    for (int c = 0; c < 4; c++) {
      if (row + y + 16 * r < args.rows && column + x + 16 * c < args.columns) {
        args.d[batch * args.d_batch + (row + y + 16 * r) * args.d_row + column + x + 16 * c] =
            narrow(sums[r][c] ALPHA);
      }
    }
  }
}
