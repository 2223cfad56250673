/** Connections are handed to it, and time is passed in. */

import {
  type Clock,
  ConnectionLimiter,
  type ConnectionLimits,
  type RefusedPeers,
  RoceError,
} from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { AnaPort, type AnaState } from './ana.js';
import { ANA_CHANGED, DISCOVERY_CHANGED } from './async-events.js';
import { PacedWork } from './auth/paced-work.js';
import { type HostSecrets, TargetAuthentication } from './auth/target-authentication.js';
import type { CommandFaults } from './command-faults.js';
import { NvmeController } from './controller.js';
import { discoveryLog, type NvmePort } from './discovery.js';
import { CNTLID_DYNAMIC, type ConnectRequest, refuseParameter } from './fabrics.js';
import { DISCOVERY_NQN } from './opcodes.js';
import { QUEUE_ENTRIES_MAX } from './properties.js';
import { NvmeStatusError, STATUS } from './status.js';
import { Subsystem, type SubsystemInit } from './subsystem.js';
import type { TargetConnection } from './target-connection.js';
import { type QueueContext, TargetQueue } from './target-queue.js';

export interface NvmeTargetInit {
  readonly subsystems: readonly SubsystemInit[];
  readonly clock: Clock;
  readonly firmware: string;
  readonly faults?: CommandFaults;
  readonly randomBytes: (count: number) => Buffer;
  readonly refusedPeers: RefusedPeers;
}

/** Of hosts that are connected, and have authenticated where they must. */
const ADMITTED_LIMITS: ConnectionLimits = { total: 1024, perAddress: 128 };
/** Of hosts that have not authenticated. */
const PENDING_LIMITS: ConnectionLimits = { total: 128, perAddress: 32 };
/** Of one host, by its NQN, from all addresses. */
const PER_HOST_MAX = 128;
const CNTLID_MAX = 0xffef;
/** Default keep-alive timeout of a discovery controller. */
const DISCOVERY_KEEP_ALIVE_MS = 120_000;

