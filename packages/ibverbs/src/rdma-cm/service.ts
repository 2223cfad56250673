/**
 * RDMA CM for programs of librdmacm: executes their commands to /dev/infiniband/rdma_cm. A channel has two sockets, one
 * of commands, and one that gets a byte for each event, so that programs can poll it.
 */

import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { ProtocolDriver } from 'rocev2/internal/cm';
import { invariant, RoceError } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { errnoOf } from '../messages.js';
import { type CmResult, Identifier, type IdentifierHost } from './identifier.js';
import * as cm from './layout.js';

const IDENTIFIERS_MAX = 65_535;
const { errno } = constants;
/** Commands with the least number of bytes that they have. */
const COMMAND_BYTES: ReadonlyMap<number, number> = new Map([
  [cm.CMD_CREATE_ID, 24],
  [cm.CMD_DESTROY_ID, 16],
  [cm.CMD_BIND_IP, 40],
  [cm.CMD_RESOLVE_IP, 64],
  [cm.CMD_RESOLVE_ROUTE, 8],
  [cm.CMD_QUERY_ROUTE, 16],
  [cm.CMD_CONNECT, 280],
  [cm.CMD_LISTEN, 8],
  [cm.CMD_ACCEPT, 288],
  [cm.CMD_REJECT, 264],
  [cm.CMD_DISCONNECT, 4],
  [cm.CMD_INIT_QP_ATTR, 16],
  [cm.CMD_GET_EVENT, 8],
  [cm.CMD_SET_OPTION, 24],
  [cm.CMD_NOTIFY, 8],
  [cm.CMD_MIGRATE_ID, 16],
]);

interface QueuedEvent {
  readonly id: Identifier;
  readonly bytes: Buffer;
}

/** One open /dev/infiniband/rdma_cm of a program. */
class EventChannel {
  readonly pid: number;
  events: Socket | undefined;
  queue: QueuedEvent[] = [];

  constructor(pid: number) {
    this.pid = pid;
  }

  push(id: Identifier, bytes: Buffer): void {
    this.queue.push({ id, bytes });
    this.events?.write('\0');
  }

  /** Takes the events of an identifier out. */
  take(id: Identifier): QueuedEvent[] {
    const taken = this.queue.filter((event) => event.id === id);
    if (taken.length > 0) this.queue = this.queue.filter((event) => event.id !== id);
    return taken;
  }
}

export class RdmaCmService {
  readonly #host: IdentifierHost;
  readonly #driver: ProtocolDriver;
  readonly #channels = new Map<number, EventChannel>();
  readonly #ids = new Map<number, { readonly id: Identifier; channel: EventChannel }>();
  readonly #ports = new Map<string, Identifier>();
  #nextChannel = 1;

  private constructor(device: RdmaDevice, driver: ProtocolDriver) {
    this.#driver = driver;
    this.#host = {
      device,
      driver,
      takePort: (id, port) => {
        const key = `${id.portSpace} ${port}`;
        if (this.#ports.has(key)) return false;
        this.#ports.set(key, id);
        id.port = port;
        return true;
      },
      createFor: (listener) => {
        const { channel } = this.#ids.get(listener.number)!;
        return this.#create(channel, 0n, listener.portSpace);
      },
    };
  }

  /** Takes QP1 of the device. */
  static async open(device: RdmaDevice): Promise<RdmaCmService> {
    const driver = new ProtocolDriver(device);
    await driver.open();
    return new RdmaCmService(device, driver);
  }

