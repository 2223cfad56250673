import { describe, expect, it } from 'vitest';
import {
  packRateControl,
  rateControlNames,
  rateControlSettings,
  rateControls,
  unpackRateControl,
} from '../../src/dcqcn/rate-controls.js';
import { F64_BLOCK_LENGTH } from '../../src/memory/ring/commands.js';
import { describeRateControl } from '../contracts/rate-control-contract.js';

/** The floor and the ceiling that the parameters of a scheme name, with their defaults. */
for (const name of rateControlNames()) {
  const settings: { minimumRateBps?: number; linkRateBps?: number; rateBps?: number } = rateControlSettings({
    name,
  }) as object;
  const { rateBps = Number.POSITIVE_INFINITY, linkRateBps = rateBps, minimumRateBps = linkRateBps } = settings;
  describeRateControl({ options: { name }, minimumRateBps, maximumRateBps: linkRateBps });
}

describe.each(rateControlNames())('the parameters of %s', (name) => {
  const table = rateControls.get(name).parameters;

  it('cross the command ring', () => {
    const halfway = Object.fromEntries(Object.keys(table).map((key) => [key, table[key].default]));
    const { name: packedName, block } = packRateControl({ name, ...halfway } as never);
    expect(block.length).toBeLessThanOrEqual(F64_BLOCK_LENGTH);
    const padded = new Float64Array(F64_BLOCK_LENGTH);
    padded.set(block);
    expect(unpackRateControl(packedName, padded)).toEqual({ name, ...halfway });
  });

  it.each(Object.keys(table))('%s is refused outside of its range', (key) => {
    const { min, max } = table[key];
    for (const value of [min - 1, max * 2, Number.NaN]) {
      expect(() => packRateControl({ name, [key]: value } as never)).toThrow(
        expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE', message: expect.stringContaining(key) }),
      );
    }
  });

  it('are no others', () => {
    expect(() => packRateControl({ name, constructor: 1 } as never)).toThrow(/no rate control parameter constructor/);
  });
});

it('a name that is none is refused with the known ones', () => {
  expect(() => unpackRateControl('reno', new Float64Array(F64_BLOCK_LENGTH))).toThrow(
    /no rate control 'reno' \(there are none, fixed, dcqcn, /,
  );
});
