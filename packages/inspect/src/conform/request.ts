import { highOfBig, lowOfBig } from 'rocev2/internal/core';
import { emitRoce, psnAdd, SYNDROME_ACK } from 'rocev2/internal/packet';
import type { Offer } from './offer.js';
import { type AnswerPacket, pattern, type RequestPacket } from './step.js';

const WRONG_KEY_BITS = 0xa5a5_0000;
const NO_MEMORY = { address: 0n, key: 0 };

export interface RequestTarget {
  readonly qpn: number;
  readonly startPsn: number;
  readonly offer: Offer | undefined;
  readonly firstOffer?: Offer | undefined;
}

export function buildRequest(packet: RequestPacket, { qpn, startPsn, offer, firstOffer }: RequestTarget): Uint8Array {
  const { opcode, at, bytes = 0, seed = 1, from = 0, length = bytes, operand = 0n, compare = 0n } = packet;
  const { address, key } = memoryOf(packet, offer, firstOffer);
  const va = address + BigInt(packet.place ?? 0);
  return emitRoce(
    {
      destQpn: qpn,
      ackReq: packet.ackReq !== false,
      migReq: true,
      vaHigh: highOfBig(va),
      vaLow: lowOfBig(va),
      rkey: key,
      dmaLength: length,
      swapHigh: highOfBig(operand),
      swapLow: lowOfBig(operand),
      compareHigh: highOfBig(compare),
      compareLow: lowOfBig(compare),
      ...packet.fields,
      opcode,
      psn: psnAdd(startPsn, at),
    },
    pattern(bytes, seed, from),
  );
}

export function buildAnswer(
  packet: AnswerPacket,
  to: { readonly qpn: number; readonly peerStartPsn: number },
): Uint8Array {
  const { opcode, at, syndrome = SYNDROME_ACK, msn = 0, bytes = 0 } = packet;
  const psn = psnAdd(to.peerStartPsn, at);
  return emitRoce({ opcode, destQpn: to.qpn, migReq: true, psn, syndrome, msn }, pattern(bytes, 1));
}

function memoryOf({ memory = 'open' }: RequestPacket, offer: Offer | undefined, firstOffer = offer) {
  if (offer === undefined || firstOffer === undefined) return NO_MEMORY;
  if (memory === 'of the first connection') return firstOffer.open;
  if (memory === 'window') return offer.window ?? NO_MEMORY;
  if (memory !== 'wrong key') return offer[memory];
  return { address: offer.open.address, key: (offer.open.key ^ WRONG_KEY_BITS) >>> 0 };
}
