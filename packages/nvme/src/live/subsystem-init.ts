import { createHash } from 'node:crypto';
import { checkKind, checkObject, RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { DhchapSecret } from '../auth/dhchap-secret.js';
import type { HostSecrets } from '../auth/target-authentication.js';
import type { NamespaceInit } from '../namespace.js';
import { checkNqn, type SubsystemInit } from '../subsystem.js';
import type { ReservationFile } from './reservation-file.js';

/** A subsystem of a target server. */
export interface NvmeSubsystemOptions {
  /** NVMe qualified name. */
  readonly nqn: string;
  /** Its disks become namespaces 1, 2 and so on. The caller closes them. */
  readonly disks: readonly BlockDevice[];
  /** NQNs of the hosts that may connect. Default: any. */
  readonly hosts?: readonly string[] | undefined;
  /** Secrets of DH-HMAC-CHAP. With them only these hosts may connect, and must authenticate themselves. */
  readonly hostSecrets?: readonly NvmeHostSecrets[] | undefined;
  /** Hosts cannot write. Default false. */
  readonly readOnly?: boolean | undefined;
}

/** What a host and a target prove themselves by: secrets of the form `DHHC-1:HASH:BASE64:`. */
export interface NvmeHostSecrets {
  /** NVMe qualified name under which the host connects. */
  readonly hostNqn: string;
  /** Secret by which the host authenticates itself. */
  readonly secret: string;
  /** Secret by which the target authenticates itself to a host that requests it. Absent: such hosts are refused. */
  readonly controllerSecret?: string | undefined;
}

export function checkSubsystem(subsystem: NvmeSubsystemOptions): void {
  checkObject('a subsystem', subsystem, '{ nqn, disks }');
  const { nqn, disks, hosts, hostSecrets, readOnly } = subsystem;
  checkNqn(nqn);
  checkList('disks', disks, 'disks');
  if (hosts !== undefined) checkList('hosts', hosts, 'NQNs');
  if (hostSecrets !== undefined) checkKeys('hostSecrets', hostSecrets);
  checkKind('readOnly', readOnly, readOnly === undefined || typeof readOnly === 'boolean', 'true or false');
}

export function checkKeys(name: string, keys: readonly { readonly hostNqn: string }[]): void {
  checkList(name, keys, 'keys of hosts');
  for (const key of keys) {
    checkObject(`a key of ${name}`, key, 'an object with a hostNqn');
    checkNqn(key.hostNqn);
  }
}

function checkList(name: string, value: unknown, of: string): void {
  checkKind(name, value, Array.isArray(value), `a list of ${of}`);
}

export function checkDisk(disk: BlockDevice): void {
  checkKind('a disk of a subsystem', disk, typeof disk?.read === 'function', 'a BlockDevice');
}

/** The serial number follows from the name alone, so that hosts find the same after a restart. */
export function subsystemInit(
  { nqn, disks, hosts, hostSecrets, readOnly = false }: NvmeSubsystemOptions,
  reservations: ReservationFile | undefined,
): SubsystemInit {
  return {
    nqn,
    serial: digest(nqn).toString('hex', 0, 10),
    namespaces: disks.map((disk, i) => namespaceInit(nqn, i + 1, disk, { readOnly, reservations })),
    ...(hosts !== undefined && { hosts }),
    ...(hostSecrets !== undefined && { secrets: new Map(onePerHost(hostSecrets).map(secretsOf)) }),
  };
}

export function onePerHost<T extends { readonly hostNqn: string }>(keys: readonly T[]): readonly T[] {
  const hosts = new Set<string>();
  for (const { hostNqn } of keys) {
    if (hosts.has(hostNqn)) throw new RoceError('ERR_ROCE_CONFLICT', `there are two keys of ${hostNqn}`, 'keep one');
    hosts.add(hostNqn);
  }
  return keys;
}

function secretsOf({ hostNqn, secret, controllerSecret }: NvmeHostSecrets): [string, HostSecrets] {
  const controller = controllerSecret === undefined ? undefined : DhchapSecret.parse(controllerSecret);
  return [hostNqn, { host: DhchapSecret.parse(secret), controller }];
}

/**
 * UUID and NGUID follow from the names and the UUID of the disk: hosts find the same after a restart, and do not take
 * another disk for it.
 */
export function namespaceInit(
  nqn: string,
  nsid: number,
  disk: BlockDevice,
  { readOnly, reservations }: { readOnly: boolean; reservations: ReservationFile | undefined },
): NamespaceInit {
  checkDisk(disk);
  const uuid = uuidFrom(digest([nqn, nsid, ...(disk.identity === undefined ? [] : [disk.identity.uuid])].join(' ')));
  const reservationStore = reservations?.storeOf(nqn, nsid);
  return { nsid, disk, readOnly, uuid, ...(reservationStore !== undefined && { reservationStore }) };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** A UUID of version 8: 122 bits of a digest (RFC 9562 §5.8). */
function uuidFrom(digest: Buffer): Uint8Array {
  const uuid = Uint8Array.from(digest.subarray(0, 16));
  uuid[6] = (uuid[6] & 0x0f) | 0x80;
  uuid[8] = (uuid[8] & 0x3f) | 0x80;
  return uuid;
}
