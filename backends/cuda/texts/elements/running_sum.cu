// SPDX-License-Identifier: Apache-2.0
// CumSum along an axis of `length`, in type `total`. ROWS: a block adds up a row of neighbours, 256 at a time; else a thread adds
// up a line of elements that are `inner` apart. EXCLUSIVE: a sum is without its own element; REVERSE: from the end.
struct arguments {
  const element *x;
  element *y;
  index lines;
  index length;
  index inner;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  total before = 0;
#if ROWS
  __shared__ total sums[256];
  const int own = (int)threadIdx.x;
  const index row = (index)blockIdx.x * args.length;
  for (index done = 0; done < args.length; done += 256) {
    const bool is_inside = own < args.length - done;
    const index n = is_inside ? done + own : 0;
    const index at = row + (REVERSE ? args.length - 1 - n : n);
    sums[own] = is_inside ? (total)widen(args.x[at]) : (total)0;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
      const total other = own >= step ? sums[own - step] : (total)0;
      __syncthreads();
      sums[own] += other;
      __syncthreads();
    }
    if (is_inside) {
      args.y[at] = narrow(before + (EXCLUSIVE ? own > 0 ? sums[own - 1] : (total)0 : sums[own]));
    }
    before += sums[255];
    __syncthreads();
  }
#else
  const index line = (index)blockIdx.x * 256 + threadIdx.x;
  if (line >= args.lines) {
    return;
  }
  const index outer = line / args.inner;
  const index start = outer * args.length * args.inner + line - outer * args.inner;
  for (index n = 0; n < args.length; n++) {
    const index at = start + (REVERSE ? args.length - 1 - n : n) * args.inner;
    const total next = before + (total)widen(args.x[at]);
    args.y[at] = narrow(EXCLUSIVE ? before : next);
    before = next;
  }
#endif
}
