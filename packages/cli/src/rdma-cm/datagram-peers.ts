/**
 * Counts the datagrams of each client. A client is a queue pair of an address that has requested the service; others
 * are ignored.
 */

import type { IpAddress } from 'rocev2/internal/packet';
import type { Arrival } from './datagram-end.js';

const ADDRESSES_MAX = 4096;

interface Peer extends Arrival {
  received: number;
}

export class DatagramPeers {
  readonly #connections: number;
  readonly #datagrams: number;
  readonly #admitted = new Map<string, number>();
  readonly #peers = new Map<string, Peer>();
  #requests = 0;
  #complete = 0;
  #received = 0;
  #firstAddress: IpAddress | undefined;

  constructor(connections: number, datagrams: number) {
    this.#connections = connections;
    this.#datagrams = datagrams;
  }

  admit(address: IpAddress): void {
    this.#requests++;
    if (this.#datagrams === 0) this.#firstAddress ??= address;
    const before = this.#admitted.get(address.text) ?? 0;
    this.#admitted.delete(address.text);
    this.#admitted.set(address.text, before + 1);
    if (this.#admitted.size > ADDRESSES_MAX) this.#admitted.delete(this.#admitted.keys().next().value!);
  }

  count({ source, qpn }: Arrival): void {
    const name = `${source} ${qpn}`;
    let peer = this.#peers.get(name);
    if (peer === undefined) {
      const slots = this.#admitted.get(source.text) ?? 0;
      if (slots === 0) return;
      this.#admitted.set(source.text, slots - 1);
      peer = { source, qpn, received: 0 };
      this.#peers.set(name, peer);
      this.#firstAddress ??= source;
    }
    if (peer.received === this.#datagrams) return;
    peer.received++;
    this.#received++;
    if (peer.received === this.#datagrams) this.#complete++;
  }

  get received(): number {
    return this.#received;
  }

  get isComplete(): boolean {
    return (this.#datagrams === 0 ? this.#requests : this.#complete) >= this.#connections;
  }

  complete(): readonly Arrival[] {
    return [...this.#peers.values()].filter(({ received }) => received === this.#datagrams);
  }

  get firstAddress(): IpAddress | undefined {
    return this.#firstAddress;
  }
}
