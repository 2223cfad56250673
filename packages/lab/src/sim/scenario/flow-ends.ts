/**
 * What the two ends of a flow exchange if they are simulated in different parts, so that both decide alike when queue
 * pairs can go.
 */

import type { Flow } from './flow.js';

const WORDS = 3;
const WORD_BYTES = 8;
const IDLE = 1;
const COMPLETED = 2;

interface FlowEnd {
  readonly packetsUnderWay: number;
  readonly lastPacketNs: number;
  readonly isIdle: boolean;
  readonly isCompleted: boolean;
}

export class FlowEnds {
  readonly #words: Float64Array;

  /** `memory` has {@link FlowEnds.bytesFor} bytes, zero at first. */
  constructor(memory: ArrayBufferLike) {
    this.#words = new Float64Array(memory);
  }

  static bytesFor(flows: number): number {
    return flows * 2 * WORDS * WORD_BYTES;
  }

  tell({ plan, packetsUnderWay, lastPacketNs, completedNs }: Flow, isSource: boolean, isIdle: boolean): void {
    const at = firstWordOf(plan.id, isSource);
    const words = this.#words;
    words[at] = packetsUnderWay;
    words[at + 1] = lastPacketNs;
    words[at + 2] = (isIdle ? IDLE : 0) | (completedNs === undefined ? 0 : COMPLETED);
  }

  read(flow: number, isSource: boolean): FlowEnd {
    const at = firstWordOf(flow, isSource);
    const words = this.#words;
    return {
      packetsUnderWay: words[at],
      lastPacketNs: words[at + 1],
      isIdle: (words[at + 2] & IDLE) !== 0,
      isCompleted: (words[at + 2] & COMPLETED) !== 0,
    };
  }
}

function firstWordOf(flow: number, isSource: boolean): number {
  return WORDS * (2 * flow + Number(isSource));
}
