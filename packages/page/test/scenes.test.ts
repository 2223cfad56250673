/** Scenes run in Node.js, as they do in the worker of the page. */

import { readFileSync } from 'node:fs';
import { Audit, CaptureStream } from '@rocev2/inspect';
import { ruleOf } from '@rocev2/inspect/internal/page';
import { simulate } from '@rocev2/lab/sim';
import {
  type CaptureReport,
  completed,
  exampleCapture,
  type FileScene,
  LOST,
  NAK,
  nameIn,
  REPEATED,
  readCapture,
  ruleTitleIn,
  runVariant,
  SCENES,
  SIMULATED_SCENES,
  sentenceIn,
  TEXTS,
  type TextKey,
  textIn,
  type Variant,
} from '@rocev2/page/scenes';
import { describe, expect, it } from 'vitest';
import { audited } from '../../inspect/test/audit/golden.js';
import { AT, MUTANTS } from '../../inspect/test/audit/mutants.js';

type Rule = NonNullable<ReturnType<typeof ruleOf>>;

function short(variant: Variant, duration: number): Variant {
  if ('program' in variant) return { ...variant, durationNs: duration };
  return { ...variant, scenario: { ...variant.scenario, duration } };
}

function scenarioOf(variant: Variant) {
  if ('program' in variant) throw new Error(`${variant.name} runs a program`);
  return variant.scenario;
}

describe.each(SIMULATED_SCENES)('the scene $name', (scene) => {
  const values = completed(scene, {});

  it('has texts, and possible initial values', () => {
    const keys = scene.parameters.flatMap(({ name }) => [`${scene.name}.${name}`, `${scene.name}.${name}.hint`]);
    for (const key of [scene.name, `${scene.name}.idea`, ...keys]) expect(TEXTS).toHaveProperty([key]);
    for (const { name, kind, values: possible } of scene.parameters) {
      if (kind === 'code') continue;
      for (const value of values[name].split(',')) expect(possible).toContain(value);
    }
  });

  it('takes initial values for impossible ones', () => {
    const given = Object.fromEntries(scene.parameters.map(({ name }) => [name, 'impossible'.repeat(500)]));
    expect(completed(scene, given)).toEqual(values);
  });

  it('runs, and explains the outcome', async () => {
    const outcomes = [];
    for (const variant of scene.variants(values, 1)) {
      const run = await runVariant(short(variant, 200_000), () => true);
      outcomes.push(run!.outcome);
      expect(run!.outcome.means).toHaveLength(scene.series.length);
    }
    const { title, text, numbers } = scene.explain(values, outcomes);
    for (const key of [title, text] satisfies TextKey[]) {
      for (const [, name] of TEXTS[key].en.matchAll(/\{(\w+)\}/g)) expect(numbers).toHaveProperty(name);
    }
  });
});

it('every text has both languages, with the same numbers', () => {
  for (const [key, { en, zh }] of Object.entries(TEXTS)) {
    const numbersIn = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();
    expect(zh.length, key).toBeGreaterThan(0);
    expect(numbersIn(zh), key).toEqual(numbersIn(en));
  }
});

it('every value and run that is a word has both languages', () => {
  const isName = /[-\d]|^(?:irn|rack|melo|dcqcn|timely|swift|baseline|nodelay|nagle)$/;
  const names = SIMULATED_SCENES.flatMap((scene) => [
    ...scene.parameters.flatMap(({ values }) => values),
    ...scene.variants(completed(scene, {}), 1).map(({ name }) => name),
  ]);
  const words = names.filter((name) => !isName.test(name));
  expect(words.length).toBeGreaterThan(8);
  for (const name of words) expect(nameIn('zh', name), name).toMatch(/\p{Script=Han}/u);
});

it('every requirement that an audit decides has both languages', () => {
  const rules = Array.from({ length: 200 }, (_, id) => ruleOf(id)).filter((rule) => rule?.audit === 'judged');
  expect(rules.length).toBeGreaterThan(40);
  for (const { id, title } of rules as Rule[]) {
    expect(ruleTitleIn('en', { rule: id, title })).toBe(title);
    expect(ruleTitleIn('zh', { rule: id, title }), title).toMatch(/\p{Script=Han}/u);
  }
});

