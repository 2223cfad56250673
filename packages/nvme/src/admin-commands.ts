/** Commands of the admin queue (NVMe base specification 2.0 §5). */

import { anaLog } from './ana.js';
import { ANA_CHANGED, DISCOVERY_CHANGED, NAMESPACE_CHANGED } from './async-events.js';
import type { NvmeCommand } from './capsule.js';
import type { CommandData } from './command-data.js';
import { IO_QUEUES_MAX, type NvmeController } from './controller.js';
import {
  activeNamespaces,
  IDENTIFY_BYTES,
  identifyController,
  identifyIndependent,
  identifyNamespace,
  namespaceDescriptors,
  WARNING_KELVIN,
} from './identify.js';
import { TRANSFER_BYTES_MAX } from './io-commands.js';
import { changedNamespacesLog, effectsLog, errorLog, firmwareLog, reservationLog, smartLog } from './log-pages.js';
import { type Namespace, NSID_MAX } from './namespace.js';
import { ADMIN, CNS, FEATURE, LOG, NSID_ALL } from './opcodes.js';
import { getReservationFeature, isReservationFeature, setReservationFeature } from './reservation-features.js';
import { refuse, STATUS } from './status.js';

export interface AdminContext {
  readonly firmware: string;
  discoveryLog(hostNqn: string): Buffer;
}

const STORED_FEATURES: ReadonlyMap<number, number> = new Map([
  [FEATURE.ARBITRATION, 0],
  [FEATURE.POWER_MANAGEMENT, 0],
  [FEATURE.TEMPERATURE_THRESHOLD, WARNING_KELVIN],
  [FEATURE.ERROR_RECOVERY, 0],
  [FEATURE.VOLATILE_WRITE_CACHE, 1],
]);

const DISCOVERY_COMMANDS: ReadonlySet<number> = new Set([
  ADMIN.GET_LOG_PAGE,
  ADMIN.IDENTIFY,
  ADMIN.SET_FEATURES,
  ADMIN.GET_FEATURES,
  ADMIN.ASYNC_EVENT_REQUEST,
  ADMIN.KEEP_ALIVE,
]);
const DISCOVERY_FEATURES: ReadonlySet<number> = new Set([FEATURE.ASYNC_EVENT_CONFIGURATION, FEATURE.KEEP_ALIVE_TIMER]);

const NOT_ABORTED = 1;
const HOST_ID_BYTES = 16;
/** Log specific field of the ANA log page: no namespace IDs (RGO). */
const ANA_GROUPS_ONLY = 1 << 8;

export async function executeAdmin(
  controller: NvmeController,
  command: NvmeCommand,
  data: CommandData,
  context: AdminContext,
): Promise<number> {
  const isDiscovery = controller.subsystem.kind === 'discovery';
  if (isDiscovery && !DISCOVERY_COMMANDS.has(command.opcode)) throw refuse(STATUS.INVALID_OPCODE);
  if (!controller.properties.isReady && command.opcode !== ADMIN.KEEP_ALIVE) {
    throw refuse(STATUS.COMMAND_SEQUENCE_ERROR);
  }
  switch (command.opcode) {
    case ADMIN.IDENTIFY:
      await data.give(identify(controller, command, context), IDENTIFY_BYTES);
      return 0;
    case ADMIN.GET_LOG_PAGE:
      await getLogPage(controller, command, data, context);
      return 0;
    case ADMIN.SET_FEATURES:
      return setFeature(controller, command);
    case ADMIN.GET_FEATURES:
      if ((command.dword(10) & 0xff) === FEATURE.HOST_IDENTIFIER && !isDiscovery) {
        await data.give(Buffer.from(controller.hostId, 'hex'), HOST_ID_BYTES);
        return 0;
      }
      return getFeature(controller, command);
    case ADMIN.ASYNC_EVENT_REQUEST:
      return controller.events.request(command.id);
    case ADMIN.ABORT: {
      const target = command.dword(10);
      return (target & 0xffff) === 0 && controller.events.abort(target >>> 16) ? 0 : NOT_ABORTED;
    }
    case ADMIN.KEEP_ALIVE:
      return 0;
    default:
      throw refuse(STATUS.INVALID_OPCODE);
  }
}

