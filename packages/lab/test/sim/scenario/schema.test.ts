import { describe, expect, test } from 'vitest';
import { override } from '../../../src/sim/scenario/overrides.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../../../src/sim/scenarios/index.js';

const FILE: ScenarioFile = {
  name: 'small',
  duration: '1ms',
  topology: { kind: 'star', hosts: 3 },
  flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2' }],
};

describe('a scenario file', () => {
  test('takes units, and has defaults for all the rest', () => {
    const scenario = parseScenario({ ...FILE, nic: { cc: { name: 'dcqcn', additiveIncreaseBps: '10Mbps' } } });
    expect(scenario.duration).toBe(1e6);
    expect(scenario.topology).toEqual({ kind: 'star', hosts: 3, rate: 40e9, delay: 1000 });
    expect(scenario.nic).toMatchObject({
      mtu: 1024,
      recovery: 'go-back-n',
      cc: { name: 'dcqcn', additiveIncreaseBps: 10e6 },
    });
  });

  test.each<[string, object, string]>([
    ['an unknown field', { nics: {} }, 'nics'],
    ['a wrong unit', { duration: '5 parsecs' }, "duration: '5 parsecs' is not a time"],
    [
      'a path MTU that does not exist',
      { nic: { mtu: 1500 } },
      'nic.mtu: the path MTU is one of 256, 512, 1024, 2048, 4096',
    ],
    ['a topology that does not exist', { topology: { kind: 'ring' } }, 'topology.kind'],
    ['frames that are shorter on the link', { topology: { kind: 'pair', extra: -1 } }, 'topology.extra'],
    ['a host that is none', { flows: [{ kind: 'flows', from: '1st', to: 'h1' }] }, 'flows[0].from: write a host as h0'],
    [
      'a rate control that does not exist',
      { nic: { cc: 'reno' } },
      "nic.cc: there is no rate control 'reno' (there are none, fixed, dcqcn",
    ],
    [
      'a threshold that is missing',
      { switch: { ecn: { kind: 'red', kmaxBytes: 1, pmax: 1 } } },
      'kminBytes: is missing',
    ],
    [
      'a size that is none',
      { flows: [{ kind: 'flows', from: 'h0', to: 'h1', bytes: [1] }] },
      'flows[0].bytes: write a number',
    ],
    ['a run of no time', { duration: 0 }, 'duration: a run takes more than no time'],
    ['a warm-up as long as the run', { warmup: '1ms' }, 'warmup: the warm-up ends before the run does'],
    ['a series without end', { sample: 0 }, 'sample: a series has at most 1000000 points'],
    [
      'a parameter that it does not have',
      { nic: { cc: { name: 'dcqcn', speed: 1 } } },
      'no rate control parameter speed',
    ],
    ['a fault rule that is none', { faults: 'sometimes' }, 'faults:'],
    [
      'an assertion without limits',
      { assertions: [{ name: 'x', value: 'summary.jain' }] },
      'assertions[0]: give min, max or both',
    ],
    ['no flows', { flows: [] }, 'flows'],
  ])('%s is refused by name', (_what, change, message) => {
    expect(() => parseScenario({ ...FILE, ...change })).toThrow(message);
  });

  test('every built-in scenario is one, with a name and a title of its own', () => {
    const names = BUILT_IN_SCENARIOS.map((file) => parseScenario(file).name);
    expect(new Set(names).size).toBe(names.length);
    expect(BUILT_IN_SCENARIOS.filter(({ title = '' }) => title === '')).toEqual([]);
  });
});

describe('overrides', () => {
  test('reach into objects and lists, make what is missing, and leave the file as it was', () => {
    const changed = override(FILE, [
      'nic.mtu=4096',
      'flows[0].message=1MiB',
      'seed=7',
      'nic.cc={"name":"fixed","rateBps":1e9}',
    ]);
    expect(parseScenario(changed)).toMatchObject({
      seed: 7,
      nic: { mtu: 4096, cc: { name: 'fixed', rateBps: 1e9 } },
      flows: [{ message: 2 ** 20 }],
    });
    expect(FILE).not.toHaveProperty('seed');
  });

  test('give parameters to a rate control that is only named', () => {
    const changed = override({ ...FILE, nic: { cc: 'dcqcn' } }, ['nic.cc.gain=0.1']);
    expect(parseScenario(changed).nic.cc).toEqual({ name: 'dcqcn', gain: 0.1 });
  });

  test('that are none, or lead into a number, are refused', () => {
    expect(() => override(FILE, ['nic.mtu'])).toThrow("'nic.mtu' is not an override");
    expect(() => override(FILE, ['duration.x=1'])).toThrow('duration is "1ms"');
  });

  test('of nic.cc are refused where flows have a rate control of their own, and only there', () => {
    const own = { ...FILE, flows: [{ ...FILE.flows[0], cc: 'dcqcn' }] };
    expect(() => override(own, ['nic.cc=none'])).toThrow("'nic.cc=none' does not reach flows");
    expect(() => override(own, ['nic.cc.gain=0.1'])).toThrow('set flows[0].cc instead');
    expect(() => override(own, ['flows[0].cc=none'])).not.toThrow();
    expect(() => override(FILE, ['nic.cc=none'])).not.toThrow();
  });
});
