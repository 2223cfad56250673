/**
 * The interface between the engine and a port: UDP payloads (BTH .. ICRC) with the relevant fields of their IP header.
 * Records are reused; nothing here is allocated per packet.
 */

import type { IpAddress } from '../packet/address.js';

/** UDP destination port of RoCEv2 (IANA). */
export const ROCE_UDP_PORT = 4791;

export { ECN_CE, ECN_ECT0 } from '../packet/ecn.js';
export { IP_ID_UNKNOWN } from '../packet/icrc.js';

/**
 * One received datagram. The port owns the record and the bytes; both are valid only during the call that hands them
 * over.
 */
export interface RxDatagram {
  /** The array that the datagram is in; it may hold more than the datagram. */
  bytes: Uint8Array;
  /**
   * UDP payload: `bytes[offset, offset + length)`. The engine may flip bits of BTH byte 4 while it checks the ICRC, and
   * restores them.
   */
  offset: number;
  /** Bytes of UDP payload, BTH to ICRC. */
  length: number;
  /** From the IP header: the sender. */
  source: IpAddress;
  /** UDP port of the sender, which is part of the flow and of the ICRC. */
  sourcePort: number;
  /** From the IP header: an address of this port. */
  destination: IpAddress;
  /** UDP port it was sent to, usually {@link ROCE_UDP_PORT}. */
  destinationPort: number;
  /** 0..3; 0 where the port cannot see it. */
  ecn: number;
  /** Differentiated services codepoint 0..63 (RFC 2474); 0 where the port cannot see it. */
  dscp: number;
  /** IPv4 identification 0..65535, or {@link IP_ID_UNKNOWN} and below. Meaningless for IPv6. */
  ipId: number;
}

/**
 * Where a UDP payload should begin, modulo 8: a BTH has 12 bytes, and a BTH with RETH 28, so that the data after them
 * are at a multiple of 8. Copies between differently aligned shared memory are seven times slower (V8 copies shared
 * memory word by word if it can, else byte by byte).
 */
