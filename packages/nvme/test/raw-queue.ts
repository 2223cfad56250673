/** A queue of a host that sends what a test says, command by command. */

import { CNTLID_DYNAMIC, type ConnectRequest, writeConnect } from '../src/fabrics.js';
import { HostQueue, type HostRequest } from '../src/host/host-queue.js';
import { TcpHostConnection } from '../src/host/tcp-host-connection.js';
import { FCTYPE, OP_FABRICS, PROPERTY } from '../src/opcodes.js';
import { NvmeStatusError } from '../src/status.js';
import { NO_DIGESTS } from '../src/tcp/pdu.js';
import { HOST_NQN, NQN, type TcpWorld } from './world.js';

export class RawQueue {
  readonly queue: HostQueue;
  readonly #world: TcpWorld;

  constructor(world: TcpWorld, queue: HostQueue) {
    this.#world = world;
    this.queue = queue;
  }

  static async open(world: TcpWorld, portId?: number, from?: string): Promise<RawQueue> {
    const connection = await world.until(TcpHostConnection.over(world.pipe(portId, from), NO_DIGESTS));
    connection.inCapsuleBytes = 8192;
    return new RawQueue(world, new HostQueue(connection, 33));
  }

  /** An admin queue whose controller is enabled. */
  static async admin(
    world: TcpWorld,
    request: Partial<ConnectRequest> = {},
    portId?: number,
    from?: string,
  ): Promise<RawQueue & { cntlid: number }> {
    const queue = await RawQueue.open(world, portId, from);
    const cntlid = await queue.connect(request);
    await queue.enable(0x0046_0001);
    return Object.assign(queue, { cntlid });
  }

  /** Dword 0 of the answer. Rejects with NvmeStatusError. */
  async send(request: HostRequest): Promise<number> {
    const { result } = await this.#world.until(this.queue.execute(request));
    return Number(result & 0xffff_ffffn);
  }

  /** The status of the answer; 0 is success. */
  async status(request: HostRequest): Promise<number> {
    return statusOf(this.send(request));
  }

  connect(request: Partial<ConnectRequest> = {}): Promise<number> {
    const fields = Buffer.alloc(64);
    const out = writeConnect(fields, {
      qid: 0,
      entries: 32,
      noSqFlow: false,
      keepAliveMs: 0,
      hostId: Buffer.alloc(16, 1),
      cntlid: CNTLID_DYNAMIC,
      subnqn: NQN,
      hostnqn: HOST_NQN,
      ...request,
    });
    const fill = (sqe: Buffer) => void fields.copy(sqe, 40, 40);
    return this.send({ opcode: OP_FABRICS, nsid: FCTYPE.CONNECT, fill, out });
  }

  async enable(configuration: number): Promise<void> {
    await this.send({
      opcode: OP_FABRICS,
      nsid: FCTYPE.PROPERTY_SET,
      dwords: [0, PROPERTY.CC, configuration],
    });
  }

  property(offset: number): Promise<number> {
    return this.send({ opcode: OP_FABRICS, nsid: FCTYPE.PROPERTY_GET, dwords: [0, offset] });
  }
}

/** The status that a command ended with; 0 is success. */
export async function statusOf(work: Promise<unknown>): Promise<number> {
  try {
    await work;
    return 0;
  } catch (error) {
    if (error instanceof NvmeStatusError) return error.status;
    throw error;
  }
}
