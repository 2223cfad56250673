import type { IpAddress } from '../packet/address.js';
import { linkOverheadBytes } from '../packet/frame.js';
import { IcrcFlow, sealIcrc, sealIcrcAround } from '../packet/icrc.js';
import { BTH_MULTIPATH, BTH_TRAILER, trailerBytesOf } from '../packet/int-trailer.js';
import { ICRC_BYTES } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import type { PeerInFlightLimit } from './peer-in-flight-limit.js';

/** Congestion notifications have a separate priority: the default of mlx5 (cnp_dscp). */
export const CNP_DSCP = 48;

/** The peer of a connected queue pair; made by the NIC when the remote side is known. */
export interface ConnectedPeer {
  readonly path: Path;
  readonly inFlightLimit: PeerInFlightLimit;
  isSharing: boolean;
}

/**
 * UDP source port of a connection, the entropy field of RoCEv2 (annex A17.9.2; the kernel's `rdma_get_udp_sport`): the
 * same for both directions, in 0xC000..0xFFFF.
 */
export function flowSourcePort(localQpn: number, remoteQpn: number): number {
  let value = BigInt(localQpn) * BigInt(remoteQpn);
  value ^= value >> 20n;
  value ^= value >> 40n;
  const label = Number(value & 0xfffffn);
  return ((label & 0x3fff) ^ ((label & 0xfc000) >> 14)) | 0xc000;
}

/** UDP source ports of flows begin here, as in `rdma_get_udp_sport`. */
const FLOW_PORTS = 0xc000;
const FLOW_PORTS_MASK = 0x3fff;

/** The source port of a connection's `entropy`, whose entropy 0 has `port`. */
function entropyPort(port: number, entropy: number): number {
  return entropy === 0 ? port : FLOW_PORTS | ((port + entropy) & FLOW_PORTS_MASK);
}

/**
 * The entropy of a packet from `sourcePort` where entropy 0 has `port`; a number that is not an entropy if the port has
 * none.
 */
export function entropyOfPort(port: number, sourcePort: number): number {
  return sourcePort < FLOW_PORTS ? FLOW_PORTS : (sourcePort - port) & FLOW_PORTS_MASK;
}

/** One address vector, with one or several entropy values. */
export class Path {
  readonly local: IpAddress;
  readonly remote: IpAddress;
  readonly localUdpPort: number;
  /** UDP source port of what we send, on entropy 0. */
  readonly sourcePort: number;
  readonly hasFixedPort: boolean;
  readonly remoteUdpPort: number;
  /** 0..63. */
  readonly dscp: number;
  /** Codepoint of what we send, unless the packet has its own: 0 or 2, ECT(0). */
  readonly ecn: number;
  /** Bytes that a packet takes on the link besides its UDP payload. */
  readonly overheadBytes: number;
  /** False: what we send has no payload, and no ICRC over it. */
  readonly #makesIcrc: boolean;
  readonly #txFlow: IcrcFlow;
  #entropies = 1;
  #next = 0;
  /** The entropy of the next packet; -1: entropies in turn. */
  #chosen = -1;
  /** By entropy, made when first used. */
  #txFlows: (IcrcFlow | undefined)[] = [];
  #rxFlows: (IcrcFlow | undefined)[] = [];
  #rxFlow: IcrcFlow;
  #rxSourcePort: number;
  /** The previous one: a peer whose CNPs have a separate port alternates between two. */
  #rxFlowBefore: IcrcFlow;
  #rxSourcePortBefore: number;

  constructor(options: {
    local: IpAddress;
    remote: IpAddress;
    localUdpPort: number;
    sourcePort: number;
    hasFixedPort: boolean;
    remoteUdpPort: number;
    dscp: number;
    ecn: number;
    makesIcrc: boolean;
  }) {
    this.local = options.local;
    this.remote = options.remote;
    this.localUdpPort = options.localUdpPort;
    this.sourcePort = options.sourcePort;
    this.hasFixedPort = options.hasFixedPort;
    this.remoteUdpPort = options.remoteUdpPort;
    this.dscp = options.dscp;
    this.ecn = options.ecn;
    this.#makesIcrc = options.makesIcrc;
    this.overheadBytes = linkOverheadBytes(this.remote.family);
    this.#txFlow = new IcrcFlow(this.local, this.remote, this.sourcePort, this.remoteUdpPort);
    this.#rxSourcePort = this.remoteUdpPort;
    this.#rxFlow = new IcrcFlow(this.remote, this.local, this.remoteUdpPort, this.localUdpPort);
    this.#rxSourcePortBefore = this.#rxSourcePort;
    this.#rxFlowBefore = this.#rxFlow;
  }

