/**
 * The export of an NBD server as a disk. Missing features are emulated: FUA by FLUSH, zeroing by writing zeros. If the
 * connection breaks, every request fails with EIO.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import PQueue from 'p-queue';
import { checkText } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockExtent,
  checkRange,
  type WriteOptions,
  type WriteZeroesOptions,
} from '../disk/block-device.js';
import { parseNbdUri } from './nbd-uri.js';
import { ByteQueue } from './protocol/byte-queue.js';
import { ClientNegotiation, type RemoteExport } from './protocol/client-negotiation.js';
import { type ClientOutcome, type ClientRequest, NbdClientSession } from './protocol/nbd-client-session.js';
import * as wire from './protocol/wire.js';
import { clientCredentials, connectTls } from './tls/client-tls.js';

const CONNECT_TIMEOUT_MS = 5_000;
const REQUESTS_MAX = 64;
const ZERO_BYTES = 1 << 20;
/** Requests without payload: where lengths have 32 bits they stay multiples of any block size. */
const RANGE_BYTES_MAX = 1 << 30;
const EXTENDED_RANGE_BYTES_MAX = 2 ** 40;

/** A client of one export. */
export class NbdDevice implements BlockDevice {
  readonly #socket: Socket;
  readonly #remote: RemoteExport;
  readonly #session: NbdClientSession;
  readonly #queue = new PQueue({ concurrency: REQUESTS_MAX });
  #failure: BlockDeviceError | undefined;

  private constructor(socket: Socket, remote: RemoteExport, input: ByteQueue) {
    this.#socket = socket;
    this.#remote = remote;
    this.#session = new NbdClientSession(remote);
    socket.on('data', (bytes: Buffer) => {
      input.push(bytes);
      try {
        this.#session.receive(input);
      } catch (error) {
        this.#fail((error as Error).message);
      }
    });
    socket.on('error', (error) => this.#fail(`the connection to the NBD server broke: ${error.message}`));
    socket.on('close', () => this.#fail('the NBD server closed the connection'));
  }

  /**
   * Connects to the export a URI names. Rejects with ERR_ROCE_CONNECT, ERR_ROCE_MISMATCH or ERR_ROCE_NOT_FOUND, and
   * with ERR_ROCE_IO or ERR_ROCE_MALFORMED for certificates and keys that cannot be used.
   */
  static async open(uri: string): Promise<NbdDevice> {
    checkText('uri', uri);
    const { address, exportName, tls } = parseNbdUri(uri);
    const credentials = tls && (await clientCredentials(tls));
    const socket = connect(address);
    socket.on('error', () => {});
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), CONNECT_TIMEOUT_MS);
    const input = new ByteQueue();
    try {
      socket.setNoDelay(true);
      const negotiation = new ClientNegotiation(exportName, (bytes) => stream.write(bytes), tls !== undefined);
      let stream = socket;
      let agreed = await negotiate(stream, negotiation, input);
      if (agreed === 'starttls') {
        stream = await connectTls(socket, credentials!);
        negotiation.secured();
        agreed = await negotiate(stream, negotiation, input);
      }
      return new NbdDevice(stream, agreed as RemoteExport, input);
    } catch (error) {
      socket.destroy();
      if (error instanceof RoceError) throw error;
      const message = `cannot use ${uri}: ${(error as Error).message}`;
      throw new RoceError('ERR_ROCE_CONNECT', message, 'is the NBD server running?', { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whole blocks: a server does not accept requests for a part of the last one. */
  get sizeBytes(): number {
    const { sizeBytes, blockBytes } = this.#remote;
    return sizeBytes - (sizeBytes % blockBytes);
  }

  /** Bytes after the last whole block: no request can reach them. */
  get unusedBytes(): number {
    return this.#remote.sizeBytes - this.sizeBytes;
  }

  /** Whether the export is read-only. */
  get readOnly(): boolean {
    return this.#can(wire.READ_ONLY);
  }

  get blockBytes(): number {
    return this.#remote.blockBytes;
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    checkRange(this, offset, length, 'EINVAL', into);
    await inPieces(into.subarray(0, length), this.#payloadBytesMax, async (piece, at) => {
      await this.#request({
        type: wire.CMD_READ,
        offset: offset + at,
        lengthBytes: piece.length,
        into: piece,
      });
    });
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    this.#checkWritable(offset, data?.length, data);
    const fua = options?.fua === true;
    const canFua = this.#can(wire.SEND_FUA);
    await inPieces(data, this.#payloadBytesMax, async (piece, at) => {
      const flags = fua && canFua ? wire.CMD_FLAG_FUA : 0;
      await this.#request({ type: wire.CMD_WRITE, flags, offset: offset + at, lengthBytes: piece.length }, piece);
    });
    if (fua && !canFua) await this.flush();
  }

  /** A server that does not offer FLUSH promises no durability. */
  async flush(): Promise<void> {
    if (this.#can(wire.SEND_FLUSH)) await this.#request({ type: wire.CMD_FLUSH, offset: 0, lengthBytes: 0 });
    else this.#checkAlive();
  }

  async trim(offset: number, length: number): Promise<void> {
    checkRange(this, offset, length, 'EINVAL');
    this.#checkAlive();
    if (!this.#can(wire.SEND_TRIM)) return;
    await this.#inRanges(offset, length, async (start, lengthBytes) => {
      await this.#request({ type: wire.CMD_TRIM, offset: start, lengthBytes });
    });
  }

