/** Captures written by hand: who says what, packet by packet, 1 ms apart, with right ICRCs. */

import { writeU24, writeU32 } from '../../../../src/core/bytes.js';
import { IpAddress } from '../../../../src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../../../src/packet/icrc.js';
import { UD_SEND_ONLY } from '../../../../src/packet/opcode.js';
import { emitRoce, type RoceFields } from '../../../../src/packet/roce.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { capturedDatagram } from '../../../../test/support/captured.js';

const ACTIVE = IpAddress.parse('192.0.2.1');
const PASSIVE = IpAddress.parse('192.0.2.2');
/** Queue pairs of the active and the passive side. */
const ACTIVE_QPN = 0x22;
const PASSIVE_QPN = 0x11;
const PORT = 0xc001;
const STEP_NS = 1_000_000;
const COMM_ID = 0x1234;

/** A packet from the active side to the passive one, or `back`. */
export type Turn = RoceFields & {
  /** When, instead of 1 ms behind the turn before. */
  readonly atMs?: number;
  readonly back?: boolean;
  readonly bytes?: number;
  readonly ipId?: number;
  readonly ecn?: number;
  readonly payload?: Uint8Array;
};

export function conversation(turns: readonly Turn[]): CapturedPacket[] {
  return turns.map(({ atMs, back = false, bytes = 0, ipId = 0, ecn = 0, payload, ...fields }, i) => {
    const [source, destination] = back ? [PASSIVE, ACTIVE] : [ACTIVE, PASSIVE];
    const emitted = emitRoce({ destQpn: back ? ACTIVE_QPN : PASSIVE_QPN, ...fields }, payload ?? new Uint8Array(bytes));
    const reserved = fields.opcode === 0x81 ? 16 : 0; // of a CNP
    const packet = new Uint8Array(Math.max(emitted.length, 12 + reserved) + 4);
    packet.set(emitted);
    sealIcrc(new IcrcFlow(source, destination, PORT, 4791), packet, 0, packet.length, ipId, undefined);
    return capturedDatagram(
      {
        bytes: packet,
        offset: 0,
        length: packet.length,
        source,
        sourcePort: PORT,
        destination,
        destinationPort: 4791,
        ecn,
        dscp: 0,
        ipId,
      },
      atMs === undefined ? i * STEP_NS : atMs * 1e6,
    );
  });
}

interface CmFields {
  readonly qpn: number;
  readonly startPsn: number;
  readonly responderResources?: number;
  readonly ackTimeout?: number;
  readonly retryCount?: number;
  readonly rnrRetryCount?: number;
  readonly commId?: number;
}

/** A datagram to QP 1 with the header of a CM message. */
function cmTurn(attribute: number, fill: (mad: Uint8Array, at: number) => void): Turn {
  const mad = new Uint8Array(256);
  mad.set([1, 7, 2, 3]);
  mad[17] = attribute;
  fill(mad, 24);
  return { opcode: UD_SEND_ONLY, destQpn: 1, qkey: 0x80010000, sourceQpn: 1, payload: mad };
}

export function cmRequest(fields: CmFields): Turn {
  const { qpn, startPsn, responderResources = 4, ackTimeout = 0, commId = COMM_ID } = fields;
  return cmTurn(0x10, (mad, at) => {
    writeU32(mad, at, commId);
    writeU24(mad, at + 32, qpn);
    mad[at + 35] = responderResources;
    writeU24(mad, at + 44, startPsn);
    mad[at + 47] = fields.retryCount ?? 7;
    mad[at + 50] = (3 << 4) | (fields.rnrRetryCount ?? 7); // path MTU 1024
    mad[at + 95] = ackTimeout << 3;
  });
}

export function cmReply({ qpn, startPsn, responderResources = 4, rnrRetryCount = 7 }: CmFields): Turn {
  const turn = cmTurn(0x13, (mad, at) => {
    writeU32(mad, at, 0x777);
    writeU32(mad, at + 4, COMM_ID);
    writeU24(mad, at + 12, qpn);
    writeU24(mad, at + 20, startPsn);
    mad[at + 24] = responderResources;
    mad[at + 27] = rnrRetryCount << 5;
  });
  return { ...turn, back: true };
}
