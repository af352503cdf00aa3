// SPDX-License-Identifier: Apache-2.0
// Median latency of ONNX Runtime on a model folder (model.onnx, test_data_set_0/input_N.pb), in milliseconds:
//   node time.mjs FOLDER THREADS REPEAT WARMUP [median|mean]
import path from 'node:path';
import { ort, readTensor } from './tensor.mjs';

const [folder, threads, repeat, warmup, statistic] = process.argv.slice(2);

const session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const feeds = {};
session.inputNames.forEach((name, k) => {
  feeds[name] = readTensor(path.join(folder, 'test_data_set_0', `input_${k}.pb`));
});
for (let k = 0; k < Number(warmup); k++) await session.run(feeds);
const times = [];
for (let k = 0; k < Number(repeat); k++) {
  const start = performance.now();
  await session.run(feeds);
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
console.log((statistic === 'mean' ? mean : times[times.length >> 1]).toFixed(3));
