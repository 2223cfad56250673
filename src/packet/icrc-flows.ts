/** What ICRCs have in common, by addresses and ports: remembered for as many flows as a port usually sees at a time. */

import type { IpAddress } from './address.js';
import { IcrcFlow } from './icrc.js';

const FLOWS_MAX = 1024;

/** A bounded memory of {@link IcrcFlow}s. When it is full it begins anew. */
export class IcrcFlows {
  readonly #flows = new Map<string, IcrcFlow>();

  /** The flow between these two. */
  of(source: IpAddress, destination: IpAddress, sourcePort: number, destinationPort: number): IcrcFlow {
    const key = `${source.text} ${destination.text} ${sourcePort} ${destinationPort}`;
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      if (this.#flows.size >= FLOWS_MAX) this.#flows.clear();
      flow = new IcrcFlow(source, destination, sourcePort, destinationPort);
      this.#flows.set(key, flow);
    }
    return flow;
  }
}
