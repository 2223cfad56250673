import { RoceError } from 'rocev2/internal/core';
import type { ByteStream } from 'rocev2/internal/storage-rpc';
import { type Completion, CQE_BYTES, decodeCompletion } from '../capsule.js';
import { writeSgl } from '../sgl.js';
import {
  COMMON_BYTES,
  type Digests,
  decodeDataFields,
  decodeInitialize,
  encodeDataFields,
  encodeInitialize,
  encodePdu,
  encodeTermination,
  FES,
  IC_BYTES,
  NO_DIGESTS,
  PDU,
  PDU_FLAG,
  type PduParts,
  SHORT_BYTES,
} from '../tcp/pdu.js';
import { type PduForm, PduReader } from '../tcp/pdu-reader.js';
import type { HostCommand, HostConnection } from './host-connection.js';

/** One PDU brings at most the largest transfer of any controller that we accept. */
const C2H_DATA_BYTES_MAX = 16 << 20;

const FORMS: ReadonlyMap<number, PduForm> = new Map([
  [PDU.IC_RESP, { headerBytes: IC_BYTES, dataBytesMax: 0 }],
  [PDU.CAPSULE_RESP, { headerBytes: COMMON_BYTES + CQE_BYTES, dataBytesMax: 0 }],
  [PDU.C2H_DATA, { headerBytes: SHORT_BYTES, dataBytesMax: C2H_DATA_BYTES_MAX }],
  [PDU.R2T, { headerBytes: SHORT_BYTES, dataBytesMax: 0 }],
  [PDU.C2H_TERM_REQ, { headerBytes: SHORT_BYTES, dataBytesMax: 128 }],
]);

interface Pending {
  readonly command: HostCommand;
  /** Bytes of `into` that have come, or of `out` that have been requested. */
  moved: number;
  isDamaged: boolean;
}

export class TcpHostConnection implements HostConnection {
  readonly transport = 'tcp';
  inCapsuleBytes = 0;
  onCompletion: (completion: Completion) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  readonly #reader: PduReader;
  readonly #wanted: Digests;
  readonly #pending = new Map<number, Pending>();
  #digests: Digests = NO_DIGESTS;
  #alignment = 4;
  #dataBytesMax = 4096;
  #onInitialized: { resolve(): void; reject(error: Error): void } | undefined;
  #failure: Error | undefined;

