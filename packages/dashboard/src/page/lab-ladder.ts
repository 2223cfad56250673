import type { LadderPacket } from '@rocev2/command/plot';
import type { LabPacket } from '../messages/lab-messages.js';
import type { StagePacket } from './packet-stage.js';

export function stagePacketOf(packet: LabPacket): StagePacket {
  return { ...packet, row: packet.lane, isLost: packet.isDropped };
}

export function ladderPacketOf(packet: LabPacket, number: number, queuePairs: number): LadderPacket {
  const { timeNs, arrivedNs, from, operation, psn, relativePsn, kind, lane, isDropped, isRepeated } = packet;
  const notes = [
    ...(queuePairs > 1 ? [`Queue pair ${lane + 1}.`] : []),
    ...(isDropped ? ['The switch lost it.'] : []),
    ...(isRepeated ? ['Retransmitted.'] : []),
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