describe('the livelock', () => {
  const [scene] = SIMULATED_SCENES;
  const values = completed(scene, { loss: '1/256', message: '1 MiB' });
  const variantsFor = (duration: number) => scene.variants(values, 1).map((variant) => short(variant, duration));

  it('has the packets of the same scenario in the simulator', async () => {
    const [, variant] = variantsFor(300_000);
    const { outcome, packets } = (await runVariant(variant, () => true))!;
    const scenario = scenarioOf(variant);
    const { cc: _, ...nic } = scenario.nic;
    const file = { ...scenario, nic, payload: 'real' as const };
    expect(outcome.result.traceHash).toBe((await simulate(file)).traceHash);
    const has = (flag: number) => packets.flags.some((flags) => (flags & flag) !== 0);
    expect([has(LOST), has(NAK), has(REPEATED)]).toEqual([true, true, true]);
    const lost = packets.flags.findIndex((flags) => (flags & LOST) !== 0);
    expect(packets.arrivedNs[lost]).toBeNaN();
  });

  it('is explained where go-back-0 delivers nothing, and not without loss', async () => {
    const explained = async (loss: string) => {
      const chosen = completed(scene, { loss, schemes: 'go-back-0', message: '1 MiB' });
      const [variant] = scene.variants(chosen, 1);
      const { outcome } = (await runVariant(short(variant, 600_000), () => true))!;
      return scene.explain(chosen, [outcome]).title;
    };
    expect(await explained('1/256')).toBe('livelock.stuck');
    expect(await explained('0')).toBe('livelock.good');
  });

  it('gives up a run when asked', async () => {
    const [variant] = variantsFor(300_000);
    expect(await runVariant(variant, ({ done }) => done < 0.1)).toBeUndefined();
  });
});

describe('other scenes', () => {
  const sceneOf = (name: string) => SIMULATED_SCENES.find((scene) => scene.name === name)!;
  const outcomeOf = async (name: string, given: Record<string, string>, duration: number) => {
    const scene = sceneOf(name);
    const [variant] = scene.variants(completed(scene, given), 1);
    return (await runVariant(short(variant, duration), () => true))!.outcome;
  };

  it('hold back the feedback where there is jitter', async () => {
    const late = await outcomeOf('signals', { controls: 'dcqcn', flows: '2', jitter: '100 us' }, 150_000);
    const prompt = await outcomeOf('signals', { controls: 'dcqcn', flows: '2', jitter: '0 us' }, 150_000);
    expect(late.result.traceHash).not.toBe(prompt.result.traceHash);
    expect(late.result.summary.cnps).toBeLessThan(prompt.result.summary.cnps);
  });

  it('has a phase margin that is not monotonic in the flows, and none for TIMELY', () => {
    const scene = sceneOf('dcqcn');
    const marginsOf = (given: Record<string, string>) =>
      scene.curve!(completed(scene, given))?.lines[0].y.map((y) => y!);
    const dcqcn = marginsOf({ delay: '20 us' })!;
    expect(dcqcn.indexOf(Math.min(...dcqcn))).toBe(3); // 8 flows.
    expect([dcqcn[0], dcqcn[3], dcqcn[31]].map(Math.sign)).toEqual([1, -1, 1]);
    const patched = marginsOf({ control: 'patched-timely' })!;
    expect(patched.indexOf(Math.max(...patched))).toBe(3);
    expect(marginsOf({ control: 'timely' })).toBeUndefined();
  });

  it('simulates points near the curve of the closed form', async () => {
    const scene = sceneOf('recovery');
    const values = completed(scene, { schemes: 'go-back-n' });
    const [, , variant] = scene.variants(values, 1);
    const { outcome } = (await runVariant(short(variant, 1e6), () => true))!;
    const { x, lines, points } = scene.curve!(values)!;
    const [{ line, x: at, y }] = points!([outcome]);
    expect(at).toBeCloseTo(-2, 9);
    const nearest = x.findIndex((exponent) => exponent >= at);
    expect(Math.abs(lines[line].y[nearest]! - y)).toBeLessThan(0.1);
  });

  it.each(['timely', 'patched-timely'])('simulates %s near its model', async (control) => {
    const { means } = await outcomeOf('dcqcn', { control, flows: '2' }, 3e6);
    const [, , rateBps, modelBps] = means;
    expect(rateBps).toBeGreaterThan(0.85 * modelBps);
    expect(rateBps).toBeLessThan(1.15 * modelBps);
  });

  it('lose packets in an incast without PFC, and none with it', async () => {
    const given = { senders: '8', recovery: 'go-back-n' };
    const lossy = await outcomeOf('incast', { ...given, pfc: 'no PFC' }, 300_000);
    const paused = await outcomeOf('incast', { ...given, pfc: 'PFC' }, 300_000);
    expect(lossy.result.summary.droppedPackets).toBeGreaterThan(0);
    expect(paused.result.summary).toMatchObject({ droppedPackets: 0 });
    expect(paused.result.summary.pauseFrames).toBeGreaterThan(0);
  });
});

