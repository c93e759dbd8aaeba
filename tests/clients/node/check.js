// What a program for Node may do with onnxruntime-node, printed as lines "what = words".
//   node check.js MODELS
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const ort = require('onnxruntime-node');

const models = process.argv[2];
const model = (name) => path.join(models, `${name}.onnx`);
const ramp = (count) => Float32Array.from({ length: count }, (_, i) => ((i % 7) - 3) * 0.25);
const floats = (data, dims) => new ort.Tensor('float32', data, dims);

function show(what, tensor) {
  const words = Array.from(tensor.data, String).slice(0, 64).join(' ');
  console.log(`${what} = ${tensor.type} [${tensor.dims}] ${words}`);
}

async function refused(what, action) {
  let message = null;
  try {
    await action();
  } catch (error) {
    message = error.message;
  }
  console.log(`refused ${what} = ${message !== null && message.length > 10}`);
}

async function ports() {
  for (const name of ['mlp', 'strings', 'sequence_out', 'map_out', 'map_in', 'overridable', 'lora']) {
    const session = await ort.InferenceSession.create(model(name));
    for (const port of [...session.inputMetadata, ...session.outputMetadata]) {
      console.log(`port ${name} ${port.name} = ${port.isTensor} ${port.type} [${port.shape}]`);
    }
    await session.release();
  }
}

async function types() {
  const cases = {
    float: ['float32', Float32Array.from([1.5, -2, Infinity])],
    double: ['float64', Float64Array.from([1e300, -2])],
    int8: ['int8', Int8Array.from([-128, 127])],
    int16: ['int16', Int16Array.from([-32768, 32767])],
    int32: ['int32', Int32Array.from([-(2 ** 31), 2 ** 31 - 1])],
    int64: ['int64', BigInt64Array.from([-(2n ** 63n), 2n ** 63n - 1n])],
    uint8: ['uint8', Uint8Array.from([0, 255])],
    uint16: ['uint16', Uint16Array.from([0, 65535])],
    uint32: ['uint32', Uint32Array.from([0, 2 ** 32 - 1])],
    uint64: ['uint64', BigUint64Array.from([0n, 2n ** 64n - 1n])],
    bool: ['bool', Uint8Array.from([1, 0, 1])],
    float16: ['float16', Uint16Array.from([0x3c00, 0xc000])],
    string: ['string', ['', 'größe', 'long '.repeat(9)]],
  };
  for (const [name, [type, data]] of Object.entries(cases)) {
    const session = await ort.InferenceSession.create(model(`identity_${name}`));
    const result = await session.run({ x: new ort.Tensor(type, data, [data.length]) });
    show(`identity ${name}`, result.y);
    const empty = type === 'string' ? [] : new data.constructor(0);
    const none = await session.run({ x: new ort.Tensor(type, empty, [0]) });
    show(`identity of no ${name}`, none.y);
    await session.release();
  }
}

async function runs() {
  const bytes = fs.readFileSync(model('mlp'));
  const options = [
    {},
    { graphOptimizationLevel: 'disabled', executionMode: 'parallel', intraOpNumThreads: 1 },
    { graphOptimizationLevel: 'extended', enableCpuMemArena: false, enableMemPattern: false },
    { interOpNumThreads: 2, logId: 'some session', logSeverityLevel: 4, logVerbosityLevel: 1 },
    { executionProviders: ['cpu'], freeDimensionOverrides: { batch: 2 } },
    { extra: { session: { set_denormal_as_zero: '1' } } },
  ];
  for (const [i, chosen] of options.entries()) {
    const session = await ort.InferenceSession.create(i % 2 === 0 ? model('mlp') : bytes, chosen);
    show(`options ${i}`, (await session.run({ x: floats(ramp(16), [2, 8]) })).y);
    await session.release();
  }
  const session = await ort.InferenceSession.create(new Uint8Array(bytes));
  for (const rows of [1, 0, 32]) {
    show(`mlp of ${rows} rows`, (await session.run({ x: floats(ramp(rows * 8), [rows, 8]) })).y);
  }
  const into = floats(new Float32Array(8), [2, 4]);
  const result = await session.run({ x: floats(ramp(16), [2, 8]) }, { y: into });
  show('own output', into);
  show('own output as the result', result.y);
  show('named output', (await session.run({ x: floats(ramp(8), [1, 8]) }, ['y'])).y);
  const tagged = { tag: 'a tag', logSeverityLevel: 4, logVerbosityLevel: 0, terminate: false };
  show('run options', (await session.run({ x: floats(ramp(8), [1, 8]) }, tagged)).y);
  const many = await Promise.all(
    Array.from({ length: 20 }, () => session.run({ x: floats(ramp(8), [1, 8]) })),
  );
  show('last of many', many[19].y);
  await refused('another rank', () => session.run({ x: floats(ramp(16), [16]) }));
  await refused('another type', () =>
    session.run({ x: new ort.Tensor('int32', new Int32Array(8), [1, 8]) }),
  );
  await refused('no input', () => session.run({}));
  await refused('an unknown output', () => session.run({ x: floats(ramp(8), [1, 8]) }, ['no']));
  await refused('an output of another shape', () =>
    session.run({ x: floats(ramp(8), [1, 8]) }, { y: floats(new Float32Array(8), [2, 4]) }),
  );
  await session.release();
  await refused('a released session', () => session.run({ x: floats(ramp(8), [1, 8]) }));
}

