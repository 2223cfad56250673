import { describe, expect, it } from 'vitest';
import { headroomBytes } from '../../src/switch/headroom.js';

/** KiB for 5 m, 40 m, 300 m, 2 km, 40 km, by SONiC's calculation with its own settings. */
const PUBLISHED: ReadonlyArray<readonly [gbps: number, ...kib: number[]]> = [
  [10, 33, 34, 41, 87, 1116],
  [40, 40, 44, 72, 257, 4375],
  [100, 80, 90, 160, 621, 10916],
  [400, 156, 194, 476, 2318, 43499],
];
const METRES = [5, 40, 300, 2000, 40_000];

describe('headroom by rate and cable', () => {
  it.each(PUBLISHED)("equals SONiC's for %d Gb/s, where a kilobyte on the cable is 1024 bytes", (gbps, ...expected) => {
    const computed = METRES.map(
      (metres) =>
        headroomBytes({
          rateBps: gbps * 1e9,
          cableMetres: (metres * 1000) / 1024,
          portMtuBytes: 9100,
          losslessMtuBytes: 1024,
          cellBytes: 144,
          smallPacketPercent: 100,
        }) / 1024,
    );
    expect(computed).toEqual(expected);
  });

  it('needs less where memory is not cut into cells', () => {
    const model = { rateBps: 40e9, cableMetres: 5, portMtuBytes: 9100, losslessMtuBytes: 1024, cellBytes: 144 };
    const small = headroomBytes({ ...model, smallPacketPercent: 0 });
    expect(small).toBeLessThan(headroomBytes({ ...model, smallPacketPercent: 100 }));
  });
});