  /** Has an effect if the server supports such hints. */
  async prefetch(offset: number, length: number): Promise<void> {
    checkRange(this, offset, length, 'EINVAL');
    this.#checkAlive();
    if (!this.#can(wire.SEND_CACHE)) return;
    await this.#inRanges(offset, length, async (start, lengthBytes) => {
      await this.#request({ type: wire.CMD_CACHE, offset: start, lengthBytes });
    });
  }

  async writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    this.#checkWritable(offset, length);
    const canZero = this.#can(wire.SEND_WRITE_ZEROES);
    const isFast = options?.fast === true;
    if (isFast && !(this.#can(wire.SEND_FAST_ZERO) && length <= this.#rangeBytesMax)) {
      throw new BlockDeviceError('ENOTSUP', 'the NBD server does not report which operations are fast');
    }
    const flags = (options?.noHole === true ? wire.CMD_FLAG_NO_HOLE : 0) | (isFast ? wire.CMD_FLAG_FAST_ZERO : 0);
    await this.#inRanges(offset, length, async (start, lengthBytes) => {
      if (canZero) await this.#request({ type: wire.CMD_WRITE_ZEROES, flags, offset: start, lengthBytes });
      else await this.#writeZeros(start, lengthBytes);
    });
    if (options?.fua === true) await this.flush();
  }

  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    checkRange(this, offset, length, 'EINVAL');
    this.#checkAlive();
    if (this.#remote.allocationContextId === undefined) return [{ lengthBytes: length, hole: false, zero: false }];
    const all: BlockExtent[] = [];
    for (let at = 0; at < length; ) {
      const lengthBytes = Math.min(length - at, this.#rangeBytesMax);
      const { extents } = await this.#request({ type: wire.CMD_BLOCK_STATUS, offset: offset + at, lengthBytes });
      for (const extent of extents) {
        const shown = Math.min(extent.lengthBytes, length - at);
        if (shown > 0) all.push({ ...extent, lengthBytes: shown });
        at += shown;
      }
      if (extents.length === 0) throw new BlockDeviceError('EIO', 'the NBD server gives no extents');
    }
    return all;
  }

  async close(): Promise<void> {
    await this.#queue.onIdle();
    if (this.#failure === undefined) {
      await this.flush().catch(() => {});
      this.#failure = new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
      this.#socket.end(this.#session.submit({ type: wire.CMD_DISC, offset: 0, lengthBytes: 0 }, () => {}));
    }
    if (!this.#socket.closed) {
      this.#socket.resume();
      const timer = setTimeout(() => this.#socket.destroy(), CONNECT_TIMEOUT_MS);
      await once(this.#socket, 'close').catch(() => {});
      clearTimeout(timer);
    }
    this.#failure = new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #payloadBytesMax(): number {
    return this.#remote.payloadBytesMax;
  }

  get #rangeBytesMax(): number {
    return this.#remote.extendedHeaders ? EXTENDED_RANGE_BYTES_MAX : RANGE_BYTES_MAX;
  }

  async #inRanges(
    offset: number,
    length: number,
    work: (offset: number, lengthBytes: number) => Promise<void>,
  ): Promise<void> {
    const max = this.#rangeBytesMax;
    for (let at = 0; at < length; at += max) await work(offset + at, Math.min(max, length - at));
  }

  #can(flag: number): boolean {
    return (this.#remote.flags & flag) !== 0;
  }

  #checkAlive(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #checkWritable(offset: number, length: number, ...memory: readonly [Uint8Array?]): void {
    checkRange(this, offset, length, 'ENOSPC', ...memory);
    if (this.#can(wire.READ_ONLY)) throw new BlockDeviceError('EPERM', 'the NBD export is read-only');
  }

  async #writeZeros(offset: number, length: number): Promise<void> {
    const zeros = new Uint8Array(Math.min(length, ZERO_BYTES));
    for (let at = 0; at < length; at += zeros.length) {
      await this.write(offset + at, zeros.subarray(0, Math.min(zeros.length, length - at)));
    }
  }

  #request(request: ClientRequest, data?: Uint8Array): Promise<ClientOutcome> {
    return this.#queue.add(
      () =>
        new Promise<ClientOutcome>((resolve, reject) => {
          if (this.#failure !== undefined) {
            reject(this.#failure);
            return;
          }
          const header = this.#session.submit(request, (outcome) => {
            if (outcome.error === undefined) resolve(outcome);
            else reject(outcome.error);
          });
          this.#socket.cork();
          this.#socket.write(header);
          if (data !== undefined) this.#socket.write(data);
          this.#socket.uncork();
        }),
    );
  }

  #fail(why: string): void {
    this.#failure ??= new BlockDeviceError('EIO', why);
    this.#socket.destroy();
    this.#session.fail(this.#failure);
  }
}

/** Bytes past it stay in `input`. */
function negotiate(
  socket: Socket,
  negotiation: ClientNegotiation,
  input: ByteQueue,
): Promise<RemoteExport | 'starttls'> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new Error('the server closed the connection'));
    const onData = (bytes: Buffer) => {
      input.push(bytes);
      try {
        const outcome = negotiation.advance(input);
        if (outcome === undefined) return;
        if (outcome === 'starttls') socket.pause();
        socket.off('data', onData).off('error', reject).off('close', onClose);
        resolve(outcome);
      } catch (error) {
        reject(error);
      }
    };
    socket.on('data', onData).once('error', reject).once('close', onClose);
  });
}

/** Settles when the last has, so that the bytes are then free. */
async function inPieces(
  bytes: Uint8Array,
  pieceBytes: number,
  work: (piece: Uint8Array, at: number) => Promise<void>,
): Promise<void> {
  const works: Promise<void>[] = [];
  for (let at = 0; at < bytes.length || at === 0; at += pieceBytes) {
    works.push(work(bytes.subarray(at, at + pieceBytes), at));
  }
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}
