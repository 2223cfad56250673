import { checkKind, RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { type AsyncEvents, NAMESPACE_CHANGED } from './async-events.js';
import type { HostSecrets } from './auth/target-authentication.js';
import { Namespace, type NamespaceInit } from './namespace.js';
import { NQN_BYTES_MAX } from './opcodes.js';
import type { ReservationNotice } from './reservations.js';

export interface SubsystemInit {
  readonly nqn: string;
  readonly serial: string;
  readonly namespaces: readonly NamespaceInit[];
  readonly hosts?: readonly string[];
  readonly secrets?: ReadonlyMap<string, HostSecrets>;
}

/** A controller, as far as its subsystem is concerned. */
export interface SubsystemController {
  readonly hostId: string;
  readonly events: AsyncEvents;
  readonly changedNamespaces: Set<number>;
  tellOfReservation(nsid: number, notice: ReservationNotice): void;
}

export class Subsystem {
  readonly nqn: string;
  readonly serial: string;
  readonly kind: 'io' | 'discovery';
  readonly controllers = new Set<SubsystemController>();
  readonly #namespaces = new Map<number, Namespace>();
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #secrets: ReadonlyMap<string, HostSecrets> | undefined;

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

  get namespaces(): readonly Namespace[] {
    return [...this.#namespaces.values()].sort((a, b) => a.nsid - b.nsid);
  }

  namespace(nsid: number): Namespace | undefined {
    return this.#namespaces.get(nsid);
  }

  allows(hostNqn: string): boolean {
    return this.#hosts?.has(hostNqn) !== false && this.#secrets?.has(hostNqn) !== false;
  }

  secretsOf(hostNqn: string): HostSecrets | undefined {
    return this.#secrets?.get(hostNqn);
  }

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

  /** Resolves when its disk is no longer used. */
  async removeNamespace(nsid: number): Promise<void> {
    const ns = this.#namespaces.get(nsid);
    if (ns === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${this.nqn} has no namespace ${nsid}`);
    this.#namespaces.delete(nsid);
    this.#onChange(nsid);
    await ns.retire();
  }

  /** Resolves when the previous disk is no longer used. */
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

export function checkNqn(nqn: string): void {
  checkKind('an NQN', nqn, typeof nqn === 'string', 'text');
  if (/^nqn\.\S+$/.test(nqn) && Buffer.byteLength(nqn) <= NQN_BYTES_MAX) return;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${nqn}' is not an NVMe qualified name`,
    `write nqn.YEAR-MONTH.DOMAIN:NAME, at most ${NQN_BYTES_MAX} bytes`,
  );
}
