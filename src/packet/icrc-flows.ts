import type { IpAddress } from './address.js';
import { IcrcFlow } from './icrc.js';

const FLOWS_MAX = 1024;

export class IcrcFlows {
  readonly #flows = new Map<string, IcrcFlow>();

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
