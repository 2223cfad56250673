/**
 * Over a connection: small bodies are part of the SEND. Large ones stay in the sender's memory: the SEND has their
 * address, the receiver reads them when it has room, and confirms that.
 */

import type { Connection } from 'rocev2/internal/cm';
import { checkKind, type FairClient, Permits, RoceError } from 'rocev2/internal/core';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { Access, type MemoryRegion } from 'rocev2/internal/verbs';
import { AnswerMemory, Body, type ServerMemory } from './body-memory.js';
import { BULK, broken, type Frame, HEADER_BYTES, HELLO, RELEASE, readFrame, writeFrame } from './frame.js';
import { RegionCache } from './region-cache.js';
import type { RpcStream } from './rpc-stream.js';

/** What carries an RPC: a connection, or a byte stream ({@link rpcOverStream}). */
export type RpcCarrier = Connection | RpcStream;

/** Limits that one side sets for its peer. */
export interface RpcLimits {
  /** Most concurrent calls, 1 to 65,535. Further calls wait at the caller. Default 64. */
  readonly callsMax?: number | undefined;
  /** Most unread items of one stream, 1 to 65,535. Default 16. */
  readonly itemsMax?: number | undefined;
  /** Longest encoded value in bytes. Default 16 MiB. */
  readonly valueBytesMax?: number | undefined;
  /** Most bytes of large values in flight, in each direction. Default 64 MiB. */
  readonly bulkBytesMax?: number | undefined;
  /**
   * Most items of arrays and fields of objects of one received value, all levels together. Byte arrays count as one.
   * Default 65,536.
   */
  readonly elementsMax?: number | undefined;
}

export function checkCarrier(carrier: RpcCarrier): void {
  const isCarrier = typeof carrier?.claim === 'function';
  checkKind('the connection', carrier, isCarrier, 'a Connection, or what rpcOverStream() returns');
}

export type Limits = { readonly [K in keyof RpcLimits]-?: number };

/** Errors that they throw end the link. */
export interface LinkEvents {
  onHello(peer: Limits): void;
  onFrame(frame: Frame, body: () => Promise<Body>): void;
  onEnd(error: Error): void;
}

interface Pools {
  readonly messages: RegionCache;
  readonly lent: RegionCache;
  readonly read: RegionCache;
}

const MESSAGE_REGION_BYTES = 1024;
const BULK_REGION_BYTES = 65_536;
/**
 * Bytes of one READ. A connection has one in flight: so what comes from many peers at once, as when a lost fragment is
 * made of six others, fits into the port of a switch, and bodies of one connection take turns (Bai et al., NSDI'23,
 * section 3).
 */
const CHUNK_BYTES = 65_536;

export class RpcLink {
  readonly carrier: RpcCarrier;
  readonly #lender: Connection | undefined;
  readonly #pools: Pools | undefined;
  /** Messages that wait for memory, in order: all later ones also wait. */
  #order: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  readonly #limits: Limits;
  readonly #events: LinkEvents;
  readonly #memory: FairClient | undefined;
  readonly #answers: FairClient | undefined;
  readonly #answerBytesMax: number;
  /** Answers that were sent and that the peer does not have, and when it took the last one. */
  #untaken = 0;
  #takenNs = 0;
  readonly #sendBulk: Permits;
  readonly #readBulk: Permits;
  readonly #chunks = new Permits(1);
  readonly #lent = new Map<
    number,
    { readonly region: MemoryRegion; readonly length: number; readonly onTaken: () => void }
  >();
  #nextBulk = 1;
  #peer: Limits | undefined;
  #end: Error | undefined;