async function external() {
  show(
    'external data',
    (
      await (await ort.InferenceSession.create(model('external'))).run({
        x: floats(ramp(8), [1, 8]),
      })
    ).y,
  );
  const data = fs.readFileSync(path.join(models, 'external.data'));
  const session = await ort.InferenceSession.create(fs.readFileSync(model('external')), {
    externalData: [{ path: 'external.data', data }],
  });
  show('external data in memory', (await session.run({ x: floats(ramp(8), [1, 8]) })).y);
  await session.release();
}

async function others() {
  const session = await ort.InferenceSession.create(model('strings'));
  const a = new ort.Tensor('string', ['a', 'größe', ''], [3]);
  const b = new ort.Tensor('string', ['-', 'ω', ''], [3]);
  show('texts', (await session.run({ b, a })).y);
  await refused('a sequence as result', async () => {
    const maker = await ort.InferenceSession.create(model('sequence_out'));
    await maker.run({ a: floats(ramp(2), [2]), b: floats(ramp(3), [3]) });
  });
  await refused('a missing file', () => ort.InferenceSession.create(model('absent')));
  await refused('garbage', () => ort.InferenceSession.create(model('garbage')));
  await refused('an unknown operator', () =>
    ort.InferenceSession.create(model('unknown_operator')),
  );
  await refused('no bytes', () => ort.InferenceSession.create(new Uint8Array(0)));
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'clients-'));
  const profiled = await ort.InferenceSession.create(model('mlp'), {
    enableProfiling: true,
    profileFilePrefix: path.join(folder, 'trace'),
    optimizedModelFilePath: path.join(folder, 'optimised.onnx'),
  });
  await profiled.run({ x: floats(ramp(8), [1, 8]) });
  profiled.endProfiling();
  console.log(`profile and model = ${fs.readdirSync(folder).length}`);
  fs.rmSync(folder, { recursive: true });
}

function feedOf(folder) {
  const feed = {};
  const lines = fs.readFileSync(path.join(folder, 'feed.txt'), 'utf8').trim().split('\n');
  for (const [i, line] of lines.entries()) {
    const [name, type, ...dims] = line.split(' ');
    const bytes = Uint8Array.from(fs.readFileSync(path.join(folder, `${i}.bin`))).buffer;
    const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array };
    feed[name] = new ort.Tensor(type, new arrays[type](bytes), dims.map(Number));
  }
  return feed;
}

async function larger() {
  for (const name of fs.readFileSync(path.join(models, 'larger.txt'), 'utf8').split('\n')) {
    if (name === '') continue;
    const folder = path.join(models, 'larger', name);
    const file = fs.readFileSync(path.join(folder, 'path.txt'), 'utf8');
    const session = await ort.InferenceSession.create(file);
    const result = await session.run(feedOf(folder));
    for (const output of session.outputNames) show(`${name} ${output}`, result[output]);
    await session.release();
  }
}

async function main() {
  ort.env.logLevel = 'fatal';
  console.log(`backends = ${ort.listSupportedBackends().some((backend) => backend.name === 'cpu')}`);
  for (const check of [ports, types, runs, external, others, larger]) await check();
  console.log('end = 1');
}

main().catch((error) => {
  console.log(error);
  process.exit(1);
});
