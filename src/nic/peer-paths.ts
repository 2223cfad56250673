import { RoceError } from '../core/errors.js';
import type { QpAttributes } from '../memory/ring/commands.js';
import { IpAddress } from '../packet/address.js';
import { IcrcFlow } from '../packet/icrc.js';
import { ROCE_UDP_PORT, type RxDatagram } from '../port/datagram.js';
import { type ConnectedPeer, flowSourcePort, Path } from '../qp/path.js';
import { PeerInFlightLimit } from '../qp/peer-in-flight-limit.js';
import { type FlowCount, SendArbiter } from '../qp/send-arbiter.js';
import type { PortFacts } from './port-facts.js';

/** Packets in flight to a peer that did not announce the capacity of its socket: the limit of Linux Soft-RoCE. */
const INFLIGHT_DEFAULT_PACKETS = 128;
/** Of two packets one is sent while the other is answered. */
const INFLIGHT_MIN_PACKETS = 2;
const DATAGRAM_FLOWS_MAX = 256;

export type AddressFields = Pick<QpAttributes, 'remoteGid' | 'remoteUdpPort' | 'dscp' | 'ecn'>;

interface SocketFlows extends FlowCount {
  readonly arbiters: Map<number, SendArbiter>;
}

export class PeerPaths {
  readonly #port: PortFacts;
  readonly #makesIcrc: boolean;
  readonly #flows = new Map<string, SocketFlows>();
  readonly #datagramFlows = new Map<string, IcrcFlow>();

  constructor(port: PortFacts, makesIcrc: boolean) {
    this.#port = port;
    this.#makesIcrc = makesIcrc;
  }

  connect(qpn: number, attributes: QpAttributes): ConnectedPeer {
    const path = this.pathTo(attributes, flowSourcePort(qpn, attributes.destQpn));
    const arbiter = this.#arbiterOf(path, attributes.inflightPackets);
    arbiter.flows.count++;
    return { path, inFlightLimit: new PeerInFlightLimit(arbiter), isSharing: true };
  }

  /**
   * Queue pairs that send to the socket at the end of `path`, which was announced to hold `inflightPackets`; 0: not
   * announced.
   */
  #arbiterOf(path: Path, inflightPackets: number): SendArbiter {
    const key = socketKey(path);
    let flows = this.#flows.get(key);
    if (flows === undefined) {
      flows = { count: 0, arbiters: new Map() };
      this.#flows.set(key, flows);
    }
    const told = inflightPackets === 0 ? INFLIGHT_DEFAULT_PACKETS : inflightPackets;
    // READ responses arrive here: the local buffer is also a limit.
    const limitPackets = Math.max(INFLIGHT_MIN_PACKETS, Math.min(told, this.#port.receiveBudgetPackets));
    let arbiter = flows.arbiters.get(limitPackets);
    if (arbiter === undefined) {
      arbiter = new SendArbiter(limitPackets, flows);
      flows.arbiters.set(limitPackets, arbiter);
    }
    return arbiter;
  }

  disconnect(connection: ConnectedPeer): void {
    if (!connection.isSharing) return;
    connection.isSharing = false;
    const key = socketKey(connection.path);
    const flows = this.#flows.get(key)!;
    const { inFlightLimit } = connection;
    flows.count--;
    inFlightLimit.detach();
    const arbiter = flows.arbiters.get(inFlightLimit.limitPackets)!;
    if (arbiter.members === 0) flows.arbiters.delete(inFlightLimit.limitPackets);
    if (flows.count === 0) this.#flows.delete(key);
    else for (const other of flows.arbiters.values()) other.grant();
  }

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
      hasFixedPort: this.#port.fixedSourcePort !== undefined,
      remoteUdpPort: remoteUdpPort === 0 ? ROCE_UDP_PORT : remoteUdpPort,
      dscp,
      ecn,
      makesIcrc: this.#makesIcrc,
    });
  }

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

function socketKey(path: Path): string {
  return `${path.remote.text} ${path.remoteUdpPort}`;
}
