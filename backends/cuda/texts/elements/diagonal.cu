// SPDX-License-Identifier: Apache-2.0
// Elements of matrices by the diagonal that they lie on, which is column - row. MODE 0: of x from diagonal k on, else zeros;
// 1: of x up to diagonal k, else zeros; 2: an element whose bits come in two halves on diagonal k, else zeros.
struct arguments {
#if MODE < 2
  const element *x;
#endif
  element *y;
  index count;
  index rows;
  index columns;
  index k;
#if MODE == 2
  index low;
  index high;
#endif
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index line = i / args.columns;
  const index diagonal = i - line * args.columns - line % args.rows;
#if MODE == 0
  args.y[i] = diagonal >= args.k ? args.x[i] : (element)0;
#elif MODE == 1
  args.y[i] = diagonal <= args.k ? args.x[i] : (element)0;
#else
  args.y[i] = diagonal == args.k ? (element)((u64)(u32)args.high << 32 | (u64)(u32)args.low) : (element)0;
#endif
}
