import { describe, expect, test } from 'vitest';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { topologyOf } from '../../../src/sim/scenario/topology-of.js';
import { warningsOf } from '../../../src/sim/scenario/warnings.js';
import { BUILT_IN_SCENARIOS } from '../../../src/sim/scenarios/index.js';

const MARKED: ScenarioFile = {
  name: 'marked',
  duration: '1ms',
  topology: { kind: 'star', hosts: 3 },
  nic: { cc: 'dcqcn' },
  switch: { ecn: { kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 } },
  flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2' }],
};

function warnings(file: ScenarioFile): string[] {
  const scenario = parseScenario(file);
  return warningsOf(scenario, topologyOf(scenario.topology));
}

describe('warnings', () => {
  test.each<[string, Partial<ScenarioFile>, RegExp]>([
    [
      'a preset for 100 Gb/s at 40 Gb/s',
      { nic: { cc: { name: 'dcqcn', preset: 'hpcc' } } },
      /set for 100 Gb\/s.*40.0 Gb\/s/,
    ],
    ['a rate control for 10 Gb/s at 40 Gb/s', { nic: { cc: 'timely' } }, /timely is set for 10/],
    ['DCQCN without marks', { switch: {} }, /no switch marks priority 0/],
    ['marks of another priority', { nic: { cc: 'dcqcn', dscp: 48 } }, /no switch marks priority 6/],
    [
      'HPCC without telemetry',
      { nic: { cc: { name: 'hpcc', linkRateBps: 40e9 } }, switch: { int: { isOn: false } } },
      /telemetry/,
    ],
    [
      'pauses of another priority',
      { switch: { ...MARKED.switch, pfc: { priorities: [3] } } },
      /data has priority 0, .*lossless/,
    ],
    [
      'a mapping to another priority',
      { switch: { ...MARKED.switch, pfc: { priorities: [0] }, classification: { dscpToPriority: { 0: 3 } } } },
      /data has priority 3/,
    ],
    [
      'a recovery that waits for trimmed packets, without trimming',
      { nic: { cc: 'dcqcn', recovery: 'dcp' } },
      /dcp .*switch\.trim is not set/,
    ],
    [
      'trimming, without a recovery that uses it',
      { switch: { ...MARKED.switch, trim: {} } },
      /switch\.trim .*set nic\.recovery/,
    ],
    [
      'an ACK timeout below the round trip',
      { topology: { kind: 'star', hosts: 3, delay: '50us' }, nic: { cc: 'dcqcn', timeout: 4 } },
      /ACK timeout of 65.* takes 200/,
    ],
  ])('of %s', (_, changes, expected) => {
    expect(warnings({ ...MARKED, ...changes })).toEqual([expect.stringMatching(expected)]);
  });

  test('not of options that fit', () => {
    const mapped = { pfc: { priorities: [3] }, classification: { dscpToPriority: { 0: 3 } } };
    expect(warnings(MARKED)).toEqual([]);
    expect(warnings({ ...MARKED, switch: { ...MARKED.switch, ...mapped } })).toEqual([]);
    expect(
      warnings({ ...MARKED, nic: { cc: 'dcqcn', dscp: 26 }, switch: { ...MARKED.switch, pfc: { priorities: [3] } } }),
    ).toEqual([]);
  });

  test('built-in scenarios have none', () => {
    const warned = BUILT_IN_SCENARIOS.flatMap((file) => warnings(file).map((text) => `${file.name}: ${text}`));
    expect(warned).toEqual([]);
  });
});
