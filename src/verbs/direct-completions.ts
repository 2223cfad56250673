/**
 * Completions of direct operations: the requester itself makes them, so they are not in the NIC's ring. Each is taken
 * before later ones of its queue pair, because a queue pair works directly only while its send queue is empty.
 */

import { STATUS_SUCCESS, statusName, wcOpcodeName } from '../memory/ring/enums.js';
import type { WorkCompletion, WrId } from './completion-queue.js';
import type { QueuePair } from './queue-pair.js';

/** Direct operations, and bytes, after which the event loop turns before a waiting program continues. */
const OPERATIONS_PER_TURN = 256;
const BYTES_PER_TURN = 16 << 20;

/** One completed operation. */
export interface DirectCompletion {
  readonly qp: QueuePair;
  /** Counts direct operations of the queue pair. */
  readonly sequence: number;
  readonly wrId: WrId;
  /** `IBV_WC_*`. */
  readonly opcode: number;
  readonly byteLen: number;
  /** By the telemetry's clock. */
  readonly postedNs: number;
}

export class DirectCompletions {
  #entries: DirectCompletion[] = [];
  #taken = 0;

  get size(): number {
    return this.#entries.length - this.#taken;
  }

  push(completion: DirectCompletion): void {
    this.#entries.push(completion);
  }

  take(): DirectCompletion | undefined {
    const completion = this.#entries[this.#taken];
    if (completion === undefined) return undefined;
    this.#taken++;
    if (this.#taken === this.#entries.length) {
      this.#entries.length = 0;
      this.#taken = 0;
    }
    return completion;
  }

  holds(qpn: number): boolean {
    for (let i = this.#taken; i < this.#entries.length; i++) if (this.#entries[i].qp.qpn === qpn) return true;
    return false;
  }

  forget(qpn: number): void {
    this.#entries = this.#entries.slice(this.#taken).filter(({ qp }) => qp.qpn !== qpn);
    this.#taken = 0;
  }
}

export function completionOf({ qp, wrId, opcode, byteLen }: DirectCompletion): WorkCompletion {
  return {
    wrId,
    status: STATUS_SUCCESS,
    statusName: statusName(STATUS_SUCCESS),
    opcode: wcOpcodeName(opcode),
    byteLen,
    qpn: qp.qpn,
    sourceQpn: 0,
    vendorError: 0,
  };
}

/**
 * Lets the event loop turn now and then. Direct operations complete without it, so a loop that awaits one after the
 * other would keep timers and sockets waiting until its end.
 */
class EventLoopTurns {
  #operations = 0;
  #bytes = 0;
  #turn: Promise<void> | undefined;

  spend(bytes: number): void {
    this.#operations++;
    this.#bytes += bytes;
  }

  get isDue(): boolean {
    return this.#operations >= OPERATIONS_PER_TURN || this.#bytes >= BYTES_PER_TURN;
  }

  /** Resolves in the next turn. */
  next(): Promise<void> {
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#operations = 0;
        this.#bytes = 0;
        this.#turn = undefined;
        resolve();
      });
    });
    return this.#turn;
  }
}

/** Of this thread. */
export const EVENT_LOOP_TURNS = new EventLoopTurns();
