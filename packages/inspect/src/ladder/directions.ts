/**
 * Pairs the two directions of a connection. A packet names only the receiving queue pair, but an acknowledgement has a
 * PSN that the other direction has sent, and PSNs begin at random.
 */

import { OP_READ_RESPONSE, OPCODES, psnAdd, psnDiff } from 'rocev2/internal/packet';
import type { LadderEntry } from './ladder-entry.js';

/** The smallest path MTU: an upper bound for the PSNs of a READ. */
const SMALLEST_MTU = 256;

export interface Direction {
  readonly source: string;
  readonly destination: string;
  readonly interfaceId: number;
  readonly destQpn: number;
  readonly packets: LadderEntry[];
}

export interface DirectionPair {
  readonly forward: Direction;
  readonly backward: Direction | undefined;
}

export function isAnswer({ opcode, answer }: Pick<LadderEntry, 'opcode' | 'answer'>): boolean {
  return answer !== undefined || OPCODES[opcode]?.kind === OP_READ_RESPONSE;
}

export function pairDirections(packets: readonly LadderEntry[]): DirectionPair[] {
  const directions = directionsOf(packets);
  const scores = directions.flatMap((one, i) =>
    directions.slice(i + 1).map((other) => ({ one, other, score: scoreOf(one, other) })),
  );
  const partners = new Map<Direction, Direction>();
  for (const { one, other, score } of scores.sort((a, b) => b.score - a.score)) {
    if (score <= 0 || partners.has(one) || partners.has(other)) continue;
    partners.set(one, other);
    partners.set(other, one);
  }
  return directions
    .filter(
      (direction) => (directions.indexOf(partners.get(direction)!) + 1 || Infinity) > directions.indexOf(direction),
    )
    .map((forward) => ({ forward, backward: partners.get(forward) }));
}

function directionsOf(packets: readonly LadderEntry[]): Direction[] {
  const directions = new Map<string, Direction>();
  for (const packet of packets) {
    const { source, destination, interfaceId, destQpn } = packet;
    const key = `${interfaceId} ${source} ${destination} ${destQpn}`;
    let direction = directions.get(key);
    if (direction === undefined) {
      direction = { source, destination, interfaceId, destQpn, packets: [] };
      directions.set(key, direction);
    }
    direction.packets.push(packet);
  }
  return [...directions.values()];
}

function scoreOf(one: Direction, other: Direction): number {
  const isBack =
    one.source === other.destination && one.destination === other.source && one.interfaceId === other.interfaceId;
  if (!isBack) return 0;
  return answersTo(one, other) + answersTo(other, one) + datagramsTo(one, other) + datagramsTo(other, one);
}

function answersTo(from: Direction, to: Direction): number {
  const requests = from.packets.filter((packet) => !isAnswer(packet));
  if (requests.length === 0) return 0;
  const first = requests[0].psn;
  const offsets = requests.flatMap(({ psn, readBytes }) => {
    const span = Math.max(1, Math.ceil(readBytes / SMALLEST_MTU));
    return [psnDiff(psn, first), psnDiff(psnAdd(psn, span - 1), first)];
  });
  const lowest = offsets.reduce((least, offset) => Math.min(least, offset), 0);
  const highest = offsets.reduce((most, offset) => Math.max(most, offset), 0);
  return to.packets.filter((packet) => {
    const offset = psnDiff(packet.psn, first);
    return isAnswer(packet) && offset >= lowest && offset <= highest;
  }).length;
}

function datagramsTo(from: Direction, to: Direction): number {
  return from.packets.filter(({ sourceQpn }) => sourceQpn === to.destQpn).length;
}
