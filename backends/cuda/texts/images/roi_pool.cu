// SPDX-License-Identifier: Apache-2.0
// MaxRoiPool: the largest element of each bin of each region, 0 of a bin without any. A region is the number of its image, then its
// corners; where there is no such image, all are 0.
struct arguments {
  const element *x;
  const roi_element *rois;
  element *y;
  index count;
  index batch;
  index channels;
  index height; // of x
  index width;
  index rows; // of y
  index columns;
};

// A place along an axis, kept inside.
__device__ index place_near(double at, index size) {
  return (index)fmin(fmax(at, 0.0), (double)size);
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
  const roi_element *roi = args.rois + region * 5;
  const double image = widen_roi(roi[0]);
  double corners[4]; // left, top, right, bottom
  for (int k = 0; k < 4; k++) {
    corners[k] = round(widen_roi(roi[k + 1]) * SCALE);
  }
  const double height = fmax(corners[3] - corners[1] + 1, 1.0);
  const double width = fmax(corners[2] - corners[0] + 1, 1.0);
  const index top = place_near(floor((double)row * height / (double)args.rows) + corners[1], args.height);
  const index bottom = place_near(ceil((double)(row + 1) * height / (double)args.rows) + corners[1], args.height);
  const index left = place_near(floor((double)column * width / (double)args.columns) + corners[0], args.width);
  const index right = place_near(ceil((double)(column + 1) * width / (double)args.columns) + corners[0], args.width);
  number largest = 0;
  if (image >= 0 && image < (double)args.batch && bottom > top && right > left) {
    const element *x = args.x + ((index)image * args.channels + channel) * args.height * args.width;
    largest = __int_as_float(0xff800000);
    for (index v = top; v < bottom; v++) {
      for (index h = left; h < right; h++) {
        const number value = (number)widen(x[v * args.width + h]);
        largest = value > largest ? value : largest;
      }
    }
  }
  args.y[i] = narrow(largest);
}
