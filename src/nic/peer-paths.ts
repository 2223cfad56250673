/** Paths to peers, and the budget that all queue pairs connected to one peer share: what its socket can hold. */

import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';
import { IcrcFlow } from '../packet/icrc.js';
import { ROCE_UDP_PORT, type RxDatagram } from '../port/datagram.js';
import { type Connection, flowSourcePort, Path, type PeerBudget } from '../qp/path.js';
import { QP_ATTR_INFLIGHT, type QpAttributes } from '../ring/commands.js';
import type { PortFacts } from './port-facts.js';

/** Packets in flight to a peer that did not tell what its socket can hold: what Linux Soft-RoCE allows itself. */
const INFLIGHT_DEFAULT_PACKETS = 128;
/** Of two packets one is sent while the other is answered. */
const INFLIGHT_MIN_PACKETS = 2;
/** ICRC flows remembered for datagrams of unconnected senders. */
const DATAGRAM_FLOWS_MAX = 256;

/** An address vector as commands carry it. */
export type AddressFields = Pick<QpAttributes, 'remoteGid' | 'remoteUdpPort' | 'dscp' | 'ecn'>;

/** The peers of one NIC. */
export class PeerPaths {
  readonly #port: PortFacts;
  readonly #budgets = new Map<string, PeerBudget>();
  readonly #datagramFlows = new Map<string, IcrcFlow>();

  constructor(port: PortFacts) {
    this.#port = port;
  }

  /** See {@link QpHost.connect}. */
  connect(qpn: number, destQpn: number, values: QpAttributes, mask: number): Connection {
    const path = this.pathTo(values, flowSourcePort(qpn, destQpn));
    const key = budgetKey(path);
    let budget = this.#budgets.get(key);
    if (budget === undefined) {
      budget = { limitPackets: INFLIGHT_DEFAULT_PACKETS, qps: 0 };
      this.#budgets.set(key, budget);
    }
    if ((mask & QP_ATTR_INFLIGHT) !== 0) budget.limitPackets = values.inflightPackets;
    // READ responses come to us: our own buffer is a limit as well.
    const limit = Math.min(budget.limitPackets, this.#port.receiveBudgetPackets);
    budget.limitPackets = Math.max(INFLIGHT_MIN_PACKETS, limit);
    budget.qps++;
    return { path, budget };
  }

  /** See {@link QpHost.disconnect}. */
  disconnect({ budget, path }: Connection): void {
    budget.qps--;
    if (budget.qps === 0) this.#budgets.delete(budgetKey(path));
  }

  /**
   * A path with `entropyPort` as UDP source port, unless the port has a fixed one. Throws ERR_ROCE_ADDRESS_FAMILY for an address of the other
   * family.
   */
  pathTo({ remoteGid, remoteUdpPort, dscp, ecn }: AddressFields, entropyPort: number): Path {
    const remote = IpAddress.fromBytes(remoteGid);
    const local = this.#port.address;
    if (remote.family !== local.family) {
      throw new RoceError(
        'ERR_ROCE_ADDRESS_FAMILY',
        `${remote} cannot be reached from ${local}: other address family`,
        'open the device on an address of the same family',
      );
    }
    return new Path({
      local,
      remote,
      localUdpPort: this.#port.udpPort,
      sourcePort: this.#port.fixedSourcePort ?? entropyPort,
      remoteUdpPort: remoteUdpPort === 0 ? ROCE_UDP_PORT : remoteUdpPort,
      dscp,
      ecn,
    });
  }

  /** See {@link QpHost.datagramFlow}. */
  datagramFlow(datagram: RxDatagram): IcrcFlow {
    const key = `${datagram.source.text} ${datagram.sourcePort}`;
    let flow = this.#datagramFlows.get(key);
    if (flow === undefined) {
      if (this.#datagramFlows.size >= DATAGRAM_FLOWS_MAX) this.#datagramFlows.clear();
      flow = new IcrcFlow(datagram.source, datagram.destination, datagram.sourcePort, this.#port.udpPort);
      this.#datagramFlows.set(key, flow);
    }
    return flow;
  }
}

function budgetKey(path: Path): string {
  return `${path.remote.text} ${path.remoteUdpPort}`;
}