export const PAYLOAD_ALIGNMENT = 4;
/** Bytes kept free in front of every payload so that a frame port can write Ethernet, IP and UDP headers in place. */
export const TX_HEADROOM_BYTES = 96 + PAYLOAD_ALIGNMENT;
/** BTH + the largest extension headers + 4096 + pad + ICRC, rounded up. */
export const TX_PAYLOAD_BYTES_MAX = 4260;
export const CACHE_LINE_BYTES = 64;
/** One slot of a batch, headroom and payload: whole cache lines, so that all slots are aligned alike. */
export const TX_SLOT_BYTES: number =
  Math.ceil((TX_HEADROOM_BYTES + TX_PAYLOAD_BYTES_MAX) / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
/** The most a train may hold: what fits an IPv4 datagram. */
const TRAIN_BYTES_MAX = 65507;

const NOTHING = new Uint8Array(0);
const LAST_WORD_BYTES = 4;

/**
 * A batch of outgoing datagrams: `count` slots of one slab, and arrays with one element per slot. The engine writes the
 * UDP payload at `payloadOffset(slot)` and fills the arrays; the port sends and then owns the slab until the kernel has
 * taken it.
 */
export class TxBatch {
  /** Slots that may be used. */
  capacity: number;
  /** Datagrams that may leave as one train (see {@link trainIndex}); 1: each leaves on its own. */
  readonly trainMax: number;
  /** All slots one after another, `TX_SLOT_BYTES` each. */
  readonly slab: Uint8Array;
  /** Where in the slab slot 0 stands, in slots. */
  first = 0;
  /** Slots in use, from slot 0 on; the engine counts up, the port starts again at 0. */
  count = 0;
  #trainStart = 0;
  /** UDP payload length in bytes. */
  readonly lengths: Uint16Array;
  /** IPv4 identification 0..65535, which the ICRC covers; meaningless for IPv6. */
  readonly ipIds: Uint16Array;
  /** ECN codepoint 0..3 (RFC 3168). */
  readonly ecns: Uint8Array;
  /** Differentiated services codepoint 0..63. */
  readonly dscps: Uint8Array;
  /** UDP source port; ports with a `fixedSourcePort` ignore it. */
  readonly sourcePorts: Uint16Array;
  /** UDP destination port. */
  readonly destinationPorts: Uint16Array;
  /** IP address to send from. */
  readonly sources: IpAddress[];
  /** IP address to send to. */
  readonly destinations: IpAddress[];
  /**
   * The port sends borrowed data from where it is ({@link borrow}): nothing else reads the slots, and it sends, or
   * copies, before the thread does anything else.
   */
  mayBorrow = false;
  /** Bytes of the datagram outside of the slot; 0: none. */
  readonly borrowedLengths: Uint16Array;
  /** Bytes of the slot before them. */
  readonly borrowedAt: Uint16Array;
  /** The array with them. */
  readonly borrowedFrom: Uint8Array[];
  /** Where in that array. */
  readonly borrowedOffsets: Float64Array;
  /** Cached views, one per slot of the slab, made again only when the length differs from the last use of the slot. */
  readonly #payloadViews: Uint8Array[] = [];
  readonly #checkViews: Uint8Array[] = [];
  readonly #frameViews: Uint8Array[] = [];

  /** `slab`: new memory unless the caller has some, of whole slots. */
  constructor(
    capacity: number,
    placeholder: IpAddress,
    trainMax = 1,
    slab = new Uint8Array(new ArrayBuffer(capacity * TX_SLOT_BYTES)),
  ) {
    this.capacity = capacity;
    this.trainMax = trainMax;
    this.slab = slab;
    this.lengths = new Uint16Array(capacity);
    this.ipIds = new Uint16Array(capacity);
    this.ecns = new Uint8Array(capacity);
    this.dscps = new Uint8Array(capacity);
    this.sourcePorts = new Uint16Array(capacity);
    this.destinationPorts = new Uint16Array(capacity);
    this.sources = Array<IpAddress>(capacity).fill(placeholder);
    this.destinations = Array<IpAddress>(capacity).fill(placeholder);
    this.borrowedLengths = new Uint16Array(capacity);
    this.borrowedAt = new Uint16Array(capacity);
    this.borrowedFrom = Array<Uint8Array>(capacity).fill(NOTHING);
    this.borrowedOffsets = new Float64Array(capacity);
    for (let slot = 0; slot * TX_SLOT_BYTES < slab.length; slot++) {
      this.#payloadViews.push(this.slab.subarray(0, 0));
      this.#checkViews.push(this.slab.subarray(0, 0));
      this.#frameViews.push(this.slab.subarray(0, 0));
    }
  }

  /** Where in the slab the BTH of a slot stands. */
  payloadOffset(slot: number): number {
    return (this.first + slot) * TX_SLOT_BYTES + TX_HEADROOM_BYTES;
  }

  /**
   * The datagram that is being written to the next slot continues, after its first `at` bytes, with
   * `from[offset, offset + length)`, and ends with four bytes at {@link lastWordOffset}. Only where {@link mayBorrow};
   * ends with the sending.
   */
  borrow(at: number, from: Uint8Array, offset: number, length: number): void {
    const slot = this.count;
    this.borrowedLengths[slot] = length;
    this.borrowedAt[slot] = at;
    this.borrowedFrom[slot] = from;
    this.borrowedOffsets[slot] = offset;
  }

  /**
   * Offset in the slab of the last four bytes of a datagram with borrowed data. They are just before the next slot's
   * datagram, so that both are one piece of a train if there is one.
   */
  lastWordOffset(slot: number): number {
    const next = this.payloadOffset(slot) + TX_SLOT_BYTES;
    return next < this.slab.length ? next - LAST_WORD_BYTES : this.slab.length - LAST_WORD_BYTES;
  }

  /** Ends all borrowing. */
  protected giveBack(): void {
    this.borrowedLengths.fill(0);
    this.borrowedFrom.fill(NOTHING);
  }

  /**
   * The place of a slot's datagram in its train: neighbours of one length and one traffic class to one socket, of which
   * only the last may be shorter. Ports that hand trains to the kernel in one piece (UDP_SEGMENT) send them with that
   * place as IPv4 identification, so the ICRC has to know it. Ask for the slots in order, from 0, once their arrays are
   * filled.
   */
  trainIndex(slot: number): number {
    const start = this.#trainStart;
    const index = slot - start;
    const { lengths } = this;
    const segment = lengths[start];
    if (
      slot > 0 &&
      index < this.trainMax &&
      lengths[slot - 1] === segment &&
      lengths[slot] <= segment &&
      index * segment + lengths[slot] <= TRAIN_BYTES_MAX &&
      this.destinationPorts[slot] === this.destinationPorts[start] &&
      this.ecns[slot] === this.ecns[start] &&
      this.dscps[slot] === this.dscps[start] &&
      this.destinations[slot].equals(this.destinations[start])
    ) {
      return index;
    }
    this.#trainStart = slot;
    return 0;
  }

  /** The whole UDP payload of a slot. */
  payloadView(slot: number): Uint8Array {
    return this.#view(this.#payloadViews, slot, this.payloadOffset(slot), this.lengths[slot]);
  }

  /** The UDP payload without its trailer and the 4 bytes before: what the ICRC is computed over. */
  checkView(slot: number, trailerBytes = 0): Uint8Array {
    return this.#view(this.#checkViews, slot, this.payloadOffset(slot), this.lengths[slot] - trailerBytes - 4);
  }

  /**
   * The UDP payload with the `headerBytes` in front of it (at most TX_HEADROOM_BYTES, the same for every call on a
   * batch).
   */
  frameView(slot: number, headerBytes: number): Uint8Array {
    return this.#view(this.#frameViews, slot, this.payloadOffset(slot) - headerBytes, this.lengths[slot] + headerBytes);
  }

  #view(cache: Uint8Array[], slot: number, start: number, length: number): Uint8Array {
    const place = this.first + slot;
    let view = cache[place];
    if (view.length !== length) {
      view = this.slab.subarray(start, start + length);
      cache[place] = view;
    }
    return view;
  }
}

