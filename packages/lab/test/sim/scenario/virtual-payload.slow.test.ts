import { describe, expect, test } from 'vitest';
import { OPCODES } from '../../../../../src/packet/opcode.js';
import { recoveryNames } from '../../../../../src/retransmit/recovery-schemes.js';
import type { ScenarioResult } from '../../../src/sim/scenario/result.js';
import type { RunOptions } from '../../../src/sim/scenario/run-options.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { virtualPayloadOf } from '../../../src/sim/scenario/virtual-payload-of.js';
import { HEADERS_ONLY, VirtualPayload } from '../../../src/sim/virtual-payload.js';

type Fields = Partial<ScenarioFile>;

/** Three hosts send to one, with losses, copies and packets out of order: 150,001 bytes each, so that the last packet is short and has a pad. */
const BASE: ScenarioFile = {
  name: 'virtual',
  seed: 3,
  duration: '3ms',
  topology: { kind: 'star', hosts: 4, rate: '10Gbps' },
  nic: { timeout: 4 },
  faults: 'random=0.004; reorder=0.01,5; duplicate=0.01',
  flows: [{ kind: 'flows', from: 'h0..h2', to: 'h3', bytes: 150_001, message: '16KiB' }],
};

function run(
  payload: 'real' | 'virtual' | undefined,
  fields: Fields = {},
  options: RunOptions = {},
): Promise<ScenarioResult> {
  return runScenario(parseScenario({ ...BASE, ...fields, ...(payload && { payload }) }), options);
}

async function expectSame(fields: Fields): Promise<ScenarioResult> {
  const real = await run('real', fields);
  expect(await run('virtual', fields)).toEqual(real);
  return real;
}

describe('a run without payload has the packets, times and results of the run with payload', () => {
  test.each(recoveryNames())('recovery %s, under loss, copies and packets out of order', async (name) => {
    const { summary } = await expectSame({ nic: { timeout: 4, recovery: name } });
    expect(summary.retransmittedPackets).toBeGreaterThan(0);
  });

  test.each(['write', 'send', 'read'] as const)('op %s', async (op) => {
    const { summary } = await expectSame({
      nic: { timeout: 4, recovery: 'selective-repeat' },
      flows: [{ kind: 'flows', from: 'h0..h2', to: 'h3', op, bytes: 150_001, message: '16KiB' }],
    });
    expect(summary.completions.count).toBe(3);
  });

  test.each(['dcqcn', 'timely', 'swift', 'hpcc', 'powertcp'])('rate control %s', async (name) => {
    await expectSame({
      nic: { timeout: 8, cc: { name, linkRateBps: '10Gbps' } as never },
      switch: { int: {}, ecn: { kind: 'red', kminBytes: 5_000, kmaxBytes: 50_000, pmax: 0.1 } },
    });
  });

  test('cut packets', async () => {
    const fields: Fields = { nic: { timeout: 8, recovery: 'multipath' }, faults: 'random=0.001' };
    const cut = await expectSame({ ...fields, switch: { trim: {}, queuePackets: 8 } });
    const dropped = await expectSame({ ...fields, switch: { queuePackets: 8 } });
    expect(cut.traceHash).not.toBe(dropped.traceHash);
  });

  test('pauses, and a NIC that takes packets in one after another', async () => {
    const { summary } = await expectSame({
      switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 100_000 } },
      pipelines: [{ hosts: 'h3', contexts: 1, hit: '50ns', miss: '2us', buffer: 20_000 }],
      faults: 'every=1000,drop',
    });
    expect(summary.pauseFrames).toBeGreaterThan(0);
  });
});

test('a flow that is one byte longer is another run, although the byte is not there', async () => {
  const flowOf = (bytes: number): Fields => ({ flows: [{ kind: 'flows', from: 'h0', to: 'h3', bytes }] });
  const hashes = await Promise.all([150_001, 150_002].map(async (n) => (await run('virtual', flowOf(n))).traceHash));
  expect(hashes[0]).not.toBe(hashes[1]);
});

describe('who looks at bytes is told that there are none', () => {
  test('a capture', async () => {
    const observer = { host: 'h0', onFrame: () => {} };
    await expect(run('virtual', {}, { observer })).rejects.toThrow(/no bytes and no ICRC to capture/);
    await expect(run('real', {}, { observer })).resolves.toBeDefined();
  });

  test.each(['corrupt=0.01', 'every=100,trim=64'])('the fault rule %s', async (faults) => {
    await expect(run('virtual', { faults })).rejects.toThrow(/a fault rule changes bytes/);
    await expect(run('real', { faults })).resolves.toBeDefined();
  });
});

describe('a scenario that does not decide has payload where somebody looks at it', () => {
  const formOf = (fields: Fields, watchers = {}) => virtualPayloadOf(parseScenario({ ...BASE, ...fields }), watchers);

  test('nobody does', () => {
    expect(formOf({})).toEqual({ hasTrailers: false, comparesPackets: false });
    const nic = { recovery: 'selective-repeat', cc: 'hpcc' } as const;
    expect(formOf({ nic })).toEqual({ hasTrailers: true, comparesPackets: true });
  });

  test('a capture, a trace, a rule that changes bytes', async () => {
    const observer = { host: 'h0', onFrame: () => {} };
    expect([formOf({}, { observer }), formOf({}, { station: {} }), formOf({ faults: 'corrupt=0.01' })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    await expect(run(undefined, {}, { observer })).resolves.toEqual(await run('virtual'));
  });
});

test('what is kept of a frame has all headers that a packet can have', () => {
  const extensions = OPCODES.map((info) => info?.extBytes ?? 0);
  expect(HEADERS_ONLY.headBytes).toBe(14 + 20 + 8 + 12 + Math.max(...extensions));
  expect(HEADERS_ONLY.wholeBytesMax).toBeGreaterThan(HEADERS_ONLY.headBytes);
});

test('behind the headers of data there are zeros, whatever was there before', () => {
  const virtual = new VirtualPayload(400);
  const write = new Uint8Array(400).fill(7);
  write[42] = 0x07; // RC WRITE MIDDLE
  write[46] = 0;
  expect([...virtual.read(write, 0, 400).subarray(42, 54)]).toEqual([...write.subarray(42, 54)]);
  const answer = new Uint8Array(300).fill(0x11); // RC ACKNOWLEDGE
  expect(virtual.read(answer, 0, 300)[299]).toBe(0x11);
  const out = virtual.read(write, 0, 400);
  expect([...out.subarray(54)].every((byte) => byte === 0)).toBe(true);
});
