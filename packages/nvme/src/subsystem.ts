/** A subsystem of a target: namespaces under one NQN, and who may use them. */

import { RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { type AsyncEvents, NAMESPACE_CHANGED } from './async-events.js';
import type { HostSecrets } from './auth/target-authentication.js';
import { Namespace, type NamespaceInit } from './namespace.js';
import { NQN_BYTES_MAX } from './opcodes.js';
import type { ReservationNotice } from './reservations.js';

/** What a subsystem is made of. */
export interface SubsystemInit {
  /** NVMe qualified name: `nqn.` and at most 219 more bytes. */
  readonly nqn: string;
  /** Up to 20 ASCII characters that tell it from others; the same after a restart. */
  readonly serial: string;
  /** The disks. */
  readonly namespaces: readonly NamespaceInit[];
  /** NQNs of the hosts that may connect. Default: any. */
  readonly hosts?: readonly string[];
  /** Secrets of hosts by NQN. With it only these hosts may connect, and must authenticate themselves. */
  readonly secrets?: ReadonlyMap<string, HostSecrets>;
}

/** A controller, as far as its subsystem is concerned. */
export interface SubsystemController {
  readonly hostId: string;
  readonly events: AsyncEvents;
  readonly changedNamespaces: Set<number>;
  tellOfReservation(nsid: number, notice: ReservationNotice): void;
}

/** A subsystem, with the controllers that hosts have of it. */
export class Subsystem {
  /** As in {@link SubsystemInit}. */
  readonly nqn: string;
  /** At most 20 characters. */
  readonly serial: string;
  /** Discovery subsystems have no namespaces. */
  readonly kind: 'io' | 'discovery';
  /** One for each host that has connected. */
  readonly controllers = new Set<SubsystemController>();
  readonly #namespaces = new Map<number, Namespace>();
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #secrets: ReadonlyMap<string, HostSecrets> | undefined;

  /** Throws ERR_ROCE_MALFORMED for a name that is no NQN, and as {@link Namespace} does. */
  constructor({ nqn, serial, namespaces, hosts, secrets }: SubsystemInit, kind: 'io' | 'discovery' = 'io') {
    checkNqn(nqn);
    hosts?.forEach(checkNqn);
    this.nqn = nqn;
    this.serial = serial;
    this.kind = kind;
    this.#secrets = secrets;
    this.#hosts = hosts === undefined ? undefined : new Set(hosts);
    for (const init of namespaces) this.addNamespace(init);
  }

  /** In the order of their IDs. */
  get namespaces(): readonly Namespace[] {
    return [...this.#namespaces.values()].sort((a, b) => a.nsid - b.nsid);
  }

  /** The namespace with this ID. */
  namespace(nsid: number): Namespace | undefined {
    return this.#namespaces.get(nsid);
  }

  /** Whether the host may use it. */
  allows(hostNqn: string): boolean {
    return this.#hosts?.has(hostNqn) !== false && this.#secrets?.has(hostNqn) !== false;
  }

  /** What the host must prove itself by; undefined: by nothing. */
  secretsOf(hostNqn: string): HostSecrets | undefined {
    return this.#secrets?.get(hostNqn);
  }

  /** Adds a namespace; hosts are told. Throws ERR_ROCE_CONFLICT if the ID is taken, and as {@link Namespace} does. */
  addNamespace(init: NamespaceInit): void {
    if (this.#namespaces.has(init.nsid)) {
      throw new RoceError('ERR_ROCE_CONFLICT', `${this.nqn} has a namespace ${init.nsid} already`);
    }
    const ns = new Namespace(init);
    ns.reservations.onNotice = (hostId, notice) => {
      for (const controller of this.controllers) {
        if (controller.hostId === hostId) controller.tellOfReservation(ns.nsid, notice);
      }
    };
    this.#namespaces.set(init.nsid, ns);
    this.#onChange(init.nsid);
  }

  /** Removes a namespace; hosts are told. Resolves when its disk is not used any more. Rejects with ERR_ROCE_NOT_FOUND where there is none. */
  async removeNamespace(nsid: number): Promise<void> {
    const ns = this.#namespaces.get(nsid);
    if (ns === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${this.nqn} has no namespace ${nsid}`);
    this.#namespaces.delete(nsid);
    this.#onChange(nsid);
    await ns.retire();
  }

  /**
   * Gives a namespace another size: `disk` has its data. Hosts are told. Resolves when the disk before it is not used any more. Rejects with
   * ERR_ROCE_NOT_FOUND where there is no such namespace, and as {@link Namespace.replaceDisk} does.
   */
  async resizeNamespace(nsid: number, disk: BlockDevice): Promise<void> {
    const ns = this.#namespaces.get(nsid);
    if (ns === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${this.nqn} has no namespace ${nsid}`);
    const replaced = ns.replaceDisk(disk);
    this.#onChange(nsid);
    await replaced;
  }

  #onChange(nsid: number): void {
    for (const controller of this.controllers) {
      controller.changedNamespaces.add(nsid);
      controller.events.raise(NAMESPACE_CHANGED);
    }
  }
}

/** Throws ERR_ROCE_MALFORMED unless the text may be an NVMe qualified name. */
export function checkNqn(nqn: string): void {
  if (/^nqn\.\S+$/.test(nqn) && Buffer.byteLength(nqn) <= NQN_BYTES_MAX) return;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${nqn}' is not an NVMe qualified name`,
    `write nqn.YEAR-MONTH.DOMAIN:NAME, at most ${NQN_BYTES_MAX} bytes`,
  );
}
