/**
 * Conditions on PSNs that need to remember packets: numbers from the start of a connection, and the n-th time that a
 * packet is sent. Their memory is bounded; the oldest entry is dropped.
 */

import { OP_ACK, OP_ATOMIC_ACK, OP_CNP, OP_READ_RESPONSE, OPCODES } from '../../packet/opcode.js';
import { psnInRange, psnOffset } from '../../packet/psn.js';
import type { Condition } from './conditions.js';
import type { FaultSubject } from './fault-subject.js';

const REMEMBERED_MAX = 65_536;

/**
 * Requests and READ responses to one queue pair are numbered separately. Undefined for packets of neither sequence.
 */
function sequenceOf({ ingress, egress, opcode, destQpn }: FaultSubject): string | undefined {
  const info = OPCODES[opcode];
  if (info === undefined || (info.transport !== 'RC' && info.transport !== 'UC')) return undefined;
  if (info.kind === OP_ACK || info.kind === OP_ATOMIC_ACK || info.kind === OP_CNP) return undefined;
  return `${ingress} ${egress} ${destQpn} ${info.kind === OP_READ_RESPONSE ? 'responses' : 'requests'}`;
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  if (map.size >= REMEMBERED_MAX && !map.has(key)) map.delete(map.keys().next().value!);
  map.set(key, value);
}

/** first <= PSN - start <= last, where the start is the first PSN of the sequence that the rule has seen. */
export class RelativePsnRange implements Condition {
  readonly #first: number;
  readonly #last: number;
  readonly #starts = new Map<string, number>();

  constructor(first: number, last: number) {
    this.#first = first;
    this.#last = last;
  }

  matches(subject: FaultSubject): boolean {
    const sequence = sequenceOf(subject);
    if (sequence === undefined) return false;
    let start = this.#starts.get(sequence);
    if (start === undefined) {
      start = subject.psn;
      remember(this.#starts, sequence, start);
    }
    return psnInRange(psnOffset(subject.psn, start), this.#first, this.#last);
  }
}

export class NthTransmission implements Condition {
  readonly #inner: Condition;
  readonly #n: number;
  readonly #seen = new Map<string, number>();

  constructor(inner: Condition, n: number) {
    this.#inner = inner;
    this.#n = n;
  }

  matches(subject: FaultSubject): boolean {
    if (!this.#inner.matches(subject)) return false;
    const sequence = sequenceOf(subject);
    if (sequence === undefined) return false;
    const key = `${sequence} ${subject.psn}`;
    const times = (this.#seen.get(key) ?? 0) + 1;
    remember(this.#seen, key, times);
    return times === this.#n;
  }
}
