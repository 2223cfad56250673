import { checkKind, type RandomSource, randomUnit } from 'rocev2/internal/core';
import { checkFunction, checkNumber } from '../check-arguments.js';

/** Points of a distribution function: size in bytes, share of the flows that are not larger. Linear in between. */
export type SizeTable = ReadonlyArray<readonly [bytes: number, share: number]>;

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

/** Web search in packets, as in pFabric (Alizadeh et al., SIGCOMM'13), of 1000 bytes each. */
const PFABRIC_WEB_SEARCH: SizeTable = [
  [0, 0],
  [6000, 0.15],
  [13_000, 0.2],
  [19_000, 0.3],
  [33_000, 0.4],
  [53_000, 0.53],
  [133_000, 0.6],
  [667_000, 0.7],
  [1_333_000, 0.8],
  [3_333_000, 0.9],
  [6_667_000, 0.97],
  [20_000_000, 1],
];

/** Hadoop at Facebook (Roy et al., SIGCOMM'15); the table of the HPCC simulator. Most flows are below 1 KB. */
export const FB_HADOOP: SizeTable = [
  [0, 0],
  [100, 0.01],
  [200, 0.02],
  [300, 0.05],
  [350, 0.15],
  [400, 0.2],
  [500, 0.3],
  [600, 0.4],
  [700, 0.5],
  [1000, 0.6],
  [2000, 0.67],
  [7000, 0.7],
  [30_000, 0.72],
  [50_000, 0.82],
  [80_000, 0.87],
  [120_000, 0.9],
  [300_000, 0.95],
  [1_000_000, 0.975],
  [2_000_000, 0.99],
  [10_000_000, 1],
];

/** Storage at Alibaba; the table `AliStorage2019` of the HPCC simulator. */
export const ALI_STORAGE: SizeTable = [
  [0, 0],
  [4000, 0.2293],
  [8000, 0.6921],
  [16_000, 0.8061],
  [32_000, 0.9047],
  [64_000, 0.9353],
  [128_000, 0.9677],
  [256_000, 0.9753],
  [2_000_000, 1],
];

export const SIZE_TABLES = {
  'web-search': WEB_SEARCH,
  'pfabric-web-search': PFABRIC_WEB_SEARCH,
  'fb-hadoop': FB_HADOOP,
  'ali-storage': ALI_STORAGE,
} as const;

function checkTable(table: SizeTable): void {
  checkKind('table', table, Array.isArray(table) && table.length > 1, 'a list of at least two points');
  for (const point of table) checkKind('a point', point, Array.isArray(point) && point.length === 2, '[bytes, share]');
  for (const [bytes, share] of table) {
    checkNumber('bytes of a point', bytes, 0, Number.MAX_VALUE);
    checkNumber('share of a point', share, 0, 1);
  }
  checkNumber('the last share', table.at(-1)![1], 1, 1);
}

/** Mean size in bytes. */
export function meanBytes(table: SizeTable): number {
  checkTable(table);
  let mean = 0;
  for (let i = 1; i < table.length; i++) {
    mean += (table[i][1] - table[i - 1][1]) * ((table[i][0] + table[i - 1][0]) / 2);
  }
  return mean;
}

/** A size of at least one byte. */
export function drawBytes(table: SizeTable, random: RandomSource): number {
  checkTable(table);
  checkFunction('random.u32', random?.u32);
  const share = randomUnit(random);
  let i = 1;
  while (table[i][1] < share) i++;
  const [lowBytes, lowShare] = table[i - 1];
  const [highBytes, highShare] = table[i];
  return Math.max(1, Math.round(lowBytes + ((highBytes - lowBytes) * (share - lowShare)) / (highShare - lowShare)));
}
