/**
 * What a tester asks of a target beyond a connection: the PSN of its first request, and work that the target posts.
 * Over RDMA CM it is the private data of the REQ. All numbers are big-endian.
 *
 *     0  8  "rocev2cf"
 *     8  1  version, 1
 *     9  1  flags: 1, a start PSN is asked for; 2, a queue pair that allows no READ, WRITE or atomic
 *    10  1  operation: 0 none, 1 SEND, 2 RDMA WRITE, 3 RDMA READ, 4 FETCH ADD
 *    11  1  reserved, 0
 *    12  4  PSN of the tester's first request
 *    16  4  bytes of a request
 *    20  4  how many are posted at once
 *    24  8  address in the memory of the tester
 *    32  4  its key
 */

import { hasMagic, OFFER_VERSION, putMagic } from './offer.js';

export const ORDER_OPERATIONS = ['SEND', 'RDMA_WRITE', 'RDMA_READ', 'FETCH_ADD'] as const;

export interface Order {
  readonly operation: (typeof ORDER_OPERATIONS)[number];
  readonly bytes: number;
  readonly count: number;
  /** Local ACK timeout of the target's queue pair: a code 1..21, or 0 for never. */
  readonly timeout: number;
  /** How often the target repeats what is not acknowledged, 0..7. */
  readonly retryCount: number;
  /** How often it repeats a SEND that finds no receive, 0..6; 7: without end. */
  readonly rnrRetryCount: number;
}

export interface Wish {
  readonly startPsn?: number;
  readonly order?: Pick<Order, 'operation' | 'bytes' | 'count'>;
  readonly isClosed?: boolean;
}

/**
 * Memory of the tester, which has none: WRITEs to it go nowhere, and READs of it are answered by the steps of a case.
 */
export const TESTER_MEMORY = { address: 0x0010_0000n, key: 0x00c0_ffee } as const;

const WISH_BYTES = 36;
const FLAG_START_PSN = 1;
const FLAG_CLOSED = 2;

export function encodeWish({ startPsn, order, isClosed }: Wish): Uint8Array {
  const data = new Uint8Array(WISH_BYTES);
  const view = new DataView(data.buffer);
  putMagic(data);
  data[9] = (startPsn === undefined ? 0 : FLAG_START_PSN) | (isClosed === true ? FLAG_CLOSED : 0);
  data[10] = order === undefined ? 0 : ORDER_OPERATIONS.indexOf(order.operation) + 1;
  view.setUint32(12, startPsn ?? 0);
  view.setUint32(16, order?.bytes ?? 0);
  view.setUint32(20, order?.count ?? 0);
  view.setBigUint64(24, TESTER_MEMORY.address);
  view.setUint32(32, TESTER_MEMORY.key);
  return data;
}

export type ParsedWish = Wish & { readonly address: bigint; readonly key: number };

export function parseWish(data: Uint8Array): ParsedWish | undefined {
  if (data.length < WISH_BYTES || !hasMagic(data) || data[8] !== OFFER_VERSION) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const operation = ORDER_OPERATIONS[data[10] - 1];
  return {
    ...((data[9] & FLAG_START_PSN) !== 0 && { startPsn: view.getUint32(12) & 0xffffff }),
    ...(operation !== undefined && { order: { operation, bytes: view.getUint32(16), count: view.getUint32(20) } }),
    isClosed: (data[9] & FLAG_CLOSED) !== 0,
    address: view.getBigUint64(24),
    key: view.getUint32(32),
  };
}