function identify(controller: NvmeController, command: NvmeCommand, { firmware }: AdminContext): Buffer {
  const { subsystem } = controller;
  const { nqn, serial, kind, namespaces } = subsystem;
  const cns = command.dword(10) & 0xff;
  if (cns === CNS.CONTROLLER) {
    return identifyController({ nqn, serial, firmware, id: controller.id, kind });
  }
  if (kind === 'discovery') throw refuse(STATUS.INVALID_FIELD);
  const isNvm = command.dword(11) >>> 24 === 0;
  switch (cns) {
    case CNS.NAMESPACE:
      checkNsid(command.nsid);
      return identifyNamespace(subsystem.namespace(command.nsid));
    case CNS.ACTIVE_NAMESPACES:
      return activeNamespaces(namespaces, firstNsid(command.nsid));
    case CNS.NAMESPACE_DESCRIPTORS:
      return namespaceDescriptors(expectNamespace(controller, command));
    case CNS.INDEPENDENT_NAMESPACE:
      return identifyIndependent(expectNamespace(controller, command));
    case CNS.IO_NAMESPACE:
      if (!isNvm) break;
      expectNamespace(controller, command);
      return Buffer.alloc(IDENTIFY_BYTES);
    case CNS.IO_CONTROLLER:
      if (isNvm) return Buffer.alloc(IDENTIFY_BYTES);
      break;
    case CNS.IO_ACTIVE_NAMESPACES:
      if (isNvm) return activeNamespaces(namespaces, firstNsid(command.nsid));
      break;
  }
  throw refuse(STATUS.INVALID_FIELD);
}

/** NSIDs that the controller never has are errors; those it could have are inactive. */
function checkNsid(nsid: number): void {
  if (nsid === 0 || nsid > NSID_MAX) throw refuse(STATUS.INVALID_NAMESPACE);
}

function firstNsid(nsid: number): number {
  if (nsid >= NSID_ALL - 1) throw refuse(STATUS.INVALID_NAMESPACE);
  return nsid;
}

export function expectNamespace({ subsystem }: NvmeController, command: NvmeCommand): Namespace {
  const ns = subsystem.namespace(command.nsid);
  if (ns === undefined) throw refuse(STATUS.INVALID_NAMESPACE);
  return ns;
}

async function getLogPage(
  controller: NvmeController,
  command: NvmeCommand,
  data: CommandData,
  context: AdminContext,
): Promise<void> {
  const what = command.dword(10);
  const id = what & 0xff;
  const keepsEvent = (what & 0x8000) !== 0;
  const dwords = (what >>> 16) + (command.dword(11) & 0xffff) * 0x1_0000 + 1;
  const offset = command.dword(12) + command.dword(13) * 2 ** 32;
  const bytes = 4 * dwords;
  const page = logPage(controller, command, context);
  if (bytes > TRANSFER_BYTES_MAX || offset > page.length) throw refuse(STATUS.INVALID_FIELD);
  await data.give(page.subarray(offset), bytes);
  if (keepsEvent) return;
  if (id === LOG.CHANGED_NAMESPACES) controller.changedNamespaces.clear();
  if (id === LOG.RESERVATION_NOTIFICATION) controller.onReservationEventRead();
  controller.events.onLogRead(id);
}

