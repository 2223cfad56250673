/** Reservation commands: Register, Acquire, Release and Report (NVMe base specification 2.0 §7.2 to §7.5). */

import type { NvmeCommand } from './capsule.js';
import type { CommandData } from './command-data.js';
import { TRANSFER_BYTES_MAX } from './io-commands.js';
import type { Namespace } from './namespace.js';
import { IO, RESERVATION_TYPE } from './opcodes.js';
import type { Reservations } from './reservations.js';
import { refuse, STATUS } from './status.js';

const OPCODES: ReadonlySet<number> = new Set([
  IO.RESERVATION_REGISTER,
  IO.RESERVATION_REPORT,
  IO.RESERVATION_ACQUIRE,
  IO.RESERVATION_RELEASE,
]);

/** The key of the command is not checked (IEKEY). */
const IGNORES_KEY = 1 << 3;
const KEYS_BYTES = 16;
const REPORT_HEADER_BYTES = 64;
const REPORT_ENTRY_BYTES = 64;
/** CNTLID of registrants in a report: hosts have any number of controllers. */
const ANY_CONTROLLER = 0xffff;
const CPTPL = { KEEP: 0, OFF: 2, ON: 3 } as const;

export function isReservationCommand({ opcode }: NvmeCommand): boolean {
  return OPCODES.has(opcode);
}

export async function executeReservation(
  command: NvmeCommand,
  ns: Namespace,
  hostId: string,
  data: CommandData,
): Promise<void> {
  const { reservations } = ns;
  switch (command.opcode) {
    case IO.RESERVATION_REPORT:
      return report(command, reservations, data);
    case IO.RESERVATION_REGISTER:
      register(command, reservations, hostId, await keysOf(data, KEYS_BYTES));
      break;
    case IO.RESERVATION_ACQUIRE:
      await acquire(command, ns, hostId, await keysOf(data, KEYS_BYTES));
      break;
    default:
      release(command, reservations, hostId, await keysOf(data, KEYS_BYTES / 2));
  }
  await reservations.save();
}

async function keysOf(data: CommandData, bytes: number): Promise<Buffer> {
  const fetched = await data.fetch(bytes);
  return Buffer.from(fetched.buffer, fetched.byteOffset, bytes);
}

function register(command: NvmeCommand, reservations: Reservations, hostId: string, keys: Buffer): void {
  const dword = command.dword(10);
  const persistence = dword >>> 30;
  if (persistence === 1 || (persistence === CPTPL.ON && !reservations.canPersist)) throw refuse(STATUS.INVALID_FIELD);
  const request = {
    ignoresKey: (dword & IGNORES_KEY) !== 0,
    currentKey: keys.readBigUInt64LE(0),
    newKey: keys.readBigUInt64LE(8),
  };
  switch (dword & 7) {
    case 0:
      reservations.register(hostId, request);
      break;
    case 1:
      reservations.unregister(hostId, request);
      break;
    case 2:
      reservations.replace(hostId, request);
      break;
    default:
      throw refuse(STATUS.INVALID_FIELD);
  }
  if (persistence !== CPTPL.KEEP) reservations.setPersists(persistence === CPTPL.ON);
}

async function acquire(command: NvmeCommand, ns: Namespace, hostId: string, keys: Buffer): Promise<void> {
  const { reservations } = ns;
  const { action, type } = actionOf(command);
  const [key, preempted] = [keys.readBigUInt64LE(0), keys.readBigUInt64LE(8)];
  switch (action) {
    case 0:
      checkType(type);
      return reservations.acquire(hostId, key, type);
    case 1:
    case 2: {
      checkType(type);
      const losers = reservations.preempt(hostId, { key, preempted, type });
      // Operations in progress cannot be undone, so wait for them: after the answer no write of the losers reaches the
      // medium.
      await Promise.all(losers.map((id) => ns.quiet(id)));
      return;
    }
    default:
      throw refuse(STATUS.INVALID_FIELD);
  }
}

function release(command: NvmeCommand, reservations: Reservations, hostId: string, keys: Buffer): void {
  const { action, type } = actionOf(command);
  const key = keys.readBigUInt64LE(0);
  if (action === 0) reservations.release(hostId, key, type);
  else if (action === 1) reservations.clear(hostId, key);
  else throw refuse(STATUS.INVALID_FIELD);
}

function actionOf(command: NvmeCommand): { readonly action: number; readonly type: number } {
  const dword = command.dword(10);
  if ((dword & IGNORES_KEY) !== 0) throw refuse(STATUS.INVALID_FIELD);
  return { action: dword & 7, type: (dword >>> 8) & 0xff };
}

function checkType(type: number): void {
  if (type < RESERVATION_TYPE.WRITE_EXCLUSIVE || type > RESERVATION_TYPE.EXCLUSIVE_ACCESS_ALL) {
    throw refuse(STATUS.INVALID_FIELD);
  }
}

/** Fabrics have host IDs of 128 bits, which only the extended data structure can hold. */
async function report(command: NvmeCommand, reservations: Reservations, data: CommandData): Promise<void> {
  if ((command.dword(11) & 1) === 0) throw refuse(STATUS.HOST_ID_FORMAT);
  const length = (command.dword(10) + 1) * 4;
  if (length > TRANSFER_BYTES_MAX) throw refuse(STATUS.INVALID_FIELD);
  const { registrants, generation, type, persists } = reservations;
  const page = Buffer.alloc(REPORT_HEADER_BYTES + registrants.length * REPORT_ENTRY_BYTES);
  page.writeUInt32LE(generation, 0);
  page[4] = type;
  page.writeUInt16LE(registrants.length, 5);
  page[9] = persists ? 1 : 0;
  registrants.forEach(({ hostId, key, isHolder }, i) => {
    const at = REPORT_HEADER_BYTES + i * REPORT_ENTRY_BYTES;
    page.writeUInt16LE(ANY_CONTROLLER, at);
    page[at + 2] = isHolder ? 1 : 0;
    page.writeBigUInt64LE(key, at + 8);
    page.write(hostId, at + 16, 'hex');
  });
  await data.give(page, length);
}
