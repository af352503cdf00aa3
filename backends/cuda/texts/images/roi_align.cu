// SPDX-License-Identifier: Apache-2.0
// RoiAlign: an element of y for each region, channel and bin, made of samples between elements of x. LARGEST: the largest weighted
// element of all samples, otherwise their mean. Coordinates are double, as on `cpu`, so that both take as many samples. Regions of
// more than MOST samples, and those of an image that is none, give zeros. Reading x far apart bounds it, and coordinates where
// double is slow.
struct arguments {
  const element *x;
  const roi_element *rois;
  const i64 *images;
  element *y;
  index count;
  index batch;
  index channels;
  index height; // of x
  index width;
  index rows; // of y
  index columns;
};

struct neighbours {
  index at[2];
  double weight[2];
};

// Of a coordinate on an axis; false: it lies outside.
__device__ bool find_neighbours(double at, index size, neighbours &found) {
  if (!(at >= -1 && at <= (double)size)) {
    return false;
  }
  at = at > 0 ? at : 0;
  const index low = at < (double)(size - 1) ? (index)at : size - 1;
  found.at[0] = low;
  found.at[1] = low < size - 1 ? low + 1 : low;
  found.weight[1] = low < size - 1 ? at - (double)low : 0;
  found.weight[0] = 1 - found.weight[1];
  return true;
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index region = i;
  const index column = take_last(region, args.columns);
  const index row = take_last(region, args.rows);
  const index channel = take_last(region, args.channels);
  double corners[4]; // left, top, right, bottom
  for (int k = 0; k < 4; k++) {
    corners[k] = __dmul_rn(widen_roi(args.rois[region * 4 + k]), SCALE) - OFFSET;
  }
  double width = corners[2] - corners[0];
  double height = corners[3] - corners[1];
  if (OFFSET == 0) {
    width = fmax(width, 1.0);
    height = fmax(height, 1.0);
  }
  height /= (double)args.rows;
  width /= (double)args.columns;
  const double row_samples = SAMPLES > 0 ? SAMPLES : ceil(height);
  const double column_samples = SAMPLES > 0 ? SAMPLES : ceil(width);
  const i64 image = args.images[region];
  number result = 0;
  if (image >= 0 && image < (i64)args.batch && row_samples > 0 && column_samples > 0 &&
      row_samples * column_samples <= MOST) {
    const element *x = args.x + ((index)image * args.channels + channel) * args.height * args.width;
    number sum = 0;
    number largest = __int_as_float(0xff800000);
    for (int v = 0; v < (int)row_samples; v++) {
      neighbours rows;
      const double y_at = corners[1] + __dmul_rn((double)row + ((double)v + 0.5) / row_samples, height);
      const bool is_row = find_neighbours(y_at, args.height, rows);
      for (int h = 0; h < (int)column_samples; h++) {
        neighbours columns;
        const double x_at = corners[0] + __dmul_rn((double)column + ((double)h + 0.5) / column_samples, width);
        const bool is_inside = is_row && find_neighbours(x_at, args.width, columns);
        for (int k = 0; k < 4; k++) {
          number value = 0;
          if (is_inside) {
            value = (number)(rows.weight[k / 2] * columns.weight[k % 2]) *
                    (number)widen(x[rows.at[k / 2] * args.width + columns.at[k % 2]]);
          }
          sum += value;
          largest = value > largest ? value : largest;
        }
      }
    }
    result = LARGEST ? largest : sum / (number)(row_samples * column_samples);
  }
  args.y[i] = narrow(result);
}
