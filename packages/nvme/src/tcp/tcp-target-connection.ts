/** The target's end of NVMe/TCP: write data comes in the capsule or after an R2T, read data goes in C2HData. */

import { type Clock, RoceError } from 'rocev2/internal/core';
import type { ByteStream, DataBuffer, FairPool } from 'rocev2/internal/storage-rpc';
import type { TlsNames } from '../auth/tls-key.js';
import { encodeCompletion, NvmeCommand } from '../capsule.js';
import { IN_CAPSULE_BYTES } from '../identify.js';
import { TRANSFER_BYTES_MAX } from '../io-commands.js';
import { QUEUE_ENTRIES_MAX } from '../properties.js';
import type { DataPlace } from '../sgl.js';
import { NvmeStatusError, STATUS } from '../status.js';
import type { IncomingCapsule, TargetConnection, TargetReply } from '../target-connection.js';
import { type MemoryUser, memoryUse } from '../target-memory.js';
import {
  CAPSULE_CMD_BYTES,
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
} from './pdu.js';
import { type PduForm, PduReader } from './pdu-reader.js';

const H2C_DATA_BYTES_MAX = TRANSFER_BYTES_MAX;

/** A host that does not read its answers is no longer read from. */
const UNSENT_MAX = 2 * QUEUE_ENTRIES_MAX;

const FORMS: ReadonlyMap<number, PduForm> = new Map([
  [PDU.IC_REQ, { headerBytes: IC_BYTES, dataBytesMax: 0 }],
  [PDU.CAPSULE_CMD, { headerBytes: CAPSULE_CMD_BYTES, dataBytesMax: IN_CAPSULE_BYTES }],
  [PDU.H2C_DATA, { headerBytes: SHORT_BYTES, dataBytesMax: H2C_DATA_BYTES_MAX }],
  [PDU.H2C_TERM_REQ, { headerBytes: SHORT_BYTES, dataBytesMax: 128 }],
]);

