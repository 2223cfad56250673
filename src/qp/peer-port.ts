/**
 * The UDP source port of a connected peer. IBTA annex A17.3.2.1 gives a queue pair one source port, and every capture
 * in `test/golden` keeps to it for requests and answers alike, so a packet from another port is not the peer's. Other
 * programs of the peer's host can send from other ports, but not from the port that the peer's NIC is bound to.
 *
 * If an exchange announced the port, it is known at once. Otherwise it is learned from the first packet that advances
 * the connection. A well-formed packet is not enough: an attacker who guesses addresses and QPN does not know the PSN.
 *
 * A peer that spreads its packets over several entropies has one source port for each, starting at that of the flow. A
 * peer with a fixed port has only that one.
 */

import { SOURCE_PORT_ANY, SOURCE_PORT_FLOW, SOURCE_PORT_LEARN } from '../memory/ring/enums.js';
import { CNP } from '../packet/opcode.js';
import { entropyOfPort, flowSourcePort } from './path.js';

export class PeerPort {
  #port: number;
  readonly #isTold: boolean;
  readonly #flowPort: number;
  readonly #entropies: number;

  /**
   * `rule` is the attribute: a port or SOURCE_PORT_*; the flow's port follows from both QPNs. `entropies`: source ports
   * from there on that the peer may use.
   */
  constructor(rule: number, qpn: number, destQpn: number, entropies: number) {
    this.#flowPort = flowSourcePort(qpn, destQpn);
    this.#entropies = rule < SOURCE_PORT_LEARN ? 1 : entropies;
    this.#port = rule === SOURCE_PORT_FLOW ? this.#flowPort : rule;
    this.#isTold = this.#port < SOURCE_PORT_LEARN;
  }

  /** The port as `queryQp` reports it: an announced or learned one, or SOURCE_PORT_LEARN or SOURCE_PORT_ANY. */
  get port(): number {
    return this.#port;
  }

  get isSettled(): boolean {
    return this.#port !== SOURCE_PORT_LEARN;
  }

  /**
   * A CNP may come from any port unless the port was announced: NICs exist that send CNPs, which carry no data, from
   * port 0.
   */
  accepts(sourcePort: number, opcode: number): boolean {
    return (
      sourcePort === this.#port ||
      this.#port >= SOURCE_PORT_LEARN ||
      (this.#port === this.#flowPort && this.#isEntropy(sourcePort)) ||
      (opcode === CNP && !this.#isTold)
    );
  }

  #isEntropy(sourcePort: number): boolean {
    return this.#entropies > 1 && entropyOfPort(this.#flowPort, sourcePort) < this.#entropies;
  }

  /**
   * A packet from `sourcePort` has advanced the connection: if the port was to be learned, only this one counts from
   * now on.
   */
  learn(sourcePort: number): void {
    if (this.#port === SOURCE_PORT_LEARN) this.#port = this.#isEntropy(sourcePort) ? this.#flowPort : sourcePort;
  }
}

/** Of queue pairs that are not connected: packets are checked by other rules. */
export const ANY_PEER_PORT = new PeerPort(SOURCE_PORT_ANY, 0, 0, 1);
