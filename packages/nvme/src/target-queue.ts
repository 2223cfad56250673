import { type Clock, NS_PER_S, pause, RoceError } from 'rocev2/internal/core';
import { type AdminContext, executeAdmin, expectNamespace } from './admin-commands.js';
import type { AnaPort } from './ana.js';
import type { TargetAuthentication } from './auth/target-authentication.js';
import type { NvmeCommand } from './capsule.js';
import { CommandData } from './command-data.js';
import type { CommandFault, CommandFaults } from './command-faults.js';
import type { NvmeController } from './controller.js';
import {
  AUTHENTICATION_REQUIRED,
  authenticationBytes,
  CONNECT_DATA_BYTES,
  type ConnectRequest,
  readConnect,
} from './fabrics.js';
import { executeIo } from './io-commands.js';
import { FCTYPE, IO, NSID_ALL, OP_FABRICS } from './opcodes.js';
import { executeReservation, isReservationCommand } from './reservation-commands.js';
import { NO_DATA } from './sgl.js';
import { NvmeStatusError, refuse, STATUS } from './status.js';
import type { IncomingCapsule, TargetConnection } from './target-connection.js';

/** A queue that has not connected, and authenticated where it must, after this time ends. */
const CONNECT_LIMIT_NS = 10 * NS_PER_S;
/** Completions carry this where the host does without flow control of the submission queue. */
const NO_SQ_HEAD = 0xffff;

export interface QueueContext extends AdminContext {
  readonly clock: Clock;
  readonly faults: CommandFaults | undefined;
  readonly counters: {
    commands: number;
    refused: number;
  };
  connect(request: ConnectRequest, queue: TargetQueue): NvmeController;
  /** Lets a queue in whose host has proved who it is. Throws the status of Connect if that cannot be. */
  admit(controller: NvmeController, request: ConnectRequest, queue: TargetQueue): void;
  authentication(request: ConnectRequest, queue: TargetQueue): TargetAuthentication | undefined;
}

interface Connected {
  readonly controller: NvmeController;
  readonly request: ConnectRequest;
  readonly authentication: TargetAuthentication | undefined;
  isAdmitted: boolean;
}

export class TargetQueue {
  onEnd: (why: Error) => void = () => {};
  readonly port: AnaPort;
  readonly #connection: TargetConnection;
  readonly #context: QueueContext;
  readonly #cancelLimit: () => void;
  #connected: Connected | undefined;
  #sqHead = 0;
  #outstanding = 0;
  #ended = false;

