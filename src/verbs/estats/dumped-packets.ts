import type { PacketRecord } from '../../memory/ring/telemetry-page.js';
import { SYNDROME_KIND_ACK, SYNDROME_KIND_RNR, syndromeKind } from '../../packet/aeth.js';
import { HDR_AETH, OPCODES } from '../../packet/opcode.js';
import type { DumpedPacket } from './dump-log.js';

export function packetsForPeople(records: readonly PacketRecord[], nowNs: number): DumpedPacket[] {
  return records.map(({ timeNs, sent, opcode, psn, bytes, syndrome }) => {
    const info = OPCODES[opcode];
    const isAnswer = info !== undefined && (info.headers & HDR_AETH) !== 0;
    return {
      agoNs: nowNs - timeNs,
      direction: sent ? 'sent' : 'received',
      opcode: info?.name ?? `opcode ${opcode}`,
      psn,
      bytes,
      ...(isAnswer && { answer: answerText(syndrome) }),
    };
  });
}

function answerText(syndrome: number): string {
  const kind = syndromeKind(syndrome);
  if (kind === SYNDROME_KIND_ACK) return 'ACK';
  return kind === SYNDROME_KIND_RNR ? 'RNR NAK' : `NAK 0x${syndrome.toString(16)}`;
}
