/** What `bench:peers` and `bench:aims` make of measurements that fail, are cut short, or miss their bar. Nothing is timed here. */

import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

type Add = (name: string, sample: { value: number }) => void;
interface Step {
  readonly name: string;
  readonly samples: readonly string[];
  readonly once?: boolean;
  run(add: Add): Promise<void>;
}
interface Aim {
  readonly aim: string;
  readonly of: string;
  readonly to?: string;
  readonly kind?: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly native?: boolean;
}
interface Samples {
  add(name: string, rep: number, sample: { value: number; cpu?: number }): void;
  fail(name: string, rep: number, reason: string): void;
  numbers(name: string): number[];
  ratios(name: string, to: string): number[];
  failures(name: string): { tried: number; failed: number; reason?: string };
}
interface Verdict {
  readonly now: { median: number } | null;
  readonly reached: boolean | null;
  readonly remark?: string;
}

const load = async <T>(path: string) => (await import(pathToFileURL(`bench/${path}`).href)) as T;
const { Samples } = await load<{ Samples: new () => Samples }>('aims/samples.js');
const { AIMS, DISK_KINDS } = await load<{ AIMS: readonly Aim[]; DISK_KINDS: readonly string[] }>('aims/list.js');
const { verdictOn, verdictTable } = await load<{
  verdictOn(aim: Aim, samples: Samples, machine: { hasNativeCrc: boolean }): Verdict;
  verdictTable(verdicts: readonly Verdict[]): string;
}>('aims/verdict.js');
const { runSteps } = await load<{
  runSteps(steps: readonly Step[], samples: Samples, options: object): Promise<number>;
}>('aims/repetitions.js');
const { rowsOf, tableText } = await load<{
  rowsOf(name: string, measure: object, samples: Samples): Array<{ median: number | null; ratio: number | null }>;
  tableText(measure: object): string;
}>('peers/rows.js');
const { measures } = await load<{ measures(options: object): Record<string, { runs: Array<{ name: string }> }> }>(
  'peers/measures.js',
);
const { runPair } = await load<{ runPair(run: object): Promise<{ client: { latencyUs: { p50: number } } }> }>(
  'peers/pairs.js',
);
const processes =
  await load<Record<'diskStep' | 'gatewayStep' | 'idleStep' | 'mappedStep', (of: unknown, kind?: string) => Step>>(
    'aims/processes.js',
  );
const { FIRST_TOUCH_CODE, firstTouchStep } = await load<{
  FIRST_TOUCH_CODE: Record<string, readonly string[]>;
  firstTouchStep(engine: string, code: string): Step;
}>('aims/processes.js');

const machine = { hasNativeCrc: true };

describe('a pair of processes', () => {
  const net = { name: 'node:net', transport: 'net', with: { messageBytes: 64, messages: 5, warmUp: 1 } };

  it('that fails says why', async () => {
    await expect(runPair({ ...net, measure: 'nonsense' })).rejects.toThrow('the client: net has no nonsense');
    await expect(runPair({ ...net, transport: 'nobody', measure: 'roundTrip' })).rejects.toThrow(
      /the server: .*nobody/,
    );
  });

  it('that does not fail has a result', async () => {
    const { client } = await runPair({ ...net, measure: 'roundTrip' });
    expect(client.latencyUs.p50).toBeGreaterThan(0);
  });
});

describe('rows', () => {
  const measure = { runs: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] };
  const samples = new Samples();
  for (const [rep, value] of [10, 20, 40].entries()) samples.add('m: a', rep, { value });
  samples.add('m: b', 0, { value: 5 });
  samples.fail('m: b', 1, 'RETRY_EXC_ERR');
  samples.add('m: b', 2, { value: 30 });
  for (let rep = 0; rep < 3; rep++) samples.fail('m: c', rep, 'gone');
  const rows = rowsOf('m', measure, samples);

  it('count a failure with its reason, and have the ratios of the repetitions that both have', () => {
    expect(samples.ratios('m: b', 'm: a')).toEqual([0.5, 0.75]);
    expect(rows[1]).toMatchObject({ min: 5, max: 30, failed: { tried: 3, failed: 1, reason: 'RETRY_EXC_ERR' } });
    expect(rows[0]).not.toHaveProperty('failed');
  });

  it('without any value are seen as such', () => {
    expect(rows[2]).toMatchObject({ median: null, ratio: null, failed: { tried: 3, failed: 3, reason: 'gone' } });
    expect(rows.filter(({ median }) => median === null)).toHaveLength(1);
  });

  it('are printed with what failed', () => {
    const lines = tableText({ title: 'm', unit: 'us', rows }).split('\n');
    expect(lines[2]).toMatch(/^a +20\.0 +10\.0 +40\.0 +1\.00 *$/);
    expect(lines[3]).toMatch(/^b .* failed 1 of 3: RETRY_EXC_ERR$/);
    expect(lines[4]).toMatch(/^c +failed 3 of 3: gone$/);
  });
});

