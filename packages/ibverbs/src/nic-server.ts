/** The NIC process: one device, and a Unix socket on which programs of the same user open contexts on it. */

import { randomInt } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import process from 'node:process';
import { RoceError } from 'rocev2/internal/core';
import { libC } from 'rocev2/internal/dgram-ext';
import { InlineEngine, SHARED_MEMORY_PORTS } from 'rocev2/internal/driver';
import { EVENT_COMM_EST } from 'rocev2/internal/memory';
import { type DeviceOptions, openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { DescriptorSocket } from './descriptor-socket.js';
import {
  errnoOf,
  KIND_CHANNEL,
  KIND_CM,
  KIND_CM_EVENTS,
  KIND_CONTEXT,
  KIND_EVENTS,
  KIND_LIST,
  KIND_WAKE,
  MESSAGE_BYTES,
  NicMessage,
  OP_HELLO,
  PID_ARGUMENT,
  PROTOCOL_VERSION,
} from './messages.js';
import { Program } from './program.js';
import type { SharedNic } from './program-objects.js';
import { RdmaCmService } from './rdma-cm/service.js';
import { interfaceIndex, interfaceOf, removeSysfs, writeSysfs } from './sysfs.js';

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const CONNECTIONS_MAX = 16_384;
const TOKEN_MAX = 2 ** 47;
/** A program that does not read its answers and events for this many bytes is disconnected. */
const UNREAD_BYTES_MAX = 2 ** 20;

export class NicServer {
  readonly device: RdmaDevice;
  readonly #nic: SharedNic;
  readonly #cm: RdmaCmService;
  readonly #server: Server;
  readonly #programs = new Map<number, Program>();
  readonly #sockets = new Set<Socket>();
  readonly #path: string;
  #waiting: Array<() => void> = [];
  #nextChannel = 1;

  /** Opens the device and listens at `path`, in a folder that only this user can enter. */
  static async open(path: string, options: DeviceOptions): Promise<NicServer> {
    const device = await openDevice({ ...options, engine: 'inline' });
    let descriptors: DescriptorSocket | undefined;
    try {
      if (!(device.link instanceof InlineEngine)) {
        throw new RoceError('ERR_ROCE_UNSUPPORTED', 'programs need a NIC on the event loop', 'leave engine out');
      }
      const ports = await SHARED_MEMORY_PORTS.load();
      descriptors = new DescriptorSocket(`${path}.mem`);
      const nic = { device, engine: device.link, ports, descriptors };
      const server = new NicServer(nic, await RdmaCmService.open(device), path);
      await server.#listen();
      return server;
    } catch (error) {
      descriptors?.close();
      await device.close();
      throw error;
    }
  }

  private constructor(nic: SharedNic, cm: RdmaCmService, path: string) {
    const { device } = nic;
    this.#cm = cm;
    this.device = device;
    this.#nic = nic;
    this.#path = path;
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.maxConnections = CONNECTIONS_MAX;
    device.onForeignEvent = (type, id) => this.#onEvent(type, id);
  }

  /** Contexts that are open. */
  get programs(): number {
    return this.#programs.size;
  }

  /** Resolves when no program uses the NIC. */
  async idle(): Promise<void> {
    while (this.#programs.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Objects of all programs. */
  get objects(): number {
    let sum = 0;
    for (const program of this.#programs.values()) sum += program.objects;
    return sum;
  }

  /** Identifiers of librdmacm that wait for connections. */
  get listeners(): number {
    return this.#cm.listeners;
  }

  /** Ends all connections, frees what programs have, and closes the device. */
  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([...this.#programs.values()].map((program) => program.end()));
    await this.#cm.close();
    rmSync(this.#path, { force: true });
    removeSysfs(this.#sysfs);
    this.#nic.descriptors.close();
    await this.device.close();
  }

  /** The library looks there for the attributes of the device. */
  get #sysfs(): string {
    return `${this.#path}.sys`;
  }

  async #listen(): Promise<void> {
    rmSync(this.#path, { force: true });
    writeSysfs(this.#sysfs, this.device.address);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#path, resolve);
    });
    chmodSync(this.#path, 0o600);
  }

  #onEvent(type: number, id: number): void {
    if (type === EVENT_COMM_EST) this.#cm.communicationEstablished(id);
    for (const program of this.#programs.values()) {
      if (type === 0) program.onLostEvents();
      else if (program.onEvent(type, id)) return;
    }
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    let pending: Buffer = Buffer.alloc(0);
    let handler: ((message: NicMessage) => void) | undefined;
    socket.on('error', () => {}); // Its end follows.
    socket.once('close', () => this.#sockets.delete(socket));
    const onData = (data: Buffer) => {
      pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
      while (pending.length >= MESSAGE_BYTES) {
        const message = new NicMessage(Buffer.from(pending.subarray(0, MESSAGE_BYTES)));
        pending = pending.subarray(MESSAGE_BYTES);
        if (handler !== undefined) {
          handler(message);
          continue;
        }
        try {
          handler = this.#open(socket, message, () => socket.off('data', onData));
          message.answer(0);
          send(socket, message.bytes);
        } catch (error) {
          message.answer(errnoOf(error));
          socket.end(message.bytes);
          return;
        }
      }
    };
    socket.on('data', onData);
  }

  /** The first message of a connection. Returns what takes the next ones. */
  #open(socket: Socket, message: NicMessage, takesBytes: () => void): (message: NicMessage) => void {
    if (message.operation !== OP_HELLO || message.number(0) !== PROTOCOL_VERSION) {
      throw new RoceError('ERR_ROCE_MISMATCH', 'the program has a library of another version');
    }
    const kind = message.number(1);
    const token = message.number(2);
    const pid = peerOf(socket);
    const ignore = () => {};
    if (kind === KIND_LIST || kind === KIND_CONTEXT) {
      this.#describe(message);
      if (kind === KIND_LIST) return ignore;
      return this.#openContext(socket, message, pid);
    }
    if (kind === KIND_CM) {
      takesBytes();
      message.set(
        0,
        this.#cm.openChannel(socket, pid, (bytes) => send(socket, bytes)),
      );
      return ignore;
    }
    if (kind === KIND_CM_EVENTS) {
      this.#cm.sendEventsTo(socket, token, pid);
      return ignore;
    }
    const program = this.#programs.get(token);
    if (program === undefined || program.pid !== pid) throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such context');
    if (kind === KIND_WAKE) {
      takesBytes();
      socket.on('data', () => program.wake());
      program.wake();
      return ignore;
    }
    if (kind === KIND_EVENTS) {
      program.sendEventsTo(socket);
      return ignore;
    }
    if (kind !== KIND_CHANNEL) throw new RoceError('ERR_ROCE_UNSUPPORTED', `connections of kind ${kind} are unknown`);
    const number = this.#nextChannel++;
    program.addChannel(number, socket);
    message.set(0, number);
    return ignore;
  }

  #describe(message: NicMessage): void {
    const { address, pathMtuMax } = this.device.attributes;
    message.setGid(1, address.gid);
    message.set(3, pathMtuMax);
    message.set(4, interfaceIndex(interfaceOf(address)));
    message.set(PID_ARGUMENT, process.pid);
  }

  #forget(token: number): void {
    this.#programs.delete(token);
    if (this.#programs.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #openContext(socket: Socket, message: NicMessage, pid: number): (message: NicMessage) => void {
    this.#nic.descriptors.take(0); // What programs have left that ended before their command.
    const token = randomInt(1, TOKEN_MAX);
    const program = new Program(this.#nic, pid, token, () => this.#forget(token));
    this.#programs.set(token, program);
    socket.once('close', () => void program.end());
    message.set(0, token);
    return (command) => program.execute(command, () => send(socket, command.bytes));
  }
}

function send(socket: Socket, bytes: Buffer): void {
  if (socket.writableLength > UNREAD_BYTES_MAX) socket.destroy();
  else socket.write(bytes);
}

/**
 * The process at the other end of a Unix socket, as the kernel knows it. Throws ERR_ROCE_UNSUPPORTED where it is in a
 * PID namespace that is not visible from here.
 */
function peerOf(socket: Socket): number {
  const lib = libC();
  const fd = (socket as unknown as { readonly _handle?: { readonly fd?: number } })._handle?.fd ?? -1;
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', lib);
  const credentials = new Uint32Array(3);
  const length = Uint32Array.of(credentials.byteLength);
  const bytes = (words: Uint32Array) => new Uint8Array(words.buffer);
  if (lib.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, bytes(credentials), bytes(length)) < 0) {
    throw new RoceError('ERR_ROCE_IO', 'the other process is not known');
  }
  const [pid, uid] = credentials;
  if (uid !== process.geteuid?.()) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the program runs as another user');
  if (pid === 0) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'the program is in another PID namespace', 'run the NIC there as well');
  }
  return pid;
}
