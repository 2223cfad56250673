/**
 * A port on a UDP socket driven by sendmmsg(2) and recvmmsg(2) (Linux, koffi): many datagrams per system call, trains
 * of them in one piece through the stack both ways (UDP_SEGMENT, UDP_GRO), ECN and DSCP written and read.
 *
 * The ICRC stays exact over IPv4: the socket is unconnected with DF forced, so a datagram leaves with identification 0,
 * and a train's datagrams with their index in it (`TxBatch.trainIndex`). The kernel does not show the identification of
 * received datagrams, which is guessed in the same way.
 *
 * On an event loop, libuv tells the port that something has arrived. In a Worker the poll loop of the NIC reads it
 * (`polled`): `receive`, then `wait`.
 *
 * Invariants: batches go out in the order they were given; nothing is received after `close`.
 */

import { getSystemErrorName } from 'node:util';
import { TrafficSpin } from '../core/adaptive-spin.js';
import { checkBoolean, checkKind, ifGiven } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import {
  IP_ID_UNKNOWN,
  type Port,
  type PortCounters,
  ROCE_UDP_PORT,
  type RxDatagram,
  type TxBatch,
} from '../port/datagram.js';
import { DEFAULT_SOCKET_BUFFER_BYTES } from './bound-socket.js';
import { type LibC, libC } from './libc.js';
import { pathMtuForAddress } from './link-mtu.js';
import { LoopReadiness } from './loop-readiness.js';
import { boundUdpPort, enableBatching, openNativeSocket, receiveBufferBytesOf } from './native-socket.js';
import { Readiness } from './readiness.js';
import { ReceiveVector } from './receive-vector.js';
import { SEND_AGAIN, SendVector } from './send-vector.js';
import { checkUdpOptions, receiveBudgetOf, type UdpSocketOptions } from './udp-options.js';

/** Segments the kernel takes in one piece (UDP_MAX_SEGMENTS, 64 until Linux 6.10). */
const TRAIN_SEGMENTS_MAX = 64;
/** Four trains of fifteen 4 KiB packets. */
const BATCH_SLOTS = 60;
const BATCHES = 8;
/** 64 KiB each: up to 120 packets of 4 KiB. */
const RECEIVE_SLOTS = 8;
/** Short datagrams do not arrive in trains, so that one poll takes many slots. */
const RECEIVE_TURN = 120;
/** Errors of devices that cannot send trains: no checksum offload, or a tunnel. */
const EIO = 5;
const EINVAL = 22;

/** Options of {@link openBatchedUdpPort}. */
export interface BatchedUdpPortOptions extends UdpSocketOptions {
  /** The owner calls `receive` and `wait`; the port does not use the event loop. Default false. */
  readonly polled?: boolean | undefined;
  /**
   * Sends data of batches from where it is (`TxBatch.borrow`). Use only if batches are sent as soon as they are filled
   * and nothing in between reads the slots. Default false.
   */
  readonly borrows?: boolean | undefined;
  /** A monotonic clock: how long the port looks again before it sleeps. */
  readonly nowNs: () => number;
}

/** A port that can be read at any time. If it is polled, its owner reads it, and waits for it. */
export interface BatchedUdpPort extends Port {
  onTrain: NonNullable<Port['onTrain']>;
  /**
   * Delivers a bounded number of arrived datagrams and returns their number. Never waits. A port with several sources
   * may skip quiet ones unless `everything` is requested, as before timers are checked.
   */
  receive(everything?: boolean): number;
  /** Some datagrams have not been sent yet, because the kernel's send buffer is full. */
  readonly hasUnsent: boolean;
  /** Blocks the calling thread until a datagram arrives, `wakeFd` is written to, or the time is over: then false. */
  wait(timeoutNs: number): boolean;
  /** An eventfd. Known once open. */
  readonly wakeFd: number;
}

/** Undefined if batched ports can be opened here; otherwise the reason. */
export function batchedUdpAvailable(): string | undefined {
  const lib = libC();
  return typeof lib === 'string' ? lib : undefined;
}

/**
 * A batched port; call `open` to bind it. Throws ERR_ROCE_INVALID_ARGUMENT for a wildcard address, and
 * ERR_ROCE_UNSUPPORTED if the system has none.
 */
