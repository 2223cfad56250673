import type { Port } from '../port/datagram.js';

/** Properties of the NIC's port. */
export type PortFacts = Pick<
  Port,
  'address' | 'udpPort' | 'pathMtuMax' | 'ipIdPolicy' | 'fixedSourcePort' | 'receiveBudgetPackets'
>;