  /** Identifiers of all programs that listen. */
  get listeners(): number {
    return [...this.#ids.values()].filter(({ id }) => id.isListening).length;
  }

  /** Opens a channel on a socket of commands; its number. */
  openChannel(socket: Socket, pid: number, write: (bytes: Buffer) => void): number {
    const channel = new EventChannel(pid);
    const number = this.#nextChannel++;
    this.#channels.set(number, channel);
    let pending: Buffer = Buffer.alloc(0);
    socket.on('data', (data: Buffer) => {
      pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
      for (; pending.length >= cm.FRAME_BYTES; pending = pending.subarray(cm.FRAME_BYTES)) {
        write(this.#answer(channel, pending.subarray(0, cm.FRAME_BYTES)));
      }
    });
    socket.once('close', () => {
      this.#channels.delete(number);
      channel.events?.destroy();
      for (const { id, channel: owner } of [...this.#ids.values()]) if (owner === channel) this.#destroy(id);
    });
    return number;
  }

  /** The socket that gets a byte for each event. Throws ERR_ROCE_NOT_FOUND. */
  sendEventsTo(socket: Socket, number: number, pid: number): void {
    const channel = this.#channels.get(number);
    if (channel?.pid !== pid || channel.events !== undefined) {
      throw new RoceError('ERR_ROCE_NOT_FOUND', `process ${pid} has no event channel ${number}`);
    }
    channel.events = socket;
  }

  /** A packet came for this queue pair, which may still wait for its RTU. */
  communicationEstablished(qpn: number): void {
    for (const { id } of this.#ids.values()) if (id.qpn === qpn) id.communicationEstablished();
  }

  /** Notifies peers, and releases QP1. */
  async close(): Promise<void> {
    for (const { id } of [...this.#ids.values()]) this.#destroy(id);
    await this.#driver.close();
  }

  #answer(channel: EventChannel, frame: Buffer): Buffer {
    const command = frame.readUInt32LE(0);
    const length = frame.readUInt32LE(4);
    const answer = Buffer.alloc(cm.FRAME_BYTES);
    const least = COMMAND_BYTES.get(command);
    let result: CmResult = errno.EINVAL;
    if (least !== undefined && length >= least && length <= cm.FRAME_BYTES - cm.FRAME_HEADER_BYTES) {
      const start = frame.byteOffset + cm.FRAME_HEADER_BYTES;
      try {
        result = this.#execute(channel, command, new DataView(frame.buffer, start, length));
      } catch (error) {
        result = errnoOf(error);
      }
    }
    if (typeof result === 'number') answer.writeUInt32LE(result, 0);
    else {
      answer.writeUInt32LE(result.length, 4);
      answer.set(result, cm.FRAME_HEADER_BYTES);
    }
    return answer;
  }

  #execute(channel: EventChannel, command: number, view: DataView): CmResult {
    const u32 = (offset: number) => view.getUint32(offset, true);
    const own = (offset: number, use: (id: Identifier) => CmResult): CmResult => {
      const found = this.#ids.get(u32(offset));
      return found?.channel === channel ? use(found.id) : errno.ENOENT;
    };
    const address = (offset: number) => cm.readCmAddress(view, offset);
    switch (command) {
      case cm.CMD_CREATE_ID:
        return this.#createId(channel, view.getBigUint64(0, true), view.getUint16(16, true));
      case cm.CMD_DESTROY_ID:
        return own(8, (id) => numberBuffer(this.#destroy(id)));
      case cm.CMD_BIND_IP:
        return own(36, (id) => id.bind(address(8)));
      case cm.CMD_RESOLVE_IP:
        return own(56, (id) => id.resolveAddress(address(0), address(cm.SOCKADDR_BYTES)));
      case cm.CMD_RESOLVE_ROUTE:
        return own(0, (id) => id.resolveRoute());
      case cm.CMD_QUERY_ROUTE:
        return own(8, (id) => id.queryRoute());
      case cm.CMD_CONNECT:
        return own(cm.CONNECT_ID_OFFSET, (id) => id.connect(cm.readParameters(view, 0)));
      case cm.CMD_LISTEN:
        return own(0, (id) => id.listen(u32(4)));
      case cm.CMD_ACCEPT: {
        const parameters = cm.readParameters(view, cm.ACCEPT_PARAM_OFFSET);
        return own(cm.ACCEPT_ID_OFFSET, (id) => id.accept(view.getBigUint64(0, true), parameters));
      }
      case cm.CMD_REJECT:
        return own(0, (id) => id.reject(cm.readPrivateData(view, 8, view.getUint8(4))));
      case cm.CMD_DISCONNECT:
        return own(0, (id) => id.disconnect());
      case cm.CMD_INIT_QP_ATTR:
        return own(8, (id) => id.initQpAttr(u32(12)));
      case cm.CMD_GET_EVENT:
        return this.#nextEvent(channel);
      case cm.CMD_SET_OPTION:
        return own(8, (id) => id.setOption(u32(12), u32(16), view.byteLength > 24 ? view.getUint8(24) : 0));
      case cm.CMD_NOTIFY:
        return own(0, (id) => id.communicationEstablished());
      default:
        invariant(command === cm.CMD_MIGRATE_ID, 'a command with a size is executed');
        return this.#migrate(channel, u32(8), u32(12));
    }
  }

  #createId(channel: EventChannel, uid: bigint, portSpace: number): CmResult {
    if (portSpace !== cm.PS_TCP && portSpace !== cm.PS_UDP) return errno.EOPNOTSUPP;
    const id = this.#create(channel, uid, portSpace);
    return id === undefined ? errno.ENOMEM : numberBuffer(id.number);
  }

  /** librdmacm finds identifiers by their numbers in a table of 65,536. */
  #create(channel: EventChannel, uid: bigint, portSpace: number): Identifier | undefined {
    if (this.#ids.size >= IDENTIFIERS_MAX) return undefined;
    let number = this.#ids.size + 1;
    while (this.#ids.has(number)) number = (number % IDENTIFIERS_MAX) + 1;
    const emit = (to: Identifier, bytes: Buffer) => this.#ids.get(to.number)?.channel.push(to, bytes);
    const id = new Identifier(this.#host, emit, { number, uid, portSpace });
    this.#ids.set(number, { id, channel });
    return id;
  }

  /** Returns the number of its events that the program has taken. */
  #destroy(id: Identifier): number {
    const { channel } = this.#ids.get(id.number)!;
    id.close();
    const key = `${id.portSpace} ${id.port}`;
    if (this.#ports.get(key) === id) this.#ports.delete(key);
    for (const { bytes } of channel.take(id)) this.#dropRequest(bytes);
    this.#ids.delete(id.number);
    return id.reported;
  }

  /** A request that the program of a destroyed listener has not taken. */
  #dropRequest(bytes: Buffer): void {
    if (bytes.readUInt32LE(12) !== cm.CM_CONNECT_REQUEST) return;
    const request = this.#ids.get(bytes.readUInt32LE(8));
    if (request !== undefined) this.#destroy(request.id);
  }

  #nextEvent(channel: EventChannel): CmResult {
    const event = channel.queue.shift();
    if (event === undefined) return errno.EAGAIN;
    event.id.reported++;
    return event.bytes;
  }

  /** Moves an identifier, and its events, to the channel on which the command came. */
  #migrate(channel: EventChannel, number: number, from: number): CmResult {
    const found = this.#ids.get(number);
    if (found === undefined || found.channel !== this.#channels.get(from) || found.channel.pid !== channel.pid) {
      return errno.ENOENT;
    }
    const events = found.channel.take(found.id);
    found.channel = channel;
    for (const { id, bytes } of events) channel.push(id, bytes);
    return numberBuffer(found.id.reported);
  }
}

/** A result of one number. */
function numberBuffer(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number, 0);
  return bytes;
}
