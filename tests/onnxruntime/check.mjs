// SPDX-License-Identifier: Apache-2.0
// Runs models in ONNX Runtime and compares with what is expected:
//
//   node check.mjs RTOL ATOL [MODEL DATA]...
//
// DATA has input_N.pb and output_N.pb, in the order of the model's inputs and outputs. One line per model: its path, "equal" or
// what differs, and the largest difference. Each element may differ by ATOL + RTOL times the expected one.
// ORT_DIR: where node_modules with onnxruntime-node is.
import path from 'node:path';
import { ort, readTensor } from './tensor.mjs';

function compare(found, expected, rtol, atol) {
  if (found.type !== expected.type || found.dims.join() !== expected.dims.join()) {
    return { text: `is ${found.type}[${found.dims}], expected ${expected.type}[${expected.dims}]`, largest: Infinity };
  }
  let largest = 0;
  let wrong = 0;
  for (let k = 0; k < expected.data.length; k++) {
    const a = Number(found.data[k]);
    const b = Number(expected.data[k]);
    const difference = a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : Math.abs(a - b);
    if (!(difference <= atol + rtol * Math.abs(b))) wrong++;
    if (!(difference <= largest)) largest = difference;
  }
  return { text: wrong === 0 ? '' : `differs in ${wrong} of ${expected.data.length} elements`, largest };
}

const [rtol, atol, ...pairs] = process.argv.slice(2);
let failed = 0;
for (let k = 0; k + 1 < pairs.length; k += 2) {
  const [model, data] = [pairs[k], pairs[k + 1]];
  const problems = [];
  let largest = 0;
  try {
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 3 });
    const feeds = {};
    session.inputNames.forEach((name, n) => (feeds[name] = readTensor(path.join(data, `input_${n}.pb`))));
    const results = await session.run(feeds);
    session.outputNames.forEach((name, n) => {
      const expected = readTensor(path.join(data, `output_${n}.pb`));
      const result = compare(results[name], expected, Number(rtol), Number(atol));
      if (result.text !== '') problems.push(`output '${name}' ${result.text}`);
      if (!(result.largest <= largest)) largest = result.largest;
    });
    await session.release();
  } catch (error) {
    problems.push(String(error.message).split('\n')[0]);
  }
  failed += problems.length > 0;
  console.log(`${model} ${problems.length === 0 ? 'equal' : problems.join('; ')} ${largest.toExponential(2)}`);
}
process.exitCode = failed > 0 ? 1 : 0;
