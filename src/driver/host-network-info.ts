/** What the host's network stack reports about a UDP port: the path MTU to a peer, and losses in the port's buffer. */

import { pathMtuTowards, receiveOverruns } from '../dgram-ext/known-by-kernel.js';
import { COUNTER } from '../memory/ring/counters.js';
import type { IpAddress } from '../packet/address.js';

export class HostNetworkInfo {
  readonly #address: IpAddress;
  readonly #udpPort: number;

  constructor(address: IpAddress, udpPort: number) {
    this.#address = address;
    this.#udpPort = udpPort;
  }

  pathMtuTowards(remote: IpAddress): number | undefined {
    return pathMtuTowards(this.#address, remote);
  }

  refreshCounters(counters: Float64Array): void {
    const overruns = receiveOverruns(this.#address, this.#udpPort);
    if (overruns !== undefined) counters[COUNTER.rx_socket_overruns] = overruns;
  }
}