interface Transfer {
  readonly id: number;
  readonly into: Buffer;
  readonly sinceNs: number;
  received: number;
  isDamaged: boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class TcpTargetConnection implements TargetConnection, MemoryUser {
  readonly transport = 'tcp';
  readonly remote: string;
  readonly proven: TlsNames | undefined;
  readonly qid = undefined;
  readonly depthMax = QUEUE_ENTRIES_MAX;
  readonly external = 'transport';
  onCapsule: (capsule: IncomingCapsule) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  readonly #memory: ReturnType<FairPool['join']>;
  readonly #clock: Clock;
  readonly #reader: PduReader;
  readonly #transfers = new Map<number, Transfer>();
  readonly #unsent = new Set<() => void>();
  #digests: Digests = NO_DIGESTS;
  #alignment = 4;
  #isInitialized = false;
  /** When the host took the last reply, or the first of those that it has not taken was sent. */
  #takenNs = 0;
  #nextTag = 0;
  #ended = false;

  constructor(
    stream: ByteStream,
    remote: string,
    { memory, clock }: { readonly memory: FairPool; readonly clock: Clock },
    proven?: TlsNames,
  ) {
    this.#stream = stream;
    this.remote = remote;
    this.proven = proven;
    this.#clock = clock;
    this.#memory = memory.join(...memoryUse(this));
    this.#reader = new PduReader({
      forms: FORMS,
      place: (header, bytes) => this.#place(header, bytes),
      onPdu: (header, data, isIntact) => this.#onPdu(header, data, isIntact),
      onMalformed: (status, header) => this.#refuse(status, header),
    });
    stream.onData = (bytes) => this.#reader.feed(bytes);
    stream.onClose = (error) => this.fail(error);
  }

  /** A transfer must be complete in time, so that its host cannot extend it byte by byte. */
  get stuckSinceNs(): number {
    const [transfer] = this.#transfers.values();
    const takenNs = this.#unsent.size > 0 ? this.#takenNs : Number.POSITIVE_INFINITY;
    return Math.min(takenNs, transfer?.sinceNs ?? Number.POSITIVE_INFINITY);
  }

  buffer(bytes: number): DataBuffer | Promise<DataBuffer> {
    return this.#memory.lease(bytes);
  }

  async pull(command: NvmeCommand, place: DataPlace, into: DataBuffer): Promise<void> {
    if (this.#ended) throw closedError();
    const { bytes } = into;
    const tag = this.#nextTag;
    this.#nextTag = (tag + 1) & 0xffff;
    const transfer = await new Promise<Transfer>((resolve, reject) => {
      const begun: Transfer = {
        id: command.id,
        into: Buffer.from(bytes.buffer, bytes.byteOffset, place.length),
        sinceNs: this.#clock.nowNs(),
        received: 0,
        isDamaged: false,
        resolve: () => resolve(begun),
        reject,
      };
      this.#transfers.set(tag, begun);
      const specific = encodeDataFields({ id: command.id, tag, offset: 0, length: place.length });
      this.#send({ type: PDU.R2T, specific });
    });
    if (transfer.isDamaged) throw new NvmeStatusError(STATUS.TRANSIENT_TRANSPORT_ERROR);
  }

  reply({ place, completion, data }: TargetReply): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const { id, sqHead, status } = completion;
    const response: PduParts = { type: PDU.CAPSULE_RESP, specific: encodeCompletion(completion) };
    return new Promise((resolve) => {
      const done = () => {
        this.#unsent.delete(done);
        this.#takenNs = this.#clock.nowNs();
        if (this.#unsent.size === UNSENT_MAX && !this.#ended) this.#stream.resume();
        resolve();
      };
      if (this.#unsent.size === 0) this.#takenNs = this.#clock.nowNs();
      this.#unsent.add(done);
      if (this.#unsent.size > UNSENT_MAX) this.#stream.pause();
      if (data === undefined) {
        this.#send(response, done);
        return;
      }
      // Without flow control of the submission queue the response would carry no information.
      const isAll = sqHead === 0xffff && status === STATUS.SUCCESS && completion.result === 0n;
      const flags = isAll ? PDU_FLAG.LAST | PDU_FLAG.SUCCESS : PDU_FLAG.LAST;
      const specific = encodeDataFields({ id, tag: 0, offset: 0, length: place.length });
      const bytes = data.bytes.subarray(0, place.length);
      this.#send({ type: PDU.C2H_DATA, flags, specific, data: bytes }, isAll ? done : undefined);
      if (!isAll) this.#send(response, done);
    });
  }

  fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reader.stop();
    this.onFailure(error);
    for (const { reject } of this.#transfers.values()) reject(error);
    this.#transfers.clear();
    for (const done of [...this.#unsent]) done();
    this.#memory.leave();
  }

  async close(): Promise<void> {
    this.fail(closedError());
    this.#stream.destroy();
  }

  #send(parts: PduParts, onSent?: () => void): void {
    this.#stream.write(encodePdu(parts, this.#digests, this.#alignment), onSent);
  }

  /** Data of H2CData goes to its place at once; that of capsules and terminations is theirs. */
  #place(header: Buffer, bytes: number): Buffer | undefined {
    if (header[0] !== PDU.H2C_DATA) return Buffer.allocUnsafe(bytes);
    const { id, tag, offset, length } = decodeDataFields(header);
    const transfer = this.#transfers.get(tag);
    if (transfer === undefined || transfer.id !== id || length !== bytes) {
      this.#refuse(FES.INVALID_HEADER, header);
      return undefined;
    }
    if (offset !== transfer.received || length > transfer.into.length - offset) {
      this.#refuse(FES.DATA_OUT_OF_RANGE, header);
      return undefined;
    }
    return transfer.into.subarray(offset, offset + length);
  }

  #onPdu(header: Buffer, data: Buffer, isIntact: boolean): void {
    const type = header[0];
    if (this.#isInitialized === (type === PDU.IC_REQ) && type !== PDU.H2C_TERM_REQ) {
      this.#refuse(FES.SEQUENCE, header);
      return;
    }
    switch (type) {
      case PDU.IC_REQ:
        this.#onInitialize(header);
        return;
      case PDU.CAPSULE_CMD:
        this.onCapsule({
          command: new NvmeCommand(Buffer.from(header.subarray(COMMON_BYTES))),
          data,
          isDamaged: !isIntact,
          release: () => {},
        });
        return;
      case PDU.H2C_DATA:
        this.#onData(header, data.length, isIntact);
        return;
      default:
        this.fail(new RoceError('ERR_ROCE_CONNECT', `the host ended the connection: status ${header.readUInt16LE(8)}`));
    }
  }

  #onInitialize(header: Buffer): void {
    const { version, alignment, digests } = decodeInitialize(header);
    if (version !== 0 || alignment > 31) {
      this.#refuse(FES.UNSUPPORTED, header);
      return;
    }
    const specific = encodeInitialize({ version: 0, alignment: 0, digests, limit: H2C_DATA_BYTES_MAX });
    this.#send({ type: PDU.IC_RESP, specific });
    this.#digests = digests;
    this.#reader.digests = digests;
    this.#alignment = 4 * (1 + alignment);
    this.#isInitialized = true;
  }

  #onData(header: Buffer, bytes: number, isIntact: boolean): void {
    const { tag } = decodeDataFields(header);
    const transfer = this.#transfers.get(tag);
    if (transfer === undefined || bytes === 0) {
      this.#refuse(FES.INVALID_HEADER, header);
      return;
    }
    transfer.received += bytes;
    transfer.isDamaged ||= !isIntact;
    if (transfer.received < transfer.into.length) return;
    this.#transfers.delete(tag);
    transfer.resolve();
  }

  #refuse(status: number, header: Buffer): void {
    if (this.#ended) return;
    this.#stream.write(encodeTermination(PDU.C2H_TERM_REQ, status, header));
    this.fail(new RoceError('ERR_ROCE_MISMATCH', `the host sent a PDU that cannot be: fatal error status ${status}`));
  }
}

function closedError(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
}