describe('the window protocol', () => {
  const scene = SIMULATED_SCENES.find(({ name }) => name === 'window')!;
  const outcomesOf = async (given: Record<string, string>, duration = 100_000) => {
    const values = completed(scene, given);
    const runs = [];
    for (const variant of scene.variants(values, 1))
      runs.push((await runVariant(short(variant, duration), () => true))!);
    return {
      runs,
      explained: scene.explain(
        values,
        runs.map(({ outcome }) => outcome),
      ),
    };
  };

  it('needs no request per block, and fewer messages', async () => {
    const { runs, explained } = await outcomesOf({});
    const [baseline, nodelay, nagle] = runs.map(({ outcome }) => outcome.means);
    expect(baseline[0]).toBeLessThan(nodelay[0] / 3);
    expect([baseline[1], nodelay[1], nagle[1]].map(Math.round)).toEqual([2, 1, 0]);
    expect(explained.title).toBe('window.waiting');
    // A request and its answer before each block.
    const [{ packets }] = runs;
    const names = [...packets.opcode].map((opcode) => packets.operations[opcode]);
    expect(names.filter((name) => name === 'RC SEND_ONLY').length).toBeGreaterThan(8);
    expect(packets.arrivedNs[0]).toBeGreaterThan(4000);
    expect(packets.flags.some((flags) => (flags & (REPEATED | LOST)) !== 0)).toBe(false);
  });

  it('runs the same packets each time, and says when the pool is too small', async () => {
    const [first, second] = [
      await outcomesOf({ block: '4 KiB', blocks: '4' }),
      await outcomesOf({ block: '4 KiB', blocks: '4' }),
    ];
    const hashes = ({ runs }: typeof first) => runs.map(({ outcome }) => outcome.result.traceHash);
    expect(hashes(first)).toEqual(hashes(second));
    expect(new Set(hashes(first)).size).toBe(3);
    expect(first.explained.title).toBe('window.small');
  });

  it('is given up when asked', async () => {
    const [variant] = scene.variants(completed(scene, {}), 1);
    expect(await runVariant(variant, () => false)).toBeUndefined();
  });
});

