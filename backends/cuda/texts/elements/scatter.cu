// SPDX-License-Identifier: Apache-2.0
// Updates go to their places in y. A place outside of its axis takes none. Of several updates for one place the last one holds, so
// that MODE 0 leaves in `owners` the highest number of an update of each place, counted from 1, and MODE 1 writes these alone.
// MODE 2 combines updates with what is there: a thread has all that may meet, and takes them in order. Where these are many, MODE 3
// makes the places of all updates, -1 for none, which are then sorted, and in MODE 4 a thread has a run of updates of one place, again
// in order; the longest run bounds it.
// With DEPTH, update k is a block of `inner` elements for a tuple of places; with RANK, it is one element, whose place along one
// axis is given and which otherwise lies where it lies among the updates. With FLAT the place is a number of an element in a tensor of
// the sizes `dims`, which lies in y.
struct arguments {
#if MODE < 4
  const place *at;
#else
  const index *places; // sorted
  const i64 *order;    // the updates that have them
#endif
#if MODE == 3
  index *places;
#elif MODE < 2
  index *owners;
#endif
#if MODE > 0 && MODE != 3
  const element *updates;
  element *y;
#endif
  index count; // threads
  index inner;
  index length; // updates of a thread of MODE 2
#ifdef DEPTH
  index dims[DEPTH];
  index strides[DEPTH]; // of y, in blocks
#elif defined FLAT
  index dims[RANK];
  index strides[RANK]; // of y
  index sizes[RANK]; // of y
#else
  index dims[RANK]; // of the updates
  index strides[RANK]; // of y; 0 along the axis
  index axis;
  index step; // of y, along the axis
#endif
};

#if MODE < 4
// The place of update k in y; -1: none.
__device__ index place_of(const arguments &args, index k) {
  index to = 0;
#ifdef DEPTH
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    const i64 at = place_in(args.at[k * DEPTH + d], args.dims[d]);
    if (at < 0) {
      return -1;
    }
    to += (index)at * args.strides[d];
  }
  return to;
#elif defined FLAT
  i64 rest = args.at[k];
  if (rest < 0) {
    return -1;
  }
#pragma unroll
  for (int d = RANK - 1; d >= 0; d--) {
    const i64 at = d == 0 ? rest : take_last(rest, (i64)args.dims[d]);
    if (at >= args.sizes[d]) {
      return -1;
    }
    to += (index)at * args.strides[d];
  }
  return to;
#else
  index rest = k;
#pragma unroll
  for (int d = RANK - 1; d >= 0; d--) {
    to += take_last(rest, args.dims[d]) * args.strides[d];
  }
  const i64 at = place_in(args.at[k], args.axis);
  return at < 0 ? -1 : to + (index)at * args.step;
#endif
}

#endif

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
#if MODE == 0
  const index to = place_of(args, i);
  if (to >= 0) {
    atomicMax(args.owners + to, i + 1);
  }
#elif MODE == 1
  const index k = i / args.inner;
  const index to = place_of(args, k);
  if (to >= 0 && args.owners[to] == k + 1) {
    args.y[to * args.inner + i - k * args.inner] = args.updates[i];
  }
#elif MODE == 3
  args.places[i] = place_of(args, i);
#elif MODE == 4
  const index first = i / args.inner;
  const index to = args.places[first];
  if (to < 0 || (first > 0 && args.places[first - 1] == to)) {
    return;
  }
  element *y = args.y + to * args.inner + i - first * args.inner;
  element x = *y;
  for (index n = first; n < args.length && args.places[n] == to; n++) {
    const element u = args.updates[(index)args.order[n] * args.inner + i - first * args.inner];
    x = COMBINED;
  }
  *y = x;
#else
  for (index n = 0; n < args.length; n++) {
#ifdef DEPTH
    const index from = n * args.inner + i;
    const index block = place_of(args, n);
    const index to = block < 0 ? -1 : block * args.inner + i;
#else
    const index outer = i / args.inner;
    const index from = (outer * args.length + n) * args.inner + i - outer * args.inner;
    const index to = place_of(args, from);
#endif
    if (to >= 0) {
      const element x = args.y[to];
      const element u = args.updates[from];
      args.y[to] = COMBINED;
    }
  }
#endif
}