export function openBatchedUdpPort(options: BatchedUdpPortOptions): BatchedUdpPort {
  const lib = libC();
  if (typeof lib === 'string') {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `no batched UDP here: ${lib}`, 'use the node:dgram port');
  }
  return new MmsgPort(lib, options);
}

class MmsgPort implements BatchedUdpPort {
  readonly address: IpAddress;
  readonly pathMtuMax: number;
  readonly ipIdPolicy = 'train';
  readonly counters: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onTrain: (bytes: Uint8Array, offset: number, packetBytes: number, packets: number) => void = () => {};
  onDelivered: () => void = () => {};
  onPause: (priority: number, durationNs: number) => void = () => {};
  onError: (error: Error) => void = () => {};

  readonly #lib: LibC;
  readonly #options: BatchedUdpPortOptions;
  readonly #rx: RxDatagram;
  readonly #received: ReceiveVector;
  #free: SendVector[] = [];
  readonly #unsent: SendVector[] = [];
  #state: 'new' | 'open' | 'closed' = 'new';
  #fd = -1;
  #readiness: Readiness | undefined;
  #loop: LoopReadiness | undefined;
  #turnPending = false;
  readonly #spin = new TrafficSpin();
  #isDrained = true;
  #udpPort: number;
  #receiveBudgetPackets = 0;
  #abilities = '';

