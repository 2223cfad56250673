/** Packets of the live lab as those of a ladder: both ends were watched, so that it is known when each arrived. */

import type { LabPacket } from '../messages/lab.js';
import type { LadderPacket } from '../messages/ladder.js';

/** `number`: its place in the stretch, from 1; the queue pair is named where there are several. */
export function ladderPacketOf(packet: LabPacket, number: number, queuePairs: number): LadderPacket {
  const { timeNs, arrivedNs, from, operation, psn, relativePsn, kind, lane, isDropped, isRepeated } = packet;
  const notes = [
    ...(queuePairs > 1 ? [`Queue pair ${lane + 1}.`] : []),
    ...(isDropped ? ['The switch lost it.'] : []),
    ...(isRepeated ? ['Sent again.'] : []),
  ];
  const name = queuePairs > 1 ? `QP ${lane + 1} ${operation}` : operation;
  return {
    number,
    sentNs: timeNs,
    arrivedNs,
    from,
    operation: name,
    psn,
    relativePsn,
    kind,
    isLost: isDropped,
    isRepeated,
    notes,
  };
}
