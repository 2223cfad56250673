/** Runs one flow of a plan: posts its operations and receives, and holds every completion against the plan. */

import type { WorkCompletion } from '../../../../src/verbs/completion-queue.js';
import type { MemoryRegion } from '../../../../src/verbs/memory-region.js';
import type { QueuePair } from '../../../../src/verbs/queue-pair.js';
import type { SendWorkRequest } from '../../../../src/verbs/send-work-request.js';
import type { EventQueue } from '../../src/sim/event-queue.js';
import type { Range } from './arena.js';
import type { FlowPlan, Operation, OperationKind } from './plan.js';

/** One end of a connection. */
export interface End {
  readonly qp: QueuePair;
  readonly mr: MemoryRegion;
}

const SEND_COMPLETION: Readonly<Record<OperationKind, WorkCompletion['opcode']>> = {
  SEND: 'SEND',
  SEND_WITH_IMM: 'SEND',
  SEND_WITH_INV: 'SEND',
  RDMA_WRITE: 'RDMA_WRITE',
  RDMA_WRITE_WITH_IMM: 'RDMA_WRITE',
  RDMA_READ: 'RDMA_READ',
  ATOMIC_FETCH_AND_ADD: 'FETCH_ADD',
  ATOMIC_CMP_AND_SWP: 'COMP_SWAP',
  ATOMIC_WRITE: 'ATOMIC_WRITE',
  FLUSH: 'FLUSH',
};

type Expected = Partial<WorkCompletion>;

export class FlowDriver {
  readonly plan: FlowPlan;
  readonly #from: End;
  readonly #to: End;
  readonly #windowKeys: readonly number[];
  readonly #receiveDepth: number;
  readonly #events: EventQueue;
  readonly #fail: (what: string) => void;
  readonly #expectedSends: readonly Expected[];
  readonly #expectedReceives: readonly Expected[];
  #posted = 0;
  #pumpScheduled = false;
  #receivesPosted = 0;
  #receiveScheduled = false;
  #sendsDone = 0;
  #receivesDone = 0;

  constructor(options: {
    plan: FlowPlan;
    from: End;
    to: End;
    windowKeys: readonly number[];
    signalAll: boolean;
    receiveDepth: number;
    events: EventQueue;
    fail: (what: string) => void;
  }) {
    this.plan = options.plan;
    this.#from = options.from;
    this.#to = options.to;
    this.#windowKeys = options.windowKeys;
    this.#receiveDepth = options.receiveDepth;
    this.#events = options.events;
    this.#fail = options.fail;
    this.#expectedSends = this.#sendCompletions(options.signalAll);
    this.#expectedReceives = this.#receiveCompletions();
  }

  start(): void {
    this.#pumpReceives();
    this.#pump();
  }

  get isDone(): boolean {
    return this.#sendsDone === this.#expectedSends.length && this.#receivesDone === this.#expectedReceives.length;
  }

  onSendCompletion(wc: WorkCompletion): void {
    this.#check('send', wc, this.#expectedSends[this.#sendsDone++]);
    this.#pump();
  }

  onReceiveCompletion(wc: WorkCompletion): void {
    this.#check('receive', wc, this.#expectedReceives[this.#receivesDone++]);
    this.#pumpReceives();
  }

  /** For reports: how far it got. */
  toString(): string {
    const { from, to, qp, operations } = this.plan;
    return (
      `QP ${qp} ${from}>${to}: ${this.#posted}/${operations.length} posted, ` +
      `${this.#sendsDone}/${this.#expectedSends.length} sends and ` +
      `${this.#receivesDone}/${this.#expectedReceives.length} receives completed`
    );
  }

