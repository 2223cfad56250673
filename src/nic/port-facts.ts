/** The port of a NIC, as far as the NIC has to know it. */

import type { Port } from '../port/datagram.js';

/** What the NIC needs to know of the port its datagrams leave by. */
export type PortFacts = Pick<
  Port,
  'address' | 'udpPort' | 'pathMtuMax' | 'ipIdPolicy' | 'fixedSourcePort' | 'receiveBudgetPackets'
>;
