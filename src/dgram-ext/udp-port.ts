/**
 * A port on node:dgram; koffi prepares the socket if installed (Linux). Over IPv4 a prepared socket sends
 * identification 0 with DF, so that the ICRC is exact (RoCEv2 annex A17.3.3); otherwise only peers that solve for the
 * identification accept it. Over IPv6 both are exact. ECN, DSCP and identification of received datagrams are unknown.
 * Invariant: the socket is never connected (a connected one numbers its datagrams).
 */

import type { RemoteInfo } from 'node:dgram';
import { checkOneOf, ifGiven } from '../core/arguments.js';
import type { Complete } from '../core/defaults.js';
import type { IpAddress } from '../packet/address.js';
import {
  IP_ID_UNKNOWN,
  type Port,
  type PortCounters,
  ROCE_UDP_PORT,
  type RxDatagram,
  type TxBatch,
} from '../port/datagram.js';
import { AddressCache } from './address-cache.js';
import { BatchPool } from './batch-pool.js';
import { DEFAULT_SOCKET_BUFFER_BYTES } from './bound-socket.js';
import { pathMtuForAddress } from './link-mtu.js';
import { nativeUdpAvailable } from './native-socket.js';
import { PortSocket } from './port-socket.js';
import { checkUdpOptions, receiveBudgetOf, type UdpSocketOptions } from './udp-options.js';

/** Options of {@link openUdpPort}. */
export interface UdpPortOptions extends UdpSocketOptions {
  /** `auto` (default) prepares the socket through koffi where it can; `off` never does. */
  readonly native?: 'auto' | 'off' | undefined;
}

/** A port over UDP; call `open` to bind it. Throws ERR_ROCE_INVALID_ARGUMENT for a wildcard address. */
export function openUdpPort(options: UdpPortOptions): Port {
  return new UdpPort(options);
}

class UdpPort implements Port {
  readonly address: IpAddress;
  readonly description: string;
  readonly pathMtuMax: number;
  readonly ipIdPolicy = 'zero';
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause: (priority: number, durationNs: number) => void = () => {};
  onError: (error: Error) => void = () => {};

  readonly #options: Complete<Omit<UdpPortOptions, 'native'>>;
  readonly #native: boolean;
  readonly #socket: PortSocket;
  readonly #sources: AddressCache;
  readonly #rx: RxDatagram;
  #udpPort: number;
  #receiveBudgetPackets = 0;

  constructor(options: UdpPortOptions) {
    checkUdpOptions(options);
    const { address } = options;
    ifGiven(options.native, (native) => checkOneOf('native', native, ['auto', 'off']));
    this.#options = {
      address,
      udpPort: options.udpPort ?? ROCE_UDP_PORT,
      receiveBufferBytes: options.receiveBufferBytes ?? DEFAULT_SOCKET_BUFFER_BYTES,
      sendBufferBytes: options.sendBufferBytes ?? DEFAULT_SOCKET_BUFFER_BYTES,
      batchSlots: options.batchSlots ?? 64,
      batches: options.batches ?? 16,
    };
    const missing = options.native === 'off' ? 'switched off' : nativeUdpAvailable();
    this.#native = missing === undefined;
    this.address = address;
    this.#udpPort = this.#options.udpPort;
    this.pathMtuMax = pathMtuForAddress(address);
    const exactness =
      address.family === 4 ? ', IPv4 identification not under control: other RoCEv2 stacks will drop its packets' : '';
    this.description = this.#native
      ? `udp ${address.text} (node:dgram, koffi options)`
      : `udp ${address.text} (node:dgram, no koffi options: ${missing}${exactness})`;
    this.#socket = new PortSocket(new BatchPool(this.#options.batches, this.#options.batchSlots, address), {
      onMessage: (bytes, from) => this.#receive(bytes, from),
      onError: (error) => this.onError(error),
    });
    this.#sources = new AddressCache(address);
    this.#rx = {
      bytes: new Uint8Array(0),
      offset: 0,
      length: 0,
      source: address,
      sourcePort: 0,
      destination: address,
      destinationPort: 0,
      ecn: 0,
      dscp: 0,
      ipId: address.family === 4 ? IP_ID_UNKNOWN : 0,
    };
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

  get counters(): Readonly<PortCounters> {
    return this.#socket.counters;
  }

  async open(): Promise<void> {
    const bound = await this.#socket.open({ ...this.#options, native: this.#native });
    this.#udpPort = bound.udpPort;
    this.#rx.destinationPort = bound.udpPort;
    this.#receiveBudgetPackets = receiveBudgetOf(bound.receiveBufferBytes);
  }

  beginBatch(): TxBatch | undefined {
    return this.#socket.beginBatch();
  }

  sendBatch(batch: TxBatch): void {
    for (let slot = 0; slot < batch.count; slot++) {
      this.#socket.send(batch.payloadView(slot), batch.destinationPorts[slot], batch.destinations[slot].text);
    }
    this.#socket.endBatch(batch);
  }

  close(): Promise<void> {
    return this.#socket.close();
  }

  #receive(bytes: Uint8Array, from: RemoteInfo): void {
    const rx = this.#rx;
    rx.bytes = bytes;
    rx.length = bytes.length;
    rx.source = this.#sources.get(from.address);
    rx.sourcePort = from.port;
    this.#socket.counters.rxDatagrams++;
    this.onDatagram(rx);
  }
}