export class NvmeTarget {
  readonly counters = {
    /** Queues that connected. */
    queues: 0,
    /** Commands that came in. */
    commands: 0,
    /** Commands that were answered with an error, hosts' probing among them. */
    refused: 0,
    /** Connects and authentications of hosts that were refused. */
    refusedHosts: 0,
  };
  readonly #init: NvmeTargetInit;
  readonly #subsystems: ReadonlyMap<string, Subsystem>;
  /** By controller ID; those of hosts that have not authenticated as well. */
  readonly #controllers = new Map<number, NvmeController>();
  readonly #limiter = new ConnectionLimiter<NvmeController>({
    quotas: [
      { states: ['pending'], ...PENDING_LIMITS },
      { states: ['admitted'], ...ADMITTED_LIMITS },
    ],
    evict: endForOthers,
  });
  readonly #hosts = new ConnectionLimiter<NvmeController>({
    quotas: [{ states: ['admitted'], perAddress: PER_HOST_MAX }],
    evict: endForOthers,
  });
  readonly #paced: PacedWork;
  readonly #queues = new Set<TargetQueue>();
  readonly #closing = new Set<Promise<void>>();
  readonly #context: QueueContext;
  readonly #anaPorts = new Map<number, AnaPort>();
  #ports: readonly NvmePort[] = [];
  #generation = 1;
  #lastId = 0;

  constructor(init: NvmeTargetInit) {
    this.#init = init;
    const subsystems = new Map<string, Subsystem>();
    for (const one of init.subsystems) {
      if (subsystems.has(one.nqn)) throw new RoceError('ERR_ROCE_CONFLICT', `two subsystems have the name ${one.nqn}`);
      subsystems.set(one.nqn, new Subsystem(one));
    }
    subsystems.set(
      DISCOVERY_NQN,
      new Subsystem({ nqn: DISCOVERY_NQN, serial: 'discovery', namespaces: [] }, 'discovery'),
    );
    this.#subsystems = subsystems;
    this.#paced = new PacedWork(init.clock);
    this.#context = {
      clock: init.clock,
      firmware: init.firmware,
      faults: init.faults,
      counters: this.counters,
      discoveryLog: (hostNqn) => this.#discoveryLog(hostNqn),
      connect: (request, queue) => this.#countingRefusals(queue, () => this.#connect(request, queue)),
      admit: (controller, request, queue) =>
        this.#countingRefusals(queue, () => this.#admit(controller, request, queue)),
      authentication: (request, queue) => this.#authentication(request, queue),
    };
  }

  /** Their IDs are 1, 2 and so on. Hosts that enabled it are notified of the change. */
  set ports(ports: readonly NvmePort[]) {
    this.#ports = ports;
    this.#generation++;
    for (const { events } of this.#subsystems.get(DISCOVERY_NQN)!.controllers) events.raise(DISCOVERY_CHANGED);
  }

  subsystem(nqn: string): Subsystem | undefined {
    return this.#subsystems.get(nqn);
  }

  /** Those of hosts that have authenticated, where they must. */
  get controllers(): number {
    return this.#limiter.count('admitted');
  }

  get connections(): Readonly<Record<'rdma' | 'tcp', number>> {
    const counts = { rdma: 0, tcp: 0 };
    for (const { connection } of this.#queues) counts[connection.transport]++;
    return counts;
  }

  /**
   * Changes how the port with this ID, from 1 on, reaches the namespaces; at first it is optimized. Hosts that came
   * through the port are notified.
   */
  setAnaState(portId: number, state: AnaState): void {
    const port = this.#anaPort(portId);
    if (!port.become(state)) return;
    for (const controller of this.#controllers.values()) {
      if (controller.port === port && controller.subsystem.kind === 'io') controller.events.raise(ANA_CHANGED);
    }
  }

  accept(connection: TargetConnection, portId = 1): TargetQueue {
    const queue = new TargetQueue(connection, this.#anaPort(portId), this.#context);
    this.#queues.add(queue);
    queue.onEnd = () => {
      this.#queues.delete(queue);
      const closed = connection.close();
      this.#closing.add(closed);
      void closed.then(() => this.#closing.delete(closed));
    };
    return queue;
  }

  async close(): Promise<void> {
    const why = new RoceError('ERR_ROCE_CLOSED', 'the target is closed');
    for (const queue of [...this.#queues]) queue.end(why);
    await Promise.all(this.#closing);
  }

  /** A host at `remote` was refused, at whatever step. */
  refuseHost(remote: string, why: string): void {
    this.#init.refusedPeers.add(remote, why);
    this.counters.refusedHosts = this.#init.refusedPeers.count;
  }

  #countingRefusals<T>({ connection: { remote } }: TargetQueue, work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.refuseHost(remote, (error as Error).message);
      throw error;
    }
  }

  #connect(request: ConnectRequest, queue: TargetQueue): NvmeController {
    const subsystem = this.#subsystems.get(request.subnqn);
    if (subsystem === undefined) throw refuseParameter('subnqn');
    if (!subsystem.allows(request.hostnqn)) throw refuseParameter('hostnqn', STATUS.CONNECT_INVALID_HOST);
    const { connection } = queue;
    // A key is for one host and one subsystem.
    const { proven = { hostNqn: request.hostnqn, subsystemNqn: request.subnqn } } = connection;
    if (proven.hostNqn !== request.hostnqn) throw refuseParameter('hostnqn', STATUS.CONNECT_INVALID_HOST);
    if (proven.subsystemNqn !== request.subnqn) throw refuseParameter('subnqn');
    const isRightQueue = connection.qid === undefined || connection.qid === request.qid;
    if (!isRightQueue) throw refuseParameter('qid');
    const entriesMax = Math.min(QUEUE_ENTRIES_MAX, connection.depthMax);
    if (request.entries < 2 || request.entries > entriesMax) throw refuseParameter('entries');
    return request.qid === 0 ? this.#newController(request, subsystem, queue) : this.#controllerOf(request, subsystem);
  }

  /** Host and queue are counted from here on. */
  #admit(controller: NvmeController, { qid }: ConnectRequest, queue: TargetQueue): void {
    if (controller.isEnded) throw refuseParameter('cntlid');
    if (qid === 0) {
      const origin = originOf(queue);
      const host = { network: controller.hostNqn };
      const hasRoom =
        this.#hosts.makeRoom('admitted', host, isUnused) && this.#limiter.makeRoom('admitted', origin, isUnused);
      if (!hasRoom) {
        controller.refuse(new RoceError('ERR_ROCE_LIMIT', 'there are as many controllers as there may be'));
        throw new NvmeStatusError(STATUS.CONNECT_BUSY); // Without DNR: the host may try again.
      }
      this.#limiter.enter(controller, 'admitted', origin);
      this.#hosts.enter(controller, 'admitted', host);
      controller.subsystem.controllers.add(controller);
    } else if (controller.hasQueue(qid)) throw refuseParameter('qid', STATUS.CONNECT_BUSY);
    controller.addQueue(qid, queue);
    this.counters.queues++;
  }

  #anaPort(id: number): AnaPort {
    let port = this.#anaPorts.get(id);
    if (port === undefined) {
      port = new AnaPort(id);
      this.#anaPorts.set(id, port);
    }
    return port;
  }

  #newController(request: ConnectRequest, subsystem: Subsystem, queue: TargetQueue): NvmeController {
    if (request.cntlid !== CNTLID_DYNAMIC) throw refuseParameter('cntlid');
    const origin = originOf(queue);
    this.#limiter.makeRoom('pending', origin);
    const id = this.#freeId();
    const isDiscovery = subsystem.kind === 'discovery';
    const controller: NvmeController = new NvmeController({
      id,
      subsystem,
      hostNqn: request.hostnqn,
      hostId: request.hostId.toString('hex'),
      port: queue.port,
      keepAliveMs: request.keepAliveMs === 0 && isDiscovery ? DISCOVERY_KEEP_ALIVE_MS : request.keepAliveMs,
      clock: this.#init.clock,
      onEnd: () => {
        this.#controllers.delete(id);
        this.#limiter.leave(controller);
        this.#hosts.leave(controller);
        subsystem.controllers.delete(controller);
      },
    });
    this.#controllers.set(id, controller);
    this.#limiter.enter(controller, 'pending', origin);
    controller.addQueue(0, queue);
    return controller;
  }

  #controllerOf({ cntlid, hostnqn, hostId, qid }: ConnectRequest, subsystem: Subsystem): NvmeController {
    const controller = this.#controllers.get(cntlid);
    if (controller === undefined || controller.subsystem !== subsystem) throw refuseParameter('cntlid');
    if (controller.hostNqn !== hostnqn) throw refuseParameter('hostnqn');
    if (controller.hostId !== hostId.toString('hex')) throw refuseParameter('hostid');
    if (qid > controller.ioQueues || subsystem.kind === 'discovery') throw refuseParameter('qid');
    if (!controller.properties.takesQueues) throw refuseParameter('cntlid');
    if (controller.hasQueue(qid)) throw refuseParameter('qid', STATUS.CONNECT_BUSY);
    return controller;
  }

  #authentication({ subnqn, hostnqn: hostNqn }: ConnectRequest, queue: TargetQueue): TargetAuthentication | undefined {
    const secrets: HostSecrets | undefined = this.#subsystems.get(subnqn)?.secretsOf(hostNqn);
    if (secrets === undefined) return undefined;
    const { randomBytes } = this.#init;
    const { network } = originOf(queue);
    const onFailed = () => this.refuseHost(queue.connection.remote, 'its authentication failed');
    const pace = <T>(work: () => T) => this.#paced.run(network, work);
    return new TargetAuthentication({ hostNqn, subsystemNqn: subnqn, randomBytes, pace, onFailed }, secrets);
  }

  #freeId(): number {
    do this.#lastId = (this.#lastId % CNTLID_MAX) + 1;
    while (this.#controllers.has(this.#lastId));
    return this.#lastId;
  }

  #discoveryLog(hostNqn: string): Buffer {
    const entries = [...this.#subsystems.values()]
      .filter((subsystem) => subsystem.kind === 'io' && subsystem.allows(hostNqn))
      .flatMap(({ nqn }) => this.#ports.map((port, i) => ({ ...port, portId: i + 1, nqn })));
    return discoveryLog(entries, this.#generation);
  }
}

function originOf({ connection }: TargetQueue): IpAddress {
  return IpAddress.parse(connection.remote);
}

function endForOthers(controller: NvmeController): void {
  controller.end(new RoceError('ERR_ROCE_LIMIT', 'another host needed the room'));
}

/** Its host has not enabled it: evicting it costs no I/O. */
function isUnused({ properties }: NvmeController): boolean {
  return !properties.isReady;
}
