import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex } from '../../src/core/bytes.js';
import { parseMac } from '../../src/packet/ethernet.js';
import { PFC_FRAME_BYTES, PfcFrame, parsePfc, pauseNs, writePfc } from '../../src/packet/pfc.js';

/** Priority 3 for 65535 quanta, priority 4 may go on: written by hand from IEEE 802.1Q figure 36-1. */
const BY_HAND = fromHex(
  `0180c2000001 0253570000ff 8808 0101 0018 0000 0000 0000 ffff 0000 0000 0000 0000 ${'00'.repeat(26)}`,
);

function sample(): PfcFrame {
  const frame = new PfcFrame();
  frame.enabled = 0b11000;
  frame.quanta[3] = 65535;
  return frame;
}

describe('PFC frames', () => {
  it('are written byte for byte', () => {
    const bytes = new Uint8Array(100).fill(0xee);
    expect(writePfc(bytes, 20, parseMac('02:53:57:00:00:ff'), sample())).toBe(20 + PFC_FRAME_BYTES);
    expect(bytes.slice(20, 80)).toEqual(BY_HAND);
    expect(bytes[80]).toBe(0xee);
  });

  it('write no time for a priority that is not meant', () => {
    const frame = sample();
    frame.quanta[5] = 1234;
    const bytes = new Uint8Array(PFC_FRAME_BYTES);
    writePfc(bytes, 0, parseMac('02:53:57:00:00:ff'), frame);
    expect(bytes).toEqual(BY_HAND);
  });

  it('are read back, out of the middle of an array and without their padding', () => {
    const slab = new Uint8Array(200);
    slab.set(BY_HAND, 50);
    const out = new PfcFrame();
    expect(parsePfc(slab, 50, 34, out)).toBe(true);
    expect([out.enabled, ...out.quanta]).toEqual([0b11000, 0, 0, 0, 65535, 0, 0, 0, 0]);
  });

  it.each([
    ['another destination', 5, 0x02],
    ['another ethertype', 13, 0x09],
    ['the opcode of a pause for the whole link', 14, 0x00],
    ['an unknown opcode', 15, 0x02],
    ['reserved bits in the vector', 16, 0x01],
  ])('are refused with %s', (_what, at, value) => {
    const bytes = BY_HAND.slice();
    bytes[at] = value;
    expect(parsePfc(bytes, 0, bytes.length, new PfcFrame())).toBe(false);
  });

  it('are refused when one byte is missing', () => {
    expect(parsePfc(BY_HAND, 0, 33, new PfcFrame())).toBe(false);
  });

  it('survive any bytes', () => {
    const out = new PfcFrame();
    fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => void parsePfc(bytes, 0, bytes.length, out)));
  });

  it.each([
    [10e9, 3355],
    [25e9, 1342],
    [40e9, 839],
    [100e9, 335.5],
    [200e9, 168],
    [400e9, 84],
  ])('pause a link of %d b/s for at most %d us', (rateBps, us) => {
    expect(pauseNs(65535, rateBps) / 1000).toBeCloseTo(us, us < 200 ? -0.3 : 0);
  });
});
