import { type RandomSource, readU24 } from 'rocev2/internal/core';
import {
  FRAME_OK,
  FrameInfo,
  IpAddress,
  PFC_FRAME_BYTES,
  PFC_QUANTA_MAX,
  PfcFrame,
  PRIORITIES,
  parseFrame,
  parsePfc,
  pauseNs,
  writePfc,
} from 'rocev2/internal/packet';
import {
  frameHeaderBytes,
  newRxDatagram,
  type RxDatagram,
  readFrame,
  SourceCache,
  type TxBatch,
  writeFrameHeaders,
} from 'rocev2/internal/port';
import type { FramePool } from '../switch/frame-pool.js';
import type { Cable, FrameSink, SlotSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { ReceivePipeline, type ReceivePipelineOptions } from './receive-pipeline.js';
import { SimHost } from './sim-host.js';
import type { VirtualPayload } from './virtual-payload.js';

type PacketProbe = (isSent: boolean, bytes: Uint8Array, offset: number, length: number, ecn: number) => void;

export interface StationTap {
  sent(batch: TxBatch): void;
  received(datagram: RxDatagram, takeIn: () => void): void;
}

interface SimStationOptions {
  /** 0..65535; makes the addresses. */
  readonly index: number;
  readonly events: EventQueue;
  readonly random: RandomSource;
  readonly cable: Cable;
  readonly pathMtuMax: number;
  readonly pipeline?: ReceivePipelineOptions | undefined;
  readonly carriesPayload?: boolean;
  /** Where packets carry no payload: what the NIC reads in its place. */
  readonly virtualPayload?: VirtualPayload | undefined;
  readonly priorityOfDscp: (dscp: number) => number;
  readonly pool: FramePool;
}

const DEST_QP_OFFSET = 5;

export class SimStation {
  readonly host: SimHost;
  readonly mac: Uint8Array;
  onPacket: PacketProbe | undefined;
  peer: IpAddress;
  onFrame: FrameSink | undefined;
  tap: StationTap | undefined;
  readonly #events: EventQueue;
  readonly #cable: Cable;
  readonly #pool: FramePool;
  readonly #headerBytes: number;
  readonly #frame = new FrameInfo();
  readonly #pfc = new PfcFrame();
  readonly #rx: RxDatagram;
  readonly #sources = new SourceCache();
  readonly #destinationMac = macOf(IpAddress.parse('0.0.0.0'));
  #destination: IpAddress | undefined;
  #head: Uint8Array | undefined;
  readonly #pipeline: ReceivePipeline | undefined;
  readonly #virtual: VirtualPayload | undefined;

  constructor(options: SimStationOptions) {
    const {
      index,
      events,
      random,
      cable,
      pathMtuMax,
      pipeline,
      carriesPayload = true,
      virtualPayload,
      priorityOfDscp,
      pool,
    } = options;
    const address = IpAddress.fromBytes(Uint8Array.of(10, 0, index >> 8, index & 0xff));
    this.host = new SimHost({ address, events, random, pathMtuMax, carriesPayload, priorityOfDscp });
    this.#virtual = virtualPayload;
    this.mac = macOf(address);
    this.peer = address;
    this.#events = events;
    this.#cable = cable;
    this.#pool = pool;
    this.#headerBytes = frameHeaderBytes(4);
    this.#rx = newRxDatagram(address);
    this.host.connect((batch) => this.#send(batch));
    const pause = (priority: number, isOn: boolean) => this.#ask(priority, isOn ? PFC_QUANTA_MAX : 0);
    this.#pipeline = pipeline && new ReceivePipeline(pipeline, { events, pool, take: this.#take, pause });
  }

  get lostPackets(): number {
    return this.#pipeline?.lostPackets ?? 0;
  }

  get address(): IpAddress {
    return this.host.address;
  }

  readonly receive: SlotSink = (slot) => {
    const pool = this.#pool;
    const frame = this.#frame;
    const bytes = pool.bytes(slot);
    const length = pool.lengths[slot];
    this.onFrame?.(bytes, 0, length);
    if (parseFrame(bytes, 0, length, frame) !== FRAME_OK) {
      if (parsePfc(bytes, 0, length, this.#pfc)) this.#pausePriorities(this.#pfc);
    } else if (this.#pipeline === undefined) this.#handOver(bytes, length);
    else {
      this.#pipeline.add(readU24(bytes, frame.payloadOffset + DEST_QP_OFFSET), slot);
      return;
    }
    pool.release(slot);
  };

  storm(priority: number, untilNs: number): void {
    const repeat = (): void => {
      if (this.#events.nowNs < untilNs) this.#events.after(this.#ask(priority, PFC_QUANTA_MAX) / 2, repeat);
    };
    repeat();
  }

  #ask(priority: number, quanta: number): number {
    const pause = new PfcFrame();
    pause.enabled = 1 << priority;
    pause.quanta[priority] = quanta;
    const bytes = new Uint8Array(PFC_FRAME_BYTES);
    writePfc(bytes, 0, this.mac, pause);
    this.onFrame?.(bytes, 0, bytes.length);
    this.#cable.send(bytes, 0, bytes.length);
    return pauseNs(quanta, this.#cable.rateBps);
  }

  readonly #take: SlotSink = (slot) => {
    const pool = this.#pool;
    const bytes = pool.bytes(slot);
    const length = pool.lengths[slot];
    parseFrame(bytes, 0, length, this.#frame);
    this.#handOver(bytes, length);
    pool.release(slot);
  };

  #handOver(bytes: Uint8Array, length: number): void {
    const rx = this.#rx;
    const frame = this.#frame;
    readFrame(rx, bytes, frame, this.#sources.get(bytes, frame.sourceOffset, frame.addressBytes));
    if (this.#virtual !== undefined) rx.bytes = this.#virtual.read(bytes, 0, length);
    this.peer = rx.source;
    this.onPacket?.(false, rx.bytes, rx.offset, rx.length, rx.ecn);
    if (this.tap === undefined) this.host.receive(rx);
    else this.tap.received(rx, this.#takeIn);
  }

  readonly #takeIn = (): void => this.host.receive(this.#rx);

  #pausePriorities({ enabled, quanta }: PfcFrame): void {
    for (let priority = 0; priority < PRIORITIES; priority++) {
      if ((enabled & (1 << priority)) === 0) continue;
      this.host.pause(priority, pauseNs(quanta[priority], this.#cable.rateBps));
    }
  }

  #send(batch: TxBatch): number {
    const start = batch.payloadOffset(0);
    const length = batch.lengths[0];
    const destination = batch.destinations[0];
    if (destination !== this.#destination) {
      this.#destination = destination;
      this.#destinationMac.set(destination.bytes, 2);
    }
    writeFrameHeaders(batch, 0, this.mac, this.#destinationMac);
    this.peer = destination;
    this.onPacket?.(true, batch.slab, start, length, batch.ecns[0]);
    const [first, frameBytes] = [start - this.#headerBytes, length + this.#headerBytes];
    this.onFrame?.(batch.slab, first, frameBytes);
    this.tap?.sent(batch);
    return this.#cable.send(this.#keptView(batch, first, frameBytes), 0, frameBytes);
  }

  /** At least what the pool keeps of the frame: a copy of a whole view is quicker than one of a part of the slab. */
  #keptView(batch: TxBatch, first: number, frameBytes: number): Uint8Array {
    const { storage } = this.#pool;
    if (storage === undefined || (frameBytes > storage.headBytes && frameBytes <= storage.wholeBytesMax)) {
      return batch.frameView(0, this.#headerBytes);
    }
    // The host has one batch, of one slot.
    this.#head ??= batch.slab.subarray(first, first + storage.headBytes);
    return this.#head;
  }
}

/** A locally administered address that ends in the four bytes of the IP address. */
function macOf(address: IpAddress): Uint8Array {
  return Uint8Array.of(2, 0, ...address.bytes);
}
