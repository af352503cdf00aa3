// SPDX-License-Identifier: Apache-2.0
// The largest element of each line, LARGEST 0: the smallest, of equal ones the first, with LAST the last one; NaN comes before
// numbers. ARGUMENT: y is its place; otherwise 1 there and 0 elsewhere, and NaN counts only as the first element, as in Hardmax of
// `cpu`. ROWS: a block has a row of neighbours; else a thread has a line of elements that are `inner` apart. Reading x, and writing y
// if it has as many elements, bounds it.
struct arguments {
  const element *x;
#if ARGUMENT
  i64 *y;
#else
  element *y;
#endif
  index lines;
  index length;
  index inner;
};

struct candidate {
  number value;
  index at; // -1: none
};

__device__ bool is_better(const candidate &a, const candidate &b) {
  if (a.at < 0 || b.at < 0) {
    return a.at >= 0;
  }
  const bool is_nearer = LAST ? a.at > b.at : a.at < b.at;
  if (a.value != a.value || b.value != b.value) {
    return a.value != a.value && (b.value == b.value || is_nearer);
  }
  return (LARGEST ? a.value > b.value : a.value < b.value) || (a.value == b.value && is_nearer);
}

__device__ void look_at(const arguments &args, index start, index n, candidate &best) {
  const candidate own = {(number)widen(args.x[start + n * args.inner]), n};
  if ((ARGUMENT || n == 0 || own.value == own.value) && is_better(own, best)) {
    best = own;
  }
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const int own = (int)threadIdx.x;
  candidate best = {(number)0, (index)-1};
#if ROWS
  __shared__ candidate found[256];
  const index line = (index)blockIdx.x;
  const index start = line * args.length;
  for (index n = own; n < args.length; n += 256) {
    look_at(args, start, n, best);
  }
  found[own] = best;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (own < step && is_better(found[own + step], found[own])) {
      found[own] = found[own + step];
    }
  }
  __syncthreads();
  best = found[0];
#if ARGUMENT
  if (own == 0) {
    args.y[line] = (i64)best.at;
  }
#else
  for (index n = own; n < args.length; n += 256) {
    args.y[start + n] = narrow((number)(n == best.at ? 1 : 0));
  }
#endif
#else
  const index line = (index)blockIdx.x * 256 + own;
  if (line >= args.lines) {
    return;
  }
  const index outer = line / args.inner;
  const index start = outer * args.length * args.inner + line - outer * args.inner;
  for (index n = 0; n < args.length; n++) {
    look_at(args, start, n, best);
  }
#if ARGUMENT
  args.y[line] = (i64)best.at;
#else
  for (index n = 0; n < args.length; n++) {
    args.y[start + n * args.inner] = narrow((number)(n == best.at ? 1 : 0));
  }
#endif
#endif
}
