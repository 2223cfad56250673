/** What both parts of the bench measure. */

/** What fio does. */
export const OPS = ['randread', 'randwrite'];

/** Bytes of an I/O, as fio writes them. */
export const BLOCKS = ['4k', '1m'];

/** How a host reaches a target. */
export const TRANSPORTS = ['rdma', 'tcp'];

/** The cells of these. @param {readonly string[]} ops @param {readonly string[]} blocks @returns {import('../fio/fio.js').Cell[]} */
export const cellsOf = (ops, blocks) =>
  ops.flatMap((op) => blocks.flatMap((block) => [1, 32].map((depth) => ({ op, block, depth }))));

/** Size of the disks. */
export const DISK_MIB = 32;
