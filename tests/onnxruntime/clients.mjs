// SPDX-License-Identifier: Apache-2.0
// Requests per second of ONNX Runtime on a model folder (model.onnx, test_data_set_0/input_N.pb):
//   node clients.mjs FOLDER SESSIONS THREADS REQUESTS
// A call of Node's interface occupies its thread, so each session is on a thread of its own, and takes its next request
// from a common counter as soon as the last one is answered: no time is lost between clients and sessions.
import path from 'node:path';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';

const WARMUP = 5;

async function serve({ folder, threads, requests, counter }) {
  const { ort, readTensor } = await import('./tensor.mjs');
  const session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
  });
  const feeds = {};
  session.inputNames.forEach((name, k) => {
    feeds[name] = readTensor(path.join(folder, 'test_data_set_0', `input_${k}.pb`));
  });
  for (let k = 0; k < WARMUP; k++) await session.run(feeds);
  parentPort.once('message', async () => {
    while (Atomics.add(counter, 0, 1) < requests) await session.run(feeds);
    parentPort.postMessage('done');
  });
  parentPort.postMessage('ready');
}

if (isMainThread) {
  const [folder, sessions, threads, requests] = process.argv.slice(2);
  const counter = new Int32Array(new SharedArrayBuffer(4));
  const data = { folder, threads: Number(threads), requests: Number(requests), counter };
  const workers = Array.from({ length: Number(sessions) },
    () => new Worker(fileURLToPath(import.meta.url), { workerData: data }));
  const all = (text) => Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (message) => (message === text ? resolve() : reject(new Error(message))));
  })));
  await all('ready');
  const done = all('done');
  const start = performance.now();
  workers.forEach((worker) => worker.postMessage('start'));
  await done;
  console.log(((Number(requests) * 1000) / (performance.now() - start)).toFixed(2));
  process.exit(0);
} else {
  await serve(workerData);
}