describe('aims', () => {
  it('name samples that a bench makes', () => {
    const all = new Set([
      ...Object.entries(measures({ bulkBytes: 1, seconds: 1 })).flatMap(([name, { runs }]) =>
        runs.map((run) => `${name}: ${run.name}`),
      ),
      ...DISK_KINDS.flatMap((kind) => processes.diskStep(1, kind).samples),
      ...[processes.gatewayStep, processes.idleStep].flatMap((step) => step(1).samples),
      ...processes.mappedStep(1).samples,
      ...['inline', 'worker'].flatMap((engine) =>
        Object.keys(FIRST_TOUCH_CODE).flatMap((code) => firstTouchStep(engine, code).samples),
      ),
    ]);
    const named = AIMS.flatMap(({ of, to }) => [of, to ?? of]);
    expect(named.filter((name) => !all.has(name))).toEqual([]);
    for (const { atLeast, atMost } of AIMS)
      expect([atLeast, atMost].filter((bar) => bar !== undefined)).toHaveLength(1);
  });

  it('are reached by the median of the ratios', () => {
    const samples = new Samples();
    for (const [rep, value] of [3, 1, 2].entries()) samples.add('m: a', rep, { value: value * (rep + 1) });
    for (const rep of [0, 1, 2]) samples.add('m: b', rep, { value: rep + 1 });
    const on = (bar: object) => verdictOn({ aim: 'x', of: 'm: a', to: 'm: b', ...bar }, samples, machine);
    expect(on({ atLeast: 2 })).toMatchObject({ now: { median: 2, min: 1, max: 3 }, reached: true });
    expect(on({ atLeast: 2.1 }).reached).toBe(false);
    expect(on({ atMost: 2 }).reached).toBe(true);
    expect(on({ atMost: 1.9 }).reached).toBe(false);
  });

  it('that cannot be judged say why', () => {
    const samples = new Samples();
    samples.add('m: a', 0, { value: 1 });
    samples.fail('m: b', 0, 'fio is not installed');
    const aim = { aim: 'x', of: 'm: a', to: 'm: b', atLeast: 1 };
    const verdicts = [
      verdictOn(aim, samples, machine),
      verdictOn({ aim: 'y', of: 'm: a', atLeast: 1, native: true }, samples, { hasNativeCrc: false }),
      verdictOn({ aim: 'z', of: 'm: a', atLeast: 1, native: true }, samples, machine),
    ];
    expect(verdicts.map(({ reached }) => reached)).toEqual([null, null, true]);
    expect(verdicts[0]!.remark).toBe('failed 1 of 1: fio is not installed');
    const table = verdictTable(verdicts);
    expect(table).toContain('| x | a |  | >= 1 | not measured (failed 1 of 1: fio is not installed) |');
    expect(table).toContain('1 of 1 rows reach their aim by the median; 2 rows were not measured.');
  });
});

describe('repetitions', () => {
  /** Steps that take 10 ms of a clock that only they move. */
  function plan(reps: number, deadlineMs: number) {
    let nowMs = 0;
    const ran: string[] = [];
    const step = (name: string, once: boolean): Step => ({
      name,
      samples: [name],
      once,
      run: async (add) => {
        ran.push(name);
        nowMs += 10;
        if (name === 'bad') throw new Error('on purpose');
        add(name, { value: nowMs });
      },
    });
    const samples = new Samples();
    const steps = [step('first', false), step('bad', false), step('once', true), step('last', false)];
    const done = runSteps(steps, samples, { reps, deadlineMs, nowMs: () => nowMs, progress: () => {} });
    return { samples, ran, done };
  }

  it('go on behind a step that fails', async () => {
    const { samples, ran, done } = plan(2, 1000);
    expect(await done).toBe(2);
    expect(ran).toEqual(['first', 'bad', 'once', 'last', 'first', 'bad', 'last']);
    expect(samples.failures('bad')).toEqual({ tried: 2, failed: 2, reason: 'on purpose' });
    expect(samples.numbers('last')).toHaveLength(2);
  });

  it('stop before a step that would last too long', async () => {
    const { samples, ran, done } = plan(5, 55);
    expect(await done).toBe(2);
    expect(ran).toEqual(['first', 'bad', 'once', 'last', 'first']);
    expect(samples.failures('last')).toMatchObject({ tried: 1, failed: 0 });
  });

  it('say of what the first had no time for that there was none', async () => {
    const { samples, ran, done } = plan(1, 25);
    await done;
    expect(ran).toEqual(['first', 'bad', 'once']);
    expect(samples.failures('last')).toMatchObject({ failed: 1, reason: 'no time was left' });
  });
});