  private constructor(stream: ByteStream, digests: Digests) {
    this.#stream = stream;
    this.#wanted = digests;
    this.#reader = new PduReader({
      forms: FORMS,
      place: (header, bytes) => this.#place(header, bytes),
      onPdu: (header, data, isIntact) => this.#onPdu(header, data.length, isIntact),
      onMalformed: (status, header) => this.#refuse(status, header),
    });
    stream.onData = (bytes) => this.#reader.feed(bytes);
    stream.onClose = (error) => this.fail(error);
  }

  static async over(stream: ByteStream, digests: Digests): Promise<TcpHostConnection> {
    const connection = new TcpHostConnection(stream, digests);
    const specific = encodeInitialize({ version: 0, alignment: 0, digests, limit: 0 });
    await new Promise<void>((resolve, reject) => {
      connection.#onInitialized = { resolve, reject };
      connection.#send({ type: PDU.IC_REQ, specific });
    });
    return connection;
  }

  send(command: HostCommand): void {
    if (this.#failure !== undefined) return;
    const { sqe, out, into } = command;
    const length = (out ?? into)?.length ?? 0;
    const isInCapsule = out !== undefined && length <= this.inCapsuleBytes;
    if (length === 0) writeSgl(sqe, { kind: 'none', length: 0 }, 'transport');
    else if (isInCapsule) writeSgl(sqe, { kind: 'capsule', offset: 0, length }, 'transport');
    else writeSgl(sqe, { kind: 'transport', length }, 'transport');
    this.#pending.set(sqe.readUInt16LE(2), { command, moved: 0, isDamaged: false });
    this.#send({ type: PDU.CAPSULE_CMD, specific: sqe, ...(isInCapsule && { data: out }) });
  }

  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#reader.stop();
    this.#onInitialized?.reject(error);
    this.onFailure(error);
  }

  async close(): Promise<void> {
    this.fail(new RoceError('ERR_ROCE_CLOSED', 'the connection is closed'));
    this.#stream.destroy();
  }

  #send(parts: PduParts): void {
    this.#stream.write(encodePdu(parts, this.#digests, this.#alignment));
  }

  #place(header: Buffer, bytes: number): Buffer | undefined {
    if (header[0] !== PDU.C2H_DATA) return Buffer.allocUnsafe(bytes);
    const { id, offset, length } = decodeDataFields(header);
    const pending = this.#pending.get(id);
    const into = pending?.command.into;
    if (pending === undefined || into === undefined || length !== bytes) {
      this.#refuse(FES.INVALID_HEADER, header);
      return undefined;
    }
    if (offset !== pending.moved || length > into.length - offset) {
      this.#refuse(FES.DATA_OUT_OF_RANGE, header);
      return undefined;
    }
    return Buffer.from(into.buffer, into.byteOffset + offset, length);
  }

  #onPdu(header: Buffer, bytes: number, isIntact: boolean): void {
    const type = header[0];
    const isSetUp = this.#onInitialized === undefined;
    if (type !== PDU.C2H_TERM_REQ && isSetUp === (type === PDU.IC_RESP)) {
      this.#refuse(FES.SEQUENCE, header);
      return;
    }
    switch (type) {
      case PDU.IC_RESP:
        this.#onInitialize(header);
        return;
      case PDU.CAPSULE_RESP:
        this.#complete(decodeCompletion(header.subarray(COMMON_BYTES)));
        return;
      case PDU.C2H_DATA:
        this.#onData(header, bytes, isIntact);
        return;
      case PDU.R2T:
        this.#onReadyToTransfer(header);
        return;
      default:
        this.fail(
          new RoceError('ERR_ROCE_CONNECT', `the controller ended the connection: status ${header.readUInt16LE(8)}`),
        );
    }
  }

  #onInitialize(header: Buffer): void {
    const { version, alignment, digests, limit } = decodeInitialize(header);
    const asked = this.#wanted;
    const isTooMuch = (digests.header && !asked.header) || (digests.data && !asked.data);
    if (version !== 0 || alignment > 31 || limit < 4096 || isTooMuch) {
      this.#refuse(FES.UNSUPPORTED, header);
      return;
    }
    this.#digests = digests;
    this.#reader.digests = digests;
    this.#alignment = 4 * (1 + alignment);
    this.#dataBytesMax = limit;
    const { resolve } = this.#onInitialized!;
    this.#onInitialized = undefined;
    resolve();
  }

  #onData(header: Buffer, bytes: number, isIntact: boolean): void {
    const { id } = decodeDataFields(header);
    const pending = this.#pending.get(id);
    if (pending === undefined || bytes === 0) {
      this.#refuse(FES.INVALID_HEADER, header);
      return;
    }
    pending.moved += bytes;
    pending.isDamaged ||= !isIntact;
    if ((header[1] & PDU_FLAG.SUCCESS) !== 0) this.#complete({ id, status: 0, result: 0n, sqHead: 0xffff });
  }

  #onReadyToTransfer(header: Buffer): void {
    const { id, tag, offset, length } = decodeDataFields(header);
    const out = this.#pending.get(id)?.command.out;
    if (out === undefined) {
      this.#refuse(FES.INVALID_HEADER, header);
      return;
    }
    if (length === 0 || offset + length > out.length) {
      this.#refuse(FES.DATA_OUT_OF_RANGE, header);
      return;
    }
    for (let at = offset; at < offset + length; ) {
      const part = Math.min(this.#dataBytesMax, offset + length - at);
      const isLast = at + part === offset + length;
      const specific = encodeDataFields({ id, tag, offset: at, length: part });
      const data = out.subarray(at, at + part);
      this.#send({ type: PDU.H2C_DATA, flags: isLast ? PDU_FLAG.LAST : 0, specific, data });
      at += part;
    }
  }

  #complete(completion: Completion): void {
    const pending = this.#pending.get(completion.id);
    const into = pending?.command.into;
    if (pending !== undefined && into !== undefined && completion.status === 0) {
      if (pending.isDamaged) {
        this.fail(new RoceError('ERR_ROCE_MISMATCH', 'data of the controller does not have its digest'));
        return;
      }
      if (pending.moved !== into.length) {
        const text = `the controller answered with ${pending.moved} of ${into.length} bytes`;
        this.fail(new RoceError('ERR_ROCE_MISMATCH', text));
        return;
      }
    }
    this.#pending.delete(completion.id);
    this.onCompletion(completion);
  }

  #refuse(status: number, header: Buffer): void {
    if (this.#failure !== undefined) return;
    this.#stream.write(encodeTermination(PDU.H2C_TERM_REQ, status, header));
    const text = `the controller sent a PDU that cannot be: fatal error status ${status}`;
    this.fail(new RoceError('ERR_ROCE_MISMATCH', text));
  }
}
