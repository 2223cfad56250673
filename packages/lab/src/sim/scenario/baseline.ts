import type { Cable } from '../cable.js';
import type { Network } from '../network.js';
import type { Flow } from './flow.js';
import type { Probes, QueueProbe } from './probes.js';

export class Baseline {
  readonly #network: Network;
  readonly #flows: readonly Flow[];
  readonly #probes: Probes;
  readonly #progress = new Map<Flow, HostProgress>();
  readonly #queues = new Map<QueueProbe, QueueCounts>();
  readonly #cableBytes = new Map<string, number>();
  #lostAtHosts = 0;

  constructor(network: Network, flows: readonly Flow[], probes: Probes) {
    this.#network = network;
    this.#flows = flows;
    this.#probes = probes;
  }

  take(): void {
    for (const flow of this.#flows) this.#progress.set(flow, progressOf(flow));
    for (const probe of this.#probes.queues) this.#queues.set(probe, countsOf(probe));
    this.#lostAtHosts = lostAtHosts(this.#network);
    for (const [name, cable] of this.#network.cables) this.#cableBytes.set(name, bytesOn(cable));
  }

  progress(flow: Flow): HostProgress {
    const now = progressOf(flow);
    const before = this.#progress.get(flow) ?? { ...NO_PROGRESS, ns: flow.plan.startNs };
    return {
      messages: now.messages - before.messages,
      bytes: now.bytes - before.bytes,
      ns: now.ns - before.ns,
      cnps: now.cnps - before.cnps,
      retransmitted: now.retransmitted - before.retransmitted,
    };
  }

  counts(probe: QueueProbe): QueueCounts {
    const now = countsOf(probe);
    const before = this.#queues.get(probe);
    if (before === undefined) return now;
    return {
      marked: now.marked - before.marked,
      dropped: now.dropped - before.dropped,
      pauses: now.pauses - before.pauses,
      receivedPauses: now.receivedPauses - before.receivedPauses,
    };
  }

  get lostAtHosts(): number {
    return lostAtHosts(this.#network) - this.#lostAtHosts;
  }

  cableBytes(name: string): number {
    return bytesOn(this.#network.cables.get(name)!) - (this.#cableBytes.get(name) ?? 0);
  }
}

function bytesOn({ bytes, frames, frameOverheadBytes }: Cable): number {
  return bytes + frames * frameOverheadBytes;
}

function lostAtHosts({ stations }: Network): number {
  return [...stations.values()].reduce((sum, { lostPackets }) => sum + lostPackets, 0);
}

export interface HostProgress {
  readonly messages: number;
  readonly bytes: number;
  readonly ns: number;
  readonly cnps: number;
  readonly retransmitted: number;
}

const NO_PROGRESS: HostProgress = { messages: 0, bytes: 0, ns: 0, cnps: 0, retransmitted: 0 };

function progressOf({ messages, doneBytes, doneNs, cnps, retransmittedPackets }: Flow): HostProgress {
  return { messages, bytes: doneBytes, ns: doneNs, cnps, retransmitted: retransmittedPackets };
}

interface QueueCounts {
  readonly marked: number;
  readonly dropped: number;
  readonly pauses: number;
  readonly receivedPauses: number;
}

function countsOf({ node, port }: QueueProbe): QueueCounts {
  return {
    marked: node.markedPackets(port),
    dropped: node.droppedPackets(port),
    pauses: node.pauseFrames(port),
    receivedPauses: node.receivedPauseFrames(port),
  };
}
