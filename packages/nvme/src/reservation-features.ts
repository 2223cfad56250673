/** Features that belong to reservations (NVMe base specification 2.0 §5.27.1.25 and §5.27.1.26). */

import type { NvmeCommand } from './capsule.js';
import type { NvmeController } from './controller.js';
import type { Namespace } from './namespace.js';
import { FEATURE, NSID_ALL } from './opcodes.js';
import { refuse, STATUS } from './status.js';

const MASK_BITS = 0x0e;

export function isReservationFeature(id: number): boolean {
  return id === FEATURE.RESERVATION_NOTIFICATION_MASK || id === FEATURE.RESERVATION_PERSISTENCE;
}

export async function setReservationFeature(controller: NvmeController, command: NvmeCommand): Promise<number> {
  const { subsystem, maskedNotices } = controller;
  const chosen = command.nsid === NSID_ALL ? subsystem.namespaces : [namespaceOf(controller, command)];
  const value = command.dword(11);
  for (const { nsid, reservations } of chosen) {
    if ((command.dword(10) & 0xff) === FEATURE.RESERVATION_NOTIFICATION_MASK) {
      maskedNotices.set(nsid, value & MASK_BITS);
      continue;
    }
    reservations.setPersists((value & 1) === 1);
    await reservations.save();
  }
  return 0;
}

export function getReservationFeature(controller: NvmeController, command: NvmeCommand): number {
  const { nsid, reservations } = namespaceOf(controller, command);
  if ((command.dword(10) & 0xff) === FEATURE.RESERVATION_PERSISTENCE) return reservations.persists ? 1 : 0;
  return controller.maskedNotices.get(nsid) ?? 0;
}

function namespaceOf({ subsystem }: NvmeController, { nsid }: NvmeCommand): Namespace {
  const ns = subsystem.namespace(nsid);
  if (ns === undefined) throw refuse(STATUS.INVALID_NAMESPACE);
  return ns;
}
