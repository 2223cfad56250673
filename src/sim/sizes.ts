/** Flow sizes of measured traffic, to draw from. */

import { type RandomSource, randomUnit } from '../core/random.js';

/** Points of a distribution function: size in bytes, share of the flows that are not larger. Linear in between. */
type SizeTable = ReadonlyArray<readonly [bytes: number, share: number]>;

/** Web search, as in the DCTCP paper (SIGCOMM'10); the table of the HPCC simulator. Mean 1,711,250 bytes. */
export const WEB_SEARCH: SizeTable = [
  [0, 0],
  [10_000, 0.15],
  [20_000, 0.2],
  [30_000, 0.3],
  [50_000, 0.4],
  [80_000, 0.53],
  [200_000, 0.6],
  [1_000_000, 0.7],
  [2_000_000, 0.8],
  [5_000_000, 0.9],
  [10_000_000, 0.97],
  [30_000_000, 1],
];

/** Mean size in bytes. */
export function meanBytes(table: SizeTable): number {
  let mean = 0;
  for (let i = 1; i < table.length; i++) {
    mean += (table[i][1] - table[i - 1][1]) * ((table[i][0] + table[i - 1][0]) / 2);
  }
  return mean;
}

/** A size of at least one byte. */
export function drawBytes(table: SizeTable, random: RandomSource): number {
  const share = randomUnit(random);
  let i = 1;
  while (table[i][1] < share) i++;
  const [lowBytes, lowShare] = table[i - 1];
  const [highBytes, highShare] = table[i];
  return Math.max(1, Math.round(lowBytes + ((highBytes - lowBytes) * (share - lowShare)) / (highShare - lowShare)));
}
