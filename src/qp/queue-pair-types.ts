/** All types of queue pairs that the NIC can make, by number (`ibv_qp_type`). */

import { QPT_GSI, QPT_RC, QPT_UC, QPT_UD } from '../memory/ring/enums.js';
import { ConnectedQueuePair } from './connected-queue-pair.js';
import type { NicQueuePair, QueuePairOptions } from './nic-queue-pair.js';
import { RcTransport } from './rc-transport.js';
import { UcTransport } from './uc-transport.js';
import { UdQueuePair } from './ud-queue-pair.js';

export interface QueuePairType {
  readonly create: (options: QueuePairOptions) => NicQueuePair;
  /** The fixed QPN of this type; a device has at most one such queue pair. */
  readonly fixedQpn?: number;
}

export const QUEUE_PAIR_TYPES: ReadonlyMap<number, QueuePairType> = new Map<number, QueuePairType>([
  [QPT_RC, { create: (options) => new ConnectedQueuePair(options, (parts) => new RcTransport(parts)) }],
  [QPT_UC, { create: (options) => new ConnectedQueuePair(options, (parts) => new UcTransport(parts)) }],
  [QPT_UD, { create: (options) => new UdQueuePair(options) }],
  [QPT_GSI, { create: (options) => new UdQueuePair(options), fixedQpn: 1 }],
]);
