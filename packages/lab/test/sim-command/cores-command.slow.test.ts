/** One run on several cores: what its threads share, and the run itself. */

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { run } from '../../../cli/test/run-in-process.js';
import { FrameRing, newRingMemory } from '../../src/commands/sim/cores/frame-ring.js';
import { abort, Meeting, newMeetingMemory } from '../../src/commands/sim/cores/meeting.js';
import type { runOnCores as runOnCoresOf } from '../../src/commands/sim/cores/run-on-cores.js';
import type { ScenarioResult } from '../../src/sim/scenario/result.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../src/sim/scenario/schema.js';

describe('a ring of frames', () => {
  const frame = (length: number, first: number) => Uint8Array.from({ length }, (_, i) => (first + i) & 0xff);

  it('hands over every frame once, in order, around its end', () => {
    const memory = newRingMemory(512);
    const [writer, reader] = [new FrameRing(memory, undefined), new FrameRing(memory, undefined)];
    const taken: unknown[] = [];
    const sent: unknown[] = [];
    for (let n = 0; n < 500; n++) {
      const bytes = frame(1 + ((n * 37) % 150), n);
      sent.push([n % 7, n + 0.5, [...bytes]]);
      writer.write(n % 7, n + 0.5, bytes, 0, bytes.length);
      if (n % 3 === 0) continue;
      reader.readAll((cable, arrivalNs, from, offset, length) => {
        taken.push([cable, arrivalNs, [...from.subarray(offset, offset + length)]]);
      });
    }
    expect(taken).toEqual(sent);
  });

  it('keeps the head of a long frame, and its length', () => {
    const memory = newRingMemory(512);
    const storage = { wholeBytesMax: 40, headBytes: 16 };
    const [writer, reader] = [new FrameRing(memory, storage), new FrameRing(memory, storage)];
    writer.write(1, 10, frame(1000, 5), 2, 900);
    writer.write(2, 11, frame(40, 9), 0, 40);
    const taken: unknown[] = [];
    reader.readAll((cable, _, from, offset, length) => {
      taken.push([cable, length, [...from.subarray(offset, offset + 16)]]);
    });
    expect(taken).toEqual([
      [1, 900, [...frame(16, 7)]],
      [2, 40, [...frame(16, 9)]],
    ]);
  });

  it('makes a writer wait for room, and refuses what never has any', () => {
    const memory = newRingMemory(512);
    const reader = new FrameRing(memory, undefined);
    let taken = 0;
    const writer = new FrameRing(memory, undefined, () => reader.readAll(() => taken++));
    for (let n = 0; n < 10; n++) writer.write(0, n, frame(100, n), 0, 100);
    expect(taken).toBe(8); // Four at a time.
    expect(() => writer.write(0, 0, frame(600, 0), 0, 600)).toThrow('has no room');
  });
});

describe('a meeting', () => {
  it('of one gives back its time', () => {
    const meeting = new Meeting(
      newMeetingMemory(1),
      0,
      () => 0,
      () => {},
    );
    expect([meeting.meet(5), meeting.meet(3)]).toEqual([5, 3]);
  });

  it('that is given up refuses who waits', () => {
    const memory = newMeetingMemory(2);
    const meeting = new Meeting(
      memory,
      0,
      () => 0,
      () => abort(memory),
    );
    expect(() => meeting.meet(1)).toThrow('another part of the run has failed');
  });
});

const FABRIC: ScenarioFile = {
  name: 'fabric',
  duration: '60us',
  topology: { kind: 'leaf-spine', leaves: 4, spines: 2, hostsPerLeaf: 2, rate: '40Gbps' },
  nic: { timeout: 14 },
  switch: { pfc: { priorities: [0] }, buffer: { totalBytes: '600KB' } },
  flows: [{ kind: 'incast', from: 'h0..h5', to: 'h6', fanIn: 6, bytes: 20_000, every: '30us', until: '60us' }],
};

describe('what cannot be divided', () => {
  it('is refused with what to do', async () => {
    const refused = await run(['sim', 'run', 'dcqcn-n2-4us', '--cores', '2']);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain('2 parts need 2 switches with hosts, and this topology has 1');
    expect(refused.stderr).toContain('set cores to 1 or less');
  });

  it('is a run whose host is watched', async () => {
    const refused = await run(['sim', 'run', 'dcqcn-n2-4us', '--cores', '2', '--series', 'unwritten.csv']);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('need --cores 1');
    expect(existsSync('unwritten.csv')).toBe(false);
  });
});

const BUILT = '../../../../build/packages/lab/src/commands/sim/cores/run-on-cores.js';

// Worker threads run what `npm test` has built.
describe.skipIf(!existsSync(new URL(BUILT, import.meta.url)))('threads', async () => {
  const { runOnCores } = (await import(BUILT).catch(() => ({}))) as { runOnCores: typeof runOnCoresOf };
  const timeless = (result: ScenarioResult) => ({ ...result, wallSeconds: 0, eventsPerSecond: 0 });

  it.each([
    [2, 'at-start'],
    [3, 'at-start'],
    [2, 'per-flow'],
  ] as const)('%i give the document of one, queue pairs %s', async (cores, queuePairs) => {
    const whole = await runScenario(parseScenario({ ...FABRIC, cores: 1 }));
    const { signal } = new AbortController();
    const { result, work } = await runOnCores(parseScenario({ ...FABRIC, cores, queuePairs }), {
      signal,
      onProgress() {},
    });
    expect(timeless(result)).toEqual(timeless(whole));
    expect(result.summary.completions.count).toBeGreaterThan(0);
    expect(work).toHaveLength(cores);
  });

  it('that are interrupted give the result until then', async () => {
    const scenario = parseScenario({ ...FABRIC, cores: 2, duration: '100s' });
    const { result } = await runOnCores(scenario, {
      signal: AbortSignal.abort(),
      onProgress() {},
    });
    expect(result.virtualSeconds).toBeCloseTo(0.5, 9);
  });
});