  /** `memory`: that of bodies and answers. Undefined: they are bounded by the calls of this side. */
  constructor(carrier: RpcCarrier, limits: Limits, events: LinkEvents, memory?: ServerMemory) {
    carrier.claim('an RPC');
    this.carrier = carrier;
    if ('qp' in carrier) {
      this.#lender = carrier;
      this.#pools = {
        messages: new RegionCache(carrier, 0, MESSAGE_REGION_BYTES),
        lent: new RegionCache(carrier, Access.REMOTE_READ, BULK_REGION_BYTES),
        read: new RegionCache(carrier, Access.LOCAL_WRITE, BULK_REGION_BYTES),
      };
    } else carrier.bodyBytesMax = limits.valueBytesMax;
    this.#memory = memory && this.#joinBodies(memory);
    this.#answers = memory && this.#joinAnswers(memory);
    this.#answerBytesMax = memory?.answerBytesMax ?? 0;
    this.#limits = limits;
    this.#events = events;
    this.#sendBulk = new Permits(limits.bulkBytesMax);
    this.#readBulk = new Permits(limits.bulkBytesMax);
    const { callsMax, itemsMax, valueBytesMax } = limits;
    this.post({ kind: HELLO, a: callsMax, b: itemsMax, length: valueBytesMax });
    void this.#serve();
  }

  #joinBodies({ bodies }: ServerMemory): FairClient {
    const { carrier } = this;
    const onStuck = () => this.fail(broken('it did not complete a body in time, and others waited'));
    const stuckSinceNs = () => ('qp' in carrier ? Number.POSITIVE_INFINITY : carrier.stuckSinceNs);
    const client = bodies.join({ stuckSinceNs, onStuck }, this.#network);
    if (!('qp' in carrier)) {
      carrier.isTimed = true;
      carrier.beforeBody = (bytes) => client.take(Body.costOf(bytes, this.#limits.elementsMax));
      carrier.onBodyLost = (bytes) => client.give(Body.costOf(bytes, this.#limits.elementsMax));
    }
    return client;
  }

  #joinAnswers({ answers }: ServerMemory): FairClient {
    const onStuck = () => this.fail(broken('it did not take its answers in time, and others waited'));
    const stuckSinceNs = () => (this.#untaken === 0 ? Number.POSITIVE_INFINITY : this.#takenNs);
    return answers.join({ stuckSinceNs, onStuck }, this.#network);
  }

  get #network(): string | undefined {
    const { carrier } = this;
    return 'qp' in carrier ? carrier.agreement.peer.network : carrier.network;
  }

  get end(): Error | undefined {
    return this.#end;
  }

  post(frame: Partial<Frame>): void {
    this.#send(frame).catch((error: Error) => this.fail(error));
  }

  async #send(frame: Partial<Frame>, parts: readonly Uint8Array[] = []): Promise<void> {
    const length = lengthOf(parts);
    const bytes = HEADER_BYTES + length;
    const fill = (message: Buffer) => {
      writeFrame(message, { length, ...frame });
      place(parts, message, HEADER_BYTES);
    };
    if (this.#pools !== undefined) return this.#sendRegistered(this.#pools.messages, bytes, fill);
    const message = Buffer.allocUnsafe(bytes);
    fill(message);
    await this.carrier.sendClaimed(message);
  }

  async #sendRegistered(pool: RegionCache, bytes: number, fill: (message: Buffer) => void): Promise<void> {
    const post = async (region: MemoryRegion) => {
      fill(region.bytes);
      await this.#lender!.sendClaimed(region.slice(0, bytes));
      pool.give(region);
    };
    const free = this.#waiting === 0 ? pool.takeFree(bytes) : undefined;
    if (free !== undefined) return post(free);
    this.#waiting++;
    const posted = this.#order.then(async () => ({ sent: post(await pool.take(bytes)) }));
    const goOn = () => {
      this.#waiting--;
    };
    this.#order = posted.then(goOn, goOn);
    return (await posted).sent;
  }

  newAnswer(): AnswerMemory {
    return new AnswerMemory(this.#answers, this.#answerBytesMax);
  }

  /** Sends a part of an answer when there is memory for it. The memory is in use until the peer has the part. */
  async answer(frame: Partial<Frame>, parts: readonly Uint8Array[], memory: AnswerMemory): Promise<void> {
    const granted = memory.resize(lengthOf(parts));
    if (granted !== undefined) await granted;
    if (this.#untaken++ === 0) this.#takenNs = SYSTEM_CLOCK.nowNs();
    let isTaken = false;
    const onTaken = () => {
      if (isTaken) return;
      isTaken = true;
      this.#untaken--;
      this.#takenNs = SYSTEM_CLOCK.nowNs();
      memory.release();
    };
    try {
      await this.send(frame, parts, onTaken);
    } catch (error) {
      onTaken();
      throw error;
    }
  }

  /**
   * Resolves when the peer's NIC has the body, or its address. The parts may change after this resolves. `onTaken` is
   * called when the peer has the body, or the link has ended.
   */
  async send(frame: Partial<Frame>, parts: readonly Uint8Array[], onTaken = nothing): Promise<void> {
    const length = lengthOf(parts);
    const max = this.#peer?.valueBytesMax ?? 0;
    if (length > max) {
      const message = `a value of ${length} bytes, encoded, is longer than the ${max} that the peer accepts`;
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        message,
        'send it in pieces, as a stream, or let the peer raise `valueBytesMax`',
      );
    }
    if (this.#lender === undefined || HEADER_BYTES + length <= this.#lender.sendBytesMax) {
      await this.#send(frame, parts);
      onTaken();
      return;
    }
    await this.#sendBulk.take(length);
    if (this.#end !== undefined) throw this.#end;
    const region = await this.#pools!.lent.take(length);
    place(parts, region.bytes, 0);
    const number = this.#nextBulk;
    this.#nextBulk = (number % 0xffff_ffff) + 1;
    this.#lent.set(number, { region, length, onTaken });
    const { rkey, addr } = region;
    return this.#send({ ...frame, flags: BULK, b: number, length, rkey, addr });
  }

  async #serve(): Promise<void> {
    try {
      for (;;) {
        const message = await this.carrier.nextMessage();
        const frame = readFrame(message.data);
        const length = message.data.length - HEADER_BYTES;
        const cost = length === 0 ? 0 : Body.costOf(length, this.#limits.elementsMax);
        const isTaken = !('qp' in this.carrier); // Before the body was received.
        const granted = cost > 0 && !isTaken ? this.#memory?.take(cost) : undefined;
        if (granted !== undefined) await granted;
        const bytes = isTaken ? message.data.subarray(HEADER_BYTES) : Buffer.from(message.data.subarray(HEADER_BYTES));
        const inline = new Body(bytes, this.#limits.elementsMax, this.#memory, cost);
        message.release();
        this.#onFrame(frame, inline);
      }
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #onFrame(frame: Frame, inline: Body): void {
    if ((this.#peer === undefined) !== (frame.kind === HELLO))
      throw broken(`it sent a frame of kind ${frame.kind} at the wrong time`);
    if (frame.kind === HELLO) {
      if (frame.a < 1 || frame.b < 1) throw broken('its HELLO has a limit of 0');
      const { bulkBytesMax, elementsMax } = this.#limits;
      this.#peer = { callsMax: frame.a, itemsMax: frame.b, valueBytesMax: frame.length, bulkBytesMax, elementsMax };
      this.#events.onHello(this.#peer);
      return;
    }
    if (frame.kind === RELEASE) {
      this.#onRelease(frame.a);
      return;
    }
    if (frame.length > this.#limits.valueBytesMax)
      throw broken(`it sent a body of ${frame.length} bytes, which is too long`);
    if (frame.flags !== BULK) this.#events.onFrame(frame, () => Promise.resolve(inline));
    else if (this.#lender !== undefined) this.#events.onFrame(frame, () => this.#read(frame));
    else throw broken('it lends memory over a byte stream');
  }

  #onRelease(number: number): void {
    const lent = this.#lent.get(number);
    if (lent === undefined) throw broken('it released a body that is not in use');
    this.#lent.delete(number);
    this.#pools!.lent.give(lent.region);
    this.#sendBulk.give(lent.length);
    lent.onTaken();
  }

  async #read({ addr, rkey, length, b }: Frame): Promise<Body> {
    const { read } = this.#pools!;
    const { elementsMax } = this.#limits;
    const cost = Body.costOf(length, elementsMax);
    const granted = this.#memory?.take(cost);
    if (granted !== undefined) await granted;
    await this.#readBulk.take(length);
    const done = () => this.#readBulk.give(length);
    try {
      if (this.#end !== undefined) throw this.#end;
      const region = await read.take(length);
      for (let at = 0; at < length; at += CHUNK_BYTES) {
        await this.#chunks.take(1);
        const chunk = region.slice(at, Math.min(CHUNK_BYTES, length - at));
        await this.#lender!.readClaimed(chunk, addr + BigInt(at), rkey).finally(() => this.#chunks.give(1));
      }
      const body = new Body(Buffer.from(region.bytes.subarray(0, length)), elementsMax, this.#memory, cost);
      read.give(region);
      // Without room for messages at the peer, no more bodies are read; this one is here.
      this.#send({ kind: RELEASE, a: b }).then(done, (error: Error) => {
        done();
        this.fail(error);
      });
      return body;
    } catch (error) {
      done();
      this.#memory?.give(cost);
      throw error;
    }
  }

  fail(error: Error): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#sendBulk.freeAll();
    this.#readBulk.freeAll();
    this.#memory?.leave();
    this.#answers?.leave();
    this.#events.onEnd(error);
    void this.close();
  }

  async close(): Promise<void> {
    await this.carrier.close().catch(() => {});
    this.fail(new RoceError('ERR_ROCE_CLOSED', 'the RPC is closed'));
    if (this.#pools !== undefined) for (const pool of Object.values(this.#pools) as RegionCache[]) pool.dispose();
    for (const { onTaken } of this.#lent.values()) onTaken();
    this.#lent.clear();
  }
}

function nothing(): void {}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function place(parts: readonly Uint8Array[], into: Buffer, from: number): void {
  let at = from;
  for (const part of parts) {
    into.set(part, at);
    at += part.length;
  }
}
