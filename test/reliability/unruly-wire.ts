/**
 * A wire between simulated hosts of which the test says, for every datagram, when copies of it arrive, and where. Faults of docs/faults.md wait
 * for packets; these wait for time, end at a time, or lead to the wrong place.
 */

import type { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import type { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { datagramOf, type RxDatagram, type TxBatch } from '../../src/port/datagram.js';

/** A copy of a datagram: where it arrives, and after how long. */
export interface Arrival {
  readonly to: SimHost;
  readonly afterNs: number;
}

/** What becomes of a datagram that is sent now. */
export type Course = (datagram: RxDatagram, nowNs: number) => readonly Arrival[];

const OVERHEAD_BYTES = 66;

/** What `host` sends takes its course; it may send the next one when the last has left at `rateBps`. */
export function lay(host: SimHost, events: EventQueue, rateBps: number, course: Course): void {
  host.connect((batch: TxBatch) => {
    const datagram = datagramOf(batch, 0);
    for (const { to, afterNs } of course(datagram, events.nowNs)) {
      const copy = { ...datagram, bytes: datagram.bytes.slice() };
      events.after(afterNs, () => to.receive(copy));
    }
    return events.nowNs + ((datagram.length + OVERHEAD_BYTES) * 8e9) / rateBps;
  });
}
