import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import { switchConfigSchema } from '../../src/schema/switch-config-schema.js';
import { Switch } from '../../src/switch/switch.js';

const EVERYTHING = {
  queuePackets: 10,
  bufferPackets: 100,
  macTableEntries: 10,
  macAgeNs: '5s',
  frameBytesMax: 4200,
  classification: { trust: 'dscp', dscpToPriority: { 26: 3 } },
  scheduling: { strict: [7], weights: [1, 1, 1, 4, 1, 1, 1, 1] },
  buffer: {
    totalBytes: '32MiB',
    headroomPoolBytes: '2MiB',
    headroomOversubscription: 2,
    ingressPoolBytes: '16MiB',
    egressLossyPoolBytes: '8MiB',
    losslessAlpha: 0.125,
    lossyAlpha: 8,
    reservedBytes: 4096,
    xonOffsetBytes: '3KiB',
  },
  pfc: {
    priorities: [3],
    quanta: 1000,
    watchdog: { detectNs: '200ms', restoreNs: '400ms', pollNs: '100ms', action: 'drop' },
  },
  ecn: {
    kind: 'red',
    kminBytes: '5KB',
    kmaxBytes: '200KB',
    pmax: 0.01,
    at: 'dequeue',
    priorities: [3],
    dropNotEct: false,
  },
  routes: [{ to: '10.0.0.0/24', ports: ['a', 'b'] }],
  flood: true,
  hashSeed: 5,
  portDefaults: { rateBps: '40Gbps', cableMetres: 5, headroomBytes: '40KiB' },
  portConfig: {
    b: { ecn: { kind: 'pi', referenceBytes: 200_000, proportionalPerByte: 2e-8, integralPerByteSecond: 5e-7 } },
    c: { ecn: null },
  },
};

describe('switch configuration as JSON', () => {
  it('may say everything, with units, and a switch can be made of it', () => {
    const config = switchConfigSchema.parse(JSON.parse(JSON.stringify(EVERYTHING)));
    expect(config).toMatchObject({
      macAgeNs: 5e9,
      buffer: { totalBytes: 2 ** 25, xonOffsetBytes: 3072 },
      pfc: { watchdog: { detectNs: 2e8 } },
      ecn: { kminBytes: 5000, kmaxBytes: 200_000 },
      portDefaults: { rateBps: 40e9 },
    });
    const random = new SeededRandom(1).stream('marking');
    expect(new Switch({ ports: ['a', 'b', 'c'], random, ...config }).nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
  });

  it('may say nothing', () => {
    expect(switchConfigSchema.parse({})).toEqual({});
  });

  it.each([
    [{ ecn: { kind: 'red', kminBytes: 10, kmaxBytes: 5, pmax: 1 } }, 'ecn.kmaxBytes'],
    [{ ecn: { kind: 'red', kminBytes: 10, kmaxBytes: 50, pmax: 2 } }, 'ecn.pmax'],
    [{ pfc: { priorities: [8] } }, 'pfc.priorities.0'],
    [{ pfc: { priorities: [3], watchdog: { detectNs: '2 parsecs' } } }, 'pfc.watchdog.detectNs'],
    [{ scheduling: { weights: [1, 2] } }, 'scheduling.weights'],
    [{ classification: { dscpToPriority: { 64: 1 } } }, 'classification.dscpToPriority.64'],
    [{ portDefaults: { rateBps: '40' } }, 'portDefaults.rateBps'],
    [{ queuePacket: 1 }, ''],
  ])('names the field that is wrong: %j', (value, path) => {
    const result = switchConfigSchema.safeParse(value);
    expect(result.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });
});
