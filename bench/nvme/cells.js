/** What both parts of the bench measure. */

/** What fio does. */
export const OPS = ['randread', 'randwrite'];

/** The cells of these. @param {readonly string[]} ops @returns {import('../fio/fio.js').Cell[]} */
export const cellsOf = (ops) =>
  ops.flatMap((op) => ['4k', '1m'].flatMap((block) => [1, 32].map((depth) => ({ op, block, depth }))));

/** Size of the disks. */
export const DISK_MIB = 32;
