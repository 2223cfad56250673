/**
 * From what two endpoints remember of their last packets, one story for the page: who sent what, in order, and what did not arrive. The
 * stretch around a loss is the one worth seeing.
 */

import type { RecordedPacket } from '../../capture/packet-ring.js';
import { SYNDROME_KIND_ACK, syndromeKind } from '../../packet/aeth.js';
import { OP_CNP, OP_READ_REQUEST, OPCODES, opcodeName, PLACE_NONE } from '../../packet/opcode.js';
import { psnDiff } from '../../packet/psn.js';
import { syndromeName } from '../../packet/view.js';
import type { LabPacket, LabPackets } from '../messages/lab.js';

/** Packets of the story, and how many of them come before the loss. */
const STORY_PACKETS = 120;
const PACKETS_BEFORE_LOSS = 6;

/** One endpoint: the numbers of its queue pairs, and what it remembers, oldest first. */
interface Remembered {
  readonly qpns: readonly number[];
  readonly packets: readonly RecordedPacket[];
}

type Told = Omit<LabPacket, 'relativePsn'>;

/** Packets of other queue pairs than these are left out. */
export function packetStory(a: Remembered, b: Remembered): LabPackets {
  const told = [...sentBy('a', a, b), ...sentBy('b', b, a)].sort((x, y) => x.timeNs - y.timeNs);
  const loss = told.findIndex(({ isDropped }, i) => isDropped && i >= PACKETS_BEFORE_LOSS);
  const start = loss < 0 ? Math.max(0, told.length - STORY_PACKETS) : loss - PACKETS_BEFORE_LOSS;
  return { packets: numbered(told.slice(start, start + STORY_PACKETS)) };
}

/** Times and PSNs counted from where the story begins. */
function numbered(told: readonly Told[]): LabPacket[] {
  const bases = new Map<number, number>();
  for (const { kind, lane, psn } of told) if (kind === 'data' && !bases.has(lane)) bases.set(lane, psn);
  return told.map((packet) => ({
    ...packet,
    timeNs: packet.timeNs - told[0].timeNs,
    relativePsn: psnDiff(packet.psn, bases.get(packet.lane) ?? packet.psn),
  }));
}

/**
 * The packets of one end whose fate is known: the other end remembers one sent at least as late and one sent at least as early. IPv4
 * identifications are sequential on a frame port, and the switch keeps order.
 */
function sentBy(from: 'a' | 'b', own: Remembered, peer: Remembered): Told[] {
  const arrived = new Set(peer.packets.filter(({ isSent }) => !isSent).map(({ ipId }) => ipId));
  const sent = own.packets.filter(({ isSent }) => isSent);
  const first = sent.findIndex(({ ipId }) => arrived.has(ipId));
  const last = sent.findLastIndex(({ ipId }) => arrived.has(ipId));
  const newest = new Map<number, number>();
  const told: Told[] = [];
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
    told.push({ timeNs, from, operation, psn, lane, kind, isDropped: !arrived.has(ipId), isRepeated });
  }
  return told;
}

function kindOf({ opcode, syndrome }: RecordedPacket): LabPacket['kind'] {
  const info = OPCODES[opcode];
  if (info?.kind === OP_CNP) return 'cnp';
  if (info?.kind === OP_READ_REQUEST) return 'request';
  if (info === undefined || info.place !== PLACE_NONE || syndrome === undefined) return 'data';
  return syndromeKind(syndrome) === SYNDROME_KIND_ACK ? 'ack' : 'nak';
}
