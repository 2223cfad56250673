import type { LadderConnection, LadderPacket } from '@rocev2/command/plot';
import { OP_CNP, OP_READ_REQUEST, OPCODES, opcodeName, PLACE_NONE, psnAdd, psnDiff } from 'rocev2/internal/packet';
import { type DirectionPair, isAnswer, pairDirections } from './directions.js';
import type { LadderEntry } from './ladder-entry.js';

const NAK_SEQUENCE = 'NAK PSN_SEQUENCE_ERROR';
const GSI_QPN = 1;

type Open = { -readonly [N in keyof LadderPacket]: LadderPacket[N] };

export function laddersOf(packets: readonly LadderEntry[]): LadderConnection[] {
  const hasInterfaces = packets.some(({ interfaceId }) => interfaceId !== packets[0].interfaceId);
  return pairDirections(packets).map((pair) => ladderOf(pair, hasInterfaces));
}

function ladderOf({ forward, backward }: DirectionPair, hasInterfaces: boolean): LadderConnection {
  const qpnOf = (qpn: number | undefined) => (qpn === undefined ? '' : ` QP 0x${qpn.toString(16)}`);
  const a = `${forward.source}${qpnOf(backward?.destQpn)}`;
  const b = `${forward.destination}${qpnOf(forward.destQpn)}`;
  const what = forward.destQpn === GSI_QPN ? 'connection management, ' : '';
  const where = hasInterfaces ? `, interface ${forward.interfaceId}` : '';
  const seen = [...forward.packets, ...(backward?.packets ?? [])].sort((x, y) => x.number - y.number);
  return { name: `${what}${a} ↔ ${b}${where}`, ends: { a, b }, packets: new Ladder(seen, forward.source).packets };
}

class Ladder {
  readonly packets: Open[] = [];
  readonly #a: string;
  readonly #numbers: Readonly<Record<'a' | 'b', PsnNumbers>>;

  constructor(seen: readonly LadderEntry[], a: string) {
    this.#a = a;
    const counted = (end: 'a' | 'b') => seen.filter((entry) => hasPsn(entry) && this.#counterOf(entry) === end);
    this.#numbers = { a: new PsnNumbers(counted('a')), b: new PsnNumbers(counted('b')) };
    for (const entry of seen) this.#add(entry);
  }

  #fromOf({ source }: LadderEntry): 'a' | 'b' {
    return source === this.#a ? 'a' : 'b';
  }

  #counterOf(entry: LadderEntry): 'a' | 'b' {
    const from = this.#fromOf(entry);
    return isAnswer(entry) === (from === 'a') ? 'b' : 'a';
  }

  #add(entry: LadderEntry): void {
    const { number, timeNs, opcode, psn, answer, isRepeated, missing, isLost, notes } = entry;
    const from = this.#fromOf(entry);
    const kind = kindOf(entry);
    const numbers = this.#numbers[this.#counterOf(entry)];
    const isBare = kind === 'ack' || kind === 'nak';
    const common = { sentNs: timeNs, arrivedNs: null, from };
    if (missing > 0) {
      const first = psnAdd(psn, -missing);
      this.packets.push({
        ...common,
        number: null,
        operation: missing === 1 ? 'a packet that is missing' : `${missing} packets that are missing`,
        psn: first,
        relativePsn: numbers.of(first),
        kind: 'data',
        isLost: true,
        isRepeated: false,
        notes: ['Lost before this point, or not captured.'],
      });
    }
    const packet: Open = {
      ...common,
      number,
      operation: isBare && answer !== undefined ? answer.meaning : opcodeName(opcode),
      psn,
      relativePsn: hasPsn(entry) ? numbers.of(psn) : null,
      kind,
      isLost,
      isRepeated,
      notes: [...notes],
    };
    if (isRepeated) packet.notes = [...packet.notes, this.#whyAgain(packet, isAnswer(entry))];
    this.packets.push(packet);
    if (packet.operation === NAK_SEQUENCE) this.#blame(packet);
  }

  #blame(nak: Open): void {
    const at = this.#newestOf(nak.from === 'a' ? 'b' : 'a', nak.psn);
    const lost = this.packets[at];
    if (lost === undefined || lost.isLost) return;
    nak.notes = [...nak.notes, `It asks for packet ${lost.number} again, and for all later packets.`];
    const wasReady = this.packets
      .slice(at)
      .every(({ kind, psn, operation }) => kind !== 'nak' || psn !== nak.psn || operation === NAK_SEQUENCE);
    if (!wasReady) return;
    lost.isLost = true;
    lost.notes = [...lost.notes, `It did not arrive: packet ${nak.number} is a NAK that asks for it.`];
  }

  #whyAgain(packet: Open, isAnswering: boolean): string {
    const at = this.#newestOf(packet.from, packet.psn);
    const first = at < 0 ? '' : ` Packet ${this.packets[at].number} was the one before.`;
    if (isAnswering) return `Retransmitted, as its request was.${first}`;
    const nak = this.packets
      .slice(Math.max(at, 0))
      .findLast(({ from, kind }) => from !== packet.from && kind === 'nak');
    return nak === undefined
      ? `Retransmitted without a NAK.${first}`
      : `Retransmitted after the NAK of packet ${nak.number}.${first}`;
  }

  #newestOf(end: 'a' | 'b', psn: number): number {
    return this.packets.findLastIndex(
      (packet) =>
        packet.from === end && packet.psn === psn && packet.number !== null && !['ack', 'nak'].includes(packet.kind),
    );
  }
}

class PsnNumbers {
  #last: { psn: number; number: number };

  constructor(seen: readonly LadderEntry[]) {
    this.#last = { psn: seen[0]?.psn ?? 0, number: 0 };
    const lowest = seen.reduce(
      (least, { psn, missing }) => Math.min(least, this.of(psn), this.of(psnAdd(psn, -missing))),
      0,
    );
    this.#last = { psn: seen[0]?.psn ?? 0, number: -lowest };
  }

  /** Of a PSN that follows, or goes back, less than 2^23. */
  of(psn: number): number {
    this.#last = { psn, number: this.#last.number + psnDiff(psn, this.#last.psn) };
    return this.#last.number;
  }
}

function hasPsn({ opcode }: LadderEntry): boolean {
  return OPCODES[opcode]?.kind !== OP_CNP;
}

function kindOf({ opcode, answer }: LadderEntry): LadderPacket['kind'] {
  const info = OPCODES[opcode];
  if (info?.kind === OP_CNP) return 'cnp';
  if (info?.kind === OP_READ_REQUEST) return 'request';
  if (answer === undefined || (info !== undefined && info.place !== PLACE_NONE)) return 'data';
  return answer.kind === 'ack' ? 'ack' : 'nak';
}
