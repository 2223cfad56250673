/**
 * An address vector in use: where packets of a connection go, what their IP headers say, and the ICRC state of both directions.
 */

import type { IpAddress } from '../packet/address.js';
import { linkOverheadBytes } from '../packet/frame.js';
import { IcrcFlow, sealIcrc } from '../packet/icrc.js';
import { ICRC_BYTES } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';

/** Congestion notifications travel on a priority of their own: what mlx5 sends them with (cnp_dscp). */
export const CNP_DSCP = 48;

/** Share of a peer socket's receive buffer that one QP may fill. The NIC keeps one record a peer and recomputes it when QPs come and go. */
export interface PeerBudget {
  /** Packets all QPs to this peer may have in flight together. */
  limitPackets: number;
  /** QPs connected to it. */
  qps: number;
}

/** What a connected queue pair has of its peer; made by the NIC when the remote side is known. */
export interface Connection {
  /** Where its packets go. */
  readonly path: Path;
  /** Shared with all connections to the same socket. */
  readonly budget: PeerBudget;
}

/**
 * Packets one QP may have in flight: its share of what the peer's socket can hold. Two at least, so that one is sent while the other is
 * answered, as long as that fits into twice the limit, the whole of the peer's buffer; with more QPs one.
 */
export function windowPackets({ limitPackets, qps }: PeerBudget): number {
  return Math.max(qps <= limitPackets ? 2 : 1, Math.floor(limitPackets / Math.max(1, qps)));
}

/**
 * UDP source port of a connection, the entropy field of RoCEv2 (annex A17.9.2; the kernel's `rdma_get_udp_sport`): the same for both
 * directions, in 0xC000..0xFFFF.
 */
export function flowSourcePort(localQpn: number, remoteQpn: number): number {
  let value = BigInt(localQpn) * BigInt(remoteQpn);
  value ^= value >> 20n;
  value ^= value >> 40n;
  const label = Number(value & 0xfffffn);
  return ((label & 0x3fff) ^ ((label & 0xfc000) >> 14)) | 0xc000;
}

/** One way to one peer. */
export class Path {
  /** Our address. */
  readonly local: IpAddress;
  /** The address of the peer. */
  readonly remote: IpAddress;
  /** UDP port that we receive on. */
  readonly localUdpPort: number;
  /** UDP source port of what we send. */
  readonly sourcePort: number;
  /** UDP port that the peer receives on. */
  readonly remoteUdpPort: number;
  /** 0..63. */
  readonly dscp: number;
  /** Codepoint of what we send, unless the packet has its own: 0 or 2, ECT(0). */
  readonly ecn: number;
  /** Bytes that a packet takes on the link besides its UDP payload. */
  readonly overheadBytes: number;
  readonly #txFlow: IcrcFlow;
  #rxFlow: IcrcFlow;
  #rxSourcePort: number;

  constructor(options: {
    local: IpAddress;
    remote: IpAddress;
    localUdpPort: number;
    sourcePort: number;
    remoteUdpPort: number;
    dscp: number;
    ecn: number;
  }) {
    this.local = options.local;
    this.remote = options.remote;
    this.localUdpPort = options.localUdpPort;
    this.sourcePort = options.sourcePort;
    this.remoteUdpPort = options.remoteUdpPort;
    this.dscp = options.dscp;
    this.ecn = options.ecn;
    this.overheadBytes = linkOverheadBytes(this.remote.family);
    this.#txFlow = new IcrcFlow(this.local, this.remote, this.sourcePort, this.remoteUdpPort);
    this.#rxSourcePort = this.remoteUdpPort;
    this.#rxFlow = new IcrcFlow(this.remote, this.local, this.remoteUdpPort, this.localUdpPort);
  }

  /** ICRC state of arriving packets. A peer may use any source port, but keeps it, so that one remembered flow is enough. */
  receiveFlow(sourcePort: number): IcrcFlow {
    if (sourcePort !== this.#rxSourcePort) {
      this.#rxFlow = new IcrcFlow(this.remote, this.local, sourcePort, this.localUdpPort);
      this.#rxSourcePort = sourcePort;
    }
    return this.#rxFlow;
  }

  /**
   * Closes the packet that ends at `end` in the batch's next slot: addresses, identification, ICRC. `ipId` is the identification where
   * the batch is not sent in trains. ECN and DSCP are those of the address vector unless given; they decide on trains, too.
   */
  seal(batch: TxBatch, end: number, ipId: number, ecn = this.ecn, dscp = this.dscp): void {
    const slot = batch.count++;
    const start = batch.payloadOffset(slot);
    const length = end - start + ICRC_BYTES;
    batch.lengths[slot] = length;
    batch.ecns[slot] = ecn;
    batch.dscps[slot] = dscp;
    batch.sourcePorts[slot] = this.sourcePort;
    batch.destinationPorts[slot] = this.remoteUdpPort;
    batch.sources[slot] = this.local;
    batch.destinations[slot] = this.remote;
    const id = batch.trainMax > 1 ? batch.trainIndex(slot) : ipId;
    batch.ipIds[slot] = id;
    sealIcrc(this.#txFlow, batch.slab, start, length, id, batch.checkView(slot));
  }
}