describe('a capture', () => {
  const scene = SCENES.find(({ kind }) => kind === 'file')! as FileScene;
  const golden = (name: string) => new Blob([readFileSync(`test/golden/${name}.pcapng`)]);
  const explained = (report: CaptureReport) => {
    const { title, text, numbers } = scene.explain(report);
    return [title, text].map((key) => textIn('en', key, numbers)).join('. ');
  };

  it('has the report of the audit, all packets, and a ladder with the loss', async () => {
    const name = 'loss-req-send-rc-v4';
    const report = (await readCapture(golden(name), () => true))!;
    const audit = new Audit({ fitsRates: true });
    for await (const packets of CaptureStream.of(golden(name)).chunks()) for (const one of packets) audit.take(one);
    expect(report.audit).toEqual(audit.report());
    expect(report.packets).toHaveLength(report.audit.packets.roce);
    const shown = report.connections.flatMap(({ packets }) => packets);
    expect(shown.some(({ isLost }) => isLost) && shown.some(({ kind }) => kind === 'nak')).toBe(true);
    expect(explained(report)).toMatch(/^No rule is broken\. \d+ RoCEv2 packets, 1 connections/);
  });

  it('shows damaged packets of the example as a broken rule', async () => {
    const report = await exampleCapture(1);
    expect(report.rules[0]).toMatchObject({ verdict: 'violation', severity: 'must' });
    expect(report.audit.findings.filter(({ verdict }) => verdict === 'violation')).not.toEqual([]);
    expect(explained(report)).toMatch(/^Rules that must be kept are broken: \d/);
  });

  it('is given up when asked, and a file of another kind is rejected', async () => {
    expect(await readCapture(golden('ud-v4'), () => false)).toBeUndefined();
    await expect(readCapture(new Blob(['no capture']), () => true)).rejects.toThrow(/cannot read/);
  });
});

describe('own schemes', () => {
  const scene = SIMULATED_SCENES.find(({ name }) => name === 'own')!;
  const run = async (values: Record<string, string>) => {
    const [variant] = scene.variants(completed(scene, values), 1);
    return (await runVariant(short(variant, 100_000), () => true))!.outcome;
  };
  const example = (kind: string) => scene.parameters[1].example!({ kind });

  it('take effect', async () => {
    const code = example('rate control').replace('= 40e9;', '= 1e9;');
    const [usual, slow] = [await run({}), await run({ code })];
    expect(slow.result.summary.goodputBps).toBeLessThan(usual.result.summary.goodputBps / 2);
    const recovered = await run({ kind: 'recovery scheme' });
    expect(recovered.result.summary.goodputBps).toBeGreaterThan(0);
  });

  it.each([
    ['a syntax error', (code: string) => code.replace('#cutNs = 0;', '#cutNs = = 0;'), /^line 8: /],
    [
      'an error while it loads',
      (code: string) => code.replace('registerRateControl({', 'register({'),
      /^line 27: .*register/,
    ],
    ['an error in a method', (code: string) => code.replace('return Math', 'return Mathe'), /^line 17: Mathe is not/],
    ['code that registers nothing', () => '', /^$/],
  ])('report %s with its line', async (_, change, message) => {
    const code = change(example('rate control'));
    const failure = code === '' ? run({ code: '// nothing' }) : run({ code });
    await expect(failure).rejects.toThrow(code === '' ? /registers no rate control/ : message);
  });

  it('reject a scheme of the other kind', async () => {
    await expect(run({ code: example('recovery scheme') })).rejects.toThrow(/registers a recovery scheme/);
  });
});

describe('sentences about a capture', () => {
  it.each(Object.entries(MUTANTS))('have both languages where rule %s is broken', (rule, mutant) => {
    const { findings } = audited(mutant(), { capturedAt: AT[Number(rule)] ?? '10.77.0.2' });
    const texts = findings.filter(({ verdict }) => verdict === 'violation').map(({ text }) => text);
    expect(texts.length).toBeGreaterThan(0);
    for (const text of texts) {
      expect(sentenceIn('en', text)).toBe(text);
      expect(sentenceIn('zh', text), text).toMatch(/\p{Script=Han}/u);
    }
  });

  it('have both languages in the ladder and in the remarks', async () => {
    const { connections } = await exampleCapture(1);
    const notes = connections.flatMap(({ packets }) => packets.flatMap((packet) => packet.notes));
    expect(new Set(notes).size).toBeGreaterThan(5);
    for (const note of notes) expect(sentenceIn('zh', note), note).toMatch(/\p{Script=Han}/u);
    const bytes = readFileSync('test/golden/loss-req-send-rc-v4.pcapng');
    const { remarks } = (await readCapture(new Blob([bytes.subarray(0, bytes.length - 3)]), () => true))!;
    expect(remarks).toHaveLength(1);
    for (const remark of remarks) expect(sentenceIn('zh', remark)).toMatch(/^文件在第 \d+ 字节处损坏/);
  });
});