  /** Packets leave, and come, with that many entropy values from now on: one where the source port is fixed. */
  spread(entropies: number): void {
    this.#entropies = this.hasFixedPort ? 1 : entropies;
    this.#next = 0;
    this.#chosen = -1;
    this.#txFlows = new Array<undefined>(this.#entropies).fill(undefined);
    this.#rxFlows = new Array<undefined>(this.#entropies).fill(undefined);
  }

  /** There is more than one entropy value. */
  get isSpread(): boolean {
    return this.#entropies > 1;
  }

  /** The next packet takes `entropy`, less than there are. Packets without a choice take the entropies in turn. */
  choose(entropy: number): void {
    this.#chosen = entropy;
  }

  get chosenEntropy(): number {
    return Math.max(0, this.#chosen);
  }

  #takeEntropy(): number {
    let entropy = this.#chosen;
    this.#chosen = -1;
    if (entropy < 0) {
      entropy = this.#next;
      this.#next = entropy + 1 === this.#entropies ? 0 : entropy + 1;
    }
    return entropy;
  }

  #sendFlow(entropy: number): IcrcFlow {
    if (entropy === 0) return this.#txFlow;
    let flow = this.#txFlows[entropy];
    if (flow === undefined) {
      flow = new IcrcFlow(this.local, this.remote, entropyPort(this.sourcePort, entropy), this.remoteUdpPort);
      this.#txFlows[entropy] = flow;
    }
    return flow;
  }

  /** A peer keeps its source port ({@link PeerPort}), so that few remembered flows are enough. */
  receiveFlow(sourcePort: number): IcrcFlow {
    if (this.#entropies > 1) {
      const entropy = entropyOfPort(this.sourcePort, sourcePort);
      if (entropy < this.#entropies) {
        this.#rxFlows[entropy] ??= this.#newReceiveFlow(sourcePort);
        return this.#rxFlows[entropy];
      }
    }
    if (sourcePort !== this.#rxSourcePort) this.#switchReceiveFlow(sourcePort);
    return this.#rxFlow;
  }

  #switchReceiveFlow(sourcePort: number): void {
    const flow = sourcePort === this.#rxSourcePortBefore ? this.#rxFlowBefore : this.#newReceiveFlow(sourcePort);
    this.#rxSourcePortBefore = this.#rxSourcePort;
    this.#rxFlowBefore = this.#rxFlow;
    this.#rxSourcePort = sourcePort;
    this.#rxFlow = flow;
  }

  #newReceiveFlow(sourcePort: number): IcrcFlow {
    return new IcrcFlow(this.remote, this.local, sourcePort, this.localUdpPort);
  }

  /**
   * Closes the packet in the batch's next slot that ends, with its trailer but without the ICRC, at `end`: addresses,
   * identification, ICRC. `ipId` is the identification if the batch is not sent in trains. The defaults of ECN and DSCP
   * are those of the address vector; they also decide on trains.
   */
  seal(batch: TxBatch, end: number, ipId: number, ecn = this.ecn, dscp = this.dscp): void {
    const slot = batch.count++;
    const start = batch.payloadOffset(slot);
    const length = end - start + ICRC_BYTES;
    batch.lengths[slot] = length;
    batch.ecns[slot] = ecn;
    batch.dscps[slot] = dscp;
    let entropy = 0;
    if (this.#entropies > 1) {
      entropy = this.#takeEntropy();
      batch.slab[start + 4] |= BTH_MULTIPATH;
    }
    batch.sourcePorts[slot] = entropyPort(this.sourcePort, entropy);
    batch.destinationPorts[slot] = this.remoteUdpPort;
    batch.sources[slot] = this.local;
    batch.destinations[slot] = this.remote;
    const id = batch.trainMax > 1 ? batch.trainIndex(slot) : ipId;
    batch.ipIds[slot] = id;
    if (!this.#makesIcrc) return;
    const { slab } = batch;
    const borrowed = batch.borrowedLengths[slot];
    if (borrowed > 0) {
      const { borrowedFrom, borrowedOffsets } = batch;
      const flow = this.#sendFlow(entropy);
      const before = batch.borrowedAt[slot];
      const after = batch.lastWordOffset(slot);
      sealIcrcAround(flow, slab, start, before, after, id, borrowedFrom[slot], borrowedOffsets[slot], borrowed);
      return;
    }
    const trailerBytes = (slab[start + 4] & BTH_TRAILER) === 0 ? 0 : trailerBytesOf(slab, start, length);
    sealIcrc(this.#sendFlow(entropy), slab, start, length, id, batch.checkView(slot, trailerBytes));
  }
}
