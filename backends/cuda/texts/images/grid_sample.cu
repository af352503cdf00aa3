// SPDX-License-Identifier: Apache-2.0
// GridSample over AXES axes: y[n][c][p] is x[n][c] between its elements, at the coordinates grid[n][p], the last axis first. MODE 0:
// linear; 1: the nearest; 2: cubic, each with TAPS elements of an axis. PADDING 0: zeros outside; 1: the border; 2: reflected.
// ALIGNED: -1 and 1 are the middles of the first and the last element, otherwise their edges. Coordinates are double, as on `cpu`,
// so that both take the same elements; a thread computes them for CHANNELS channels, whose elements it reads far apart. These reads
// bound it.
struct arguments {
  const element *x;
  const grid_element *grid;
  element *y;
  index count;
  index channels;
  index parts; // of the channels
  index places; // of the grid
  index in[AXES];
};

struct taps {
  index at[TAPS]; // -1: outside
  double weight[TAPS];
};

__device__ double clip(double x, double low, double high) {
  return x > low ? (x < high ? x : high) : low;
}

// Folds a coordinate back between both, as a mirror at each does.
__device__ double reflect(double x, double low, double high) {
  const double span = high - low;
  if (!(span > 0)) {
    return 0;
  }
  const double distance = fabs(x - low);
  const double folds = floor(distance / span);
  const double rest = distance - __dmul_rn(folds, span);
  return fmod(folds, 2.0) == 0 ? low + rest : high - rest;
}

// A coordinate within the padding; far outside of zeros there are still zeros.
__device__ double padded(double x, index size) {
  const double last = (double)(size - 1);
#if PADDING == 1
  return clip(x, 0, last);
#elif PADDING == 2
  return clip(ALIGNED ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5), 0, last);
#else
  return clip(x, -8, last + 8);
#endif
}

__device__ index index_of(double at, index size) {
  return at >= 0 && at <= (double)(size - 1) ? (index)at : (index)-1;
}

__device__ double cubic(double distance) {
  const double d = fabs(distance);
  return d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : ((-0.75 * d + 3.75) * d - 6) * d + 3;
}

__device__ taps find_taps(double given, index size) {
  const double extent = (double)size;
  double x = ALIGNED ? __dmul_rn((given + 1) / 2, extent - 1) : (__dmul_rn(given + 1, extent) - 1) / 2;
  x = x == x ? x : -1;
  taps result;
#if MODE == 1
  result.at[0] = index_of(rint(padded(x, size)), size);
  result.weight[0] = 1;
#elif MODE == 0
  x = padded(x, size);
  const double base = floor(x);
  for (int k = 0; k < 2; k++) {
    result.at[k] = index_of(base + k, size);
    result.weight[k] = k == 0 ? 1 - (x - base) : x - base;
  }
#else
  // Every tap is padded, not the coordinate.
  x = clip(x, -1e15, 1e15);
  const double base = floor(x);
  for (int k = 0; k < 4; k++) {
    result.at[k] = index_of(padded(base + k - 1, size), size);
    result.weight[k] = cubic(x - base - (k - 1));
  }
#endif
  return result;
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index image = i;
  const index place = take_last(image, args.places);
  const index first = take_last(image, args.parts) * CHANNELS;
  const grid_element *grid = args.grid + (image * args.places + place) * AXES;
  index offsets[ALL_TAPS] = {};
  double weights[ALL_TAPS];
  index size = 1;
  int count = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    const taps own = find_taps(widen_grid(grid[AXES - 1 - d]), args.in[d]);
#pragma unroll
    for (int k = TAPS - 1; k >= 0; k--) {
#pragma unroll
      for (int j = 0; j < count; j++) {
        const bool is_inside = own.at[k] >= 0;
        offsets[k * count + j] = offsets[j] + (is_inside ? own.at[k] * size : 0);
        weights[k * count + j] = is_inside ? (d == AXES - 1 ? 1 : weights[j]) * own.weight[k] : 0;
      }
    }
    size *= args.in[d];
    count *= TAPS;
  }
  const index last = first + CHANNELS < args.channels ? first + CHANNELS : args.channels;
  for (index c = image * args.channels + first; c < image * args.channels + last; c++) {
    number sum = 0;
#pragma unroll
    for (int k = 0; k < ALL_TAPS; k++) {
      if (weights[k] != 0) {
        sum += (number)weights[k] * (number)widen(args.x[c * size + offsets[k]]);
      }
    }
    args.y[c * args.places + place] = narrow(sum);
  }
}
