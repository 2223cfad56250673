/** Merges what two endpoints remember of their last packets into one ordered sequence around a loss. */

import type { RecordedPacket } from 'rocev2/internal/capture';
import {
  HDR_AETH,
  OP_CNP,
  OP_READ_REQUEST,
  OP_READ_RESPONSE,
  OPCODES,
  opcodeName,
  PLACE_NONE,
  psnDiff,
  SYNDROME_KIND_ACK,
  syndromeKind,
  syndromeName,
} from 'rocev2/internal/packet';
import type { LabPacket, LabPackets } from '../messages/lab-messages.js';

const STORY_PACKETS = 120;
/** A story that waits for the NAK may have this many packets. */
const STORY_PACKETS_MAX = 400;
const PACKETS_BEFORE_LOSS = 6;
const PACKETS_AFTER_NAK = 30;

export interface PsnPosition {
  /** On the wire, 24 bits. */
  readonly psn: number;
  /** Not limited to 24 bits: a busy connection uses them up in a minute or two. */
  readonly count: number;
}

interface Remembered {
  readonly qpns: readonly number[];
  readonly positions: readonly PsnPosition[];
  readonly packets: readonly RecordedPacket[];
}

export function packetStory(a: Remembered, b: Remembered): LabPackets {
  const told = [...sentBy('a', a, b), ...sentBy('b', b, a)].sort((x, y) => x.timeNs - y.timeNs);
  const loss = told.findIndex(({ isDropped }, i) => isDropped && i >= PACKETS_BEFORE_LOSS);
  const start = loss < 0 ? Math.max(0, told.length - STORY_PACKETS) : loss - PACKETS_BEFORE_LOSS;
  const nak = told.findIndex(({ kind }, i) => kind === 'nak' && i > loss);
  const length = Math.max(STORY_PACKETS, nak < 0 ? 0 : nak - start + PACKETS_AFTER_NAK);
  const story = told.slice(start, start + Math.min(length, STORY_PACKETS_MAX));
  const startNs = story[0]?.timeNs ?? 0;
  return {
    packets: story.map((packet) => ({
      ...packet,
      timeNs: packet.timeNs - startNs,
      arrivedNs: packet.arrivedNs === null ? null : packet.arrivedNs - startNs,
    })),
  };
}

/**
 * The packets of one end whose fate is known: the other end remembers one sent at least as late and one sent at least
 * as early. IPv4 identifications are sequential on a frame port, and the switch keeps order.
 */
function sentBy(from: 'a' | 'b', own: Remembered, peer: Remembered): LabPacket[] {
  const arrived = new Map(peer.packets.filter(({ isSent }) => !isSent).map(({ ipId, timeNs }) => [ipId, timeNs]));
  const sent = own.packets.filter(({ isSent }) => isSent);
  const first = sent.findIndex(({ ipId }) => arrived.has(ipId));
  const last = sent.findLastIndex(({ ipId }) => arrived.has(ipId));
  const newest = new Map<number, number>();
  const told: LabPacket[] = [];
  for (const packet of first < 0 ? [] : sent.slice(first, last + 1)) {
    const { timeNs, opcode, psn, destQpn, syndrome, ipId } = packet;
    const lane = peer.qpns.indexOf(destQpn);
    if (lane < 0) continue;
    const kind = kindOf(packet);
    const newestPsn = newest.get(lane);
    const isRepeated = kind === 'data' && newestPsn !== undefined && psnDiff(psn, newestPsn) <= 0;
    if (kind === 'data' && !isRepeated) newest.set(lane, psn);
    const isAnswer = kind === 'ack' || kind === 'nak';
    const operation = isAnswer && syndrome !== undefined ? syndromeName(syndrome) : opcodeName(opcode);
    const arrivedNs = arrived.get(ipId) ?? null;
    const relativePsn = relativeTo(isAnswerOf(packet) ? peer.positions[lane] : own.positions[lane], packet);
    const isDropped = arrivedNs === null;
    told.push({ timeNs, arrivedNs, from, operation, psn, relativePsn, lane, kind, isDropped, isRepeated });
  }
  return told;
}

function isAnswerOf({ opcode }: RecordedPacket): boolean {
  const info = OPCODES[opcode];
  return info !== undefined && ((info.headers & HDR_AETH) !== 0 || info.kind === OP_READ_RESPONSE);
}

function relativeTo({ psn, count }: PsnPosition, packet: RecordedPacket): number | null {
  return OPCODES[packet.opcode]?.kind === OP_CNP ? null : count + psnDiff(packet.psn, psn);
}

function kindOf({ opcode, syndrome }: RecordedPacket): LabPacket['kind'] {
  const info = OPCODES[opcode];
  if (info?.kind === OP_CNP) return 'cnp';
  if (info?.kind === OP_READ_REQUEST) return 'request';
  if (info === undefined || info.place !== PLACE_NONE || syndrome === undefined) return 'data';
  return syndromeKind(syndrome) === SYNDROME_KIND_ACK ? 'ack' : 'nak';
}
