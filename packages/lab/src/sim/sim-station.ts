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
import type { FrameStorage } from '../switch/frame-pool.js';
import type { Cable, FrameSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { ReceivePipeline, type ReceivePipelineOptions } from './receive-pipeline.js';
import { SimHost } from './sim-host.js';
import { VirtualPayload } from './virtual-payload.js';

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
  readonly frameBytesMax: number;
  readonly carriesPayload?: boolean;
  readonly priorityOfDscp: (dscp: number) => number;
  readonly storage?: FrameStorage | undefined;
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
  readonly #headerBytes: number;
  readonly #frame = new FrameInfo();
  readonly #pfc = new PfcFrame();
  readonly #rx: RxDatagram;
  readonly #sources = new SourceCache();
  readonly #destinationMac = macOf(IpAddress.parse('0.0.0.0'));
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
      frameBytesMax,
      carriesPayload = true,
      priorityOfDscp,
      storage,
    } = options;
    const address = IpAddress.fromBytes(Uint8Array.of(10, 0, index >> 8, index & 0xff));
    this.host = new SimHost({ address, events, random, pathMtuMax, carriesPayload, priorityOfDscp });
    if (!carriesPayload) this.#virtual = new VirtualPayload(frameBytesMax);
    this.mac = macOf(address);
    this.peer = address;
    this.#events = events;
    this.#cable = cable;
    this.#headerBytes = frameHeaderBytes(4);
    this.#rx = newRxDatagram(address);
    this.host.connect((batch) => this.#send(batch));
    const pause = (priority: number, isOn: boolean) => this.#ask(priority, isOn ? PFC_QUANTA_MAX : 0);
    this.#pipeline =
      pipeline && new ReceivePipeline(pipeline, { events, frameBytesMax, storage, take: this.#take, pause });
  }

  get lostPackets(): number {
    return this.#pipeline?.lostPackets ?? 0;
  }

  get address(): IpAddress {
    return this.host.address;
  }

  readonly receive = (bytes: Uint8Array, offset: number, length: number): void => {
    const frame = this.#frame;
    this.onFrame?.(bytes, offset, length);
    if (parseFrame(bytes, offset, length, frame) !== FRAME_OK) {
      if (parsePfc(bytes, offset, length, this.#pfc)) this.#pausePriorities(this.#pfc);
    } else if (this.#pipeline === undefined) this.#handOver(bytes, offset, length);
    else this.#pipeline.add(readU24(bytes, frame.payloadOffset + DEST_QP_OFFSET), bytes, offset, length);
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

  readonly #take: FrameSink = (bytes, offset, length) => {
    parseFrame(bytes, offset, length, this.#frame);
    this.#handOver(bytes, offset, length);
  };

  #handOver(bytes: Uint8Array, offset: number, length: number): void {
    const rx = this.#rx;
    const frame = this.#frame;
    readFrame(rx, bytes, frame, this.#sources.get(bytes, frame.sourceOffset, frame.addressBytes));
    if (this.#virtual !== undefined) {
      rx.bytes = this.#virtual.read(bytes, offset, length);
      rx.offset -= offset;
    }
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
    this.#destinationMac.set(batch.destinations[0].bytes, 2);
    writeFrameHeaders(batch, 0, this.mac, this.#destinationMac);
    this.peer = batch.destinations[0];
    this.onPacket?.(true, batch.slab, start, length, batch.ecns[0]);
    const [first, frameBytes] = [start - this.#headerBytes, length + this.#headerBytes];
    this.onFrame?.(batch.slab, first, frameBytes);
    this.tap?.sent(batch);
    return this.#cable.send(batch.slab, first, frameBytes);
  }
}

/** A locally administered address that ends in the four bytes of the IP address. */
function macOf(address: IpAddress): Uint8Array {
  return Uint8Array.of(2, 0, ...address.bytes);
}