  constructor(connection: TargetConnection, port: AnaPort, context: QueueContext) {
    this.port = port;
    this.#connection = connection;
    this.#context = context;
    connection.onCapsule = (capsule) => void this.#serve(capsule);
    connection.onFailure = (error) => this.end(error);
    this.#cancelLimit = context.clock.wakeAt(context.clock.nowNs() + CONNECT_LIMIT_NS, () => {
      if (!this.isConnected) this.end(new RoceError('ERR_ROCE_CONNECT', 'the queue did not connect in time'));
    });
  }

  get isConnected(): boolean {
    const connected = this.#connected;
    return connected?.isAdmitted === true && connected.authentication?.isAuthenticated !== false;
  }

  get connection(): TargetConnection {
    return this.#connection;
  }

  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelLimit();
    this.#connection.fail(why);
    this.#connected?.controller.onQueueEnd(this.#connected.request.qid, this, why);
    this.onEnd(why);
  }

  async #serve(capsule: IncomingCapsule): Promise<void> {
    if (this.#ended) return;
    if (this.#outstanding >= (this.#connected?.request.entries ?? 1)) {
      capsule.release();
      this.end(new RoceError('ERR_ROCE_LIMIT', 'the host has more commands outstanding than its queue has entries'));
      return;
    }
    this.#outstanding++;
    this.#context.counters.commands++;
    if (this.isConnected) this.#connected!.controller.onCommand();
    const { command } = capsule;
    const fault = this.#faultOf(command);
    let data: CommandData | undefined;
    let status: number = STATUS.SUCCESS;
    let result = 0n;
    try {
      if (command.isFused) throw refuse(STATUS.INVALID_FIELD);
      data = new CommandData(this.#connection, capsule, this.#connected?.controller.share);
      result = await this.#execute(command, data, fault);
    } catch (error) {
      data?.dropAnswer();
      status = this.#statusOf(error as Error);
      if (error instanceof NvmeStatusError) result = BigInt(error.result);
    }
    // Before the answer, because the next command may follow it.
    capsule.release();
    if (fault?.kind === 'silent') {
      data?.release();
      return; // The host still waits for it: it counts as outstanding.
    }
    this.#outstanding--;
    await this.#reply(command, { status, result }, data);
    data?.release();
  }

  /** A failed connection sends no more answers; an unknown failure is a defect. */
  #statusOf(error: Error): number {
    if (this.#ended) return STATUS.ABORTED;
    this.#context.counters.refused++;
    if (error instanceof NvmeStatusError) return error.status;
    if (error instanceof RoceError) return STATUS.INTERNAL_ERROR;
    throw error;
  }

  async #reply(
    { id }: NvmeCommand,
    { status, result }: { status: number; result: bigint },
    data: CommandData | undefined,
  ): Promise<void> {
    if (this.#ended) return;
    const entries = this.#connected?.request.entries ?? 1;
    this.#sqHead = (this.#sqHead + 1) % entries;
    const sqHead = this.#connected?.request.noSqFlow === true ? NO_SQ_HEAD : this.#sqHead;
    const place = data?.usedPlace ?? NO_DATA;
    await this.#connection.reply({ place, completion: { id, status, result, sqHead }, data: data?.answer });
  }

  #faultOf(command: NvmeCommand): CommandFault | undefined {
    const isIo = this.#connected !== undefined && this.#connected.request.qid !== 0;
    return isIo && command.opcode !== OP_FABRICS ? this.#context.faults?.next(command) : undefined;
  }

  async #suffer(fault: CommandFault): Promise<void> {
    switch (fault.kind) {
      case 'status':
        throw new NvmeStatusError(fault.status);
      case 'disconnect':
        this.end(new RoceError('ERR_ROCE_CONNECT', 'a fault rule ended the queue'));
        throw refuse(STATUS.ABORTED);
      case 'delay':
        await pause(this.#context.clock, fault.delayNs);
        if (this.#ended) throw refuse(STATUS.ABORTED);
    }
  }

  async #execute(command: NvmeCommand, data: CommandData, fault: CommandFault | undefined): Promise<bigint> {
    const connected = this.#connected;
    if (command.opcode === OP_FABRICS) return this.#executeFabrics(command, data);
    if (connected === undefined) throw refuse(STATUS.INVALID_OPCODE);
    this.#expectAuthenticated();
    const { controller, request } = connected;
    if (request.qid === 0) return BigInt(await executeAdmin(controller, command, data, this.#context));
    const { hostId, port, subsystem } = controller;
    if (fault !== undefined) await this.#suffer(fault);
    port.check();
    if (command.opcode === IO.FLUSH && command.nsid === NSID_ALL) {
      await Promise.all(subsystem.namespaces.map((ns) => executeIo(command, ns, hostId, data)));
      return 0n;
    }
    const ns = expectNamespace(controller, command);
    await (isReservationCommand(command) ? executeReservation : executeIo)(command, ns, hostId, data);
    return 0n;
  }

  async #executeFabrics(command: NvmeCommand, data: CommandData): Promise<bigint> {
    const connected = this.#connected;
    if (command.fctype === FCTYPE.CONNECT) return this.#connect(command, data);
    if (connected === undefined) throw refuse(STATUS.INVALID_OPCODE);
    if (command.fctype === FCTYPE.AUTHENTICATION_SEND || command.fctype === FCTYPE.AUTHENTICATION_RECEIVE) {
      return this.#authenticate(command, data, connected);
    }
    this.#expectAuthenticated();
    const { controller, request } = connected;
    if (request.qid !== 0) throw refuse(STATUS.INVALID_OPCODE);
    const bytes = (command.bytes[40] & 1) === 1 ? 8 : 4;
    const offset = command.bytes.readUInt32LE(44);
    switch (command.fctype) {
      case FCTYPE.PROPERTY_GET:
        return controller.properties.get(offset, bytes);
      case FCTYPE.PROPERTY_SET:
        controller.properties.set(offset, bytes, command.bytes.readBigUInt64LE(48));
        return 0n;
      default:
        throw refuse(STATUS.INVALID_OPCODE);
    }
  }

  async #connect(command: NvmeCommand, data: CommandData): Promise<bigint> {
    if (this.#connected !== undefined) throw refuse(STATUS.COMMAND_SEQUENCE_ERROR);
    const request = readConnect(command, await data.fetch(CONNECT_DATA_BYTES));
    if (this.#ended) throw refuse(STATUS.ABORTED);
    const controller = this.#context.connect(request, this);
    const authentication = this.#context.authentication(request, this);
    this.#connected = { controller, request, authentication, isAdmitted: false };
    if (authentication !== undefined) return BigInt(controller.id | AUTHENTICATION_REQUIRED);
    try {
      this.#admit(this.#connected);
    } catch (error) {
      this.#connected = undefined;
      throw error;
    }
    return BigInt(controller.id);
  }

  #admit(connected: Connected): void {
    this.#context.admit(connected.controller, connected.request, this);
    connected.isAdmitted = true;
    this.#cancelLimit();
  }

  #expectAuthenticated(): void {
    if (!this.isConnected) throw refuse(STATUS.AUTHENTICATION_REQUIRED);
  }

  async #authenticate(command: NvmeCommand, data: CommandData, connected: Connected): Promise<bigint> {
    const { authentication } = connected;
    if (authentication === undefined) throw refuse(STATUS.INVALID_OPCODE);
    const length = authenticationBytes(command);
    if (command.fctype === FCTYPE.AUTHENTICATION_SEND) {
      const bytes = await data.fetch(length);
      await authentication.onMessage(Buffer.from(bytes.buffer, bytes.byteOffset, length));
    } else {
      const message = authentication.fetch();
      if (message === undefined) throw refuse(STATUS.COMMAND_SEQUENCE_ERROR);
      if (message.length > length) throw refuse(STATUS.INVALID_FIELD);
      await data.give(message, length);
    }
    if (authentication.isAuthenticated && !connected.isAdmitted && !this.#ended) this.#admit(connected);
    return 0n;
  }
}