function logPage(controller: NvmeController, command: NvmeCommand, { firmware, discoveryLog }: AdminContext): Buffer {
  const id = command.dword(10) & 0xff;
  const { kind, namespaces } = controller.subsystem;
  if (kind === 'discovery') {
    if (id === LOG.DISCOVERY) return discoveryLog(controller.hostNqn);
    throw refuse(STATUS.INVALID_LOG_PAGE);
  }
  switch (id) {
    case LOG.ERROR:
      return errorLog();
    case LOG.SMART:
      return smartLog(namespaces);
    case LOG.FIRMWARE:
      return firmwareLog(firmware);
    case LOG.CHANGED_NAMESPACES:
      return changedNamespacesLog(controller.changedNamespaces);
    case LOG.EFFECTS:
      return effectsLog();
    case LOG.ANA: {
      const isGroupsOnly = (command.dword(10) & ANA_GROUPS_ONLY) !== 0;
      return anaLog(controller.port, isGroupsOnly ? [] : namespaces.map(({ nsid }) => nsid));
    }
    case LOG.RESERVATION_NOTIFICATION:
      return reservationLog(controller.reservationEvent);
    default:
      throw refuse(STATUS.INVALID_LOG_PAGE);
  }
}

function setFeature(controller: NvmeController, command: NvmeCommand): number | Promise<number> {
  const id = featureOf(controller, command);
  const value = command.dword(11);
  if (isReservationFeature(id)) return setReservationFeature(controller, command);
  switch (id) {
    case FEATURE.NUMBER_OF_QUEUES: {
      const asked = Math.min(value & 0xffff, value >>> 16);
      if ((value & 0xffff) === 0xffff || value >>> 16 === 0xffff) throw refuse(STATUS.INVALID_FIELD);
      controller.ioQueues = Math.min(asked + 1, IO_QUEUES_MAX);
      return queueNumbers(controller);
    }
    case FEATURE.KEEP_ALIVE_TIMER:
      controller.keepAliveMs = value;
      return 0;
    case FEATURE.ASYNC_EVENT_CONFIGURATION:
      controller.events.configuration = value & EVENTS_KNOWN;
      return 0;
    case FEATURE.TEMPERATURE_THRESHOLD:
      controller.features.set(thresholdKey(command), value);
      return 0;
    default:
      controller.features.set(id, value);
      return 0;
  }
}

function getFeature(controller: NvmeController, command: NvmeCommand): number {
  const id = featureOf(controller, command);
  if (isReservationFeature(id)) return getReservationFeature(controller, command);
  switch (id) {
    case FEATURE.NUMBER_OF_QUEUES:
      return queueNumbers(controller);
    case FEATURE.KEEP_ALIVE_TIMER:
      return controller.keepAliveMs;
    case FEATURE.ASYNC_EVENT_CONFIGURATION:
      return controller.events.configuration;
    case FEATURE.TEMPERATURE_THRESHOLD: {
      const key = thresholdKey(command);
      return controller.features.get(key) ?? (key === id ? WARNING_KELVIN : 0);
    }
    default:
      return controller.features.get(id) ?? STORED_FEATURES.get(id)!;
  }
}

/** There is no sensor besides the composite temperature; over and under temperature have a threshold each. */
function thresholdKey(command: NvmeCommand): number {
  const value = command.dword(11);
  const sensor = (value >>> 16) & 0xf;
  const kind = (value >>> 20) & 3;
  if ((sensor !== 0 && sensor !== ALL_SENSORS) || kind > UNDER_TEMPERATURE) throw refuse(STATUS.INVALID_FIELD);
  return FEATURE.TEMPERATURE_THRESHOLD | (kind << 8);
}

const ALL_SENSORS = 0xf;
const UNDER_TEMPERATURE = 1;

const EVENTS_KNOWN = NAMESPACE_CHANGED.configuration | ANA_CHANGED.configuration | DISCOVERY_CHANGED.configuration;

function featureOf({ subsystem }: NvmeController, command: NvmeCommand): number {
  const id = command.dword(10) & 0xff;
  const hasIt =
    DISCOVERY_FEATURES.has(id) ||
    (subsystem.kind === 'io' &&
      (STORED_FEATURES.has(id) || id === FEATURE.NUMBER_OF_QUEUES || isReservationFeature(id)));
  if (!hasIt) throw refuse(STATUS.INVALID_FIELD);
  return id;
}

function queueNumbers({ ioQueues }: NvmeController): number {
  return (ioQueues - 1) * 0x1_0001;
}