  constructor(lib: LibC, options: BatchedUdpPortOptions) {
    checkUdpOptions(options);
    checkKind('nowNs', options.nowNs, typeof options.nowNs === 'function', 'a function');
    ifGiven(options.polled, (polled) => checkBoolean('polled', polled));
    ifGiven(options.borrows, (borrows) => checkBoolean('borrows', borrows));
    this.#lib = lib;
    this.#options = options;
    this.address = options.address;
    this.#udpPort = options.udpPort ?? ROCE_UDP_PORT;
    this.pathMtuMax = pathMtuForAddress(options.address);
    this.#received = new ReceiveVector(lib, RECEIVE_SLOTS, options.address);
    this.#rx = {
      bytes: this.#received.slab,
      offset: 0,
      length: 0,
      source: options.address,
      sourcePort: 0,
      destination: options.address,
      destinationPort: 0,
      ecn: 0,
      dscp: 0,
      ipId: options.address.family === 4 ? IP_ID_UNKNOWN : 0,
    };
  }

  get description(): string {
    return `udp ${this.address.text} (sendmmsg/recvmmsg${this.#abilities})`;
  }

  get udpPort(): number {
    return this.#udpPort;
  }

  get fixedSourcePort(): number {
    return this.#udpPort;
  }

  get receiveBudgetPackets(): number {
    return this.#receiveBudgetPackets;
  }

  get wakeFd(): number {
    return this.#readiness?.eventFd ?? -1;
  }

  get hasUnsent(): boolean {
    return this.#unsent.length > 0;
  }

  async open(): Promise<void> {
    if (this.#state !== 'new') throw new RoceError('ERR_ROCE_INVALID_STATE', `the port is already ${this.#state}`);
    this.#state = 'closed';
    const {
      address,
      receiveBufferBytes = DEFAULT_SOCKET_BUFFER_BYTES,
      sendBufferBytes = DEFAULT_SOCKET_BUFFER_BYTES,
    } = this.#options;
    this.#fd = openNativeSocket(address, this.#udpPort, receiveBufferBytes, sendBufferBytes);
    const { segmentation, coalescing, trafficClass } = enableBatching(this.#fd, address.family);
    this.#abilities = `${segmentation ? ', GSO' : ''}${coalescing ? ', GRO' : ''}${trafficClass ? ', ECN' : ''}`;
    this.#udpPort = boundUdpPort(this.#fd);
    this.#rx.destinationPort = this.#udpPort;
    this.#receiveBudgetPackets = receiveBudgetOf(receiveBufferBytesOf(this.#fd));
    this.#makeBatches(segmentation ? TRAIN_SEGMENTS_MAX : 1);
    this.#watch();
    this.#state = 'open';
  }

  #watch(): void {
    try {
      if (this.#options.polled === true) this.#readiness = new Readiness(this.#lib, this.#fd);
      else this.#loop = new LoopReadiness(this.#lib, this.#fd, this.#turnSoon);
    } catch (error) {
      this.#lib.close(this.#fd);
      this.#fd = -1;
      throw error;
    }
  }

  #makeBatches(trainMax: number): void {
    const { batches = BATCHES, batchSlots = BATCH_SLOTS, address, borrows } = this.#options;
    const make = () => new SendVector(this.#lib, batchSlots, address, trainMax, borrows);
    this.#free = Array.from({ length: batches }, make);
  }

  beginBatch(nowNs?: number): TxBatch | undefined {
    if (this.#state !== 'open') return undefined;
    if (nowNs !== undefined) this.#spin.onSent(nowNs);
    if (this.#unsent.length > 0) this.#flush();
    const batch = this.#free.pop();
    if (batch !== undefined) batch.count = 0;
    return batch;
  }

  sendBatch(batch: TxBatch): void {
    const vector = batch as SendVector;
    if (this.#state !== 'open') return;
    vector.prepare();
    if (this.#unsent.length > 0 || vector.send(this.#fd) === SEND_AGAIN) {
      vector.keep();
      this.#unsent.push(vector);
      if (this.#loop !== undefined) this.#turnSoon(); // There may be no further datagram to trigger it.
    } else this.#finish(vector);
  }

  #flush(): void {
    for (let vector = this.#unsent.at(0); vector !== undefined; vector = this.#unsent.at(0)) {
      if (vector.send(this.#fd) === SEND_AGAIN) return;
      this.#unsent.shift();
      this.#finish(vector);
    }
  }

  #finish(vector: SendVector): void {
    vector.release();
    this.counters.txDatagrams += vector.sent;
    this.counters.txErrors += vector.refused;
    if (vector.refused > 0 && vector.trainMax > 1 && (vector.lastErrno === EIO || vector.lastErrno === EINVAL)) {
      this.#makeBatches(1);
      this.onError(
        new RoceError('ERR_ROCE_IO', `the device takes no trains: ${getSystemErrorName(-vector.lastErrno)}`),
      );
    } else this.#free.push(vector);
  }

  receive(): number {
    if (this.#state !== 'open') return 0;
    if (this.#unsent.length > 0) this.#flush();
    let datagrams = 0;
    let slots: number;
    do {
      slots = this.#received.receive(this.#fd);
      datagrams += this.#takeIn(slots);
    } while (slots === RECEIVE_SLOTS && datagrams < RECEIVE_TURN && this.#state === 'open');
    this.#isDrained = slots < RECEIVE_SLOTS;
    return datagrams;
  }

  #takeIn(slots: number): number {
    const received = this.#received;
    const rx = this.#rx;
    let datagrams = 0;
    for (let slot = 0; slot < slots; slot++) {
      const count = received.open(slot);
      rx.source = received.source;
      rx.sourcePort = received.sourcePort;
      rx.ecn = received.trafficClass & 3;
      rx.dscp = received.trafficClass >> 2;
      this.counters.rxDatagrams += count;
      datagrams += count;
      this.onTrain(rx.bytes, received.segmentOffset(slot, 0), received.segmentBytes, received.wholeSegments);
      for (let i = 0; i < count && this.#state === 'open'; i++) {
        // Datagrams that the kernel kept together were most likely sent together.
        if (this.address.family === 4) rx.ipId = IP_ID_UNKNOWN - i;
        rx.offset = received.segmentOffset(slot, i);
        rx.length = received.segmentLength(i);
        this.onDatagram(rx);
      }
    }
    return datagrams;
  }

  wait(timeoutNs: number): boolean {
    return this.#readiness?.block(timeoutNs) ?? true;
  }

  /**
   * Never reads in the loop's callback: promises resolved by reading have to run after it, as after every callback of
   * Node.
   */
  readonly #turnSoon = (): void => {
    if (this.#turnPending) return;
    this.#turnPending = true;
    setImmediate(this.#turn);
  };

  readonly #turn = (): void => {
    this.#turnPending = false;
    if (this.#state !== 'open') return;
    const nowNs = this.#options.nowNs();
    if (this.receive() > 0) {
      this.#spin.onReceived(nowNs);
      this.onDelivered();
    }
    if (!this.#isDrained || this.#spin.looksAgain(nowNs) || this.#unsent.length > 0) this.#turnSoon();
    else this.#loop?.rest();
  };

  async close(): Promise<void> {
    this.#state = 'closed';
    const fd = this.#fd;
    this.#fd = -1;
    this.#loop?.close();
    if (fd < 0) return;
    this.#readiness?.close();
    this.#lib.close(fd);
  }
}
