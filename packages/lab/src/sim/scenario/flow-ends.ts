/**
 * What the two ends of a flow tell each other where each is simulated in another part of the network, so that both parts know when its queue pairs can go. All parts tell at one virtual time, meet, and
 * then read: so they decide alike.
 */

import type { Flow } from './flow.js';

/** Packets under way, time of the last one, flags. */
const WORDS = 3;
const WORD_BYTES = 8;
const IDLE = 1;
const COMPLETED = 2;

/** One end of a flow at some virtual time. */
interface FlowEnd {
  /** Packets that have left there, less those that have arrived there. */
  readonly packetsUnderWay: number;
  /** When the last of them left or arrived, virtual nanoseconds. */
  readonly lastPacketNs: number;
  /** Nothing is to be sent. */
  readonly isIdle: boolean;
  /** The flow has completed there. */
  readonly isCompleted: boolean;
}

/** Ends of flows, in memory that the parts of a network share. */
export class FlowEnds {
  readonly #words: Float64Array;

  /** `memory` has {@link FlowEnds.bytesFor} bytes, zero at first. */
  constructor(memory: ArrayBufferLike) {
    this.#words = new Float64Array(memory);
  }

  /** Bytes of memory for so many flows. */
  static bytesFor(flows: number): number {
    return flows * 2 * WORDS * WORD_BYTES;
  }

  /** Tells of one end of a flow, which is simulated here and the other one is not. */
  tell({ plan, packetsUnderWay, lastPacketNs, completedNs }: Flow, isSource: boolean, isIdle: boolean): void {
    const at = firstWordOf(plan.id, isSource);
    const words = this.#words;
    words[at] = packetsUnderWay;
    words[at + 1] = lastPacketNs;
    words[at + 2] = (isIdle ? IDLE : 0) | (completedNs === undefined ? 0 : COMPLETED);
  }

  /** What was told last of one end of the flow of this number. */
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