/** For simulated links; real ports have kernels between them. */
export function datagramOf(batch: TxBatch, slot: number): RxDatagram {
  const bytes = batch.payloadView(slot).slice();
  return {
    bytes,
    offset: 0,
    length: bytes.length,
    source: batch.sources[slot],
    sourcePort: batch.sourcePorts[slot],
    destination: batch.destinations[slot],
    destinationPort: batch.destinationPorts[slot],
    ecn: batch.ecns[slot],
    dscp: batch.dscps[slot],
    ipId: batch.ipIds[slot],
  };
}

/**
 * How the port fills the IPv4 identification, which the ICRC covers. `zero`: always 0, as from an unconnected Linux
 * socket with DF forced; also for IPv6, which has none. `train`: the same, but datagrams of a train are numbered
 * ({@link TxBatch.trainIndex}). `sequential`: this package writes the header, with one number per datagram of this
 * port.
 */
export type IpIdPolicy = 'zero' | 'train' | 'sequential';

/** Counters of a port since it was made. */
export interface PortCounters {
  /** Datagrams that the kernel, or the other end of the wire, has taken. */
  txDatagrams: number;
  /** Datagrams that were handed to `onDatagram`. */
  rxDatagrams: number;
  /**
   * Datagrams refused on transmission, by the kernel or for lack of a neighbour's address; not part of `txDatagrams`.
   */
  txErrors: number;
}

/** Sends and receives datagrams. Drivers call it; the engine only sees its properties and the batches. */
export interface Port {
  /** For people: `udp 127.0.0.1:4791 (node:dgram, koffi options)`. */
  readonly description: string;
  /** The IP address that packets come from and are sent to: the ICRC covers it. */
  readonly address: IpAddress;
  /** The UDP port third parties must send to (4791 unless there is only one address on the host). */
  readonly udpPort: number;
  /** Largest path MTU (256..4096) this port can carry. */
  readonly pathMtuMax: number;
  /** How the IPv4 identification is filled. */
  readonly ipIdPolicy: IpIdPolicy;
  /**
   * The UDP source port every datagram leaves with, which the ICRC covers: a UDP socket sends from the port it is bound
   * to (known once open). Undefined where the port writes the header itself and uses `batch.sourcePorts`.
   */
  readonly fixedSourcePort: number | undefined;
  /** Counts up as long as the port lives; read-only for others. */
  readonly counters: Readonly<PortCounters>;
  /**
   * 4 KiB-class datagrams the receive buffer holds before the kernel drops silently; Infinity where nothing is dropped.
   */
  readonly receiveBudgetPackets: number;
  /** Called once per received datagram. Set by the driver before {@link open} resolves. */
  onDatagram: (datagram: RxDatagram) => void;
  /**
   * Called before the datagrams that arrived in one piece: `packets` of them, of `packetBytes` each, are consecutive
   * from `bytes[offset]` on, and only their receiver changes them until the next call. A shorter last one is not
   * counted. Set by the driver, as `onDatagram`. Absent: trains are not reported.
   */
  onTrain?: (bytes: Uint8Array, offset: number, packetBytes: number, packets: number) => void;
  /**
   * Called after the datagrams of one read of the socket, by ports that read many at a time. Set by the driver, as
   * `onDatagram`. Absent: datagrams come one by one.
   */
  onDelivered?: () => void;
  /**
   * The link partner pauses a priority (0..7) for that long from now, or lifts the pause (0). Set by the driver, as
   * `onDatagram`. Ports without a link never call it.
   */
  onPause: (priority: number, durationNs: number) => void;
  /** A socket error that is not about one datagram. */
  onError: (error: Error) => void;
  /**
   * Binds the sockets. Rejects with ERR_ROCE_IO when the address is taken or not of this host, ERR_ROCE_INVALID_STATE
   * when called again, ERR_ROCE_CLOSED when closed during that.
   */
  open(): Promise<void>;
  /**
   * A batch with `count` 0 to be filled, or undefined while the kernel has not taken earlier ones. `nowNs`: the time,
   * where the caller has just read the clock.
   */
  beginBatch(nowNs?: number): TxBatch | undefined;
  /** Sends `batch.count` datagrams and takes the batch back. */
  sendBatch(batch: TxBatch): void;
  /** Closes the sockets. No callback comes afterwards. Safe to call twice. */
  close(): Promise<void>;
}
