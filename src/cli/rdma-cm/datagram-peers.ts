/** Who sends datagrams to a server, and how many have come of each. A queue pair of an address that has asked for the service is a client; others are not heeded. */

import type { IpAddress } from '../../packet/address.js';
import type { Arrival } from './datagram-end.js';

/** Addresses that may be clients: the one that asked first is forgotten first. Anybody can forge a request. */
const ADDRESSES_MAX = 4096;

interface Peer extends Arrival {
  received: number;
}

/** The clients of one server. */
export class DatagramPeers {
  readonly #connections: number;
  readonly #datagrams: number;
  /** How many queue pairs each address may have: as many as it has asked for. */
  readonly #admitted = new Map<string, number>();
  readonly #peers = new Map<string, Peer>();
  #requests = 0;
  #complete = 0;
  #received = 0;
  #firstAddress: IpAddress | undefined;

  /** It is complete when so many clients have sent so many datagrams each; with none to send, when as many have asked. */
  constructor(connections: number, datagrams: number) {
    this.#connections = connections;
    this.#datagrams = datagrams;
  }

  /** The address has asked for the service. */
  admit(address: IpAddress): void {
    this.#requests++;
    if (this.#datagrams === 0) this.#firstAddress ??= address;
    const before = this.#admitted.get(address.text) ?? 0;
    this.#admitted.delete(address.text);
    this.#admitted.set(address.text, before + 1);
    if (this.#admitted.size > ADDRESSES_MAX) this.#admitted.delete(this.#admitted.keys().next().value!);
  }

  /** One more datagram. What comes from others than clients, or after the last of a client, is not heeded. */
  count({ source, qpn }: Arrival): void {
    const name = `${source} ${qpn}`;
    let peer = this.#peers.get(name);
    if (peer === undefined) {
      const places = this.#admitted.get(source.text) ?? 0;
      if (places === 0) return;
      this.#admitted.set(source.text, places - 1);
      peer = { source, qpn, received: 0 };
      this.#peers.set(name, peer);
      this.#firstAddress ??= source;
    }
    if (peer.received === this.#datagrams) return;
    peer.received++;
    this.#received++;
    if (peer.received === this.#datagrams) this.#complete++;
  }

  /** Datagrams of all clients. */
  get received(): number {
    return this.#received;
  }

  /** Whether all clients have sent, or asked for, all. */
  get isComplete(): boolean {
    return (this.#datagrams === 0 ? this.#requests : this.#complete) >= this.#connections;
  }

  /** Those who have sent all. */
  complete(): readonly Arrival[] {
    return [...this.#peers.values()].filter(({ received }) => received === this.#datagrams);
  }

  /** Of the first client; undefined while there is none. */
  get firstAddress(): IpAddress | undefined {
    return this.#firstAddress;
  }
}
