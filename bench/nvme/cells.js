/** What both parts of the bench measure. */

/** @type {import('../fio/fio.js').Cell[]} */
export const CELLS = ['randread', 'randwrite'].flatMap((op) =>
  ['4k', '1m'].flatMap((block) => [1, 32].map((depth) => ({ op, block, depth }))),
);

/** Size of the disks. */
export const DISK_MIB = 32;