  #check(what: string, wc: WorkCompletion, expected: Expected | undefined): void {
    const { from, to, qp } = this.plan;
    const where = `QP ${qp} ${from}>${to} ${what} completion`;
    if (expected === undefined) {
      this.#fail(`${where}: one more than posted: wr_id ${wc.wrId} ${wc.statusName}`);
      return;
    }
    for (const [name, value] of Object.entries(expected)) {
      const found = wc[name as keyof WorkCompletion];
      if (found !== value) this.#fail(`${where} wr_id ${expected.wrId}: ${name} is ${found}, should be ${value}`);
    }
  }

  #sendCompletions(signalAll: boolean): Expected[] {
    return this.plan.operations.flatMap(({ kind, signaled, bytes }, wrId) =>
      signaled || signalAll
        ? [{ wrId, statusName: 'SUCCESS', opcode: SEND_COMPLETION[kind], byteLen: bytes, qpn: this.#from.qp.qpn }]
        : [],
    );
  }

  #receiveCompletions(): Expected[] {
    const expected: Expected[] = [];
    for (const { kind, bytes, immediate, window } of this.plan.operations) {
      if (!takesReceive(kind)) continue;
      const withImmediate = kind === 'SEND_WITH_IMM' || kind === 'RDMA_WRITE_WITH_IMM';
      expected.push({
        wrId: expected.length,
        statusName: 'SUCCESS',
        opcode: kind === 'RDMA_WRITE_WITH_IMM' ? 'RECV_RDMA_WITH_IMM' : 'RECV',
        byteLen: bytes,
        qpn: this.#to.qp.qpn,
        ...(withImmediate && { immediate }),
        ...(window >= 0 && { invalidatedRkey: this.#windowKeys[window] }),
      });
    }
    return expected;
  }

  /** Posts a burst, if there is room; the next one after the gap, or when a completion has made room. */
  #pump(): void {
    const { operations, burst, burstGapNs } = this.plan;
    if (this.#pumpScheduled) return;
    for (let n = 0; n < burst && this.#posted < operations.length && this.#from.qp.sendRoom > 0; n++) {
      this.#post(operations[this.#posted], this.#posted);
      this.#posted++;
    }
    if (this.#posted === operations.length || this.#from.qp.sendRoom === 0) return;
    this.#pumpScheduled = true;
    this.#events.after(burstGapNs, () => {
      this.#pumpScheduled = false;
      this.#pump();
    });
  }

  #post(operation: Operation, wrId: number): void {
    const inline = operation.inline?.slice();
    this.#from.qp.postSend(this.#request(operation, wrId, inline));
    inline?.fill(0); // Inline data is copied when it is posted: the buffer is the caller's again.
  }

  #request(operation: Operation, wrId: number, inline: Uint8Array | undefined): SendWorkRequest {
    const { kind, immediate, add, compare, swap, signaled, fence, solicited } = operation;
    const common = { wrId, signaled, fence };
    const sges = sgesOf(this.#from.mr, operation.local);
    const source = inline === undefined ? { sges, solicited } : { inline, solicited };
    const { mr } = this.#to;
    const target = { remoteAddr: mr.addr + BigInt(operation.remote?.offset ?? 0), rkey: mr.rkey };
    switch (kind) {
      case 'SEND':
        return { opcode: kind, ...common, ...source };
      case 'SEND_WITH_IMM':
        return { opcode: kind, ...common, ...source, immediate };
      case 'SEND_WITH_INV':
        return { opcode: kind, ...common, ...source, invalidateRkey: this.#windowKeys[operation.window] };
      case 'RDMA_WRITE':
        return { opcode: kind, ...common, ...source, ...target };
      case 'RDMA_WRITE_WITH_IMM':
        return { opcode: kind, ...common, ...source, ...target, immediate };
      case 'RDMA_READ':
        return { opcode: kind, ...common, sges, ...target };
      case 'ATOMIC_FETCH_AND_ADD':
        return { opcode: kind, ...common, sges, ...target, add };
      case 'ATOMIC_CMP_AND_SWP':
        return { opcode: kind, ...common, sges, ...target, compare, swap };
      case 'ATOMIC_WRITE':
        return { opcode: kind, ...common, sges, ...target };
      case 'FLUSH':
        return { opcode: kind, ...common, placement: 'GLOBAL', length: operation.bytes, ...target };
    }
  }

  #pumpReceives(): void {
    const { receives, receiveGapNs } = this.plan;
    if (receiveGapNs === 0) {
      while (this.#mayPostReceive) this.#postReceive();
      return;
    }
    if (this.#receiveScheduled || this.#receivesPosted === receives.length) return;
    this.#receiveScheduled = true;
    this.#events.after(receiveGapNs, () => {
      this.#receiveScheduled = false;
      if (!this.#mayPostReceive) return; // A completion will pump again.
      this.#postReceive();
      this.#pumpReceives();
    });
  }

  get #mayPostReceive(): boolean {
    const outstanding = this.#receivesPosted - this.#receivesDone;
    return this.#receivesPosted < this.plan.receives.length && outstanding < this.#receiveDepth;
  }

  #postReceive(): void {
    const wrId = this.#receivesPosted++;
    this.#to.qp.postRecv({ wrId, sges: sgesOf(this.#to.mr, this.plan.receives[wrId]) });
  }
}

function takesReceive(kind: OperationKind): boolean {
  return kind.startsWith('SEND') || kind === 'RDMA_WRITE_WITH_IMM';
}

function sgesOf(mr: MemoryRegion, ranges: readonly Range[]) {
  return ranges.map(({ offset, length }) => mr.sge(offset, length));
}
